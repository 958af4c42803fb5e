"""A client of the HTTP API: every operation by its noun, typed, for threads and for event loops.

Made from the OpenAPI document (`python -m deploy.client_source`). It is on its own: nothing of the supervisor is
imported, and what a newer server adds to its answers is passed over. `models` are its views.
"""

from tasklore.client import models
from tasklore.client.clients import AsyncClient, Client
from tasklore.client.errors import (
    ApiError,
    ClientError,
    NotDone,
    ServerUnreachable,
    TaskFailed,
    UnknownAnswer,
)

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientError",
    "NotDone",
    "ServerUnreachable",
    "TaskFailed",
    "UnknownAnswer",
    "models",
]
