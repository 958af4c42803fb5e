"""Numbers and lists of names as a person reads them."""

from collections.abc import Sequence


def count(number: int, one: str, many: str | None = None) -> str:
    """Return *number* with the word for it: `1 task`, `2 tasks`; *many* for words that do not end in s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def join_names(names: Sequence[str], at_most: int = 5) -> str:
    """Return *names* joined by commas, those past *at_most* only counted."""
    rest = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {rest} more" if rest > 0 else "")
