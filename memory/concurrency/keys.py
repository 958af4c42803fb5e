"""The Redis keys of bounds on runs."""

from tasklore.memory.key_parts import escape


def places(bound: str) -> tuple[str, str, str, str]:
    """Return the keys of one bound on runs: places that are held, by which runs, and those that wait."""
    return (
        (root := f"tl:places:{{{escape(bound, 'bound')}}}"),
        f"{root}:runs",
        f"{root}:queue",
        f"{root}:seen",
    )
