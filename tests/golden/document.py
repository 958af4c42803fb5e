"""The OpenAPI document of the API, made without a server."""

from dataclasses import MISSING, fields
from typing import Any

from redis.asyncio import Redis

from tasklore.supervisor.http.app import make_app
from tasklore.supervisor.http.parts import ApiParts


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
    document: dict[str, Any] = make_app(parts).openapi()
    del document["info"]["version"]
    return document
