"""The platform: settings, connections, the pull engine, the LLM client, metrics, logs and embedded servers.

Nothing here knows a task, an agent or a question; those are the business of `workers` and `supervisor`.
"""
