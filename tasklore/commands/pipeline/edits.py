"""`tasklore pipeline invalidate|cancel`: mark phases stale, and end a run."""

import asyncio
import contextlib
from collections.abc import Sequence

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.pipeline.client import ask, print_problems
from tasklore.commands.pipeline.run import (
    demand_phase,
    note_lines,
    plan_document,
    stale_phases,
)
from tasklore.commands.pipeline.stores import Stores, open_stores
from tasklore.commands.pipeline.watch import Watch
from tasklore.commands.places import open_nats
from tasklore.commands.render.screen import patience, print_json, print_paragraph, say
from tasklore.commands.render.words import count_of
from tasklore.contracts.errors import InvalidInput, InvalidPipeline
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.messages import PipelineRequest
from tasklore.contracts.session_keys import read_key
from tasklore.memory.sessions.pipeline_records import RunRecord

#: Seconds in which a cancelled run usually ends: its supervisor sees the request within a lease.
_EFFECT_S = 10.0


async def invalidate_run(
    session_id: str,
    *,
    phase: str | None = None,
    keys: Sequence[str] = (),
    changed: Sequence[str] = (),
    standards: Sequence[str] = (),
    design: Sequence[str] = (),
    as_json: bool = False,
) -> int:
    """Mark the named phases and entries stale, with their dependents, print those and return the exit code.

    Phases whose files, standards or decisions have changed are stale without being named.

    Raises:
        InvalidInput: the pipeline has no such phase or entry.
        UnknownSession: there is no such run.
        Unreachable: a server does not answer, or no supervisor takes the request.
    """
    request = PipelineRequest(
        action="invalidate",
        session_id=checked_name(session_id, "SESSION"),
        phase=None if phase is None else checked_name(phase, "--phase"),
        keys=tuple(keys),
        changed=tuple(changed),
        standards=tuple(standards),
        design=tuple(design),
    )
    async with open_nats("tasklore-pipeline") as client, open_stores() as stores:
        record = await stores.find_record(session_id)
        if phase is not None:
            demand_phase(record.pipeline, phase, "--phase")
        await _demand_entries(keys, record, stores)
        try:
            reply = await ask(client, request, record.supervisor_id)
        except InvalidPipeline as error:
            return print_problems(error.problems, as_json=as_json)
    before = len(stale_phases(record))
    if as_json:
        print_json(plan_document(reply))
    elif reply.stale:
        print(f"{count_of(len(reply.stale), 'phase')} stale:")
        print("\n".join(note_lines(reply.stale)))
        say(f"run them again with: tasklore pipeline resume {session_id}")
    elif before:
        number = "1 is" if before == 1 else f"{before} are"
        again = f"`tasklore pipeline resume {session_id}` runs {'it' if before == 1 else 'them'}."
        print_paragraph(f"That makes nothing more stale; {number} already: {again}")
    else:
        print("That makes nothing stale.")
    return OK


async def _demand_entries(
    keys: Sequence[str], record: RunRecord, stores: Stores
) -> None:
    """Return when each of *keys* is an entry, or will be one once its phase has run.

    Raises:
        InvalidInput: one is not; the message names those of its phase.
    """
    entries = await stores.cache.entries(record.session_id) if keys else ()
    known = {
        f"{phase.name}:{entry}"
        for phase in record.pipeline.phases
        for entry in phase.writes
    }
    known |= {entry.key for entry in entries}
    for key in keys:
        phase = read_key(key).phase
        demand_phase(record.pipeline, phase, "--key")
        if key not in known:
            its = sorted(one for one in known if read_key(one).phase == phase)
            raise InvalidInput(
                f"--key {key!r} is no entry of this run; phase {phase!r} writes {', '.join(its)}"
            )


async def cancel_run(session_id: str, reason: str, *, as_json: bool) -> int:
    """End a run, print its state, and return the exit code.

    Raises:
        InvalidInput: *session_id* is no name.
        UnknownSession: there is no such run.
        Unreachable: a server does not answer, or no supervisor takes the request.
    """
    async with open_nats("tasklore-pipeline") as client, open_stores() as stores:
        look = await stores.find(session_id)
        if look.record is not None and not look.is_over:
            supervisor_id = look.record.supervisor_id
            watch = Watch(client, stores, session_id, supervisor_id)
            await watch.open()
            with contextlib.suppress(InvalidPipeline):
                # A request that is refused came too late, as the next look shows.
                await ask(
                    client,
                    PipelineRequest(
                        action="cancel", session_id=session_id, reason=reason
                    ),
                    supervisor_id,
                )
            try:
                async with asyncio.timeout(_EFFECT_S), patience("cancelling"):
                    look = await watch.until_over(lambda _look, _progress: None)
            except TimeoutError:
                look = await stores.look(session_id)
    is_late = look.is_over and look.state != "cancelled"
    if as_json:
        outcome = "too_late" if is_late else "cancelled"
        print_json({"session_id": session_id, "outcome": outcome, "state": look.state})
    elif look.is_over:
        print(f"{session_id} {'had ended already:' if is_late else 'is'} {look.state}.")
    else:
        print(
            "It is to be cancelled, and will be once a supervisor and the workers of what runs heed it."
        )
    return FAILED if is_late else OK
