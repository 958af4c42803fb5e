"""`tasklore pipeline run|resume|rerun|status --follow`: check, ask, watch, and print the end."""

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from pydantic import JsonValue

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.pipeline.check import check_alone, check_with_cards
from tasklore.commands.pipeline.client import (
    absent_agents,
    ask,
    print_problems,
    say_absent,
)
from tasklore.commands.pipeline.sources import read_inputs, read_source
from tasklore.commands.pipeline.steps import (
    LONGEST_ERROR,
    error_of,
    phases_of,
    summary_of,
)
from tasklore.commands.pipeline.stores import Look, Stores, open_stores
from tasklore.commands.pipeline.watch import Watch, hint_when_stopped
from tasklore.commands.places import current_supervisor, open_nats
from tasklore.commands.render.screen import complain, print_json, printable, say
from tasklore.commands.render.words import count_of, duration, one_line
from tasklore.contracts.errors import InvalidInput, InvalidPipeline
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.messages import PhaseNote, PipelineReply, PipelineRequest
from tasklore.contracts.pipelines import Pipeline
from tasklore.memory.sessions.pipeline_records import RunRecord
from tasklore.supervisor.pipelines.declaration.declarations import pipeline_from
from tasklore.supervisor.pipelines.declaration.files import Source, with_lines
from tasklore.supervisor.pipelines.evidence import read_bundle, restore

#: Characters of a pipeline's name in a session id, and random bytes behind it: a person reads the one, and the other
#: keeps a million runs of one pipeline apart.
_LONGEST_PREFIX = 48
_RANDOM = 5
#: Characters of a user id, as on the wire.
_LONGEST_USER = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The arguments of `run`."""

    source: str
    inputs: tuple[str, ...] = ()
    keep: bool = False
    session: str | None = None
    user: str | None = None
    no_wait: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """The options that `resume` and `rerun` share; *file* declares the pipeline anew, None is as when the run began."""

    file: str | None = None
    no_wait: bool = False
    as_json: bool = False


async def run_pipeline(options: RunOptions) -> int:
    """Run a pipeline, show it as it goes, print its result and return the exit code.

    Raises:
        InvalidInput: there is no such pipeline, or an option cannot be used.
        Unreachable: a server does not answer, or no supervisor takes the run.
    """
    as_json = options.as_json
    source = None
    try:
        source = read_source(options.source)
        inputs = check_alone(source, options.inputs)
        pipeline = source.pipeline
        user = options.user
        session_id = (
            new_session_id(pipeline.name)
            if options.session is None
            else options.session
        )
        checked_name(session_id, "--session")
        if user is not None and (
            not user.strip()
            or len(user) > _LONGEST_USER
            or re.search("[\ud800-\udfff]", user)
        ):
            raise InvalidInput(
                f"--user must name somebody, in 1 to {_LONGEST_USER} characters of valid Unicode"
            )
        declared = pipeline.model_dump(mode="json", exclude_unset=True)
        request = PipelineRequest(
            action="run",
            session_id=session_id,
            pipeline=declared,
            inputs=inputs,
            keep=options.keep,
            user_id=user,
        )
        async with open_nats("tasklore-pipeline") as client, open_stores() as stores:
            await check_with_cards(client, source)
            watch = Watch(client, stores, session_id, current_supervisor())
            # Before the request: a first phase may end before the reply comes.
            await watch.open()
            await _ask(client, request, None, source)
            with hint_when_stopped(session_id):
                say_absent(
                    await absent_agents(
                        client,
                        (one for phase in pipeline.phases for one in phase.agents),
                    )
                )
                if options.no_wait:
                    return _print_started(session_id, as_json=as_json)
                say(f"session {session_id}")
                return print_end(await watch.show(is_silent=as_json), as_json=as_json)
    except InvalidPipeline as error:
        return print_problems(error.problems, as_json=as_json)


async def follow_run(session_id: str, *, as_json: bool) -> int:
    """Watch the run until it is over, print its result, and return the exit code.

    Raises:
        UnknownSession: there is no such run.
        Unreachable: a server does not answer.
    """
    async with open_nats("tasklore-pipeline") as client, open_stores() as stores:
        look = await stores.find(session_id)
        supervisor = (
            look.record.supervisor_id
            if look.record is not None
            else current_supervisor()
        )
        watch = Watch(client, stores, session_id, supervisor)
        await watch.open()
        with hint_when_stopped(session_id):
            say_absent(await absent_agents(client, sorted(look.running_agents)))
            return print_end(await watch.show(is_silent=as_json), as_json=as_json)


async def resume_run(
    session_id: str | None,
    options: ResumeOptions,
    *,
    evidence: Path | None = None,
    inputs: Sequence[str] = (),
) -> int:
    """Resume a run that failed, restored from the file *evidence* first when one is given; return the exit code.

    Raises:
        InvalidInput: no run is named, the file cannot be read, or an input cannot be used.
        UnknownSession: there is no such run.
        Unreachable: a server does not answer, or no supervisor takes the run.
    """
    if session_id is None and evidence is None:
        raise InvalidInput(
            "say which run: SESSION, or --evidence with what a failed run left"
        )
    bundle = None if evidence is None else _read_evidence(evidence, session_id)
    name = checked_name(
        bundle["session_id"] if bundle is not None else session_id or "", "SESSION"
    )
    async with open_nats("tasklore-pipeline") as client, open_stores() as stores:
        try:
            source = await _read_corrected(client, options.file)
            if bundle is not None:
                await _restore(stores, bundle, inputs)
            record = await stores.find_record(name)
            pipeline = record.pipeline if source is None else source.pipeline
            request = PipelineRequest(
                action="resume",
                session_id=name,
                inputs=read_inputs(pipeline, inputs) if bundle is None else {},
                pipeline=_declare(source),
            )
            return await _go_on(
                client,
                stores=stores,
                record=record,
                source=source,
                request=request,
                options=options,
            )
        except InvalidPipeline as error:
            return print_problems(error.problems, as_json=options.as_json)


async def rerun_phase(session_id: str, phase: str, options: ResumeOptions) -> int:
    """Run *phase* again with its dependents, and return the exit code.

    Raises:
        InvalidInput: the pipeline has no such phase.
        UnknownSession: there is no such run.
        Unreachable: a server does not answer, or no supervisor takes the run.
    """
    async with open_nats("tasklore-pipeline") as client, open_stores() as stores:
        try:
            record = await stores.find_record(session_id)
            source = await _read_corrected(client, options.file)
            demand_phase(
                record.pipeline if source is None else source.pipeline, phase, "--from"
            )
            declared = _declare(source)
            request = PipelineRequest(
                action="rerun", session_id=session_id, phase=phase, pipeline=declared
            )
            return await _go_on(
                client,
                stores=stores,
                record=record,
                source=source,
                request=request,
                options=options,
            )
        except InvalidPipeline as error:
            return print_problems(error.problems, as_json=options.as_json)


def new_session_id(name: str) -> str:
    """Return an id for a run of the pipeline *name*, such as "repository-health-3f9a2c71d0"."""
    return f"{name[:_LONGEST_PREFIX]}-{os.urandom(_RANDOM).hex()}"


def demand_phase(pipeline: Pipeline, phase: str, option: str) -> None:
    """Return when *pipeline* has a phase of that name.

    Raises:
        InvalidInput: it has not; the message names those it has.
    """
    names = [one.name for one in pipeline.phases]
    if phase not in names:
        raise InvalidInput(
            f"{option} {phase!r} is no phase of {pipeline.name!r}; it has {', '.join(names)}"
        )


async def _ask(
    client: Client,
    request: PipelineRequest,
    supervisor_id: str | None,
    source: Source | None,
) -> PipelineReply:
    """Ask, and put file and line in front of each problem of a declaration that was sent."""
    try:
        return await ask(client, request, supervisor_id)
    except InvalidPipeline as error:
        raise InvalidPipeline(
            error.problems if source is None else with_lines(error.problems, source)
        ) from error


async def _read_corrected(client: Client, file: str | None) -> Source | None:
    """Return the pipeline in *file*, checked as for a new run; None when none is given."""
    if file is None:
        return None
    source = read_source(file)
    check_alone(source, None)
    await check_with_cards(client, source)
    return source


def _declare(source: Source | None) -> dict[str, JsonValue] | None:
    return (
        None
        if source is None
        else source.pipeline.model_dump(mode="json", exclude_unset=True)
    )


def _read_evidence(file: Path, session_id: str | None) -> dict[str, Any]:
    bundle = read_bundle(file)
    if not isinstance(bundle.get("session_id"), str) or not isinstance(
        bundle.get("pipeline"), dict
    ):
        raise InvalidInput(
            f"the evidence in {str(file)!r} is broken; take the file as it was written"
        )
    known = bundle["session_id"]
    if session_id is not None and known != session_id:
        raise InvalidInput(
            f"{str(file)!r} is of session {known!r}, not of {session_id!r}; leave one out"
        )
    return bundle


async def _restore(
    stores: Stores, bundle: dict[str, Any], inputs: Sequence[str]
) -> None:
    """Make the run of *bundle* anew, as failed, and print that."""
    given = read_inputs(pipeline_from(bundle["pipeline"]), inputs)
    restored = await restore(
        bundle, stores.runs, stores.cache, given, supervisor_id=current_supervisor()
    )
    say(
        f"session {restored.session_id} is restored with {count_of(restored.entries, 'entry')}"
    )
    if restored.masked:
        say(
            f"what held secrets was masked, and is made anew: {printable(', '.join(restored.masked))}"
        )


async def _go_on(
    client: Client,
    stores: Stores,
    record: RunRecord,
    source: Source | None,
    request: PipelineRequest,
    options: ResumeOptions,
) -> int:
    """Ask for *request*, print which phases run again, watch the run, and return the exit code."""
    session_id = record.session_id
    as_json = options.as_json
    watch = Watch(client, stores, session_id, record.supervisor_id)
    await watch.open()
    try:
        reply = await _ask(client, request, record.supervisor_id, source)
    except InvalidPipeline:
        # The first request may have been taken, and its reply lost.
        look = await stores.look(session_id)
        run = (
            look.record.run
            if look.record is not None
            else (look.outcome or {}).get("run")
        )
        if run != record.run + 1:
            raise
        reply = PipelineReply(
            session_id=session_id, kind="accepted", text="it goes on already"
        )
    # A phase that was marked stale before keeps that reason.
    marked = stale_phases(record)
    stale = tuple(
        note.model_copy(update={"why": marked.get(note.phase, note.why)})
        for note in reply.stale
    )
    reply = reply.model_copy(update={"stale": stale})
    if not as_json:
        _say_plan(reply)
    pipeline = record.pipeline if source is None else source.pipeline
    # A run that goes on already does not list its phases: any of them may be about to run.
    again = {note.phase for note in stale} or {phase.name for phase in pipeline.phases}
    with hint_when_stopped(session_id):
        agents = (
            one
            for phase in pipeline.phases
            if phase.name in again
            for one in phase.agents
        )
        say_absent(await absent_agents(client, agents))
        if options.no_wait and as_json:
            print_json(plan_document(reply))
            return OK
        if options.no_wait:
            return _print_started(session_id, as_json=False)
        runs = {name: state.run for name, state in record.phases.items()}
        reused = {
            (note.phase, runs[note.phase]): note.saved_ms
            for note in reply.reused
            if note.phase in runs
        }
        return print_end(
            await watch.show(is_silent=as_json, reused=reused), as_json=as_json
        )


def stale_phases(record: RunRecord) -> dict[str, str]:
    """Return the phases that were marked as stale and did not begin anew yet, each with its reason."""
    return {
        name: state.why
        for name, state in record.phases.items()
        if state.status == "pending" and state.why
    }


def _say_plan(reply: PipelineReply) -> None:
    """Print to stderr which phases run again and why, and which are reused."""
    if reply.text:
        say(one_line(reply.text, LONGEST_ERROR))
    if reply.stale:
        say(f"{count_of(len(reply.stale), 'phase')} to run:")
        print("\n".join(note_lines(reply.stale)), file=sys.stderr, flush=True)
    if reply.reused:
        saved_ms = sum(note.saved_ms for note in reply.reused)
        saved = f", {duration(saved_ms)} saved:" if saved_ms else ":"
        say(f"{count_of(len(reply.reused), 'phase')} reused{saved}")
        print("\n".join(note_lines(reply.reused)), file=sys.stderr, flush=True)


def note_lines(notes: Sequence[PhaseNote]) -> list[str]:
    """Return a line for each phase: its reason, and the time that reuse saves."""
    width = max(len(note.phase) for note in notes)
    saved = [
        f"  ({duration(note.saved_ms)})" if note.saved_ms else "" for note in notes
    ]
    lines = zip(notes, saved, strict=True)
    return [
        f"  {note.phase.ljust(width)}  {one_line(note.why)}{extra}".rstrip()
        for note, extra in lines
    ]


def plan_document(reply: PipelineReply) -> dict[str, object]:
    """Return for programs which phases run again and which are reused."""
    return reply.model_dump(include={"session_id", "stale", "reused"})


def _print_started(session_id: str, *, as_json: bool) -> int:
    """Print the id of a run that is not waited for, and return the exit code."""
    if as_json:
        print_json({"session_id": session_id})
    else:
        print(session_id, flush=True)
        say(f"it runs; `tasklore pipeline status {session_id} --follow` looks at it")
    return OK


def print_end(look: Look, *, as_json: bool) -> int:
    """Print the end of a run, and return the exit code.

    The result goes to stdout, everything else to stderr; *as_json* prints the whole outcome instead.
    """
    outcome = look.outcome or {
        "session_id": look.session_id,
        "state": look.state,
        "result": None,
        "phases": [],
    }
    if as_json:
        print_json(outcome)
        return OK if look.state == "completed" else FAILED
    if look.state != "completed":
        say(summary_of(look, outcome))
        _say_failure(look, outcome)
        return FAILED
    result = outcome.get("result")
    text = (
        result
        if isinstance(result, str)
        else json.dumps(result, indent=2, ensure_ascii=False)
    )
    print(printable(text), flush=True)
    for key in outcome.get("missing") or ():
        complain(
            f"{printable(key)} is missing in it: its time to live was over before the run was"
        )
    say(summary_of(look, outcome))
    if look.record is not None:
        say(f"the session is kept: `tasklore sessions show {look.session_id}`")
    return OK


def _say_failure(look: Look, outcome: Mapping[str, Any]) -> None:
    phases = phases_of(Look(look.session_id, None, dict(outcome)))
    failed = {name: state for name, state in phases.items() if state.status == "failed"}
    for name, state in failed.items():
        complain(f"{name}: {one_line(error_of(state), LONGEST_ERROR)}")
    if not failed and outcome.get("error"):
        complain(printable(str(outcome["error"])))
    evidence = outcome.get("evidence")
    if evidence:
        say(f"evidence is in {printable(str(evidence))}, where the supervisor runs")
    if look.record is not None:
        say(f"go on with: tasklore pipeline resume {look.session_id}")
        say(
            f"correct the file? `tasklore pipeline resume {look.session_id} --file FILE`"
        )
    elif evidence:
        say(
            f"its session is gone; go on with: tasklore pipeline resume --evidence {shlex.quote(evidence)}"
        )
