"""One response from the wish to have it analysed until it is: asked for once, and looked at meanwhile."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from nats.aio.client import Client

from contracts.analysis.document import AnalysisDocument, read_document
from contracts.analysis.roster import ROSTER, Seat, roster_of
from contracts.analysis.stories import StoryResponse, StorySettings
from contracts.errors import InvalidInput, MemoryUnavailable, Unreachable
from contracts.messages import AnalysisReply, AnalysisRequest
from tasklore.analysis.board import Board
from tasklore.analysis.client import Asking
from tasklore.analysis.findings import findings
from tasklore.analysis.progress import Sight
from tasklore.analysis.stores import StoryStores
from tasklore.pipeline.client import absent_agents
from tasklore.render.screen import say

#: Seconds between two looks at what has come.
LOOK_S = 0.3
#: What serves our ten agents.
AGENTS = "workers.agents.story"

#: Looks after which it is worth asking whether those whom it waits for are there at all.
_LOOKS_ALONE = 4
#: Ids of agents that are listed.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Analysed:
    """What came of one response: `document` is None while there is nothing, `is_done` False when it takes too long.

    `is_served` says that no agent was asked for it. `sections` are those of all who take part.
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
        return self.is_done and not any(one.is_missed for one in findings(self.document))


class Watch:
    """Has responses of one story analysed, and looks at each of them until it is."""

    def __init__(self, client: Client, stores: StoryStores, settings: StorySettings) -> None:
        self.story_id = settings.story_id
        self.seats: Sequence[Seat] = [seat for seat in roster_of(settings.agents) if seat.enabled]
        self._client = client
        self._stores = stores

    async def analysed(self, request: AnalysisRequest, response: StoryResponse, board: Board) -> Analysed:
        """Return what came of *response*, which *request* asks for; *board* is shown every look until then.

        Raises:
            InvalidInput: the supervisor refuses.
            Unreachable: nobody takes the request, or whoever took it fell silent.
        """
        began, sections = time.monotonic(), tuple(seat.section for seat in self.seats)
        waited = [seat.section for seat in self.seats if request.until in ("all", seat.group)]
        sight = Sight(sections, waited, await self._look(response.number))
        reply = await self._reply(request, sight, board)
        is_served = reply is not None and reply.served and not sight.has_moved
        # One that does not fit into a message is looked up.
        found = (_document(reply) if reply is not None else None) or await self._look(response.number)
        sight.see(found)
        is_done = reply is None or reply.kind == "done"
        document = (found or sight.document) if is_done else sight.since_asked
        board.show(document)
        took_ms = int((time.monotonic() - began) * 1000)
        return Analysed(response, document, is_done, is_served, took_ms, sections)

    async def _reply(self, request: AnalysisRequest, sight: Sight, board: Board) -> AnalysisReply | None:
        """Return what is said to *request*; None when everything came, and whoever was to say so is gone."""
        asking = Asking(self._client, request)
        replying = asyncio.ensure_future(asking.reply())
        try:
            looks = 0
            while True:
                await asyncio.wait({replying}, timeout=LOOK_S)
                if replying.done():
                    return replying.result()
                looks += 1
                sight.see(await self._look(request.response_number))
                board.show(sight.since_asked)
                if sight.is_over:
                    return None
                if sight.doubts():
                    asking.ask_again()
                if looks == _LOOKS_ALONE:
                    await self._say_who_is_away(sight.since_asked)
        finally:
            replying.cancel()
            await asyncio.gather(replying, return_exceptions=True)

    async def _look(self, number: int) -> AnalysisDocument | None:
        try:
            return await self._stores.analyses.read(self.story_id, number)
        except (MemoryUnavailable, InvalidInput):
            # The reply tells, one way or another.
            return None

    async def _say_who_is_away(self, found: AnalysisDocument | None) -> None:
        """Say which agents that are waited for have no live worker."""
        there = {one.section for one in findings(found) if one.is_there}
        waited = {seat.agent_id for seat in self.seats if seat.section not in there}
        try:
            away = await absent_agents(self._client, sorted(waited))
        except Unreachable:
            return
        if away:
            say(away_text(away))


def away_text(agents: Sequence[str]) -> str:
    """Return what is said of *agents* that have no live worker, and the cure."""
    more = f" and {len(agents) - _NAMED} more" if len(agents) > _NAMED else ""
    ours = {seat.agent_id for seat in ROSTER}
    cure = f"`tasklore worker {AGENTS}`" if ours.issuperset(agents) else "`tasklore worker`"
    waits = "what it finds waits" if len(agents) == 1 else "what they find waits"
    return f"no worker of {', '.join(agents[:_NAMED])}{more} is alive; {waits} until one is: {cure}"


def _document(reply: AnalysisReply) -> AnalysisDocument | None:
    if reply.document is None:
        return None
    try:
        return read_document(reply.document)
    except InvalidInput as error:
        msg = f"the supervisor answered with something else than an analysis ({error}); are the versions the same?"
        raise Unreachable(msg) from error
