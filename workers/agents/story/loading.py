"""How much of what was told may go into the next prompt: always less than it was made of."""

#: From so many tokens on, what is loaded is at most this share of them.
_LARGE, _SHARE = 1_000, 0.3


class Loading:
    """The tokens that are left for what is loaded out of *before* tokens."""

    def __init__(self, before: int) -> None:
        self._left = before if before <= _LARGE else int(before * _SHARE)

    def takes(self, tokens: int, *, always: bool = False) -> bool:
        """Tell whether so many *tokens* more may be loaded; what must *always* be is, and counts."""
        if tokens > self._left and not always:
            return False
        self._left -= tokens
        return True
