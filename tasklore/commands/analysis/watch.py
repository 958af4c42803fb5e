"""The analysis of one response: asked for once, and read from the store until it is complete."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from nats.aio.client import Client
from pydantic import JsonValue

from tasklore.commands.analysis.client import absent_agents, read_reply, refusal
from tasklore.commands.analysis.documents import StoryStores
from tasklore.commands.analysis.findings import FAILED, LATE, section_steps
from tasklore.commands.ask.call import Call
from tasklore.commands.places import current_supervisor
from tasklore.commands.render.screen import say
from tasklore.contracts import subjects
from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.analysis.roster import ROSTER, Seat, roster_of
from tasklore.contracts.analysis.stories import StoryResponse, StorySettings
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    MessageTooLarge,
    Unreachable,
)
from tasklore.contracts.messages import AnalysisReply, AnalysisRequest

#: Seconds between two reads of the sections.
LOOK_S = 0.3
#: Seconds that the reply may be late after the time that the supervisor was given.
LATE_S = 5.0
#: Seconds for asking once more then: a supervisor that was replaced meanwhile finds the begun analysis.
LAST_S = 5.0
#: Seconds before the end from which on "pending" means that the time is over, and a pause before asking again.
EARLY_S = 1.0
_PAUSE_S = 0.2
#: Seconds without a change after which the supervisor may have died, and the longest pause until that is doubted again.
STILL_S = 3.0
STILL_CAP_S = 12.0
#: Seconds in which the reply comes once every section is there.
OVER_S = 0.5
#: The module of our ten agents.
AGENTS = "tasklore.workers.agents.story"

#: Reads after which workers are looked for, and ids of agents that are listed.
_LOOKS_ALONE = 4
_MOST_LISTED = 3

OnLook = Callable[[AnalysisDocument | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """The analysis of one response: `document` is None without a section, `is_done` False when the time is over.

    `is_served` is True when no agent was asked. `sections` are those of all agents that take part.
    """

    response: StoryResponse
    document: AnalysisDocument | None
    is_done: bool
    is_served: bool
    took_ms: int
    sections: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it is done, and no agent failed or was late."""
        return self.is_done and not any(
            one.is_missing for one in section_steps(self.document)
        )


class Watch:
    """Has responses of one story analysed, and watches each of them."""

    def __init__(
        self, client: Client, stores: StoryStores, settings: StorySettings
    ) -> None:
        self.story_id = settings.story_id
        self.seats: Sequence[Seat] = [
            seat for seat in roster_of(settings.agents) if seat.enabled
        ]
        self.sections = tuple(seat.section for seat in self.seats)
        self._client = client
        self._stores = stores

    async def analyse(
        self, request: AnalysisRequest, response: StoryResponse, on_look: OnLook
    ) -> Analysed:
        """Return the analysis of *response*, which *request* asks for; *on_look* is called at every read.

        Raises:
            InvalidInput: the supervisor refuses.
            Unreachable: no supervisor takes the request, or it fell silent.
        """
        began = time.monotonic()
        waited = [
            seat.section for seat in self.seats if request.until in ("all", seat.group)
        ]
        seen = Progress(self.sections, waited, await self._look(response.number))
        reply = await self._ask(request, seen, on_look)
        is_served = reply is not None and reply.served and not seen.has_moved
        found = None
        if reply is not None and reply.document is not None:
            try:
                found = read_document(reply.document)
            except InvalidInput as error:
                msg = f"the supervisor answered with something else than an analysis ({error})"
                raise Unreachable(f"{msg}; are the versions the same?") from error
        # A document that does not fit into a message is read from the store.
        found = found or await self._look(response.number)
        seen.take(found)
        is_done = reply is None or reply.kind == "done"
        document = (found or seen.document) if is_done else seen.since_asked
        on_look(document)
        took_ms = int((time.monotonic() - began) * 1000)
        return Analysed(
            response=response,
            document=document,
            is_done=is_done,
            is_served=is_served,
            took_ms=took_ms,
            sections=self.sections,
        )

    async def _ask(
        self, request: AnalysisRequest, seen: "Progress", on_look: OnLook
    ) -> AnalysisReply | None:
        """Return the reply to *request*; None when every section came, and the supervisor that was to reply died."""
        asking = Request(self._client, request)
        replying = asyncio.ensure_future(asking.reply())
        try:
            looks = 0
            while True:
                await asyncio.wait({replying}, timeout=LOOK_S)
                if replying.done():
                    return replying.result()
                looks += 1
                seen.take(await self._look(request.response_number))
                on_look(seen.since_asked)
                if seen.is_over:
                    return None
                if seen.is_doubtful():
                    asking.ask_again()
                if looks == _LOOKS_ALONE:
                    await self._say_absent_agents(seen.since_asked)
        finally:
            replying.cancel()
            await asyncio.gather(replying, return_exceptions=True)

    async def _look(self, number: int) -> AnalysisDocument | None:
        try:
            return await self._stores.analyses.read(self.story_id, number)
        except (MemoryUnavailable, InvalidInput):
            # The reply will say so.
            return None

    async def _say_absent_agents(self, document: AnalysisDocument | None) -> None:
        """Print which agents without a live worker are waited for."""
        found = {one.name for one in section_steps(document) if one.is_found}
        try:
            away = await absent_agents(
                self._client,
                sorted(
                    {seat.agent_id for seat in self.seats if seat.section not in found}
                ),
            )
        except Unreachable:
            return
        if away:
            say(absent_text(away))


def absent_text(agents: Sequence[str]) -> str:
    """Return the line about *agents* without a live worker, with its cure."""
    more = (
        f" and {len(agents) - _MOST_LISTED} more" if len(agents) > _MOST_LISTED else ""
    )
    ours = {seat.agent_id for seat in ROSTER}
    cure = (
        f"`tasklore worker {AGENTS}`"
        if ours.issuperset(agents)
        else "`tasklore worker`"
    )
    waits = "what it finds waits" if len(agents) == 1 else "what they find waits"
    return f"no worker of {', '.join(agents[:_MOST_LISTED])}{more} is alive; {waits} until one is: {cure}"


class Request:
    """One request until its reply, to *supervisor_id*; None is that of the environment."""

    def __init__(
        self, client: Client, request: AnalysisRequest, supervisor_id: str | None = None
    ) -> None:
        self._client = client
        self._request = request
        self._supervisor_id = supervisor_id
        self._call: Call | None = None

    def ask_again(self) -> None:
        """Send the request once more: a supervisor that died has a successor."""
        if self._call is not None:
            self._call.ask_again()

    async def reply(self) -> AnalysisReply:
        """Return the reply, which comes by the end of the request's time.

        A supervisor that leaves replies "pending" before that; then its successor is asked.

        Raises:
            InvalidInput: the request is refused.
            MessageTooLarge: the response does not fit into a message.
            Unreachable: no supervisor takes the request, or it fell silent.
        """
        request = self._request
        if len(request.model_dump_json(exclude_none=True).encode()) > subjects.MAX_BODY:
            raise MessageTooLarge(
                f"the response has {len(request.text or ''):,} characters, a message holds {subjects.MAX_BODY:,} "
                "bytes; cut it into several"
            )
        subject = subjects.analyses(self._supervisor_id or current_supervisor())
        ends_at = time.monotonic() + request.wait_ms / 1000
        was_taken = False
        while True:
            self._call = Call(
                self._client, subject, lambda: self._body(ends_at), was_taken=was_taken
            )
            late_s = ends_at - time.monotonic() + LATE_S
            reply = read_reply(
                AnalysisReply, await self._call.reply(late_s + LAST_S, late_s)
            )
            if reply.kind == "refused":
                raise refusal(reply.text)
            if reply.kind == "other":
                raise Unreachable(
                    "the supervisor answered in a way that is newer than this command; use its version"
                )
            if reply.kind != "pending" or ends_at - time.monotonic() < EARLY_S:
                return reply
            was_taken = True
            await asyncio.sleep(_PAUSE_S)

    def _body(self, ends_at: float) -> bytes:
        left_s = ends_at - time.monotonic()
        was_taken = self._call is not None and self._call.was_taken
        is_late = left_s <= -LATE_S
        request = self._request
        if was_taken or is_late:
            wait_ms = int((LAST_S / 2 if is_late else max(0.0, left_s)) * 1000)
            # Asks for the begun analysis, and begins none anew.
            request = request.model_copy(update={"wait_ms": wait_ms, "refresh": False})
        return request.model_dump_json(exclude_none=True).encode()


class Progress:
    """The analysis as it is read from the store while its request is out; *before* is an earlier one.

    *sections* are those of the agents that take part, *waited* those of them that the request waits for.
    """

    def __init__(
        self,
        sections: Collection[str],
        waited: Collection[str],
        before: AnalysisDocument | None,
    ) -> None:
        self._sections = frozenset(sections)
        self._waited = frozenset(waited)
        self.document = before
        self.has_moved = False
        self._moved_at = time.monotonic()
        self._pause_s = STILL_S
        self._doubt_at = self._moved_at + STILL_S

    @property
    def since_asked(self) -> AnalysisDocument | None:
        """The document; None while it is a complete earlier analysis, all of which is analysed anew."""
        is_earlier = (
            not self.has_moved and self._sections <= _sections(self.document).keys()
        )
        return None if is_earlier else self.document

    @property
    def is_over(self) -> bool:
        """Whether every awaited section has come, and the reply is overdue."""
        return self._is_complete and time.monotonic() >= self._moved_at + STILL_S

    def take(self, document: AnalysisDocument | None) -> None:
        """Take a newer *document*; None could not be read."""
        if document is None or _sections(document) == _sections(self.document):
            return
        self.document = document
        self.has_moved = True
        self._moved_at = time.monotonic()
        self._pause_s = STILL_S
        self._doubt_at = self._moved_at + (OVER_S if self._is_complete else STILL_S)

    def is_doubtful(self) -> bool:
        """Return whether it is time to ask once more; then it is not for a while.

        After a failure it never is: asking again would begin the failed agent a second time.
        """
        bodies = _sections(self.document).values()
        has_failed = any(
            isinstance(body, dict) and body.get("status") in (FAILED, LATE)
            for body in bodies
        )
        if time.monotonic() < self._doubt_at or (self.has_moved and has_failed):
            return False
        self._doubt_at = time.monotonic() + self._pause_s
        self._pause_s = min(STILL_CAP_S, 2 * self._pause_s)
        return True

    @property
    def _is_complete(self) -> bool:
        return self.has_moved and self._waited <= _sections(self.document).keys()


def _sections(document: AnalysisDocument | None) -> dict[str, JsonValue]:
    return dict(document.sections()) if document is not None else {}
