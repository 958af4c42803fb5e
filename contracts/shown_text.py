"""The words of a task on the screen of whoever asked, which nobody takes back, and what is still to be said."""

#: Words between the output of a run that broke off, or ended to wait, and that of the next one; in place of events that
#: were lost.
_BROKE_OFF = "\n\n[broke off, and begins again]\n\n"
_WAITED = "\n\n[waited, and begins again]\n\n"
_LOST = "[...]"


class ShownText:
    """The output of one task that was shown so far; each method returns the words to show next."""

    def __init__(self) -> None:
        self._shown = ""

    def add(self, piece: str) -> str:
        """Return *piece* of the output."""
        self._shown += piece
        return piece

    def restart(self, *, has_waited: bool) -> str:
        """Return what stands between the run that ended and a new one, which says all again; "" where nothing was."""
        words = _WAITED if has_waited else _BROKE_OFF
        was_said = bool(self._shown)
        self._shown = ""
        return words if was_said else ""

    def skip(self) -> str:
        """Return what stands for events that were lost."""
        return _LOST

    def finish(self, reply: str) -> str:
        """Return the words of *reply* that were not shown."""
        shown = self._shown.strip()
        if not shown:
            return reply
        if reply.startswith(self._shown):
            return reply[len(self._shown) :]
        before, middle, after = reply.partition(shown)
        if middle and not before.strip():
            return after
        return "" if middle or reply.strip() in shown else f"\n\n{reply}"
