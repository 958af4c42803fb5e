"""The OpenAPI document of every operation, made without a server."""

from dataclasses import MISSING, fields
from typing import Any

from redis.asyncio import Redis

from tasklore.supervisor.http.app import make_app
from tasklore.supervisor.http.mount import mount
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.operations import (
    dead_letters,
    memories,
    results,
    retirement,
    sessions,
)

#: Operations that only a process with an operator's rights serves.
OPERATORS = (
    dead_letters.OPERATIONS,
    results.OPERATIONS,
    sessions.OPERATIONS,
    retirement.OPERATIONS,
    memories.EDITS,
)


def make_document() -> dict[str, Any]:
    """Return the document without the version of the package, which changes alone.

    Routes only keep what they are given until somebody asks, so that nothing of it has
    to work.
    """
    given: dict[str, Any] = {
        part.name: None
        for part in fields(ApiParts)
        if part.default is MISSING and part.default_factory is MISSING
    }
    parts = ApiParts(**(given | {"redis": Redis()}))
    app = make_app(parts)
    for operations in OPERATORS:
        app.include_router(mount(None, operations))
    document: dict[str, Any] = app.openapi()
    del document["info"]["version"]
    return document
