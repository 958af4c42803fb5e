"""Requests under way in this process: each goes on when its client leaves, and any number of clients wait for it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import (
    PersonReply,
    PersonRequest,
    ReplyPart,
    TaskAssignment,
)
from tasklore.memory.command_batch import Commands
from tasklore.memory.ledger.requests import Reply, RequestRecords
from tasklore.supervisor.operations.refusals import over_share, unavailable
from tasklore.supervisor.requests.kept_replies import spell_reply
from tasklore.supervisor.requests.request import ExtraCommands
from tasklore.supervisor.service import Service

log = structlog.get_logger(__name__)

#: Requests under way at once; each mostly waits for its report.
MOST = 2000
#: Milliseconds for which this process holds a request; renewed three times within it.
HOLD_MS = 9000
_RENEW_S = 3.0
#: The reply to a request that met a fault of ours before it became a task.
_BROKEN = "Something went wrong with this request. Send it again."


class InFlight:
    """One request of the caller *holder*: `routed` are its tasks so far; `reply` is there at its end.

    Where another process made its reply first, which counts, there is none here.
    `parts` are those of several that have been answered, by the ids of their tasks. `changed` is set, once, when there
    is more to tell than when it was looked up.
    """

    def __init__(self, holder: str = "") -> None:
        self.holder = holder
        self.routed: list[TaskAssignment] = []
        self.parts: dict[str, ReplyPart] = {}
        self.reply: PersonReply | None = None
        self.error: Exception | None = None
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()

    def note_routed(self, assignment: TaskAssignment) -> None:
        """Take note of one of its tasks."""
        self.routed.append(assignment)
        self._change()

    def note_ended(self, _place: int, part: ReplyPart) -> None:
        """Take note of one of several parts, unless it is no task or goes on."""
        if part.task_id is not None and part.kind != "pending":
            self.parts[part.task_id] = part
            self._change()

    def end(self) -> None:
        """Wake everybody who waits for its end."""
        self.ended.set()
        self._change()

    def _change(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def wait(self, within_s: float) -> bool:
        """Return whether it has ended, after *within_s* seconds at the latest."""
        if not self.ended.is_set() and within_s > 0:
            try:
                async with asyncio.timeout(within_s):
                    await self.ended.wait()
            except TimeoutError:
                return False
        return self.ended.is_set()


class InFlightRequests:
    """Runs requests by *service*, each under its place in *records*, and each once in this process."""

    def __init__(self, service: Service, records: RequestRecords) -> None:
        self._service = service
        self._records = records
        self._under_way: dict[str, InFlight] = {}
        self._of_holder: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._under_way)

    def find(self, place: str) -> InFlight | None:
        """Return the request under way at *place* in this process, or None."""
        return self._under_way.get(place)

    async def begin(
        self,
        place: str,
        request: PersonRequest,
        holder: str = "",
        most: int = MOST,
        *,
        is_new: bool = False,
        claim: Commands = (),
    ) -> InFlight | None:
        """Begin *request*, or return the one under way at *place*; None when another process works on it.

        *holder* is the caller it came from, who may have *most* under way. With *is_new* its ids were just made here:
        its conversation is empty, and it is held already, or by *claim*, which the store takes with its words.

        Raises:
            Refused: 429, too much with that key is under way; 503, too much of all.
        """
        if (known := self._under_way.get(place)) is not None:
            return known
        if len(self._under_way) >= MOST:
            raise unavailable(
                f"{MOST} requests are under way here; ask again with the same Idempotency-Key"
            )
        if self._of_holder[holder] >= most:
            raise over_share(
                f"{most} requests with this key are under way; ask again with the same Idempotency-Key"
            )
        underway = self._under_way[place] = InFlight(holder)
        self._of_holder[holder] += 1
        try:
            is_ours = is_new or await self._records.hold(place, HOLD_MS)
        except MemoryUnavailable:
            # The service itself starts nothing twice.
            is_ours = True
        except BaseException:
            self._end(place, underway)
            raise
        if not is_ours:
            self._end(place, underway)
            return None
        task = asyncio.create_task(
            self._run(place, request, underway, is_new=is_new, claim=claim)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return underway

    async def idle(self, within_s: float) -> None:
        """Return when nothing is under way, after *within_s* seconds at the latest."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=within_s)

    @asynccontextmanager
    async def going(self) -> AsyncIterator[None]:
        """Hold every request under way within the block, and end them after it: another process may go on with them."""
        renewing = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            ending = {renewing, *self._tasks}
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def _run(
        self,
        place: str,
        request: PersonRequest,
        underway: InFlight,
        *,
        is_new: bool,
        claim: Commands,
    ) -> None:
        kept: Reply | None = None
        alongside = ExtraCommands(
            claim,
            lambda reply: self._records.letting_go(
                place, spell_reply(reply, request.user_id)
            ),
        )
        try:
            reply = await self._service.answer(
                request,
                routed=underway.note_routed,
                before=() if is_new else None,
                ended=underway.note_ended,
                is_new=is_new,
                alongside=alongside,
            )
            underway.reply = reply
            if reply.kind != "pending" and not alongside.has_ended:
                kept = spell_reply(reply, request.user_id)
        except Exception as error:
            log.exception("http_work_failed")
            underway.error = error
            if not underway.routed:
                kept = spell_reply(_say_broken(place, request), request.user_id)
        finally:
            is_first = alongside.is_first
            if not alongside.has_ended:
                is_first = await self._let_go(place, kept)
            if not is_first and underway.reply is not None:
                # Another process was the first: whoever waits here reads what it kept.
                underway.reply = None
            self._end(place, underway)

    async def _let_go(self, place: str, kept: Reply | None) -> bool:
        """Work on the request at *place* no more, and return whether *kept*, if that is given, is its first reply."""
        try:
            return await self._records.let_go(place, kept)
        except MemoryUnavailable as error:
            log.info("reply_not_kept", error=str(error))
            return True

    def _end(self, place: str, underway: InFlight) -> None:
        if self._under_way.get(place) is underway:
            del self._under_way[place]
            self._of_holder[underway.holder] -= 1
            if not self._of_holder[underway.holder]:
                del self._of_holder[underway.holder]
        underway.end()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_S)
            if places := list(self._under_way):
                try:
                    await self._records.keep_holding(places, HOLD_MS)
                except MemoryUnavailable as error:
                    log.info("requests_not_held", error=str(error))


def _say_broken(place: str, request: PersonRequest) -> PersonReply:
    """Return the reply to a *request* that failed by a fault of ours."""
    return PersonReply(
        request_id=request.request_id or place,
        conversation_id=request.conversation_id or place,
        kind="failed",
        text=_BROKEN,
    )


def is_unstarted(reply: PersonReply) -> bool:
    """Return whether *reply* says that nothing was started, so that the same request may be sent again."""
    if reply.parts:
        is_nothing = all(part.report is None for part in reply.parts)
        return is_nothing and any(part.kind == "failed" for part in reply.parts)
    return reply.kind == "failed" and reply.report is None
