"""What is wished of analyses, and what is answered: the response is stored, and waited for as long as whoever asks."""

import asyncio

import structlog
from pydantic import ValidationError

from contracts.analysis.document import AnalysisDocument
from contracts.analysis.roster import roster_of
from contracts.analysis.stories import StoryResponse
from contracts.errors import ConfigurationError, InvalidInput, MemoryUnavailable, TaskloreError
from contracts.faults import fault_of
from contracts.messages import AnalysisReply, AnalysisRequest
from contracts.subjects import MAX_BODY
from supervisor.analyses.desk import AnalysisDesk
from supervisor.analyses.parts import Parts
from supervisor.analyses.records import digest_of, read_record
from supervisor.analyses.wishes import Outcome, Wish

log = structlog.get_logger(__name__)

#: Requests that wait at once, some half of those that are read: whoever comes then is told at once how far it is.
HELD = 128
#: Milliseconds for which a text stays whatever else comes, until its analysis is under way.
_HOLD_MS = 600_000
#: Bytes that a reply may have beside its document.
_BESIDE = 4 * 1024
#: What is answered when the fault is ours.
_APOLOGY = "something went wrong here, not with what you asked; the supervisor's log says why"


class AnalysisRequests:
    """Answers requests for one supervisor id: *desk* drives what they ask for."""

    def __init__(self, parts: Parts, desk: AnalysisDesk) -> None:
        self._parts = parts
        self._desk = desk
        self._held = 0

    async def answer_bytes(self, body: bytes) -> AnalysisReply:
        """Return the answer to a request as it comes off the wire, whatever it is."""
        try:
            request = AnalysisRequest.model_validate_json(body)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False, include_context=False)
            told = "; ".join(map(fault_of, problems))
            return AnalysisReply(kind="refused", text=f"this request cannot be read: {told}")
        return await self.answer(request)

    async def answer(self, request: AnalysisRequest) -> AnalysisReply:
        """Return what there is of the analysis that *request* wishes, or why there is none, with the cure."""
        try:
            return await self._answer(request)
        except MemoryUnavailable as error:
            return _refused(request, f"the store of stories did not answer; ask again: {error}")
        except ConfigurationError as error:
            return _pending(request, str(error))
        except TaskloreError as error:
            return _refused(request, str(error))
        except Exception:
            log.exception("analysis_request_failed")
            return _refused(request, _APOLOGY)

    async def _answer(self, request: AnalysisRequest) -> AnalysisReply:
        stories, key = self._parts.stories, (request.story_id, request.response_number)
        settings, base_digest, stored, (_, _, record) = await asyncio.gather(
            stories.settings(request.story_id),
            stories.base_digest(request.story_id),
            self._stored(*key),
            self._parts.analyses.record(*key),
        )
        roster_of(settings.agents)
        wanted = _wanted(request, stored)
        if not request.refresh and (served := await self._served(request, record, digest_of(base_digest, wanted))):
            return served
        if wanted != stored:
            await stories.put_response(request.story_id, wanted, keep=self._parts.keep, hold_ms=_HOLD_MS)
        wish = Wish("immediate" if request.until == "immediate" else None, request.refresh, request.text)
        self._desk.wish(*key, wish)
        return await self._reply(request, await self._outcome(wish, request.wait_ms / 1000))

    async def _outcome(self, wish: Wish, within_s: float) -> Outcome | None:
        if self._held >= HELD:
            return await wish.outcome(0.0)
        self._held += 1
        try:
            return await wish.outcome(within_s)
        finally:
            self._held -= 1

    async def _stored(self, story_id: str, number: int) -> StoryResponse | None:
        try:
            return await self._parts.stories.response(story_id, number)
        except InvalidInput as error:
            # What cannot be read any more is written anew.
            log.info("response_unreadable", story=story_id, number=number, error=str(error))
            return None

    async def _served(self, request: AnalysisRequest, body: bytes | None, digest: str) -> AnalysisReply | None:
        """Return the answer out of memory when everybody has come through for just this text, None otherwise."""
        record = read_record(body)
        if record is None or record.digest != digest or not record.is_fresh:
            return None
        try:
            found = await self._parts.analyses.read(request.story_id, request.response_number)
        except InvalidInput as error:
            log.info("analysis_unreadable", story=request.story_id, number=record.number, error=str(error))
            return None
        if found is None or not {seat.section for seat in record.seats} <= {section for section, _ in found.sections()}:
            return None
        self._parts.meter.count_analysis("served")
        return _told(request, found, Outcome(served=True))

    async def _reply(self, request: AnalysisRequest, outcome: Outcome | None) -> AnalysisReply:
        return _told(request, await self._parts.analyses.read(request.story_id, request.response_number), outcome)


def _wanted(request: AnalysisRequest, stored: StoryResponse | None) -> StoryResponse:
    """Return the response that is to be analysed.

    Raises:
        InvalidInput: it has no text.
    """
    text = request.text or (stored.text if stored is not None else None)
    if text is None:
        raise InvalidInput(
            f"response {request.response_number} of story {request.story_id!r} is not stored; send its 'text'"
        )
    before = stored.chapter if stored is not None else 1
    chapter = before if request.chapter is None else request.chapter
    return StoryResponse(number=request.response_number, chapter=chapter, text=text)


def _told(request: AnalysisRequest, found: AnalysisDocument | None, outcome: Outcome | None) -> AnalysisReply:
    """Return the answer with what was *found*; *outcome* None: it takes longer."""
    said = [] if outcome is not None else ["it is not done yet; ask again"]
    if found is None and outcome is not None:
        said.append("the document is not kept any more; raise TASKLORE_ANALYSES_KEPT")
    document = found.body() if found is not None else None
    if found is not None and len(found.minified()) > MAX_BODY - _BESIDE:
        document = None
        said.append(f"the document does not fit into a message; `tasklore analysis show {request.story_id}` shows it")
    return AnalysisReply(
        story_id=request.story_id,
        response_number=request.response_number,
        kind="done" if outcome is not None else "pending",
        text="; ".join(said),
        document=document,
        served=outcome is not None and outcome.served,
    )


def _refused(request: AnalysisRequest, text: str) -> AnalysisReply:
    return AnalysisReply(story_id=request.story_id, response_number=request.response_number, kind="refused", text=text)


def _pending(request: AnalysisRequest, text: str) -> AnalysisReply:
    return AnalysisReply(story_id=request.story_id, response_number=request.response_number, kind="pending", text=text)
