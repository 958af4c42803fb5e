"""`tasklore pipeline status|list|evidence`: the state of a run, all pipelines and runs, and a run as one file."""

import asyncio
import contextlib
import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.pipeline.client import absent_agents, say_absent
from tasklore.commands.pipeline.run import stale_phases
from tasklore.commands.pipeline.sources import known_names, mask, read_source
from tasklore.commands.pipeline.steps import LONGEST_ERROR, steps_of, summary_of
from tasklore.commands.pipeline.stores import Look, Stores, open_stores
from tasklore.commands.places import open_nats
from tasklore.commands.render.board import STATUSES, widest
from tasklore.commands.render.columns import Column, print_records
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import (
    fits_a_line,
    patience,
    print_json,
    print_paragraph,
    printable,
    say,
    styled,
)
from tasklore.commands.render.words import age, count_of, one_line
from tasklore.contracts.errors import (
    InvalidInput,
    TaskloreError,
    UnknownSession,
    Unreachable,
)
from tasklore.memory.sessions.pipeline_records import RunRecord
from tasklore.memory.sessions.session import SessionRoot
from tasklore.memory.times import spell_time
from tasklore.supervisor.pipelines.evidence import bundle_of, earlier_ends, write_bundle

#: Sessions read at a time while runs are looked for among them.
_PAGE = 200
#: Characters of one input, and of a description, in a list of them.
_LONGEST_INPUT = 100
_LONGEST_DESCRIPTION = 90
_BAD = frozenset({"failed", "cancelled"})


def time_left(root: SessionRoot) -> str:
    """Return how long a session will exist."""
    return (
        "while it runs"
        if root.expires_in_ms is None
        else read_aloud(root.expires_in_ms)
    )


PIPELINES = (
    Column[dict[str, Any]]("PIPELINE", lambda one: printable(one["name"]), whole=True),
    Column[dict[str, Any]]("PHASES", lambda one: str(one["phases"]), right=True),
    Column[dict[str, Any]](
        "WHAT IT DOES",
        lambda one: one_line(
            one["description"]
            if one["error"] is None
            else f"cannot be read: {one['error']}",
            _LONGEST_DESCRIPTION,
        ),
    ),
)
RUNS = (
    Column[SessionRoot]("SESSION", lambda root: root.session_id, whole=True),
    Column[SessionRoot]("PROJECT", lambda root: printable(root.project or "")),
    Column[SessionRoot]("STATE", lambda root: root.state),
    Column[SessionRoot]("RUN", lambda root: str(root.run), right=True),
    Column[SessionRoot]("UPDATED", lambda root: age(root.updated_ms), right=True),
    Column[SessionRoot]("LEFT", time_left, right=True),
)


async def print_status(session_id: str, *, as_json: bool) -> int:
    """Print the state of a run, a line for each phase, and return the exit code: failed when the run has.

    Raises:
        UnknownSession: there is no such run.
        Unreachable: Redis does not answer.
    """
    async with open_stores() as stores, patience("reading the run"):
        look = await stores.find(session_id)
    if look.running_agents:
        with contextlib.suppress(Unreachable):
            async with open_nats("tasklore-pipeline") as client:
                absent = await absent_agents(client, sorted(look.running_agents))
                look = dataclasses.replace(look, away=frozenset(absent))
    if as_json:
        print_json(run_document(look))
    else:
        _print_run(look)
    return FAILED if look.state in _BAD else OK


def run_document(look: Look) -> dict[str, Any]:
    """Return a run for programs: its outcome once it has ended, and its phases while the session exists."""
    document: dict[str, Any] = {"session_id": look.session_id, "state": look.state}
    if (record := look.record) is not None:
        document |= {
            "pipeline": record.pipeline.name,
            "version": record.pipeline.version,
            "run": record.run,
            "project": record.project,
            "user_id": record.user_id,
            "created_at": spell_time(record.created_ms),
            "updated_at": spell_time(record.updated_ms),
            "keep": record.keep,
            "driven_by": record.holder,
            "without_worker": sorted(look.away),
            "inputs": mask(record.pipeline, record.inputs),
            "phases": [
                {
                    "phase": name,
                    **dataclasses.asdict(state),
                    "late": record.lateness(name),
                }
                for name, state in record.phases.items()
            ],
            "corrected": record.corrected,
        }
    return document | {"outcome": look.outcome}


def _print_run(look: Look) -> None:
    record = look.record
    if record is not None:
        word, style = STATUSES[record.state]
        again = f", run {record.run}" if record.run > 1 else ""
        print(
            f"{styled(printable(record.pipeline.name), 'bold')}  {styled(word, style)}{again}  {record.session_id}"
        )
        for name, value in mask(record.pipeline, record.inputs).items():
            text = (
                value
                if isinstance(value, str)
                else json.dumps(value, ensure_ascii=False)
            )
            print(f"  {styled(f'{name} =', 'dim')} {one_line(text, _LONGEST_INPUT)}")
    steps = steps_of(look)
    width = widest(steps)
    for step in steps:
        is_short = fits_a_line(step.line(width))
        print(
            (step if is_short else dataclasses.replace(step, note="")).line(
                width, has_colour=True
            )
        )
        if not is_short:
            print_paragraph(step.note, "      ")
    if look.outcome is not None:
        print_paragraph(summary_of(look, look.outcome))
        for name in ("error", "evidence"):
            if look.outcome.get(name):
                print(
                    f"{styled(f'{name}:', 'dim')} {one_line(str(look.outcome[name]), LONGEST_ERROR)}"
                )
    if record is not None:
        _say_next(look, record)


def _say_next(look: Look, record: RunRecord) -> None:
    """Print what a run that is not over waits for, or how to resume one that is."""
    stale = len(stale_phases(record))
    if look.state == "running" and record.cancel_reason is not None:
        say(
            "it is about to be cancelled"
            + (f": {one_line(record.cancel_reason)}" if record.cancel_reason else "")
        )
    elif look.state == "running" and record.holder is None:
        say("no supervisor drives it now; it goes on once one is there")
    if look.state == "running":
        say_absent(sorted(look.away))
    elif stale:
        again = "run it again" if stale == 1 else "run them again"
        say(
            f"{count_of(stale, 'phase')} stale; {again} with: tasklore pipeline resume {look.session_id}"
        )
    elif look.state in _BAD:
        say(f"go on with: tasklore pipeline resume {look.session_id}")


async def print_list(limit: int, *, as_json: bool) -> None:
    """Print the known pipelines, and a line for each of at most *limit* runs, the last updated first.

    Raises:
        Unreachable: Redis does not answer.
    """
    known = [_describe(name) for name in known_names()]
    async with open_stores() as stores, patience("reading runs"):
        runs = await _find_runs(stores, limit)
    if as_json:
        fields = ("session_id", "project", "state", "run", "expires_in_ms")
        documents = [
            {name: getattr(root, name) for name in fields}
            | {
                "created_at": spell_time(root.created_ms),
                "updated_at": spell_time(root.updated_ms),
            }
            for root in runs
        ]
        print_json({"pipelines": known, "runs": documents})
        return
    if known:
        print_records(PIPELINES, known)
        print()
    if runs:
        print_records(RUNS, runs)
    else:
        print("No run has a session; `tasklore pipeline run FILE|NAME` starts one.")


def _describe(name: str) -> dict[str, Any]:
    """Return the pipeline *name* for programs; one that cannot be read has an `error`."""
    try:
        pipeline = read_source(name).pipeline
    except TaskloreError as error:
        return {"name": name, "phases": 0, "description": "", "error": str(error)}
    return {
        "name": name,
        "phases": len(pipeline.phases),
        "description": pipeline.description,
        "error": None,
    }


async def _find_runs(stores: Stores, limit: int) -> list[SessionRoot]:
    """Return the sessions of pipelines."""
    found: list[SessionRoot] = []
    before: SessionRoot | None = None
    while len(found) < limit:
        page = await stores.cache.sessions(limit=_PAGE, before=before)
        found += [root for root in page if root.run]
        if len(page) < _PAGE:
            break
        before = page[-1]
    return found[:limit]


async def write_evidence(session_id: str, file: Path | None, *, is_forced: bool) -> int:
    """Write a run to *file*, None to stdout, and return the exit code.

    Raises:
        UnknownSession: there is no such run, or its session is gone.
        InvalidInput: the file exists and *is_forced* is False, or it cannot be written.
        Unreachable: Redis does not answer.
    """
    if file is not None:
        _demand_free(file, is_forced=is_forced)
    async with open_stores() as stores, patience("reading the run"):
        bundle = await _bundle(stores, session_id)
    if file is None:
        print(json.dumps(bundle, indent=1, ensure_ascii=False), flush=True)
        return OK
    try:
        await asyncio.to_thread(write_bundle, file, bundle)
    except OSError as error:
        raise InvalidInput(
            f"{str(file)!r} cannot be written ({error.strerror or error}); name another file"
        ) from error
    say(
        f"{count_of(len(bundle['session']['cache']), 'entry')} in {file}, secrets masked"
    )
    return OK


async def _bundle(stores: Stores, session_id: str) -> dict[str, Any]:
    look = await stores.find(session_id)
    if (record := look.record) is None:
        left = (look.outcome or {}).get("evidence")
        where = (
            f"what it left is in {left}, where the supervisor ran"
            if left
            else "only failed runs leave evidence"
        )
        raise UnknownSession(
            f"the run {session_id!r} is {look.state} and its session is gone; {where}"
        )
    if not look.is_over:
        say("it still runs; this is how far it is")
    session = await stores.cache.export(session_id)
    seen = await stores.runs.seen(session_id)
    earlier = await earlier_ends(stores.projects, record)
    parts = record, record.phases, record.corrected, session, seen
    return bundle_of(
        *parts, error=record.error, made_at=datetime.now(UTC), earlier=earlier
    )


def _demand_free(path: Path, *, is_forced: bool) -> None:
    if path.exists() and not is_forced:
        raise InvalidInput(
            f"{str(path)!r} is there already; say --force to write over it, or name another file"
        )
