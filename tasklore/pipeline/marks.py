"""`tasklore pipeline invalidate|cancel`: marking what no longer holds, and ending a run."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from nats.aio.client import Client

from contracts.errors import InvalidInput, InvalidPipeline
from contracts.identifiers import checked_name
from contracts.messages import PipelineReply, PipelineRequest
from contracts.pipelines import Pipeline
from contracts.session_keys import read_key
from memory.sessions.session import EntryInfo
from tasklore.exits import FAILED, OK
from tasklore.pipeline.client import ask, refuse_aloud
from tasklore.pipeline.lines import counted, one_line
from tasklore.pipeline.resume import demand_phase, plan_document, record_of, stale_in
from tasklore.pipeline.stores import Look, Stores, open_stores, open_wire
from tasklore.pipeline.watch import Watch
from tasklore.render.screen import patience, print_json, print_paragraph, say

#: Seconds in which a run that is to be cancelled usually has ended: whoever drives it hears of the wish within a lease.
_EFFECT_S = 10.0
_COMING = "It is to be cancelled, and will be once a supervisor and the workers of what runs heed it."


@dataclass(frozen=True, slots=True)
class Stale:
    """What was said to be stale, beside what is found to have changed."""

    phase: str | None = None
    keys: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    standards: tuple[str, ...] = ()
    design: tuple[str, ...] = ()


async def invalidate_aloud(session_id: str, stale: Stale, *, as_json: bool) -> int:
    """Mark what *stale* names and what depends on it, print which phases those are and why; return the exit code.

    What has changed since a phase read it is stale without being named.

    Raises:
        InvalidInput: something is named that the pipeline does not have.
        UnknownSession: there is no such run.
        Unreachable: a server does not answer, or nobody takes the request.
    """
    request = PipelineRequest(
        action="invalidate",
        session_id=checked_name(session_id, "SESSION"),
        phase=None if stale.phase is None else checked_name(stale.phase, "--phase"),
        keys=stale.keys,
        changed=stale.changed,
        standards=stale.standards,
        design=stale.design,
    )
    async with open_wire() as client, open_stores() as stores:
        record = await record_of(stores, session_id)
        if stale.phase is not None:
            demand_phase(record.pipeline, stale.phase, "--phase")
        if stale.keys:
            _demand_entries(stale.keys, record.pipeline, await stores.cache.entries(session_id))
        try:
            reply = await ask(client, request, record.supervisor_id)
        except InvalidPipeline as error:
            return refuse_aloud(error.problems, as_json=as_json)
    if as_json:
        print_json(plan_document(reply))
    else:
        _tell(session_id, reply, len(stale_in(record)))
    return OK


def _demand_entries(keys: Sequence[str], pipeline: Pipeline, entries: Sequence[EntryInfo]) -> None:
    """Return when each of *keys* is an entry, or would be one once its phase has run.

    Raises:
        InvalidInput: one is not; the message names those of its phase.
    """
    written = {f"{phase.name}:{what}" for phase in pipeline.phases for what in phase.writes}
    known = written | {entry.key for entry in entries}
    for key in keys:
        phase = read_key(key).phase
        demand_phase(pipeline, phase, "--key")
        if key not in known:
            its = sorted(one for one in known if read_key(one).phase == phase)
            raise InvalidInput(f"--key {key!r} is no entry of this run; phase {phase!r} writes {', '.join(its)}")


def _tell(session_id: str, reply: PipelineReply, before: int) -> None:
    """Print what became stale; *before* phases were already."""
    if not reply.stale and before:
        number = "1 is" if before == 1 else f"{before} are"
        again = f"`tasklore pipeline resume {session_id}` runs {'it' if before == 1 else 'them'}."
        print_paragraph(f"That makes nothing more stale; {number} already: {again}")
        return
    if not reply.stale:
        print("That makes nothing stale.")
        return
    print(f"{counted(len(reply.stale), 'phase')} stale:")
    width = max(len(note.phase) for note in reply.stale)
    for note in reply.stale:
        print(f"  {note.phase.ljust(width)}  {one_line(note.why)}")
    say(f"run them again with: tasklore pipeline resume {session_id}")


async def cancel_aloud(session_id: str, reason: str, *, as_json: bool) -> int:
    """End a run, print what came of that, and return the exit code.

    Raises:
        InvalidInput: *session_id* is none.
        UnknownSession: there is no such run.
        Unreachable: a server does not answer, or nobody takes the request.
    """
    async with open_wire() as client, open_stores() as stores:
        look = await stores.found(session_id)
        if look.record is not None and not look.is_over:
            request = PipelineRequest(action="cancel", session_id=session_id, reason=reason)
            look = await _cancelled(client, stores, request, look.record.supervisor_id)
    is_late = look.is_over and look.state != "cancelled"
    said = f"{session_id} {'had ended already:' if is_late else 'is'} {look.state}." if look.is_over else _COMING
    if as_json:
        outcome = "too_late" if is_late else "cancelled"
        print_json({"session_id": session_id, "outcome": outcome, "state": look.state})
    else:
        print(said)
    return FAILED if is_late else OK


async def _cancelled(client: Client, stores: Stores, request: PipelineRequest, supervisor_id: str) -> Look:
    """Return the run once the wish to cancel it has had its effect, or after a while in which it had not."""
    session_id = request.session_id or ""
    watch = Watch(client, stores, session_id, supervisor_id)
    await watch.open()
    with contextlib.suppress(InvalidPipeline):
        # What is refused has ended meanwhile, as the next look tells.
        await ask(client, request, supervisor_id)
    try:
        async with asyncio.timeout(_EFFECT_S), patience("cancelling"):
            return await watch.until_over(lambda _look, _told: None)
    except TimeoutError:
        return await stores.look(session_id)
