"""`tasklore pipeline status`: how far a run is, or how it ended."""

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from contracts.errors import Unreachable
from contracts.identifiers import checked_name
from memory.sessions.files import spell_time
from memory.sessions.pipeline_records import RunRecord
from tasklore.exits import FAILED, OK
from tasklore.pipeline.board import lines_of
from tasklore.pipeline.check import away_of, away_text, say_who_is_away
from tasklore.pipeline.inputs import masked
from tasklore.pipeline.lines import WORDS, PhaseLine, counted, one_line, widest
from tasklore.pipeline.run import told_when_left, watched
from tasklore.pipeline.stores import Look, open_stores, open_wire
from tasklore.pipeline.summary import summary, tell_end
from tasklore.pipeline.watch import Watch
from tasklore.places import current_supervisor
from tasklore.render.screen import fits_a_line, patience, print_json, print_paragraph, printable, say, styled

#: Characters of one input in a list of them.
_WIDE = 100
_BAD = frozenset({"failed", "cancelled"})


async def print_status(session_id: str, *, as_json: bool) -> int:
    """Print how far the run is, a line for each phase, and return the exit code: failed when the run has.

    Raises:
        UnknownSession: there is no such run.
        Unreachable: Redis does not answer.
    """
    async with open_stores() as stores, patience("reading the run"):
        look = await stores.found(session_id)
    if look.begun_agents:
        look = dataclasses.replace(look, away=await _away(look))
    if as_json:
        print_json(document(look))
    else:
        _print(look)
    return FAILED if look.state in _BAD else OK


async def _away(look: Look) -> frozenset[str]:
    """Return the agents whose running phases have no live worker, none when that cannot be told."""
    with contextlib.suppress(Unreachable):
        async with open_wire() as client:
            return frozenset(await away_of(client, sorted(look.begun_agents)))
    return frozenset()


async def follow_aloud(session_id: str, *, as_json: bool) -> int:
    """Watch the run until it is over, print its result, and return the exit code.

    Raises:
        UnknownSession: there is no such run.
        Unreachable: a server does not answer.
    """
    async with open_wire() as client, open_stores() as stores:
        look = await stores.found(checked_name(session_id, "SESSION"))
        supervisor = look.record.supervisor_id if look.record is not None else current_supervisor()
        watch = Watch(client, stores, session_id, supervisor)
        await watch.open()
        with told_when_left(session_id):
            await say_who_is_away(client, sorted(look.begun_agents))
            return tell_end(await watched(watch, as_json=as_json), as_json=as_json)


def document(look: Look) -> dict[str, Any]:
    """Return a run for programs: its outcome once it has ended, and its phases as they are in the session."""
    shown: dict[str, Any] = {"session_id": look.session_id, "state": look.state}
    if look.record is not None:
        record = look.record
        shown |= {
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
            "inputs": masked(record.pipeline, record.inputs),
            "phases": [{"phase": name, **dataclasses.asdict(state)} for name, state in record.phases.items()],
            "corrected": record.corrected,
        }
    return shown | {"outcome": look.outcome}


def _print(look: Look) -> None:
    if look.record is not None:
        _print_head(look.record)
    lines = lines_of(look, {})
    width = widest(lines)
    for line in lines:
        _print_line(line, width)
    if look.state == "running" and look.record is not None:
        if look.record.cancel_reason is not None:
            say(
                "it is about to be cancelled"
                + (f": {one_line(look.record.cancel_reason)}" if look.record.cancel_reason else "")
            )
        elif look.record.holder is None:
            say("no supervisor drives it now; it goes on once one is there")
        if look.away:
            say(away_text(sorted(look.away)))
        return
    _print_end(look)


def _print_line(line: PhaseLine, width: int) -> None:
    """Print how far a phase is, and what is said of it below when a terminal has no room behind it."""
    if not line.said or fits_a_line(line.plain(width)):
        print(line.painted(width))
        return
    print(dataclasses.replace(line, said="").painted(width))
    print_paragraph(line.said, "      ")


def _print_head(record: RunRecord) -> None:
    word, style = WORDS[record.state]
    again = f", run {record.run}" if record.run > 1 else ""
    print(f"{styled(printable(record.pipeline.name), 'bold')}  {styled(word, style)}{again}  {record.session_id}")
    for name, value in masked(record.pipeline, record.inputs).items():
        print(f"  {styled(f'{name} =', 'dim')} {one_line(_shown(value), _WIDE)}")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _print_end(look: Look) -> None:
    outcome: Mapping[str, Any] = look.outcome or {"phases": []}
    if look.outcome is not None:
        print_paragraph(summary(look, outcome))
    for name in ("error", "evidence"):
        if outcome.get(name):
            print(f"{styled(f'{name}:', 'dim')} {one_line(str(outcome[name]), 400)}")
    if look.record is None:
        return
    stale = [state for state in look.record.phases.values() if state.status == "pending" and state.why]
    if stale:
        again = "run it again" if len(stale) == 1 else "run them again"
        say(f"{counted(len(stale), 'phase')} stale; {again} with: tasklore pipeline resume {look.session_id}")
    elif look.state in _BAD:
        say(f"go on with: tasklore pipeline resume {look.session_id}")
