"""What cannot be read as a value; each message says the cure."""

from collections.abc import Sequence


class TaskloreError(Exception):
    """Base of every error that Tasklore raises on purpose; `except TaskloreError` is enough for a caller."""


class InvalidInput(TaskloreError):
    """Something handed in is unusable; the message names the field and the cure. Never retried."""


class InvalidAmount(InvalidInput):
    """A quantity cannot be read, is no finite number, or has more digits than are kept exactly."""


class AmbiguousAmount(InvalidAmount):
    """A quantity or a date has two readings ("1.500"); `readings` holds both spelled plainly, for a question back."""

    def __init__(
        self,
        text: str,
        readings: Sequence[str],
        cure: str = "write the number without separators",
    ) -> None:
        super().__init__(f"{text!r} can mean {' or '.join(readings)}; {cure}")
        self.text = text
        self.readings = tuple(readings)


class UnitMismatch(InvalidAmount):
    """A quantity comes in a unit that its field does not take; convert it before asking."""
