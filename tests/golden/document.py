"""The OpenAPI document of every operation, made without a server."""

from dataclasses import MISSING, fields
from typing import Any

from nats.aio.client import Client as NatsClient
from redis.asyncio import Redis

from tasklore.supervisor.http.app import make_app
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.http.mount import mount
from tasklore.supervisor.live_workers import LiveWorkers
from tasklore.supervisor.operations.nouns import NOUNS

#: Operations that only a process with an operator's rights serves.
OPERATORS = [
    one for noun in NOUNS for one in noun.operations if one.mounted == "operations"
]


def unasked_parts() -> ApiDependencies:
    """Return parts of which nothing is asked."""
    given: dict[str, Any] = {
        part.name: None
        for part in fields(ApiDependencies)
        if part.default is MISSING and part.default_factory is MISSING
    }
    working = {"redis": Redis(), "attendance": LiveWorkers(NatsClient())}
    return ApiDependencies(**(given | working))


def make_document() -> dict[str, Any]:
    """Return the document without the version of the package, which changes alone.

    Routes only keep what they are given until somebody asks, so that nothing of it has
    to work.
    """
    app = make_app(unasked_parts())
    for operation in OPERATORS:
        app.include_router(mount(None, (operation,)))
    document: dict[str, Any] = app.openapi()
    del document["info"]["version"]
    return document
