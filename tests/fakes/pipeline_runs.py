"""Runs of pipelines in this process only, for unit tests; they pass the contract suite of the real ones."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import RunSetAside, UnknownSession
from tasklore.memory.sessions.pipeline_records import (
    MOST_LAPSES,
    SET_ASIDE,
    EndState,
    NewRun,
    PhaseState,
    Redeclared,
    RunRecord,
    error_type_of,
)


@dataclass(slots=True)
class _Kept:
    """A run, and until when its lease is held, in ms.

    The record has phases, too, that another declaration left out: how often they ran counts, should they come back.
    """

    record: RunRecord
    seen: dict[str, dict[str, str]] = field(default_factory=dict)
    leased_until_ms: int = 0
    due_since_ms: int = 0
    claimed_by: str | None = None
    lapses: int = 0


class FakePipelineRuns:
    """Stands for `sessions.pipeline_runs.PipelineRuns`; *clock* tells seconds since 1970, and no session expires."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._runs: dict[str, _Kept] = {}
        self._outcomes: dict[str, bytes] = {}
        self._last_fence = 0

    async def create(self, new: NewRun) -> bool:
        if new.session_id in self._runs or (
            new.state == "running" and new.session_id in self._outcomes
        ):
            return False
        now = self._now_ms()
        self._outcomes.pop(new.session_id, None)
        kept = _Kept(_record_of(new, now), due_since_ms=now)
        kept.seen |= {phase: dict(marks) for phase, marks in new.seen.items()}
        self._runs[new.session_id] = kept
        return True

    async def now_ms(self) -> int:
        return self._now_ms()

    async def read(self, session_id: str) -> RunRecord | None:
        kept = self._runs.get(session_id)
        if kept is None:
            return None
        record = kept.record
        known = kept.record.phases
        phases = {
            phase.name: known.get(phase.name, PhaseState())
            for phase in record.pipeline.phases
        }
        return replace(
            record, phases=phases, holder=record.holder if self._is_held(kept) else None
        )

    async def claim(
        self,
        session_id: str,
        holder: str,
        lease_ms: int,
        most_lapses: int = MOST_LAPSES,
    ) -> int | None:
        kept = self._runs.get(session_id)
        if kept is None or kept.record.state != "running" or self._is_held(kept):
            return None
        has_lapsed = most_lapses and kept.claimed_by not in (None, holder)
        kept.lapses += bool(has_lapsed)
        if has_lapsed and kept.lapses == most_lapses:
            self._fail(kept, "failed", SET_ASIDE, RunSetAside.__name__)
            told = {
                "session_id": session_id,
                "state": "failed",
                "error": SET_ASIDE,
                "phases": [],
            }
            self._outcomes[session_id] = json.dumps(told).encode()
            raise RunSetAside(SET_ASIDE)
        self._last_fence = max(self._last_fence + 1, self._now_ms())
        kept.claimed_by = holder
        kept.record = replace(kept.record, holder=holder, fence=self._last_fence)
        kept.leased_until_ms = self._now_ms() + lease_ms
        return self._last_fence

    async def set_aside(self, supervisor_id: str) -> list[str]:
        records = [
            kept.record for kept in self._runs.values() if kept.record.is_set_aside
        ]
        return [
            record.session_id
            for record in records
            if record.supervisor_id == supervisor_id
        ]

    async def renew(
        self, session_id: str, holder: str, fence: int, lease_ms: int
    ) -> bool:
        kept = self._driven(session_id, fence)
        if kept is None or kept.record.holder != holder:
            return False
        kept.leased_until_ms = self._now_ms() + lease_ms
        return True

    async def give_back(self, session_id: str, holder: str, fence: int) -> None:
        kept = self._driven(session_id, fence)
        if kept is not None and kept.record.holder == holder:
            self._release(kept)
        known = self._runs.get(session_id)
        if known is not None and known.record.fence == fence:
            known.claimed_by = None

    async def is_idle(self, supervisor_id: str) -> bool:
        return all(
            kept.record.supervisor_id != supervisor_id or kept.record.state != "running"
            for kept in self._runs.values()
        )

    async def due(self, supervisor_id: str, limit: int = 100) -> list[str]:
        now = self._now_ms()
        due = [
            (max(kept.leased_until_ms, kept.due_since_ms), session_id)
            for session_id, kept in self._runs.items()
            if kept.record.supervisor_id == supervisor_id
            and kept.record.state == "running"
            and not self._is_held(kept)
            if kept.due_since_ms <= now
        ]
        return [session_id for _, session_id in sorted(due)[:limit]]

    async def user_of(self, session_id: str) -> str | None:
        kept = self._runs.get(session_id)
        return None if kept is None else kept.record.user_id

    async def postpone(self, supervisor_id: str, session_id: str, for_ms: int) -> None:
        if (
            kept := self._runs.get(session_id)
        ) is not None and kept.record.supervisor_id == supervisor_id:
            kept.due_since_ms = self._now_ms() + for_ms

    async def begin_phase(
        self, session_id: str, fence: int, phase: str, task_id: str, run: int
    ) -> bool:
        kept = self._driven(session_id, fence)
        known = None if kept is None else kept.record.phases.get(phase)
        if kept is None or known is None:
            return False
        if known.status == "pending" or known.task_id != task_id:
            running = PhaseState(
                "running", run, task_id, self._now_ms(), known.late_ms, why=known.why
            )
            self._update(kept, phase, running)
        return True

    async def settle_phase(
        self,
        session_id: str,
        fence: int,
        phase: str,
        state: PhaseState,
        corrects: str | None = None,
    ) -> bool:
        kept = self._driven(session_id, fence)
        known = None if kept is None else kept.record.phases.get(phase)
        if (
            kept is None
            or known is None
            or (state.task_id is not None and known.task_id != state.task_id)
        ):
            return False
        if known.is_over:
            return (known.status, known.task_id) == (state.status, state.task_id)
        run = max(state.run, known.run)
        # Here it may take less than a millisecond, which on a server it never does.
        ended_ms = max(self._now_ms(), kept.record.began_ms + 1)
        self._update(
            kept,
            phase,
            replace(
                state,
                run=run,
                since_ms=known.since_ms,
                late_ms=known.late_ms,
                ended_ms=ended_ms,
            ),
        )
        kept.lapses = 0
        if state.status == "done" and corrects is not None:
            kept.record = replace(
                kept.record, corrected=kept.record.corrected | {corrects: phase}
            )
        return True

    async def reset_phases(
        self,
        session_id: str,
        why: Mapping[str, str],
        *,
        restart: bool,
        expected_run: int | None = None,
        fence: int | None = None,
        inputs: Mapping[str, JsonValue] | None = None,
        declared: Redeclared | None = None,
        caller: Caller | None = None,
    ) -> RunRecord | None:
        kept = self._runs.get(session_id)
        if kept is None:
            raise UnknownSession(f"no pipeline runs in session {session_id!r}")
        record = kept.record
        if (
            record.fence if self._is_held(kept) else None
        ) != fence or expected_run not in (None, record.run):
            return None
        known = record.phases
        is_declared = declared is not None and declared.pipeline != record.pipeline
        reset = {
            phase: reason
            for phase, reason in why.items()
            if phase in known or is_declared
        }
        for phase in reset:
            kept.seen.pop(phase, None)
        runs = {phase: known[phase].run if phase in known else 0 for phase in reset}
        pending = {
            phase: PhaseState(run=runs[phase], why=reason)
            for phase, reason in reset.items()
        }
        if declared is not None:
            record = _redeclared(record, declared)
        kept.record = replace(
            record,
            phases=known | pending,
            corrected={
                phase: by for phase, by in record.corrected.items() if by not in reset
            },
            inputs=record.inputs if inputs is None else dict(inputs),
            caller=caller or record.caller,
            updated_ms=self._now_ms(),
        )
        if restart:
            kept.record = replace(
                kept.record,
                state="running",
                run=record.run + 1,
                began_ms=self._now_ms(),
                cancel_reason=None,
                error="",
            )
            kept.due_since_ms = self._now_ms()
            kept.lapses = 0
            kept.claimed_by = None
            self._outcomes.pop(session_id, None)
        return await self.read(session_id)

    async def end(
        self,
        session_id: str,
        fence: int,
        state: EndState,
        outcome: bytes,
        *,
        keep: bool,
        error: str = "",
    ) -> bool:
        kept = self._driven(session_id, fence)
        if kept is None:
            ended = self._runs.get(session_id)
            return self._outcomes.get(session_id) == outcome and (
                ended is None or ended.record.state == state
            )
        self._outcomes[session_id] = outcome
        if state == "completed" and not keep:
            del self._runs[session_id]
            return True
        self._fail(kept, state, error, error_type_of(state))
        return True

    async def outcome(self, session_id: str) -> bytes | None:
        return self._outcomes.get(session_id)

    async def request_cancel(self, session_id: str, reason: str) -> bool:
        kept = self._runs.get(session_id)
        if kept is None or kept.record.state != "running":
            return False
        kept.record = replace(
            kept.record, cancel_reason=kept.record.cancel_reason or reason
        )
        return True

    async def cancel_reason(self, session_id: str) -> str | None:
        kept = self._runs.get(session_id)
        return None if kept is None else kept.record.cancel_reason

    async def note_seen(
        self, session_id: str, fence: int, phase: str, seen: Mapping[str, str]
    ) -> bool:
        kept = self._driven(session_id, fence)
        if kept is None:
            return False
        kept.seen[phase] = dict(seen)
        return True

    async def note_late(self, session_id: str, fence: int, phase: str) -> bool:
        kept = self._driven(session_id, fence)
        known = None if kept is None else kept.record.phases.get(phase)
        if kept is not None and known is not None and not known.is_over:
            self._update(
                kept, phase, replace(known, late_ms=known.late_ms or self._now_ms())
            )
        return kept is not None

    async def note_progress(self, session_id: str, fence: int) -> bool:
        kept = self._driven(session_id, fence)
        if kept is not None:
            kept.lapses = 0
        return kept is not None

    async def seen(self, session_id: str) -> dict[str, dict[str, str]]:
        kept = self._runs.get(session_id)
        return (
            {}
            if kept is None
            else {phase: dict(marks) for phase, marks in kept.seen.items()}
        )

    def _driven(self, session_id: str, fence: int) -> _Kept | None:
        kept = self._runs.get(session_id)
        return (
            kept
            if kept is not None and self._is_held(kept) and kept.record.fence == fence
            else None
        )

    def _is_held(self, kept: _Kept) -> bool:
        return kept.record.holder is not None and kept.leased_until_ms > self._now_ms()

    def _release(self, kept: _Kept) -> None:
        kept.record = replace(kept.record, holder=None)
        kept.due_since_ms = self._now_ms()

    def _fail(self, kept: _Kept, state: EndState, error: str, error_type: str) -> None:
        self._release(kept)
        kept.claimed_by = None
        now = self._now_ms()
        for phase, known in kept.record.phases.items():
            if known.status == "running":
                failed = replace(
                    known,
                    status="failed",
                    ended_ms=now,
                    error_type=error_type,
                    error=error,
                )
                self._update(kept, phase, failed)
        kept.record = replace(
            kept.record, state=state, error=error, cancel_reason=None, updated_ms=now
        )

    def _update(self, kept: _Kept, phase: str, state: PhaseState) -> None:
        phases = kept.record.phases | {phase: state}
        kept.record = replace(kept.record, phases=phases, updated_ms=self._now_ms())

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _redeclared(record: RunRecord, declared: Redeclared) -> RunRecord:
    dependencies = {phase: tuple(on) for phase, on in declared.dependencies.items()}
    return replace(
        record,
        pipeline=declared.pipeline,
        dependencies=dependencies,
        project=declared.project,
    )


def _record_of(new: NewRun, now_ms: int) -> RunRecord:
    return RunRecord(
        session_id=new.session_id,
        state=new.state,
        pipeline=new.pipeline,
        inputs=dict(new.inputs),
        supervisor_id=new.supervisor_id,
        user_id=new.user_id,
        project=new.project or new.pipeline.project_id,
        keep=new.keep,
        run=new.run,
        phases={
            phase.name: new.phases.get(phase.name, PhaseState())
            for phase in new.pipeline.phases
        },
        dependencies={phase: tuple(on) for phase, on in new.dependencies.items()},
        corrected=dict(new.corrected),
        created_ms=now_ms,
        began_ms=now_ms,
        updated_ms=now_ms,
        trace=new.trace,
        caller=new.caller,
    )
