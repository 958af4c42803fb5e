"""Who answers: the agent API, the host that runs an agent, and the kit that tests it.

Here belong declaring, loading and running agents; what they remember lies in `memory`, who asks them in `supervisor`.
"""

if __name__ != "tasklore.workers":
    raise ImportError(
        f"{__name__!r} is a folder of the package; import 'tasklore.workers'"
    )
