"""The memory: one mechanical store per kind, each given a Redis client and its limits.

A client must not decode responses. No LLM client, no broker and no settings: the decision to store is made in
`workers` or `supervisor`.
"""
