"""A client of a running system for programs: tasks asked for, and memory handed in, searched and changed, over HTTP.

It is on its own: nothing of supervisor or workers is imported, and what the server adds to its answers is passed over.
"""

from tasklore.client.clients import AsyncClient, Client
from tasklore.client.errors import ApiError, NotDone, Unreachable
from tasklore.client.results import (
    Changed,
    Forgotten,
    Item,
    Keeping,
    Match,
    Matches,
    Reply,
    Schedule,
    Task,
    TaskEntry,
    Turn,
    WaitingRow,
)

__all__ = [
    "ApiError",
    "AsyncClient",
    "Changed",
    "Client",
    "Forgotten",
    "Item",
    "Keeping",
    "Match",
    "Matches",
    "NotDone",
    "Reply",
    "Schedule",
    "Task",
    "TaskEntry",
    "Turn",
    "Unreachable",
    "WaitingRow",
]
