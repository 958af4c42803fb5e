"""Asking the supervisor for the analysis of a response, and hearing what there is of it."""

import asyncio
import time
from collections.abc import Callable

from nats.aio.client import Client
from pydantic import ValidationError

from contracts import subjects
from contracts.errors import InvalidInput, MessageTooLarge, Unreachable
from contracts.messages import AnalysisReply, AnalysisRequest
from tasklore.calling import Call
from tasklore.places import current_supervisor
from tasklore.screen import printable

#: Seconds that the reply may be late after the time that the supervisor was given.
LATE_S = 5.0
#: Seconds for asking once more then: a supervisor that was replaced meanwhile finds what was begun.
LAST_S = 5.0
#: Seconds before the end from which on "pending" means that the time is over, and a pause before asking again.
EARLY_S, _PAUSE_S = 1.0, 0.2


async def ask(client: Client, request: AnalysisRequest, supervisor_id: str | None = None) -> AnalysisReply:
    """Return what *supervisor_id*, None is the one whom the environment names, found by the time of *request*.

    One who leaves says before that time that it is pending: then whoever follows is asked.

    Raises:
        InvalidInput: it refuses.
        MessageTooLarge: the response does not fit into a message.
        Unreachable: nobody takes the request, or whoever took it fell silent.
    """
    if len(request.model_dump_json(exclude_none=True).encode()) > subjects.MAX_BODY:
        raise MessageTooLarge(
            f"the response has {len(request.text or ''):,} characters, a message holds {subjects.MAX_BODY:,} bytes; "
            "cut it into several"
        )
    subject = subjects.analyses(supervisor_id or current_supervisor())
    ends_at = time.monotonic() + request.wait_ms / 1000
    while True:
        reply = await _replied(client, subject, request)
        left_s = ends_at - time.monotonic()
        if reply.kind != "pending" or left_s < EARLY_S:
            return reply
        await asyncio.sleep(_PAUSE_S)
        request = request.model_copy(update={"wait_ms": int(left_s * 1000), "refresh": False})


async def _replied(client: Client, subject: str, request: AnalysisRequest) -> AnalysisReply:
    late_s = request.wait_ms / 1000 + LATE_S
    reply = _read(await Call(client, subject, _bodies(request, late_s)).reply(late_s + LAST_S, late_s))
    if reply.kind == "refused":
        raise InvalidInput(printable(reply.text) or "the supervisor refused, and did not say why; its log does")
    if reply.kind == "other":
        raise Unreachable("the supervisor answered in a way that is newer than this command; use the same version")
    return reply


def _bodies(request: AnalysisRequest, late_s: float) -> Callable[[], bytes]:
    late_at = time.monotonic() + late_s

    def body() -> bytes:
        wish = request
        if time.monotonic() >= late_at:
            # What was begun is asked for, and nothing is begun anew a second time.
            wish = wish.model_copy(update={"wait_ms": int(LAST_S * 500), "refresh": False})
        return wish.model_dump_json(exclude_none=True).encode()

    return body


def _read(body: bytes) -> AnalysisReply:
    try:
        return AnalysisReply.model_validate_json(body)
    except ValidationError as error:
        msg = f"the supervisor answered with something else than a reply: {body[:200]!r}; are the versions the same?"
        raise Unreachable(msg) from error
