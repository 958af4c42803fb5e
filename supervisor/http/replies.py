"""What routes answer with, and what they share: JSON, a place to look at later, a digest of what was asked."""

import asyncio
import hashlib
import json
from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive

from supervisor.http.parts import Parts

_Result = TypeVar("_Result")

#: The body of a stream of events, for the OpenAPI document.
EVENTS: dict[str, Any] = {
    "text/event-stream": {
        "schema": {
            "type": "object",
            "description": "One event; `data` is JSON.",
            "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
        }
    }
}
#: Headers of an answer that is not the end.
LOCATED: dict[str, Any] = {"Location": {"description": "Where to ask for the end.", "schema": {"type": "string"}}}
RETRY: dict[str, Any] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}


def is_none(value: object) -> bool:
    """Return whether a field is left out of an answer, as it has nothing to say."""
    return value is None


def under_way(model: type[BaseModel]) -> dict[str, Any]:
    """Return how the OpenAPI document tells of a 202 whose body is a *model*."""
    return {"model": model, "description": "It is under way; ask there.", "headers": {**LOCATED, **RETRY}}


class Cancelled(BaseModel):
    """What came of a wish to cancel: `too_late` when it had ended, as `status`; `noted` when it is no task yet."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    outcome: Literal["cancelled", "too_late", "noted"]
    status: str | None = None


async def while_heard(receive: Receive, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Return the result of *work*, which is given up when the client goes away, of whom *receive* tells.

    Raises:
        ClientDisconnect: it has.
    """
    # The body has been read: what comes now is the end of the connection.
    leaving = asyncio.ensure_future(receive())
    heard = asyncio.timeout(None)

    def give_up(_gone: object) -> None:
        heard.reschedule(0)

    try:
        async with heard:
            leaving.add_done_callback(give_up)
            try:
                return await work
            finally:
                leaving.remove_done_callback(give_up)
    except TimeoutError:
        if heard.expired():
            raise ClientDisconnect from None
        raise
    finally:
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)


def json_response(body: BaseModel, location: str, *, is_done: bool) -> Response:
    """Return *body* with 200 when it is the end, else with 202 and the *location* where to ask for it."""
    headers = {"Cache-Control": "no-store"} | ({} if is_done else {"Location": location, "Retry-After": "1"})
    status = 200 if is_done else 202
    return Response(body.model_dump_json(), status_code=status, headers=headers, media_type="application/json")


def digest_of(asked: Mapping[str, Any]) -> str:
    """Return what tells one body from another, however its keys are ordered."""
    return hashlib.blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=16).hexdigest()


async def cancelled(parts: Parts, task_id: str, reason: str) -> Cancelled:
    """Cancel a task and return what came of it.

    Raises:
        MemoryUnavailable: the ledger does not answer.
    """
    came = await parts.canceller.cancel(task_id, reason)
    return Cancelled(outcome=came.outcome, status=came.status)
