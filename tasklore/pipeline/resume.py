"""`tasklore pipeline resume|rerun`: going on with a run, and telling first what runs again and what does not."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from pydantic import JsonValue

from contracts.errors import InvalidInput, InvalidPipeline, UnknownSession
from contracts.identifiers import checked_name
from contracts.messages import PhaseNote, PipelineReply, PipelineRequest
from contracts.pipelines import Pipeline
from memory.sessions.pipeline_records import RunRecord
from supervisor.pipelines.declaration.files import Source, pipeline_from, with_lines
from supervisor.pipelines.evidence import read_bundle, restore
from tasklore.exits import OK
from tasklore.pipeline.check import own_problems, problems_here, say_who_is_away
from tasklore.pipeline.client import ask, refuse_aloud
from tasklore.pipeline.inputs import read_inputs
from tasklore.pipeline.lines import counted, one_line, took_text
from tasklore.pipeline.run import tell_started, told_when_left, watched
from tasklore.pipeline.sources import read_source
from tasklore.pipeline.stores import Stores, open_stores, open_wire
from tasklore.pipeline.summary import tell_end
from tasklore.pipeline.watch import Watch
from tasklore.places import current_supervisor
from tasklore.render.screen import print_json, printable, say


async def resume_aloud(
    session_id: str | None,
    *,
    evidence: Path | None,
    inputs: Sequence[str],
    no_wait: bool,
    as_json: bool,
    file: str | None = None,
) -> int:
    """Go on with a run that failed, restored from the file *evidence* first when one is given; return the exit code.

    *file* holds the pipeline as it is declared from now on, None: as it was when the run began.

    Raises:
        InvalidInput: it is not said which run, the file is none, or an input cannot be used.
        UnknownSession: there is no such run.
        Unreachable: a server does not answer, or nobody takes the run.
    """
    if session_id is None and evidence is None:
        raise InvalidInput("say which run: SESSION, or --evidence with what a failed run left")
    bundle = None if evidence is None else bundle_in(evidence, session_id)
    wanted = checked_name(bundle["session_id"] if bundle is not None else session_id or "", "SESSION")
    async with open_wire() as client, open_stores() as stores:
        try:
            source = await _corrected(client, file)
        except InvalidPipeline as error:
            return refuse_aloud(error.problems, as_json=as_json)
        if bundle is not None:
            await _restore(stores, bundle, inputs)
        record = await record_of(stores, wanted)
        pipeline = record.pipeline if source is None else source.pipeline
        given = read_inputs(pipeline, inputs) if bundle is None else {}
        request = PipelineRequest(action="resume", session_id=wanted, inputs=given, pipeline=_declared(source))
        return await _Going(client, stores, record, source, as_json=as_json).on(request, no_wait=no_wait)


async def rerun_aloud(session_id: str, phase: str, *, no_wait: bool, as_json: bool, file: str | None = None) -> int:
    """Run *phase* again and what depends on it, and return the exit code.

    *file* is as in `resume_aloud`.

    Raises:
        InvalidInput: the pipeline has no such phase.
        UnknownSession: there is no such run.
        Unreachable: a server does not answer, or nobody takes the run.
    """
    async with open_wire() as client, open_stores() as stores:
        record = await record_of(stores, session_id)
        try:
            source = await _corrected(client, file)
        except InvalidPipeline as error:
            return refuse_aloud(error.problems, as_json=as_json)
        demand_phase(record.pipeline if source is None else source.pipeline, phase, "--from")
        request = PipelineRequest(action="rerun", session_id=session_id, phase=phase, pipeline=_declared(source))
        return await _Going(client, stores, record, source, as_json=as_json).on(request, no_wait=no_wait)


async def _corrected(client: Client, file: str | None) -> Source | None:
    """Return the pipeline that *file* holds, checked as a new run is; None when none is given.

    Raises:
        InvalidPipeline: it cannot run; with every problem.
        InvalidInput: there is no such file.
        Unreachable: the bucket of cards did not answer.
    """
    if file is None:
        return None
    source = read_source(file)
    if problems := own_problems(source) or await problems_here(client, source):
        raise InvalidPipeline(problems)
    return source


def _declared(source: Source | None) -> dict[str, JsonValue] | None:
    return None if source is None else source.pipeline.model_dump(mode="json", exclude_unset=True)


def bundle_in(file: Path, session_id: str | None = None) -> dict[str, Any]:
    """Return the evidence in *file*.

    Raises:
        InvalidInput: it is none, or of another session than *session_id*.
    """
    bundle = read_bundle(file)
    if not isinstance(bundle.get("session_id"), str) or not isinstance(bundle.get("pipeline"), dict):
        raise InvalidInput(f"the evidence in {str(file)!r} is broken; take the file as it was written")
    known = bundle["session_id"]
    if session_id is not None and known != session_id:
        raise InvalidInput(f"{str(file)!r} is of session {known!r}, not of {session_id!r}; leave one out")
    return bundle


async def _restore(stores: Stores, bundle: dict[str, Any], inputs: Sequence[str]) -> None:
    """Make the run of *bundle* anew, as failed, and say so."""
    given = read_inputs(pipeline_from(bundle["pipeline"]), inputs)
    came = await restore(bundle, stores.runs, stores.cache, given, supervisor_id=current_supervisor())
    say(f"session {came.session_id} is restored with {counted(came.entries, 'entry')}")
    if came.masked:
        say(f"what held secrets was masked, and is made anew: {printable(', '.join(came.masked))}")


async def record_of(stores: Stores, session_id: str) -> RunRecord:
    """Return a run whose session is there.

    Raises:
        UnknownSession: it is not; the message says what can be done instead.
        InvalidInput: *session_id* is none.
    """
    look = await stores.found(session_id)
    if look.record is not None:
        return look.record
    evidence = (look.outcome or {}).get("evidence")
    cure = f"`tasklore pipeline resume --evidence {evidence}` restores it" if evidence else "run the pipeline anew"
    raise UnknownSession(f"the run {session_id!r} is {look.state} and its session is gone; {cure}")


def stale_in(record: RunRecord) -> dict[str, str]:
    """Return the phases that were marked as stale and did not begin anew yet, each with its reason."""
    return {name: state.why for name, state in record.phases.items() if state.status == "pending" and state.why}


def demand_phase(pipeline: Pipeline, phase: str, option: str) -> None:
    """Return when *pipeline* has a phase of that name.

    Raises:
        InvalidInput: it has not; the message names those it has.
    """
    names = [one.name for one in pipeline.phases]
    if phase not in names:
        raise InvalidInput(f"{option} {phase!r} is no phase of {pipeline.name!r}; it has {', '.join(names)}")


class _Going:
    """Letting a run that rests, *record*, go on, by the declaration *source* when one is given."""

    def __init__(
        self, client: Client, stores: Stores, record: RunRecord, source: Source | None, *, as_json: bool
    ) -> None:
        self._client = client
        self._stores = stores
        self._record = record
        self._source = source
        self._as_json = as_json

    async def on(self, request: PipelineRequest, *, no_wait: bool) -> int:
        """Ask for it, tell what runs again, watch it, and return the exit code."""
        record, session_id, as_json = self._record, self._record.session_id, self._as_json
        watch = Watch(self._client, self._stores, session_id, record.supervisor_id)
        await watch.open()
        try:
            reply = await self._reply(request)
        except InvalidPipeline as error:
            problems = error.problems if self._source is None else with_lines(error.problems, self._source)
            return refuse_aloud(problems, as_json=as_json)
        if not as_json:
            say_plan(reply)
        with told_when_left(session_id):
            return await self._watched(watch, reply, no_wait=no_wait)

    async def _watched(self, watch: Watch, reply: PipelineReply, *, no_wait: bool) -> int:
        record, as_json = self._record, self._as_json
        pipeline = record.pipeline if self._source is None else self._source.pipeline
        # What goes on already says nothing of its phases: any of them may be about to run.
        again = {note.phase for note in reply.stale} or {phase.name for phase in pipeline.phases}
        agents = [one for phase in pipeline.phases if phase.name in again for one in phase.agents]
        await say_who_is_away(self._client, agents)
        if no_wait and as_json:
            print_json(plan_document(reply))
            return OK
        if no_wait:
            return tell_started(record.session_id, as_json=as_json)
        known = [note for note in reply.reused if note.phase in record.phases]
        reused = {(note.phase, record.phases[note.phase].run): note.saved_ms for note in known}
        return tell_end(await watched(watch, as_json=as_json, reused=reused), as_json=as_json)

    async def _reply(self, request: PipelineRequest) -> PipelineReply:
        """Return the reply to *request*, which may have been lost the first time it was given.

        Raises:
            InvalidPipeline: it is refused.
        """
        try:
            reply = await ask(self._client, request, self._record.supervisor_id)
            return reply.model_copy(update={"stale": tuple(self._explained(note) for note in reply.stale)})
        except InvalidPipeline:
            look = await self._stores.look(self._record.session_id)
            run = look.record.run if look.record is not None else (look.outcome or {}).get("run")
            if run != self._record.run + 1:
                raise
            return PipelineReply(session_id=look.session_id, kind="accepted", text="it goes on already")

    def _explained(self, note: PhaseNote) -> PhaseNote:
        """Return *note* with why the phase was marked stale before, rather than that it waits."""
        state = self._record.phases.get(note.phase)
        is_marked = state is not None and state.status == "pending" and state.why
        return note.model_copy(update={"why": state.why}) if state is not None and is_marked else note


def say_plan(reply: PipelineReply) -> None:
    """Say on stderr which phases run again and why, and which are reused."""
    if reply.text:
        say(one_line(reply.text, 400))
    if reply.stale:
        say(f"{counted(len(reply.stale), 'phase')} to run:")
        _list_notes(reply.stale)
    if reply.reused:
        saved_ms = sum(note.saved_ms for note in reply.reused)
        say(f"{counted(len(reply.reused), 'phase')} reused" + (f", {took_text(saved_ms)} saved:" if saved_ms else ":"))
        _list_notes(reply.reused)


def _list_notes(notes: Sequence[PhaseNote]) -> None:
    width = max(len(note.phase) for note in notes)
    for note in notes:
        saved = f"  ({took_text(note.saved_ms)})" if note.saved_ms else ""
        print(f"  {note.phase.ljust(width)}  {one_line(note.why)}{saved}".rstrip(), file=sys.stderr, flush=True)


def plan_document(reply: PipelineReply) -> dict[str, object]:
    """Return which phases run again and which are reused, for programs."""
    return {
        "session_id": reply.session_id,
        "stale": [note.model_dump() for note in reply.stale],
        "reused": [note.model_dump() for note in reply.reused],
    }
