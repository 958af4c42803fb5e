"""The end of a run: what came of it is written down, first as evidence when it failed, then as history, then for good.

Each step may be repeated: the evidence takes the place of what lay there, the history knows its token, and the end of
the run itself is one script. How a run ended is told for a day as one JSON object:

    {"session_id", "pipeline", "version", "run", "state", "result", "missing", "withheld", "error", "evidence", "stats",
     "phases", "digest", "started_at", "ended_at", "took_ms"}

`result` is null unless the run is completed; `missing` names keys of it that nothing lay under any more, `withheld`
those that are too large to be told: then the session is kept. `phases` are
{"phase", "agent", "status", "run", "took_ms", "saved_ms", "attempts", "memory", "why", "error_type", "error"}.
`digest` is over what was asked for, so that the same wish under the same id is recognised.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from pydantic import JsonValue

from contracts.errors import InvalidInput, MemoryUnavailable, UnknownSession, Unreachable
from contracts.pipelines import Pipeline
from contracts.session_keys import read_key
from memory.sessions.pipeline_records import EndState, RunRecord
from runtime.lease_loop import LeaseLost
from supervisor.pipelines.declaration.graph import result_keys
from supervisor.pipelines.evidence import bundle_of, earlier_ends, write_bundle
from supervisor.pipelines.live import LiveRun, Parts

log = structlog.get_logger(__name__)

#: Characters of an error in the history and in events; the whole stands in the session and in the evidence.
_MOST_SAID = 500
#: Bytes of a result that are told with the end of a run: what one round trip takes within its deadline.
MOST_RESULT_BYTES = 8 * 1024 * 1024
#: Seconds for deleting dead letters, and what the clocks of two servers may differ by.
_LETTERS_S, _CLOCKS = 10.0, timedelta(minutes=1)


async def end_run(parts: Parts, live: LiveRun, *, error: str = "", cancelled: str | None = None) -> None:
    """End the run: as cancelled, as failed with *error* or because of its phases, else as completed.

    Raises:
        LeaseLost: somebody else drives it.
        MemoryUnavailable: the store did not answer; all of this may be done again.
    """
    # Times are the store's.
    live.phases.update((await _demand_ours(parts, live)).phases)
    error = live.masker.mask_text(error) or _error_of(live)
    state: EndState = "cancelled" if cancelled is not None else "failed" if error else "completed"
    outcome = await _outcome_of(parts, live, state, cancelled or error)
    kept = await _keep_evidence(parts, live, outcome["error"]) if state == "failed" else None
    outcome["evidence"] = kept and str(kept.path)
    try:
        await _note_history(parts, live, outcome)
        await _drop_letters(parts, live)
        await _end_for_good(parts, live, outcome)
    except LeaseLost:
        if kept is not None:
            await asyncio.to_thread(kept.take_back)
        raise
    parts.meter.count_pipeline(state)
    said = _said(outcome)
    log.info("pipeline_ended", session=live.session_id, pipeline=live.record.pipeline.name, state=state)
    parts.tell(live.event(state, parts.now(), text=said, run_ms=outcome["took_ms"]))


def failure_in(outcome: Mapping[str, Any], session_id: str) -> str | None:
    """Return why the run that ended as *outcome* has no result for whoever waits for one, None when it has."""
    name, lacking = outcome.get("pipeline"), outcome.get("withheld") or outcome.get("missing")
    if outcome.get("state") != "completed":
        return f"pipeline {name!r} (run {session_id}) is {outcome.get('state')}: {outcome.get('error')}"
    return f"pipeline {name!r} (run {session_id}) ended without {lacking}" if lacking else None


async def _drop_letters(parts: Parts, live: LiveRun) -> None:
    """Delete the dead letters of phases that are done by now: there is nothing left to do about them."""
    done = {name: one.run for name, one in live.phases.items() if one.status == "done" and one.run > 1}
    if not done or parts.drop_letters is None:
        return
    agents = {live.by_name[name].agent for name in done}
    tasks = {live.task_id(name, run) for name, last in done.items() for run in range(1, last)}
    since = datetime.fromtimestamp(live.record.created_ms / 1000, UTC) - _CLOCKS
    try:
        async with asyncio.timeout(_LETTERS_S):
            await parts.drop_letters(agents, tasks, since)
    except (Unreachable, TimeoutError) as problem:
        log.warning("dead_letters_left", session=live.session_id, error=repr(problem))


def digest_of(pipeline: Pipeline, inputs: Mapping[str, JsonValue], user_id: str | None) -> str:
    """Return what tells two wishes apart that come under one session id."""
    words = [pipeline.model_dump(mode="json"), dict(inputs), user_id]
    return hashlib.blake2b(json.dumps(words, sort_keys=True).encode(), digest_size=16).hexdigest()


async def _end_for_good(parts: Parts, live: LiveRun, outcome: Mapping[str, Any]) -> None:
    state: EndState = outcome["state"]
    keep = live.record.keep or state != "completed" or bool(outcome["withheld"])
    body, error = json.dumps(outcome).encode(), outcome["error"]
    if not await parts.runs.end(live.session_id, live.fence, state, body, keep=keep, error=error):
        raise _lost(live)


async def _demand_ours(parts: Parts, live: LiveRun) -> RunRecord:
    """Return the run as it stands, to be asked before each thing that outlives it is written.

    A driver may have slept past its lease: what it knows is old then, and its user may be forgotten by now.

    Raises:
        LeaseLost: it is gone, over, or driven by somebody else.
    """
    known = await parts.runs.read(live.session_id)
    if known is None or known.state != "running" or known.holder is None or known.fence != live.fence:
        raise _lost(live)
    return known


def _lost(live: LiveRun) -> LeaseLost:
    return LeaseLost(f"run {live.session_id!r} is gone, or driven by somebody else")


async def _outcome_of(parts: Parts, live: LiveRun, state: EndState, error: str) -> dict[str, Any]:
    record, now = live.record, parts.now()
    began_ms = record.began_ms
    stats = await parts.cache.stats(live.session_id)
    entries = await parts.cache.entries(live.session_id)
    sizes = {entry.key: entry.bytes for entry in entries}
    result, missing, withheld = await _result_of(parts, live, sizes) if state == "completed" else (None, [], [])
    return {
        "session_id": live.session_id,
        "pipeline": record.pipeline.name,
        "version": record.pipeline.version,
        "run": record.run,
        "state": state,
        "result": result,
        "missing": missing,
        "withheld": withheld,
        "error": error,
        "evidence": None,
        "stats": asdict(stats),
        "phases": [_told_of(live, name, stats.saved_by_phase.get(name, 0)) for name in live.graph.order],
        "digest": digest_of(record.pipeline, record.inputs, record.user_id),
        "started_at": datetime.fromtimestamp(began_ms / 1000, UTC).isoformat(),
        "ended_at": now.isoformat(),
        "took_ms": max(0, int(now.timestamp() * 1000) - began_ms),
    }


async def _result_of(parts: Parts, live: LiveRun, sizes: Mapping[str, int]) -> tuple[JsonValue, list[str], list[str]]:
    """Return the result, and which keys of it are gone or too large; reading it is no use of an entry."""
    pipeline = live.record.pipeline
    # What stands for a corrected entry is what corrected it.
    stored = {key: str(read_key(key)._replace(phase=live.owner(read_key(key).phase))) for key in _keys_of(live)}
    if sum(sizes.get(one, 0) for one in stored.values()) > MOST_RESULT_BYTES:
        return None, [], list(stored)
    found = await parts.cache.peek(live.session_id, list(stored))
    values = {key: entry.value for key, entry in zip(stored, found, strict=True) if entry is not None}
    missing = [key for key in stored if key not in values]
    return (values.get(pipeline.result) if pipeline.result is not None else values), missing, []


def _keys_of(live: LiveRun) -> list[str]:
    """Return the keys that make the result, without those of phases that were left out."""
    keys = result_keys(live.record.pipeline, live.graph)
    return [key for key in keys if live.phases[live.owner(read_key(key).phase)].status == "done"]


def _told_of(live: LiveRun, name: str, saved_ms: int) -> dict[str, Any]:
    state = live.phases[name]
    return {
        "phase": name,
        "agent": live.by_name[name].agent,
        "status": "cancelled" if state.status == "running" else state.status,
        "run": state.run,
        "took_ms": state.took_ms,
        "saved_ms": saved_ms,
        "attempts": state.attempts,
        "memory": state.memory,
        "why": state.why,
        "error_type": state.error_type,
        "error": state.error,
    }


def _error_of(live: LiveRun) -> str:
    failed = [(name, live.phases[name]) for name, status in live.statuses.items() if status == "failed"]
    return "; ".join(f"phase {name!r} failed: {state.error_type}: {state.error}" for name, state in failed)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A file of evidence that was written here: where, and which it is of all that were ever written there."""

    path: Path
    inode: int

    def take_back(self) -> None:
        """Remove it, unless somebody else wrote another one meanwhile."""
        with suppress(OSError):
            if self.path.stat().st_ino == self.inode:
                self.path.unlink()


async def _keep_evidence(parts: Parts, live: LiveRun, error: str) -> _Kept | None:
    """Write the evidence of a run that failed and return what it is, None when it could not be written.

    Raises:
        LeaseLost: the run is gone, or somebody else drives it.
        MemoryUnavailable: the store did not answer.
    """
    path = parts.evidence_dir / f"{live.session_id}-failed.json"
    try:
        session = await parts.cache.export(live.session_id)
        seen = await parts.runs.seen(live.session_id)
        earlier = await earlier_ends(parts.projects, live.record)
        told = partial(bundle_of, error=error, made_at=parts.now(), earlier=earlier)
        bundle = await asyncio.to_thread(told, live.record, live.phases, live.corrected, session, seen)
        await _demand_ours(parts, live)
        return await asyncio.to_thread(_write, path, bundle)
    except UnknownSession as gone:
        raise _lost(live) from gone
    except (LeaseLost, MemoryUnavailable):
        raise
    except Exception as problem:  # noqa: BLE001 - nothing that a run left may keep it from ending
        log.warning("evidence_not_written", session=live.session_id, path=str(path), error=repr(problem)[:_MOST_SAID])
        return None


def _write(path: Path, bundle: Mapping[str, Any]) -> _Kept:
    write_bundle(path, bundle)
    return _Kept(path, path.stat().st_ino)


async def _note_history(parts: Parts, live: LiveRun, outcome: Mapping[str, Any]) -> None:
    record = live.record
    data = {
        "run": record.run,
        "state": outcome["state"],
        "version": record.pipeline.version,
        "took_ms": outcome["took_ms"],
        "saved_ms": outcome["stats"]["total_saved_time_ms"],
        "phases": {one["phase"]: one["status"] for one in outcome["phases"]},
    }
    token = f"{live.session_id}:{record.created_ms}:{record.run}"
    tags = ("pipeline", record.pipeline.name, str(outcome["state"]))
    text = f"{record.pipeline.name}: {_said(outcome)}"
    await _demand_ours(parts, live)
    try:
        await parts.projects.append(
            record.project,
            "history",
            text,
            tags=tags,
            by=record.user_id,
            session_id=live.session_id,
            data=data,
            token=token,
        )
    except InvalidInput as problem:
        # A run must not stay open because of what its project cannot keep.
        log.warning("history_not_noted", session=live.session_id, error=str(problem))


def _span_in_words(span_ms: int) -> str:
    """Return a span rounded down, as it is told wherever a run is shown: a saved millisecond is not nothing."""
    return f"{span_ms} ms" if span_ms < 1000 else f"{span_ms // 100 / 10:.1f} s"


def _said(outcome: Mapping[str, Any]) -> str:
    """Return the end of a run in a sentence."""
    through = sum(1 for one in outcome["phases"] if one["status"] == "done")
    words = f"{outcome['state']}, {through} of {len(outcome['phases'])} phases through"
    if saved_ms := outcome["stats"]["total_saved_time_ms"]:
        words += f", {_span_in_words(saved_ms)} saved"
    if outcome["error"]:
        words += f"; {str(outcome['error'])[:_MOST_SAID]}"
    if outcome["state"] == "failed":
        evidence = outcome["evidence"]
        words += f"; evidence in {evidence}" if evidence else "; the evidence could not be written, the log says why"
    return words
