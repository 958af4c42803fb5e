"""Responses that several routes share: a result now or later, a stream's description."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive

_Result = TypeVar("_Result")

#: A response that is not the end, for the OpenAPI document.
ACCEPTED: dict[str, Any] = {
    "description": "It is under way; ask there.",
    "headers": {
        "Location": {
            "description": "Where to ask for the end.",
            "schema": {"type": "string"},
        },
        "Retry-After": {
            "description": "Seconds.",
            "schema": {"type": "integer", "minimum": 1},
        },
    },
}


async def while_connected(
    receive: Receive, work: Coroutine[Any, Any, _Result]
) -> _Result:
    """Return the result of *work*, which is given up when the client disconnects.

    Raises:
        ClientDisconnect: it did.
    """
    leaving = asyncio.ensure_future(_hear_leaving(receive))
    deadline = asyncio.timeout(None)

    def give_up(_gone: object) -> None:
        deadline.reschedule(0)

    try:
        async with deadline:
            leaving.add_done_callback(give_up)
            try:
                return await work
            finally:
                leaving.remove_done_callback(give_up)
    except TimeoutError:
        if deadline.expired():
            raise ClientDisconnect from None
        raise
    finally:
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)


async def _hear_leaving(receive: Receive) -> None:
    """Return at the end of the connection; an unread body comes before it."""
    while (await receive())["type"] != "http.disconnect":
        pass


def respond_json(body: BaseModel, location: str, *, is_done: bool) -> Response:
    """Return *body* with 200 when it is the end, else with 202 and the *location* where to ask for it."""
    headers = {"Cache-Control": "no-store"} | (
        {} if is_done else {"Location": location, "Retry-After": "1"}
    )
    status = 200 if is_done else 202
    return Response(
        body.model_dump_json(),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )
