"""Asking a person at a terminal before something is done for good."""

import sys

from tasklore.exits import Aborted


def confirm(question: str, *, unasked: str, declined: str) -> None:
    """Return when the person at the terminal says yes to *question*.

    Raises:
        Aborted: with *unasked* where there is no terminal, with *declined* when the answer is no.
    """
    import typer

    if not sys.stdin.isatty():
        raise Aborted(unasked)
    if not typer.confirm(question, err=True):
        raise Aborted(declined)
