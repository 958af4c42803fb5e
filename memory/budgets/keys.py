"""The Redis keys of budgets."""


def budget(*parts: str) -> str:
    """Return the key of a part of the budgets: all in one slot, as one call is held against many accounts."""
    return ":".join(
        (
            "tl:budget:{all}",
            *(part.replace("{", "%7B").replace("}", "%7D") for part in parts),
        )
    )
