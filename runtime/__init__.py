"""The platform: settings, connections, the pull engine, the LLM client, metrics, logs and embedded servers.

Nothing here knows a task, an agent or a question; those are the business of `workers` and `supervisor`.
"""

if __name__ != "tasklore.runtime":
    raise ImportError(
        f"{__name__!r} is a folder of the package; import 'tasklore.runtime'"
    )
