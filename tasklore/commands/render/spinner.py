"""A sign of life on stderr for a command without an event loop, once it has lasted a second; nothing off a terminal."""

import contextlib
import sys
from collections.abc import Iterator

from tasklore.commands.render.screen import PATIENCE_S, is_colourful, styled

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAME_S = 0.1
#: Brings the cursor to the first place of its line, and clears that.
_CLEAR = "\r\x1b[2K"


@contextlib.contextmanager
def show_patience(doing: str) -> Iterator[None]:
    """Show *doing* on stderr for as long as the block lasts, once that has been `PATIENCE_S`."""
    if not is_colourful(sys.stderr):
        yield
        return
    import threading

    ended = threading.Event()

    def spin() -> None:
        wait_s = PATIENCE_S
        frame = 0
        while not ended.wait(wait_s):
            sign = styled(_FRAMES[frame % len(_FRAMES)], "green", sys.stderr)
            sys.stderr.write(f"{_CLEAR}{sign} {doing}")
            sys.stderr.flush()
            frame += 1
            wait_s = _FRAME_S
        if frame:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    # A daemon: Ctrl-C ends the command at once, whatever this one does.
    spinner = threading.Thread(target=spin, daemon=True)
    spinner.start()
    try:
        yield
    finally:
        ended.set()
        spinner.join(_FRAME_S)
