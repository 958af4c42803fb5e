"""What keeps a row from being worked on."""

from contracts.errors import TaskloreError


class Unreadable(TaskloreError):
    """A row cannot be worked on, and never will be."""

    retryable = False
