"""Messages of one run: prompts, answers, tools and steps, noted as they happen and kept in batches beside the run.

To note one costs cutting it, and no more: masking and storing are done in a task of their own, half a second later or
once there are many bytes, and at the end of the run. A store that does not answer loses messages, and never holds up a
task for longer than its deadline.
"""

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from pydantic import JsonValue
from pydantic_core import to_json

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.contracts.messages import TaskAssignment
from tasklore.contracts.run_messages import RunMessage, RunMessageKind
from tasklore.memory.ledger.runs import RunName
from tasklore.memory.run_messages.keys import owner_of_run
from tasklore.runtime import tracing
from tasklore.runtime.models.prices import Tokens
from tasklore.workers.context.branches import RunParked

if TYPE_CHECKING:
    from tasklore.memory.run_messages.store import RunMessages
    from tasklore.workers.message_masking import MessageMasker

log = structlog.get_logger(__name__)

#: Characters of a text that are kept, and of what a tool, step or person was given.
MOST_OF_TEXT = 64 * 1024
MOST_GIVEN = 16 * 1024
#: Characters of a text that leave with a span, which are masked at once.
MOST_EXPORTED = 16 * 1024
#: The event with the content of a request to a model, as the conventions for generative AI call it.
CONTENT_EVENT = "gen_ai.client.inference.operation.details"
MOST_OF_NAME = 200
MOST_OF_FACT = 1024
#: Characters behind these that are masked too, so that no secret is cut in two.
_REACH = 4096
#: Seconds until what was noted is kept, and bytes of it that are kept at once.
FLUSH_S = 0.5
BATCH_BYTES = 256 * 1024
#: Bytes of one run that wait to be kept; beyond it the oldest are lost.
MOST_WAITING = 1024 * 1024
#: Characters that are masked in the event loop: 3 ms of it. More go to a thread.
_MASKED_HERE = 32 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """A message as it was noted: cut, with room behind it, and not masked; `size` 0 says that it is whole."""

    kind: RunMessageKind
    at_ms: int
    name: str
    text: str
    size: int
    given: str
    facts: dict[str, JsonValue]

    @property
    def waiting(self) -> int:
        return len(self.text) + len(self.given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """How what runs see is kept in this process."""

    store: "RunMessages"
    masker: "MessageMasker"
    #: Returns the model that answers for a role while nothing stands in its way.
    model_of: Callable[[str], str]
    #: Whether prompts and answers are also events of the spans of requests to models.
    exports: bool = False


def open_recorder(
    recording: Recording | None, assignment: TaskAssignment, run: RunName, attempt: int
) -> "RunRecorder | None":
    """Return the recorder of *run*, the task's number *attempt*, which has noted its parameters.

    None without *recording*: nothing is kept.
    """
    if recording is None:
        return None
    recorder = RunRecorder(recording, assignment, run, attempt)
    call = assignment.task
    recorder.note("parameters", to_json(call.parameters), name=call.name)
    return recorder


class RunRecorder:
    """Notes the messages of one run; nothing that it is given can make it raise."""

    def __init__(
        self,
        recording: Recording,
        assignment: TaskAssignment,
        run: RunName,
        attempt: int,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = recording.store
        self._masker = recording.masker
        self._model_of = recording.model_of
        self._exports = recording.exports
        self._agent_id = assignment.agent_id
        self._owner = owner_of_run(assignment.user_id, assignment.tenant)
        self._run = run
        self._attempt = attempt
        self._now = now
        self._noted: list[_Noted] = []
        self._waiting = 0
        self._lost = 0
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None

    def note(
        self,
        kind: RunMessageKind,
        text: str | bytes = "",
        *,
        name: str = "",
        given: str | bytes = "",
        **facts: JsonValue,
    ) -> None:
        """Note a message; of *text* and *given*, JSON or not, as much is taken as will be kept."""
        if self._is_over:
            return
        taken, size = _take(text, MOST_OF_TEXT)
        noted = _Noted(
            kind=kind,
            at_ms=int(self._now() * 1000),
            name=_take(name, MOST_OF_NAME)[0],
            text=taken,
            size=size,
            given=_take(given, MOST_GIVEN)[0],
            facts={key: value for key, value in facts.items() if value is not None},
        )
        self._noted.append(noted)
        self._waiting += noted.waiting
        while self._waiting > MOST_WAITING and len(self._noted) > 1:
            self._waiting -= self._noted.pop(0).waiting
            self._lost += 1
        self._plan()

    def note_prompt(self, role: str, model: str, text: str) -> None:
        """Note that *model* is shown *text* for *role*, and in whose place where it is not that of the role."""
        own = self._model_of(role)
        self.note(
            "prompt",
            text,
            name=model,
            role=role,
            instead_of=None if own == model else own,
        )
        self._export("gen_ai.input.messages", "user", text)

    def note_answer(self, model: str, text: str, tokens: Tokens) -> None:
        """Note that *model* said *text*."""
        self.note(
            "answer",
            text,
            name=model,
            input_tokens=tokens.input or None,
            output_tokens=tokens.output or None,
            estimated=tokens.estimated or None,
        )
        self._export("gen_ai.output.messages", "assistant", text)

    def _export(self, attribute: str, role: str, text: str) -> None:
        """Add *text*, masked, to the span of the request to a model, by the conventions for generative AI."""
        if not self._exports:
            return
        content = self._masker.mask(_take(text, MOST_EXPORTED)[0])[:MOST_EXPORTED]
        parts = [{"type": "text", "content": content}]
        messages = to_json([{"role": role, "parts": parts}]).decode()
        tracing.tell(CONTENT_EVENT, {attribute: messages})

    def note_failure(self, model: str, error: BaseException) -> None:
        """Note that the request to *model*, or the run where that is "", ended with *error*."""
        self.note("error", str(error), name=model, error=type(error).__name__)

    def note_step(
        self,
        kind: RunMessageKind,
        name: str,
        *,
        given: bytes,
        result: str | bytes = "",
        is_journaled: bool = False,
        error: BaseException | None = None,
        began: float = 0.0,
    ) -> None:
        """Note a step, or a tool of a model, with what it was *given*; *began* is a reading of `time.monotonic`.

        *is_journaled*: an earlier run took it, and this one read its *result*.
        """
        self.note(
            kind,
            result if error is None else str(error),
            name=name,
            given=given,
            source="journal" if is_journaled else None,
            error=None if error is None else type(error).__name__,
            took_ms=None if is_journaled else round((time.monotonic() - began) * 1000),
        )

    def _plan(self) -> None:
        """Let the messages that wait be kept soon."""
        is_much = self._waiting >= BATCH_BYTES
        if self._timer is not None and not is_much:
            return
        if self._timer is not None:
            self._timer.cancel()
        # Of no run: a task of the run's context would be one of its branches.
        self._timer = asyncio.get_running_loop().call_later(
            0 if is_much else FLUSH_S, self._begin, context=contextvars.Context()
        )

    def _begin(self) -> None:
        self._timer = None
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        else:
            # What was noted meanwhile is kept behind it.
            self._flushing.add_done_callback(self._go_on, context=contextvars.Context())

    def _go_on(self, _flushed: asyncio.Task[None]) -> None:
        if self._noted:
            self._plan()

    async def follow(self, run: Awaitable[bytes]) -> bytes:
        """Return the result of *run*, and note it, or how it ended; that it only waits is no end."""
        try:
            result = await run
        except RunParked:
            raise
        except Exception as error:
            self.note_failure("", error)
            raise
        self.note("result", result)
        return result

    async def close(self) -> None:
        """Keep the rest, before the run is reported: behind that nothing more is taken of it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        flushing = self._flushing
        if flushing is not None and not flushing.done():
            await asyncio.wait({flushing})
        await self._flush()

    async def _flush(self) -> None:
        noted = self._noted
        lost = self._lost
        if not noted or self._is_over:
            return
        self._noted = []
        self._waiting = 0
        self._lost = 0
        try:
            counts = await self._append(noted, lost)
        except (MemoryUnavailable, InvalidInput) as error:
            self._lost += lost + len(noted)
            log.info(
                "run_messages_not_kept",
                task_id=self._run.task_id,
                messages=len(noted),
                error=str(error),
            )
        except Exception:  # messages must never fail a task, whatever stands in them
            self._lost += lost + len(noted)
            log.exception("run_messages_lost", task_id=self._run.task_id)
        else:
            self._is_over = not counts

    async def _append(self, noted: list[_Noted], lost: int) -> bool:
        """Keep *noted*; return False where the run counts no more."""
        if sum(one.waiting for one in noted) > _MASKED_HERE:
            bodies = await asyncio.to_thread(self._spell, noted, lost)
        else:
            bodies = self._spell(noted, lost)
        return await self._store.append(self._run, self._agent_id, self._owner, bodies)

    def _spell(self, noted: list[_Noted], lost: int) -> list[bytes]:
        bodies = [self._spell_one(one) for one in noted]
        if lost:
            gap = _Noted(
                kind="error",
                at_ms=noted[0].at_ms,
                name="messages",
                text=f"{lost:,} messages of this run were not kept: too many came at once, or the store was away",
                size=0,
                given="",
                facts={},
            )
            bodies.insert(0, self._spell_one(gap))
        return bodies

    def _spell_one(self, noted: _Noted) -> bytes:
        mask = self._masker.mask
        message = RunMessage(
            kind=noted.kind,
            at_ms=noted.at_ms,
            generation=self._run.generation,
            run=self._attempt,
            name=_cut(mask(noted.name), MOST_OF_NAME),
            text=_cut(mask(noted.text), MOST_OF_TEXT),
            size=noted.size,
            given=_cut(mask(noted.given), MOST_GIVEN),
            facts={key: self._mask_fact(fact) for key, fact in noted.facts.items()},
        )
        return message.model_dump_json().encode()

    def _mask_fact(self, fact: JsonValue) -> JsonValue:
        if isinstance(fact, list):
            return [self._mask_fact(one) for one in fact]
        if isinstance(fact, str):
            return _cut(self._masker.mask(_take(fact, MOST_OF_FACT)[0]), MOST_OF_FACT)
        return fact


def _take(said: str | bytes, most: int) -> tuple[str, int]:
    """Return the beginning of *said*, as text that can be written, and how long the whole is; 0 where that is all."""
    part = said[: most + _REACH]
    text = part.decode(errors="replace") if isinstance(part, bytes) else part
    if not text.isascii():
        # Half of a surrogate pair is no text.
        text = text.encode(errors="replace").decode()
    return text, len(said) if len(said) > most else 0


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most]
