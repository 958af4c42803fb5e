"""The memory: one mechanical store per kind, each given a Redis client and its limits.

A client must not decode responses. No LLM client, no broker and no settings: the decision to store is made in
`workers` or `supervisor`.
"""

if __name__ != "tasklore.memory":
    raise ImportError(
        f"{__name__!r} is a folder of the package; import 'tasklore.memory'"
    )
