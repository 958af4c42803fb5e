"""What signs the tokens of streams for the operations, which know no key."""

from typing import Protocol


class TokenSigner(Protocol):
    """What makes tokens that every supervisor reads."""

    def make(self, path: str, key: str, after: str | None = None) -> tuple[str, int]:
        """Return a token for the stream at *path*, made with the key called *key*, and when it ends.

        Raises:
            LookupError: there is no such key any more.
        """
        ...
