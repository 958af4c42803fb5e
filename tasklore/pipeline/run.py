"""`tasklore pipeline run`: check, ask, watch, and tell what came of it."""

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from contracts.errors import InvalidInput, InvalidPipeline
from contracts.identifiers import checked_name
from contracts.messages import PipelineRequest
from supervisor.pipelines.declaration.files import Source, with_lines
from tasklore.exits import OK
from tasklore.pipeline.board import Reused, board
from tasklore.pipeline.check import input_problems, own_problems, problems_here, say_who_is_away
from tasklore.pipeline.client import ask, refuse_aloud
from tasklore.pipeline.inputs import read_inputs
from tasklore.pipeline.sources import read_source
from tasklore.pipeline.stores import Look, open_stores, open_wire
from tasklore.pipeline.summary import tell_end
from tasklore.pipeline.watch import Watch
from tasklore.places import current_supervisor
from tasklore.render.screen import print_json, say

#: Characters of a pipeline's name in a session id, and random bytes behind it: a person reads the one, and the other
#: keeps a million runs of one pipeline apart.
_NAMED, _RANDOM = 48, 5
#: Characters of a user id, as on the wire.
_LONGEST_NAME = 256


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed at `run`."""

    source: str
    inputs: tuple[str, ...] = ()
    keep: bool = False
    session: str | None = None
    user: str | None = None
    no_wait: bool = False
    as_json: bool = False


async def run_aloud(wish: Wish) -> int:
    """Run a pipeline, show it as it goes, print its result and return the exit code.

    Raises:
        InvalidInput: there is no such pipeline, or an option cannot be used.
        Unreachable: a server does not answer, or nobody takes the run.
    """
    try:
        source = read_source(wish.source)
        request = _request(wish, source)
    except InvalidPipeline as error:
        return refuse_aloud(error.problems, as_json=wish.as_json)
    session_id = request.session_id or ""
    async with open_wire() as client, open_stores() as stores:
        if problems := await problems_here(client, source):
            return refuse_aloud(problems, as_json=wish.as_json)
        watch = Watch(client, stores, session_id, current_supervisor())
        # Before it is asked for: a first phase may be through before the reply is here.
        await watch.open()
        try:
            await ask(client, request)
        except InvalidPipeline as error:
            return refuse_aloud(with_lines(error.problems, source), as_json=wish.as_json)
        with told_when_left(session_id):
            await say_who_is_away(client, [one for phase in source.pipeline.phases for one in phase.agents])
            if wish.no_wait:
                return tell_started(session_id, as_json=wish.as_json)
            say(f"session {session_id}")
            return tell_end(await watched(watch, as_json=wish.as_json), as_json=wish.as_json)


def _request(wish: Wish, source: Source) -> PipelineRequest:
    """Return what is sent.

    Raises:
        InvalidPipeline: the declaration or the inputs have problems.
        InvalidInput: an input, the session or the user cannot be read.
    """
    if problems := own_problems(source):
        raise InvalidPipeline(problems)
    inputs = read_inputs(source.pipeline, wish.inputs)
    if problems := input_problems(source, inputs):
        raise InvalidPipeline(problems)
    session_id = (
        new_session_id(source.pipeline.name) if wish.session is None else checked_name(wish.session, "--session")
    )
    if wish.user is not None and not (wish.user.strip() and len(wish.user) <= _LONGEST_NAME and _is_text(wish.user)):
        raise InvalidInput(f"--user must name somebody, in 1 to {_LONGEST_NAME} characters of valid Unicode")
    return PipelineRequest(
        action="run",
        session_id=session_id,
        pipeline=source.pipeline.model_dump(mode="json", exclude_unset=True),
        inputs=inputs,
        keep=wish.keep,
        user_id=wish.user,
    )


def _is_text(text: str) -> bool:
    return not re.search("[\ud800-\udfff]", text)


def new_session_id(name: str) -> str:
    """Return an id for a run of the pipeline *name*, such as "repository-health-3f9a2c71d0"."""
    return f"{name[:_NAMED]}-{os.urandom(_RANDOM).hex()}"


def tell_started(session_id: str, *, as_json: bool) -> int:
    """Print the id of a run that goes on without us, how it is looked at, and return the exit code."""
    if as_json:
        print_json({"session_id": session_id})
    else:
        print(session_id, flush=True)
        say(f"it runs; `tasklore pipeline status {session_id} --follow` looks at it")
    return OK


async def watched(watch: Watch, *, as_json: bool, reused: Reused | None = None) -> Look:
    """Return the run once it is over, and show it until then.

    *reused* are phases that are not run again, see `board`.

    Raises:
        UnknownSession: it is gone, and nobody knows how it ended.
        Unreachable: nobody drives it any more, or Valkey is away.
    """
    with board(is_silent=as_json, reused=reused) as shown:
        return await watch.until_over(shown.show)


@contextlib.contextmanager
def told_when_left(session_id: str) -> Iterator[None]:
    """Tell whoever stops a command that its run goes on, and how to look at it and to end it."""
    try:
        yield
    except asyncio.CancelledError:
        say(f"the run goes on; `tasklore pipeline status {session_id} --follow` looks at it")
        say(f"`tasklore pipeline cancel {session_id}` ends it")
        raise
