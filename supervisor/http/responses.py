"""Responses that several routes share: a result now or later, a cancellation, a stream's description."""

import asyncio
import hashlib
import json
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    AliasChoices,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive

from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import Fault, unusable

_Result = TypeVar("_Result")

#: A minute: clocks differ, and a request takes its time.
_CLOCKS_DIFFER = timedelta(minutes=1)
#: The body of a stream of events, for the OpenAPI document.
EVENTS: dict[str, Any] = {
    "text/event-stream": {
        "schema": {
            "type": "object",
            "description": "One event; `data` is JSON.",
            "properties": {
                name: {"type": "string"} for name in ("id", "event", "data")
            },
        }
    }
}
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


class View(BaseModel):
    """A body that the API returns."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, from_attributes=True)


class Form(BaseModel):
    """A body that the API takes; unknown fields are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


def _demand_time(given: object) -> object:
    """Return *given* unless it is a number: nobody means seconds since 1970."""
    if given is not None and not isinstance(given, str | datetime):
        raise ValueError("must be a time as text, such as 2026-11-24T09:00:00Z")
    if (
        isinstance(given, str)
        and given.strip().lstrip("+-").replace(".", "", 1).isdigit()
    ):
        raise ValueError("must be a time such as 2026-11-24T09:00:00Z, not a number")
    return given


#: A time with its zone, as text of RFC 3339 alone.
SpelledTime = Annotated[AwareDatetime, BeforeValidator(_demand_time)]


class Later(Form):
    """A body that may say when its work begins: at a time with its zone, or so many seconds from now."""

    at: Annotated[
        AwareDatetime | None,
        Field(
            strict=False,
            validation_alias=AliasChoices("at", "not_before"),
            description="RFC 3339, with its zone.",
        ),
    ] = None
    after: Annotated[float | None, Field(ge=0, description="Seconds.")] = None

    def find_start(self, now: datetime) -> datetime | None:
        """Return when the work begins, in UTC; None is at once.

        Raises:
            Refused: 422, both were given, or the time has passed.
        """
        if self.at is not None and self.after is not None:
            raise unusable(
                [Fault(where="after", message="say either `at` or `after`, not both")]
            )
        if self.after is not None:
            try:
                return now + timedelta(seconds=self.after)
            except OverflowError as error:
                raise unusable(
                    [
                        Fault(
                            where="after",
                            message="is too long; the calendar ends before",
                        )
                    ]
                ) from error
        if self.at is not None and self.at < now - _CLOCKS_DIFFER:
            raise unusable(
                [Fault(where="at", message="has passed; leave it out to start at once")]
            )
        return self.at.astimezone(UTC) if self.at is not None else None


def is_none(value: object) -> bool:
    """Return whether a field is left out of a body, as it says nothing."""
    return value is None


class Cancelled(View):
    """The result of a cancellation: `too_late` when it had ended, as `status`; `noted` when it is no task yet."""

    outcome: Literal["cancelled", "too_late", "noted"]
    status: str | None = None


async def while_connected(
    receive: Receive, work: Coroutine[Any, Any, _Result]
) -> _Result:
    """Return the result of *work*, which is given up when the client disconnects.

    Raises:
        ClientDisconnect: it did.
    """
    # The body has been read: the next message is the end of the connection.
    leaving = asyncio.ensure_future(receive())
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


def digest_of(body: Mapping[str, Any]) -> str:
    """Return a digest of *body*, the same in whatever order its keys are."""
    return hashlib.blake2b(
        json.dumps(body, sort_keys=True).encode(), digest_size=16
    ).hexdigest()


async def cancel_task(parts: ApiParts, task_id: str, reason: str) -> Cancelled:
    """Cancel a task and return the result.

    Raises:
        MemoryUnavailable: the ledger does not answer.
    """
    found = await parts.canceller.cancel(task_id, reason)
    return Cancelled(outcome=found.outcome, status=found.status)
