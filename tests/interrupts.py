"""Ctrl-C for processes of tests, also of a run in the background, whose children would ignore it."""

import signal


def hear_interrupts() -> None:
    """Let the process that is about to begin end by SIGINT, as one at a terminal does: a `preexec_fn`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
