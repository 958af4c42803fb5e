"""A phase of parts: a task for each item of a list, some at once, or one round after the other; or a pipeline.

The result of an item is an entry of the session under the digest of its parameters. So a phase that runs again runs
only items that are new, changed or failed; and a driver that is killed leaves no more than the tasks under way, whose
ids follow from run and item: the next driver finds their reports.
"""

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import (
    CompletionReport,
    PipelineRequest,
    TaskAssignment,
)
from tasklore.contracts.pipelines import Phase, Pipeline, items_phase
from tasklore.memory.sessions.entries import NewEntry
from tasklore.memory.sessions.pipeline_records import NewRun
from tasklore.supervisor.pipelines.declaration.graph import Graph
from tasklore.supervisor.pipelines.declaration.inputs import (
    fill_defaults,
    problems_in_inputs,
)
from tasklore.supervisor.pipelines.live import DriverDependencies, LiveRun
from tasklore.supervisor.pipelines.outcome import failure_in
from tasklore.supervisor.pipelines.phase_task import Failure, PhaseTask
from tasklore.supervisor.pipelines.resumption import Resumption

#: Results that are stored together, and entries that are read together.
_TOGETHER = 64
#: Seconds for which results are not stored at most, while others come.
_STORE_S = 0.5
#: Items between two events that say how far the phase is; in short lists, a twentieth of it.
_TOLD_EVERY = 500


@dataclass(slots=True, kw_only=True)
class FannedOut:
    """The end of the items: failures by number, how many were kept from before, and how long all computed."""

    total: int
    failures: dict[int, Failure] = field(default_factory=dict)
    kept: int = 0
    computed_ms: int = 0
    attempts: int = 0
    is_cancelled: bool = False

    def describe(self, what: str) -> str:
        """Return it in words, of items or rounds (*what*): "10,000 items, 12 kept, 3 failed"."""
        parts = [f"{self.total:,} {what}{'' if self.total == 1 else 's'}"]
        parts += [f"{self.kept:,} kept"] if self.kept else []
        parts += [f"{len(self.failures):,} failed"] if self.failures else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Returned:
    """The result of an inner run, with the fields of a report."""

    result: JsonValue
    run_ms: int
    waited_ms: int | None = None
    attempt: int = 1
    status: Literal["completed"] = "completed"


@dataclass(frozen=True, slots=True)
class _Item:
    number: int
    key: str
    parameters: dict[str, JsonValue]


class FanOut:
    """Runs the items of *phase*; *assign* makes the assignment of one, given its task id and parameters.

    Ids of its tasks begin with *base*; those of the run of the phase before began with *before*, None for the first.
    """

    def __init__(
        self,
        parts: DriverDependencies,
        live: LiveRun,
        phase: Phase,
        *,
        base: str,
        before: str | None,
        is_new: bool,
        assign: Callable[[str, dict[str, JsonValue]], TaskAssignment],
    ) -> None:
        self._parts = parts
        self._live = live
        self._phase = phase
        self._base = base
        self._before = before
        inner = phase.pipeline
        self._what = [
            phase.agent,
            phase.task,
            *([] if inner is None else [inner.model_dump(mode="json")]),
        ]
        self._is_new = is_new
        self._assign = assign
        self._under_way: set[str] = set()
        self._unstored: list[NewEntry] = []
        self._through = 0
        self._stored_at = time.monotonic()
        #: The number of the first item with each key: others with the same parameters share what came of it.
        self._first: dict[str, int] = {}

    async def run(
        self, parameters_of: Callable[[int], dict[str, JsonValue]], total: int
    ) -> FannedOut:
        """Run items without a result; *parameters_of* gives the parameters of one by its number, from 0.

        Raises:
            InvalidInput: parameters of an item cannot be made.
            UnknownSession: the session's time to live is over.
            EntryTooLarge: a result is larger than a session takes.
            LeaseLost: another process drives the run.
            MemoryUnavailable: the store did not answer; the next driver finds everything as it is.
        """
        done = FannedOut(total=total)
        there = {
            entry.key
            for entry in await self._parts.cache.entries(self._live.session_id)
        }
        waiting = self._missing(parameters_of, there, done)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._phase.at_once, max(1, total))):
                    group.create_task(self._work(waiting, done))
        finally:
            await self._leave()
        await self._store()
        return done

    async def rounds(
        self,
        parameters_of: Callable[[JsonValue, int], dict[str, JsonValue]],
        is_reached: Callable[[JsonValue], bool],
    ) -> tuple[FannedOut, JsonValue, bool]:
        """Run one round after the other; return what became of them, the last result, and whether it was reached.

        *parameters_of* gives those of a round, by the result of the one before and its number from 0. Raises as `run`.
        """
        done = FannedOut(total=0)
        there = {
            entry.key
            for entry in await self._parts.cache.entries(self._live.session_id)
        }
        last: JsonValue = None
        try:
            for number in range(self._phase.at_most):
                parameters = parameters_of(last, number)
                key = self._key(parameters, number)
                done.total += 1
                if key in there:
                    done.kept += 1
                else:
                    await self._run(_Item(number, key, parameters), done)
                    await self._store()
                if done.failures:
                    return done, last, False
                [entry] = await self._parts.cache.peek(self._live.session_id, [key])
                last = entry.value if entry is not None else None
                if is_reached(last):
                    return done, last, True
                told = f"round {number + 1} of at most {self._phase.at_most}"
                self._parts.tell(
                    self._live.event(
                        "phase_progress", self._parts.now(), self._phase.name, text=told
                    )
                )
        finally:
            await self._leave()
        return done, last, False

    async def results(
        self, parameters_of: Callable[[int], dict[str, JsonValue]], done: FannedOut
    ) -> list[JsonValue]:
        """Return what the items returned, in their order, as the phase's `on_failure` says.

        Raises:
            MemoryUnavailable: the store did not answer.
        """
        found: list[JsonValue] = []
        is_collecting = self._phase.on_failure == "collect"
        for first in range(0, done.total, _TOGETHER):
            numbers = range(first, min(first + _TOGETHER, done.total))
            keys = [self._key(parameters_of(number)) for number in numbers]
            entries = await self._parts.cache.peek(self._live.session_id, keys)
            for number, key, entry in zip(numbers, keys, entries, strict=True):
                failure = done.failures.get(self._first.get(key, number))
                if failure is not None and is_collecting:
                    told: JsonValue = {
                        "type": failure.error_type,
                        "message": failure.error,
                    }
                    found.append({"item": number, "error": told})
                elif failure is None:
                    value = entry.value if entry is not None else None
                    found.append(
                        {"item": number, "result": value} if is_collecting else value
                    )
        return found

    def _missing(
        self,
        parameters_of: Callable[[int], dict[str, JsonValue]],
        there: set[str],
        done: FannedOut,
    ) -> Iterator[_Item]:
        """Yield the items without a result, each set of parameters once."""
        for number in range(done.total):
            parameters = parameters_of(number)
            key = self._key(parameters)
            if key in there:
                done.kept += 1
                self._through += 1
            elif self._first.setdefault(key, number) == number:
                yield _Item(number, key, parameters)
            else:
                self._through += 1

    def _key(self, parameters: dict[str, JsonValue], number: int | None = None) -> str:
        """Return the key of what *parameters* give, in round *number*: of another task or agent it is another one."""
        words = [*self._what, parameters, *([] if number is None else [number])]
        told = json.dumps(words, sort_keys=True, ensure_ascii=False)
        digest = hashlib.blake2b(
            told.encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest()
        return f"{items_phase(self._phase.name)}:results:{digest}"

    async def _work(self, waiting: Iterator[_Item], done: FannedOut) -> None:
        """Run one item after the other until none waits, or one failed that ends the phase."""
        for item in waiting:
            if done.is_cancelled or (
                done.failures and self._phase.on_failure == "fail"
            ):
                return
            await self._run(item, done)
            self._through += 1
            self._tell(done)
            # An iterator that has nothing to wait for would keep everybody else from going on.
            await asyncio.sleep(0)

    async def _run(self, item: _Item, done: FannedOut) -> None:
        suffix = item.key.rpartition(":")[2][:16]
        task_id = f"{self._base}-{suffix}"
        assignment = self._assign(task_id, item.parameters)
        self._under_way.add(task_id)
        found = await self._reported(assignment, suffix)
        if not isinstance(found, Failure):
            done.computed_ms += found.run_ms - (found.waited_ms or 0)
            done.attempts = max(done.attempts, found.attempt)
        if not isinstance(found, Failure) and found.status == "completed":
            entry = NewEntry(
                key=item.key,
                value=found.result,
                phase=items_phase(self._phase.name),
                agent=self._phase.agent,
                computation_ms=found.run_ms,
                ttl=self._phase.keep_for,
            )
            self._unstored.append(entry)
            if (
                len(self._unstored) >= _TOGETHER
                or time.monotonic() - self._stored_at > _STORE_S
            ):
                await self._store()
        else:
            failure = found if isinstance(found, Failure) else Failure.of(found)
            done.failures[item.number] = failure
            if self._phase.pipeline is not None or failure.error_type in (
                "cancelled",
                "TaskCancelled",
            ):
                done.is_cancelled = (
                    await self._parts.runs.cancel_reason(self._live.session_id)
                    is not None
                )
        self._under_way.discard(task_id)

    async def _reported(
        self, assignment: TaskAssignment, suffix: str
    ) -> CompletionReport | Returned | Failure:
        if (inner := self._phase.pipeline) is not None:
            before = f"{self._before}-{suffix}" if self._before is not None else None
            return await run_pipeline(
                self._parts,
                live=self._live,
                phase=self._phase,
                pipeline=inner,
                assignment=assignment,
                before=before,
            )
        return await PhaseTask(
            self._parts, self._phase, assignment, is_new=self._is_new
        ).report()

    async def _store(self) -> None:
        """Store the results since the last time.

        Raises:
            LeaseLost: another process drives the run.
        """
        entries = self._unstored
        self._unstored = []
        self._stored_at = time.monotonic()
        if not entries:
            return
        await self._parts.cache.set_many(self._live.session_id, entries)
        if not await self._parts.runs.note_progress(
            self._live.session_id, self._live.fence
        ):
            raise self._live.lost()

    async def _leave(self) -> None:
        """Cancel the tasks under way, where the run is to be cancelled; else the next driver finds them again."""
        if not self._under_way:
            return
        under_way = sorted(self._under_way)
        reason = await self._parts.runs.cancel_reason(self._live.session_id)
        if reason is None:
            return
        if self._phase.pipeline is not None:
            await asyncio.gather(
                *(self._parts.runs.request_cancel(one, reason) for one in under_way)
            )
            if (driver := self._live.driver) is not None:
                for session_id in under_way:
                    driver.cancel(session_id, reason)
            return
        await asyncio.gather(
            *(self._parts.canceller.cancel(one, reason) for one in under_way),
            return_exceptions=True,
        )

    def _tell(self, done: FannedOut) -> None:
        if self._phase.for_each is None:
            return
        every = max(1, min(_TOLD_EVERY, done.total // 20))
        if self._through % every and self._through != done.total:
            return
        text = f"{self._through:,} of {done.total:,} items"
        failed = f", {len(done.failures):,} failed" if done.failures else ""
        self._parts.tell(
            self._live.event(
                "phase_progress",
                self._parts.now(),
                self._phase.name,
                text=f"{text}{failed}",
            )
        )


def failure_words(done: FannedOut, what: str) -> str:
    """Return why the phase failed: the first item or round (*what*) that did, and how many others."""
    number, failure = min(done.failures.items())
    others = len(done.failures) - 1
    more = f"; and {others:,} more" if others else ""
    kinds = Counter(one.error_type for one in done.failures.values())
    told = (
        f" ({', '.join(f'{count:,} {kind}' for kind, count in kinds.most_common(3))})"
        if others
        else ""
    )
    return f"{what} {number} of {done.total:,}: {failure.error_type}: {failure.error}{more}{told}"


async def run_pipeline(
    parts: DriverDependencies,
    live: LiveRun,
    phase: Phase,
    pipeline: Pipeline,
    assignment: TaskAssignment,
    *,
    before: str | None,
) -> Returned | Failure:
    """Run *pipeline* as *assignment* of *phase* would run; return its result, or why there is none.

    It is a run of its own in a session of its own, called as the task would be; the driver drives it beside the one
    that waits for it. *before* is the session of the run of this phase before, which goes on where it failed; None
    where there was none. Parameters that are hidden in the outer run are secrets of the inner one, too.

    Raises:
        MemoryUnavailable: the store did not answer; the next driver finds everything as it is.
    """
    if (driver := live.driver) is None:
        raise RuntimeError("this run is only looked at here, and not driven")
    given = assignment.task.parameters
    hidden = {
        name
        for name, value in given.items()
        if name in pipeline.inputs and live.masker.mask(value)[1]
    }
    declared = {
        name: one.model_copy(update={"secret": True}) if name in hidden else one
        for name, one in pipeline.inputs.items()
    }
    pipeline = pipeline.model_copy(update={"inputs": declared})
    inputs = fill_defaults(pipeline, given)
    if problems := problems_in_inputs(pipeline, inputs):
        return Failure(
            InvalidInput.__name__, f"pipeline {pipeline.name!r}: {problems[0].text}"
        )
    session_id = await _begin(
        parts, pipeline=pipeline, assignment=assignment, inputs=inputs, before=before
    )
    deadline = assignment.deadline
    now = parts.now()
    try:
        async with asyncio.timeout(
            None if deadline is None else max(0.0, (deadline - now).total_seconds())
        ):
            while (body := await parts.runs.outcome(session_id)) is None:
                await driver.drive_inner(session_id)
    except TimeoutError:
        words = f"it did not end within its timeout of {phase.timeout}"
        await parts.runs.request_cancel(session_id, words)
        driver.cancel(session_id, words)
        return Failure(
            "TaskExpired", f"pipeline {pipeline.name!r} (run {session_id}): {words}"
        )
    outcome = json.loads(body)
    if (why := failure_in(outcome, session_id)) is not None:
        return Failure("PipelineFailed", why)
    took_ms = outcome.get("took_ms")
    return Returned(outcome.get("result"), took_ms if isinstance(took_ms, int) else 0)


async def _begin(
    parts: DriverDependencies,
    pipeline: Pipeline,
    assignment: TaskAssignment,
    inputs: Mapping[str, JsonValue],
    before: str | None,
) -> str:
    """Begin the run, or let it go on where it failed; return its session."""
    known = await parts.runs.read(before) if before is not None else None
    if before is not None and known is not None and known.inputs == inputs:
        if known.state in ("failed", "cancelled"):
            # Another request may have been quicker.
            with suppress(InvalidInput):
                await Resumption(parts).resume(
                    known,
                    PipelineRequest(
                        action="resume", session_id=before, caller=assignment.asked_by
                    ),
                )
        return before
    new = NewRun(
        session_id=assignment.task_id,
        pipeline=pipeline,
        supervisor_id=parts.supervisor_id,
        inputs=inputs,
        dependencies=Graph.of(pipeline).dependencies,
        user_id=assignment.user_id,
        caller=assignment.asked_by,
    )
    await parts.runs.create(new)
    return new.session_id
