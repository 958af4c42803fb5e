"""`tasklore pipelines run|resume|rerun`: check, ask, follow, and print the end."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasklore.commands.exits import OK
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.operations.transport import AnswerCut
from tasklore.commands.pictures.run import (
    LONGEST_ERROR,
    describe_notes,
    name_absent,
    phases_of,
)
from tasklore.commands.pipelines.check import (
    check_alone,
    check_with_cards,
    print_problems,
)
from tasklore.commands.pipelines.ends import print_end, print_started
from tasklore.commands.pipelines.follow import RunFollower, hint_when_stopped
from tasklore.commands.pipelines.sources import (
    declare,
    read_inputs,
    read_source,
    read_texts,
)
from tasklore.commands.render.screen import print_json, say
from tasklore.commands.render.words import count_of, duration, one_line
from tasklore.contracts.errors import InvalidPipeline, Unreachable
from tasklore.contracts.identifiers import checked_name
from tasklore.supervisor.pipelines.declaration.files import PipelineSource, with_lines

#: Characters of a pipeline's name in a session id, and random bytes behind it: a person reads the one, and the other
#: keeps a million runs of one pipeline apart.
_LONGEST_PREFIX = 48
_RANDOM = 5


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
    api: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions:
    """The options that `resume` and `rerun` share; *file* declares the pipeline anew, None is as when the run began."""

    file: str | None = None
    inputs: tuple[str, ...] = ()
    no_wait: bool = False
    as_json: bool = False
    api: str | None = None


def run_pipeline(options: RunOptions) -> int:
    """Run a pipeline, show it as it goes, print its result and return the exit code.

    Raises:
        InvalidInput: there is no such pipeline, or an option cannot be used.
        ApiRefused, Unreachable: as `LocalApi.ask`.
    """
    as_json = options.as_json
    api = LocalApi("pipelines", options.api)
    try:
        source = read_source(options.source)
        inputs = check_alone(source, options.inputs)
        session_id = (
            new_session_id(source.pipeline.name)
            if options.session is None
            else options.session
        )
        checked_name(session_id, "--session")
        body = {
            "pipeline": declare(source),
            "inputs": inputs,
            "session_id": session_id,
            "keep": options.keep,
            "user": options.user,
        }
        check_with_cards(api, source)
        try:
            taken = _ask(api, "run", source, **body)
        except (Unreachable, AnswerCut):
            say(
                "it is unknown whether the run has begun: repeating it with --session "
                f"{session_id} does not start it twice"
            )
            raise
    except InvalidPipeline as error:
        return print_problems(error.problems, as_json=as_json)
    with hint_when_stopped(session_id):
        _say_absent(taken)
        if options.no_wait:
            return print_started(session_id, as_json=as_json)
        say(f"session {session_id}")
        follower = RunFollower(api, session_id)
        return print_end(follower.show(is_silent=as_json), as_json=as_json)


def resume_run(session_id: str, options: ResumeOptions) -> int:
    """Resume a run that failed; return the exit code.

    Raises:
        InvalidInput: the file cannot be read, or an input cannot be used.
        ApiRefused, Unreachable: as `LocalApi.ask`.
    """
    return go_on("resume", session_id, options)


def rerun_phase(session_id: str, phase: str, options: ResumeOptions) -> int:
    """Run *phase* again with its dependents, and return the exit code.

    Raises:
        InvalidInput: the file cannot be read.
        ApiRefused, Unreachable: as `LocalApi.ask`.
    """
    return go_on("rerun", session_id, options, phase=phase)


def new_session_id(name: str) -> str:
    """Return an id for a run of the pipeline *name*, such as "repository-health-3f9a2c71d0"."""
    return f"{name[:_LONGEST_PREFIX]}-{os.urandom(_RANDOM).hex()}"


def _ask(
    api: LocalApi, verb: str, source: PipelineSource | None, **values: Any
) -> dict[str, Any]:
    """Return what became of a request with a declaration.

    Raises:
        InvalidPipeline: it cannot run; with file and line before each problem.
        ApiRefused, Unreachable: as `LocalApi.ask`.
    """
    try:
        taken: dict[str, Any] = api.ask(verb, **values)
    except ApiRefused as error:
        problems = [
            str(one["message"])
            for one in error.body.get("problems") or ()
            if isinstance(one, dict) and one.get("where") == "pipeline"
        ]
        if not problems:
            raise
        raise InvalidPipeline(
            problems if source is None else with_lines(problems, source)
        ) from error
    return taken


def go_on(
    verb: str,
    session_id: str,
    options: ResumeOptions,
    *,
    phase: str | None = None,
    is_restored: bool = False,
) -> int:
    """Ask for a run to go on, print which phases run again, follow it, and return the exit code.

    *verb* is "resume" or "rerun". The inputs of one that *is_restored* are there already.

    Raises:
        InvalidInput: the file cannot be read, or an input cannot be used.
        ApiRefused, Unreachable: as `LocalApi.ask`.
    """
    as_json = options.as_json
    api = LocalApi("pipelines", options.api)
    try:
        source = None
        body: dict[str, Any] = {} if phase is None else {"phase": phase}
        if options.file is not None:
            source = read_source(options.file)
            check_alone(source, None)
            check_with_cards(api, source)
            body["pipeline"] = declare(source)
        if options.inputs and not is_restored:
            body["inputs"] = (
                read_texts(options.inputs)
                if source is None
                else read_inputs(source.pipeline, options.inputs)
            )
        before = api.ask("status", session_id=session_id)
        taken = _ask(api, verb, source, session_id=session_id, **body)
    except InvalidPipeline as error:
        return print_problems(error.problems, as_json=as_json)
    # A phase that was marked stale before keeps that reason.
    marked = {
        one["phase"]: one["why"]
        for one in phases_of(before)
        if one["status"] == "pending" and one.get("why")
    }
    for note in taken["stale"]:
        note["why"] = marked.get(note["phase"], note["why"])
    if not as_json:
        _say_plan(taken)
    with hint_when_stopped(session_id):
        _say_absent(taken)
        if options.no_wait and as_json:
            print_json(taken)
            return OK
        if options.no_wait:
            return print_started(session_id, as_json=False)
        runs = {one["phase"]: one["run"] for one in phases_of(before)}
        reused = {
            (note["phase"], runs[note["phase"]]): note["saved_ms"]
            for note in taken["reused"]
            if note["phase"] in runs
        }
        run = RunFollower(api, session_id).show(is_silent=as_json, reused=reused)
        return print_end(run, as_json=as_json)


def _say_absent(taken: Mapping[str, Any]) -> None:
    for line in name_absent(taken["without_worker"]):
        say(line)


def _say_plan(taken: Mapping[str, Any]) -> None:
    """Print to stderr which phases run again and why, and which are reused."""
    if taken["text"]:
        say(one_line(taken["text"], LONGEST_ERROR))
    if taken["stale"]:
        say(f"{count_of(len(taken['stale']), 'phase')} to run:")
        print("\n".join(describe_notes(taken["stale"])), file=sys.stderr, flush=True)
    if taken["reused"]:
        saved_ms = sum(note["saved_ms"] for note in taken["reused"])
        saved = f", {duration(saved_ms)} saved:" if saved_ms else ":"
        say(f"{count_of(len(taken['reused']), 'phase')} reused{saved}")
        print("\n".join(describe_notes(taken["reused"])), file=sys.stderr, flush=True)
