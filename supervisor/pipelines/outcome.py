"""The end of a run: evidence when it failed, a record of history, and the outcome, written in this order.

Each step may be repeated: the evidence takes the place of an older one, the history knows its token, and the end of
the run itself is one script. The outcome is kept for a day as one JSON object:

    {"session_id", "pipeline", "version", "run", "state", "result", "missing", "withheld", "error", "evidence", "stats",
     "phases", "digest", "owner", "started_at", "ended_at", "took_ms"}

`result` is null unless the run is completed; `missing` names keys of it whose entries are gone, `withheld` those that
are too large to be told: then the session is kept. `phases` are
{"phase", "agent", "status", "run", "took_ms", "computed_ms", "saved_ms", "attempts", "memory", "why", "late",
"error_type", "error", "task_id", "since_ms", "ended_ms"}; `computed_ms` is what its tasks computed, all together.
`digest` is over pipeline, inputs, user and tenant, so that the same request under the same id is recognised. `owner` is
{"user", "tenant"}, whose keys may see the end; nobody is shown it.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from pydantic import JsonValue

from tasklore.contracts.callers import tenant_of
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    UnknownSession,
    Unreachable,
)
from tasklore.contracts.pipelines import Pipeline
from tasklore.contracts.session_keys import read_key
from tasklore.memory.sessions.pipeline_records import EndState, RunRecord
from tasklore.runtime.claim_loop import LeaseLost
from tasklore.supervisor.pipelines.declaration.graph import result_keys
from tasklore.supervisor.pipelines.evidence import bundle_of, earlier_ends, write_bundle
from tasklore.supervisor.pipelines.live import DriverDependencies, LiveRun

log = structlog.get_logger(__name__)

#: Characters of an error in the history and in events; the whole stands in the session and in the evidence.
_MOST_TEXT = 500
#: Bytes of a result that are told with the end of a run: as much as one round trip takes within its deadline.
MOST_RESULT_BYTES = 8 * 1024 * 1024
#: Seconds for deleting dead letters, and the most by which the clocks of two servers may differ.
_LETTERS_S = 10.0
_CLOCKS = timedelta(minutes=1)


async def end_run(
    parts: DriverDependencies,
    live: LiveRun,
    *,
    error: str = "",
    cancelled: str | None = None,
) -> None:
    """End the run: as cancelled, as failed with *error* or because of its phases, else as completed.

    Raises:
        LeaseLost: another process drives it.
        MemoryUnavailable: the store did not answer; all of this may be done again.
    """
    # Times are the store's.
    live.phases.update((await _demand_lease(parts, live)).phases)
    failures = [
        (name, live.phases[name])
        for name, status in live.statuses.items()
        if status == "failed"
    ]
    words = "; ".join(
        f"phase {name!r} failed: {state.error_type}: {state.error}"
        for name, state in failures
    )
    error = live.masker.mask_text(error) or words
    state: EndState = (
        "cancelled" if cancelled is not None else "failed" if error else "completed"
    )
    outcome = await _make_outcome(parts, live, state, cancelled or error)
    # Which file it is of all that were ever written there.
    evidence, inode = (
        await _write_evidence(parts, live, outcome["error"])
        if state == "failed"
        else (None, 0)
    )
    outcome["evidence"] = evidence and str(evidence)
    try:
        await _append_history(parts, live, outcome)
        await _drop_letters(parts, live)
        keep = live.record.keep or state != "completed" or bool(outcome["withheld"])
        body = json.dumps(outcome).encode()
        if not await parts.runs.end(
            live.session_id, live.fence, state, body, keep=keep, error=outcome["error"]
        ):
            raise live.lost()
    except LeaseLost:
        if evidence is not None:
            await asyncio.to_thread(_take_back, evidence, inode)
        raise
    parts.meter.count_pipeline(state)
    log.info(
        "pipeline_ended",
        session=live.session_id,
        pipeline=live.record.pipeline.name,
        state=state,
    )
    parts.tell(
        live.event(
            state,
            parts.now(),
            text=describe_outcome(outcome),
            run_ms=outcome["took_ms"],
        )
    )


def failure_in(outcome: Mapping[str, Any], session_id: str) -> str | None:
    """Return why the run that ended as *outcome* has no result, None when it has one."""
    name = outcome.get("pipeline")
    lacking = outcome.get("withheld") or outcome.get("missing")
    if outcome.get("state") != "completed":
        return f"pipeline {name!r} (run {session_id}) is {outcome.get('state')}: {outcome.get('error')}"
    return (
        f"pipeline {name!r} (run {session_id}) ended without {lacking}"
        if lacking
        else None
    )


def digest_of(
    pipeline: Pipeline,
    inputs: Mapping[str, JsonValue],
    *,
    user_id: str | None,
    tenant: str | None,
) -> str:
    """Return a digest that two different requests under one session id do not share, nor those of two tenants."""
    words = [pipeline.model_dump(mode="json"), dict(inputs), user_id]
    # Without a tenant it is as 0.2 made it, for repeats of before.
    if tenant is not None:
        words.append(tenant)
    return hashlib.blake2b(
        json.dumps(words, sort_keys=True).encode(), digest_size=16
    ).hexdigest()


def digest_of_run(record: RunRecord) -> str:
    """Return the digest of the request that began a run."""
    return digest_of(
        record.pipeline,
        record.inputs,
        user_id=record.user_id,
        tenant=tenant_of(record.caller),
    )


async def _demand_lease(parts: DriverDependencies, live: LiveRun) -> RunRecord:
    """Return the run as it is now, to be asked before each thing that outlives it is written.

    A driver may have slept past its lease: its knowledge is old then, and its user may be forgotten by now.

    Raises:
        LeaseLost: the run is gone, over, or driven by another process.
    """
    known = await parts.runs.read(live.session_id)
    if (
        known is None
        or known.state != "running"
        or known.holder is None
        or known.fence != live.fence
    ):
        raise live.lost()
    return known


async def _make_outcome(
    parts: DriverDependencies, live: LiveRun, state: EndState, error: str
) -> dict[str, Any]:
    record = live.record
    now = parts.now()
    stats = await parts.cache.stats(live.session_id)
    entries = await parts.cache.entries(live.session_id)
    result: JsonValue = None
    missing = list[str]()
    withheld = list[str]()
    if state == "completed":
        pipeline = record.pipeline
        keys = [
            key
            for key in result_keys(pipeline, live.graph)
            if live.phases[live.owner(read_key(key).phase)].status == "done"
        ]
        # A corrected entry is served by the one that corrects it.
        stored = {
            key: str(read_key(key)._replace(phase=live.owner(read_key(key).phase)))
            for key in keys
        }
        if (
            sum(entry.bytes for entry in entries if entry.key in stored.values())
            > MOST_RESULT_BYTES
        ):
            withheld = list(stored)
        else:
            # Reading it is no use of an entry.
            found = await parts.cache.peek(live.session_id, list(stored.values()))
            values = {
                key: entry.value
                for key, entry in zip(stored, found, strict=True)
                if entry is not None
            }
            missing = [key for key in stored if key not in values]
            result = (
                values.get(pipeline.result) if pipeline.result is not None else values
            )
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
        "phases": [
            _phase_outcome(live, name, stats.saved_by_phase.get(name, 0))
            for name in live.graph.order
        ],
        "digest": digest_of_run(record),
        # The session may be gone then, and a key of one user or tenant still finds its end.
        "owner": {"user": record.user_id, "tenant": tenant_of(record.caller)},
        "started_at": datetime.fromtimestamp(record.began_ms / 1000, UTC).isoformat(),
        "ended_at": now.isoformat(),
        "took_ms": max(0, int(now.timestamp() * 1000) - record.began_ms),
    }


def _phase_outcome(live: LiveRun, name: str, saved_ms: int) -> dict[str, Any]:
    state = live.phases[name]
    return {
        "phase": name,
        "agent": live.by_name[name].agent,
        "status": "cancelled" if state.status == "running" else state.status,
        "run": state.run,
        "took_ms": state.took_ms,
        "computed_ms": state.computing_ms,
        "saved_ms": saved_ms,
        "attempts": state.attempts,
        "memory": state.memory,
        "why": state.why,
        "late": replace(live.record, phases=live.phases).lateness(name),
        "error_type": state.error_type,
        "error": state.error,
        "task_id": state.task_id,
        "since_ms": state.since_ms,
        "ended_ms": state.ended_ms,
    }


async def _write_evidence(
    parts: DriverDependencies, live: LiveRun, error: str
) -> tuple[Path | None, int]:
    """Write the evidence of a run that failed and return its file and inode, None when it could not be written.

    Raises:
        LeaseLost: the run is gone, or another process drives it.
        MemoryUnavailable: the store did not answer.
    """
    path = parts.evidence_dir / f"{live.session_id}-failed.json"

    def write(bundle: Mapping[str, Any]) -> tuple[Path | None, int]:
        write_bundle(path, bundle)
        return path, path.stat().st_ino

    try:
        session = await parts.cache.export(live.session_id)
        seen = await parts.runs.seen(live.session_id)
        earlier = await earlier_ends(parts.projects, live.record)
        make = partial(bundle_of, error=error, made_at=parts.now(), earlier=earlier)
        bundle = await asyncio.to_thread(
            make, live.record, live.phases, live.corrected, session, seen
        )
        await _demand_lease(parts, live)
        return await asyncio.to_thread(write, bundle)
    except UnknownSession as gone:
        raise live.lost() from gone
    except (LeaseLost, MemoryUnavailable):
        raise
    except Exception as problem:  # noqa: BLE001 - nothing that a run left may keep it from ending
        log.warning(
            "evidence_not_written",
            session=live.session_id,
            path=str(path),
            error=repr(problem)[:_MOST_TEXT],
        )
        return None, 0


def _take_back(path: Path, inode: int) -> None:
    """Remove evidence that was written here, unless another process wrote another one meanwhile."""
    with suppress(OSError):
        if path.stat().st_ino == inode:
            path.unlink()


async def _append_history(
    parts: DriverDependencies, live: LiveRun, outcome: Mapping[str, Any]
) -> None:
    record = live.record
    data = {
        "run": record.run,
        "state": outcome["state"],
        "version": record.pipeline.version,
        "took_ms": outcome["took_ms"],
        "saved_ms": outcome["stats"]["total_saved_time_ms"],
        "phases": {one["phase"]: one["status"] for one in outcome["phases"]},
    }
    await _demand_lease(parts, live)
    try:
        await parts.projects.append(
            record.project,
            "history",
            f"{record.pipeline.name}: {describe_outcome(outcome)}",
            tags=("pipeline", record.pipeline.name, str(outcome["state"])),
            by=record.user_id,
            session_id=live.session_id,
            data=data,
            token=f"{live.session_id}:{record.created_ms}:{record.run}",
        )
    except InvalidInput as problem:
        # A run must not stay open because its project refuses the record.
        log.warning("history_not_noted", session=live.session_id, error=str(problem))


async def _drop_letters(parts: DriverDependencies, live: LiveRun) -> None:
    """Delete the dead letters of phases that are done by now: there is nothing left to do about them."""
    done = {
        name: one.run
        for name, one in live.phases.items()
        if one.status == "done" and one.run > 1
    }
    if not done or parts.drop_letters is None:
        return
    agents = {live.by_name[name].agent for name in done}
    tasks = {
        live.task_id(name, run) for name, last in done.items() for run in range(1, last)
    }
    since = datetime.fromtimestamp(live.record.created_ms / 1000, UTC) - _CLOCKS
    try:
        async with asyncio.timeout(_LETTERS_S):
            await parts.drop_letters(agents, tasks, since)
    except (Unreachable, TimeoutError) as problem:
        log.warning("dead_letters_left", session=live.session_id, error=repr(problem))


def describe_outcome(outcome: Mapping[str, Any]) -> str:
    """Return the end of a run in a sentence."""
    through = sum(1 for one in outcome["phases"] if one["status"] == "done")
    words = f"{outcome['state']}, {through} of {len(outcome['phases'])} phases through"
    if saved_ms := outcome["stats"]["total_saved_time_ms"]:
        # Rounded down, as wherever a run is shown: a saved millisecond is not nothing.
        words += f", {f'{saved_ms} ms' if saved_ms < 1000 else f'{saved_ms // 100 / 10:.1f} s'} saved"
    if outcome["error"]:
        words += f"; {str(outcome['error'])[:_MOST_TEXT]}"
    if outcome["state"] == "failed":
        evidence = outcome["evidence"]
        words += (
            f"; evidence in {evidence}"
            if evidence
            else "; the evidence could not be written, the log says why"
        )
    return words
