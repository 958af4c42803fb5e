"""`tasklore pipeline list|evidence`: which pipelines and runs there are, and what a run left behind."""

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contracts.errors import InvalidInput, TaskloreError, UnknownSession
from memory.sessions.files import spell_time
from memory.sessions.session import SessionRoot
from supervisor.pipelines.evidence import bundle_of, earlier_ends, write_bundle
from tasklore.exits import OK
from tasklore.pipeline.lines import counted, one_line
from tasklore.pipeline.sources import known_names, read_source
from tasklore.pipeline.stores import Stores, open_stores
from tasklore.render.durations import read_aloud
from tasklore.render.screen import patience, print_json, print_table, printable, say
from tasklore.session.files import demand_free

#: Sessions read at a time while runs are looked for among them.
_PAGE = 200
#: Characters of a description in a list.
_WIDE = 90


async def print_list(limit: int, *, as_json: bool) -> None:
    """Print the pipelines that are known here, and a line for each of at most *limit* runs, the last updated first.

    Raises:
        Unreachable: Redis does not answer.
    """
    known = [_known(name) for name in known_names()]
    async with open_stores() as stores, patience("reading runs"):
        runs = await _runs(stores, limit)
    if as_json:
        print_json({"pipelines": known, "runs": [_run_document(root) for root in runs]})
        return
    if known:
        titles = ("PIPELINE", "PHASES", "WHAT IT DOES")
        print_table(titles, [_known_line(one) for one in known], right=("PHASES",), whole=("PIPELINE",))
        print()
    if not runs:
        print("No run has a session; `tasklore pipeline run FILE|NAME` starts one.")
        return
    now_ms = time.time_ns() // 1_000_000
    print_table(
        ("SESSION", "PROJECT", "STATE", "RUN", "UPDATED", "LEFT"),
        [_run_line(root, now_ms) for root in runs],
        right=("RUN", "UPDATED", "LEFT"),
        whole=("SESSION",),
    )


async def _runs(stores: Stores, limit: int) -> list[SessionRoot]:
    """Return sessions that a pipeline runs, or ran, in."""
    found: list[SessionRoot] = []
    before: SessionRoot | None = None
    while len(found) < limit:
        page = await stores.cache.sessions(limit=_PAGE, before=before)
        found += [root for root in page if root.run]
        if len(page) < _PAGE:
            break
        before = page[-1]
    return found[:limit]


def _known(name: str) -> dict[str, Any]:
    """Return what is known of the pipeline *name*; one that cannot be read says why."""
    try:
        pipeline = read_source(name).pipeline
    except TaskloreError as error:
        return {"name": name, "phases": 0, "description": "", "error": str(error)}
    return {"name": name, "phases": len(pipeline.phases), "description": pipeline.description, "error": None}


def _known_line(known: dict[str, Any]) -> tuple[str, ...]:
    said = known["description"] if known["error"] is None else f"cannot be read: {known['error']}"
    return (printable(known["name"]), str(known["phases"]), one_line(said, _WIDE))


def _run_line(root: SessionRoot, now_ms: int) -> tuple[str, ...]:
    left = "while it runs" if root.expires_in_ms is None else read_aloud(root.expires_in_ms)
    updated = read_aloud(max(0, now_ms - root.updated_ms))
    return (root.session_id, printable(root.project or ""), root.state, str(root.run), updated, left)


def _run_document(root: SessionRoot) -> dict[str, Any]:
    return {
        "session_id": root.session_id,
        "project": root.project,
        "state": root.state,
        "run": root.run,
        "created_at": spell_time(root.created_ms),
        "updated_at": spell_time(root.updated_ms),
        "expires_in_ms": root.expires_in_ms,
    }


async def write_evidence(session_id: str, file: Path | None, *, is_forced: bool) -> int:
    """Write what the run left to *file*, None to stdout, and return the exit code.

    Raises:
        UnknownSession: there is no such run, or its session is gone.
        InvalidInput: the file is there and *is_forced* is not said, or it cannot be written.
        Unreachable: Redis does not answer.
    """
    if file is not None:
        demand_free(file, is_forced=is_forced)
    async with open_stores() as stores, patience("reading the run"):
        bundle = await _bundle(stores, session_id)
    if file is None:
        print(json.dumps(bundle, indent=1, ensure_ascii=False), flush=True)
        return OK
    try:
        await asyncio.to_thread(write_bundle, file, bundle)
    except OSError as error:
        raise InvalidInput(f"{str(file)!r} cannot be written ({error.strerror or error}); name another file") from error
    say(f"{counted(len(bundle['session']['cache']), 'entry')} in {file}, secrets masked")
    return OK


async def _bundle(stores: Stores, session_id: str) -> dict[str, Any]:
    look = await stores.found(session_id)
    if look.record is None:
        left = (look.outcome or {}).get("evidence")
        where = f"what it left is in {left}, where the supervisor ran" if left else "only failed runs leave evidence"
        raise UnknownSession(f"the run {session_id!r} is {look.state} and its session is gone; {where}")
    if not look.is_over:
        say("it still runs; this is how far it is")
    session, seen = await stores.cache.export(session_id), await stores.runs.seen(session_id)
    record = look.record
    earlier = await earlier_ends(stores.projects, record)
    return bundle_of(
        record,
        record.phases,
        record.corrected,
        session,
        seen,
        error=record.error,
        made_at=datetime.now(UTC),
        earlier=earlier,
    )
