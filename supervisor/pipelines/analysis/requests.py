"""Requests for analyses and their replies: the response is stored, and waited for as long as the request does."""

import asyncio

import structlog
from pydantic import ValidationError

from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.contracts.analysis.stories import AnalysisGroup, StoryResponse
from tasklore.contracts.errors import (
    ConfigurationError,
    InvalidInput,
    MemoryUnavailable,
    TaskloreError,
)
from tasklore.contracts.faults import OUR_FAULT, fault_of
from tasklore.contracts.messages import AnalysisReply, AnalysisRequest
from tasklore.contracts.subjects import MAX_BODY
from tasklore.memory.holdings.store import Holding
from tasklore.runtime.claim_loop import backoff
from tasklore.supervisor.pipelines.analysis.driver import AnalysisDriver
from tasklore.supervisor.pipelines.analysis.fold import (
    AnalysisFold,
    AnalysisParts,
    AskedAnalysis,
    FoldedTurn,
    StoryMoved,
    abandon,
)
from tasklore.supervisor.pipelines.analysis.records import AnalysisRecord, roster_for
from tasklore.supervisor.pipelines.analysis.run import AnalysisRun

log = structlog.get_logger(__name__)

#: Requests that wait at once, some half of those that are read: one that comes then is told at once how far it is.
HELD = 128
#: Milliseconds for which a text stays whatever else comes, until its analysis is under way.
_HOLD_MS = 600_000
#: Seconds for the first turn of an analysis, after which another process would go on with it.
_BEGIN_S = 5.0
#: Bytes that a reply may have beside its document.
_BESIDE = 4 * 1024


class AnalysisRequests:
    """Answers requests for one supervisor id: *driver* drives the analyses."""

    def __init__(self, parts: AnalysisParts, driver: AnalysisDriver) -> None:
        self._parts = parts
        self._driver = driver
        self._held = 0

    async def answer_bytes(self, body: bytes) -> AnalysisReply:
        """Return the answer to a request as it comes off the wire, whatever it is."""
        try:
            request = AnalysisRequest.model_validate_json(body)
        except ValidationError as error:
            problems = error.errors(
                include_url=False, include_input=False, include_context=False
            )
            text = "; ".join(map(fault_of, problems))
            return AnalysisReply(
                kind="refused", text=f"this request cannot be read: {text}"
            )
        # Whoever asks here has shown no key: a caller would be what they say of themselves.
        return await self.answer(request.model_copy(update={"caller": None}))

    async def answer(self, request: AnalysisRequest) -> AnalysisReply:
        """Return what there is of the analysis that *request* asks for, or why there is none, with the cure."""
        reply = AnalysisReply(
            story_id=request.story_id,
            response_number=request.response_number,
            kind="refused",
            text=OUR_FAULT,
        )
        try:
            return await self.take_up(request)
        except MemoryUnavailable as error:
            return reply.model_copy(
                update={
                    "text": f"the store of stories did not answer; ask again: {error}"
                }
            )
        except ConfigurationError as error:
            return reply.model_copy(update={"kind": "pending", "text": str(error)})
        except TaskloreError as error:
            return reply.model_copy(update={"text": str(error)})
        except Exception:
            log.exception("analysis_request_failed")
            return reply

    async def take_up(self, request: AnalysisRequest) -> AnalysisReply:
        """Return the document that *request* asks for, or that it takes longer; then it goes on, whoever dies.

        Raises:
            UnknownStory: there is no such story.
            InvalidInput: the response has no text, or cannot be analysed.
            OwnerFull: its caller keeps too much.
            ConfigurationError: this process does not take it up now.
            MemoryUnavailable: the store of stories did not answer.
        """
        stories = self._parts.stories
        key = request.story_id, request.response_number
        settings, stored = await asyncio.gather(
            stories.settings(request.story_id), self._stored_response(*key)
        )
        roster_for(settings)
        response = _response_of(request, stored)
        self._driver.demand_ready()
        if response != stored:
            size = len(response.text.encode())
            bounds = self._parts.dispatch.bounds
            await bounds.demand(request.caller, None, Holding("responses", size))
            await stories.put_response(
                request.story_id, response, keep=self._parts.keep, hold_ms=_HOLD_MS
            )
        turn = await self._write_down(request)
        _demand_text(request, turn.text)
        if turn.is_served and turn.record.is_over():
            self._parts.meter.count_analysis("served")
        served = turn.is_served if turn.record.is_over(_group_of(request)) else None
        if not turn.record.is_final:
            run = self._driver.begin(key, turn.new_tasks)
            await abandon(self._parts, turn)
            if served is None and await self._is_there(request, run, turn.record):
                served = False
        return _reply(request, await self._parts.analyses.read(*key), served)

    async def _write_down(self, request: AnalysisRequest) -> FoldedTurn:
        """Take the first turn of the analysis; from then on it goes on though this process dies.

        Raises:
            ConfigurationError: the store did not say in time whether it is; it may be.
        """
        fold = AnalysisFold(self._parts, request.story_id, request.response_number)
        asked = AskedAnalysis(refresh=request.refresh, caller=request.caller)
        failures = 0
        try:
            async with asyncio.timeout(_BEGIN_S):
                while True:
                    try:
                        return await fold.take(asked=asked)
                    except (MemoryUnavailable, StoryMoved):
                        if not fold.is_listed:
                            raise
                    failures += 1
                    await asyncio.sleep(backoff(failures))
        except TimeoutError as error:
            raise ConfigurationError(
                "whether the analysis has begun is not known; ask again"
            ) from error

    async def _is_there(
        self, request: AnalysisRequest, run: AnalysisRun, record: AnalysisRecord
    ) -> bool:
        """Return whether the awaited sections are there in time; beside too many others it does not wait.

        Raises:
            InvalidInput: it cannot be analysed, or the response was given another text.
            ConfigurationError: this process drives no analyses any more.
        """
        group = _group_of(request)
        wait_s = request.wait_ms / 1000 if self._held < HELD else 0.0
        self._held += 1
        try:
            async with asyncio.timeout(wait_s):
                while not record.is_over(group):
                    run = await self._driver.drive(run)
                    if run.record is None:
                        continue
                    if not run.record.is_same(record):
                        now = await self._parts.stories.response(*run.key)
                        _demand_text(request, now.text if now else None)
                    record = run.record
        except TimeoutError:
            return False
        finally:
            self._held -= 1
        return True

    async def _stored_response(
        self, story_id: str, number: int
    ) -> StoryResponse | None:
        try:
            return await self._parts.stories.response(story_id, number)
        except InvalidInput as error:
            # What cannot be read any more is written anew.
            log.info(
                "response_unreadable", story=story_id, number=number, error=str(error)
            )
            return None


def _group_of(request: AnalysisRequest) -> AnalysisGroup | None:
    """Return the group that *request* waits for, None for all."""
    return "immediate" if request.until == "immediate" else None


def _demand_text(request: AnalysisRequest, text: str | None) -> None:
    """Check that the response still has the *text* that *request* means.

    Raises:
        InvalidInput: it has another.
    """
    if request.text is not None and request.text != text:
        words = f"response {request.response_number} was given another text meanwhile; ask again if you mean it"
        raise InvalidInput(words)


def _response_of(
    request: AnalysisRequest, stored: StoryResponse | None
) -> StoryResponse:
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


def _reply(
    request: AnalysisRequest, found: AnalysisDocument | None, served: bool | None
) -> AnalysisReply:
    """Return the reply with the document *found*; *served* None: it takes longer."""
    words = [] if served is not None else ["it is not done yet; ask again"]
    if found is None and served is not None:
        words.append("the document is no longer kept; raise TASKLORE_ANALYSES_KEPT")
    document = found.body() if found is not None else None
    if found is not None and len(found.minified()) > MAX_BODY - _BESIDE:
        document = None
        words.append(
            f"the document does not fit into a message; `tasklore analyses show {request.story_id}` shows it"
        )
    return AnalysisReply(
        story_id=request.story_id,
        response_number=request.response_number,
        kind="done" if served is not None else "pending",
        text="; ".join(words),
        document=document,
        served=bool(served),
    )
