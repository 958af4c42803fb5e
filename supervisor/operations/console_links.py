"""What signs the links to the console for the operations, which know no key."""

from typing import Protocol

from tasklore.contracts.callers import Caller


class ConsoleLinks(Protocol):
    """Signs tokens that sign their caller in."""

    @property
    def address(self) -> str | None:
        """Where links lead to; None: to where one was asked for."""

    def make_link(self, caller: Caller) -> tuple[str, int]:
        """Return a token of *caller*, and when it expires, in seconds since 1970."""
