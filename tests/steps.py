"""The work of reading a text as a number that no load of the machine changes."""

import sys
from collections.abc import Callable


def steps(read: Callable[[str], object], text: str) -> int:
    """Return how many functions are called to read *text*."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(counted)
    try:
        read(text)
    finally:
        sys.setprofile(None)
    return count
