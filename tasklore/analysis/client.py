"""Asking the supervisor for the analysis of a response, and hearing what there is of it."""

import asyncio
import time

from nats.aio.client import Client
from pydantic import ValidationError

from contracts import subjects
from contracts.errors import InvalidInput, MessageTooLarge, Unreachable
from contracts.messages import AnalysisReply, AnalysisRequest
from tasklore.ask.call import Call
from tasklore.places import current_supervisor
from tasklore.render.screen import printable

#: Seconds that the reply may be late after the time that the supervisor was given.
LATE_S = 5.0
#: Seconds for asking once more then: a supervisor that was replaced meanwhile finds what was begun.
LAST_S = 5.0
#: Seconds before the end from which on "pending" means that the time is over, and a pause before asking again.
EARLY_S, _PAUSE_S = 1.0, 0.2


class Asking:
    """One request until its reply, to *supervisor_id*; None is the one whom the environment names."""

    def __init__(self, client: Client, request: AnalysisRequest, supervisor_id: str | None = None) -> None:
        self._client = client
        self._request = request
        self._supervisor_id = supervisor_id
        self._call: Call | None = None

    def ask_again(self) -> None:
        """Send the request once more: whoever took it may be gone, and its successor tells what there is."""
        if self._call is not None:
            self._call.ask_again()

    async def reply(self) -> AnalysisReply:
        """Return what was found by the time of the request.

        One who leaves says before that time that it is pending: then whoever follows is asked.

        Raises:
            InvalidInput: it is refused.
            MessageTooLarge: the response does not fit into a message.
            Unreachable: nobody takes the request, or whoever took it fell silent.
        """
        request = self._request
        if len(request.model_dump_json(exclude_none=True).encode()) > subjects.MAX_BODY:
            raise MessageTooLarge(
                f"the response has {len(request.text or ''):,} characters, a message holds {subjects.MAX_BODY:,} "
                "bytes; cut it into several"
            )
        subject = subjects.analyses(self._supervisor_id or current_supervisor())
        ends_at, was_taken = time.monotonic() + request.wait_ms / 1000, False
        while True:
            reply = await self._replied(subject, ends_at, was_taken=was_taken)
            if reply.kind != "pending" or ends_at - time.monotonic() < EARLY_S:
                return reply
            was_taken = True
            await asyncio.sleep(_PAUSE_S)

    async def _replied(self, subject: str, ends_at: float, *, was_taken: bool) -> AnalysisReply:
        def body() -> bytes:
            return self._body(ends_at, was_taken=call.was_taken)

        call = self._call = Call(self._client, subject, body, was_taken=was_taken)
        late_s = ends_at - time.monotonic() + LATE_S
        reply = _read(await call.reply(late_s + LAST_S, late_s))
        if reply.kind == "refused":
            raise InvalidInput(printable(reply.text) or "the supervisor refused, and did not say why; its log does")
        if reply.kind == "other":
            raise Unreachable("the supervisor answered in a way that is newer than this command; use the same version")
        return reply

    def _body(self, ends_at: float, *, was_taken: bool) -> bytes:
        left_s = ends_at - time.monotonic()
        is_late = left_s <= -LATE_S
        wish = self._request
        if was_taken or is_late:
            wait_ms = int((LAST_S / 2 if is_late else max(0.0, left_s)) * 1000)
            # What was begun is asked for, and nothing is begun anew a second time.
            wish = wish.model_copy(update={"wait_ms": wait_ms, "refresh": False})
        return wish.model_dump_json(exclude_none=True).encode()


def _read(body: bytes) -> AnalysisReply:
    try:
        return AnalysisReply.model_validate_json(body)
    except ValidationError as error:
        msg = f"the supervisor answered with something else than a reply: {body[:200]!r}; are the versions the same?"
        raise Unreachable(msg) from error
