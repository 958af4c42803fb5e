"""What the loops of this room need of the table of waiting rows, of the documents' store and of whoever counts."""

from contracts.errors import TaskloreError


class LeaseLost(TaskloreError):
    """The rows are somebody else's by now, or will be: stop, whatever comes of this run is refused."""


class Unreadable(TaskloreError):
    """A row cannot be worked on, and never will be."""

    retryable = False
