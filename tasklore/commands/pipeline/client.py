"""Requests to a supervisor about pipelines, and the agents that a run waits for."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from nats.aio.client import Client
from pydantic import BaseModel, ValidationError

from tasklore.commands.ask.call import Call
from tasklore.commands.exits import USAGE
from tasklore.commands.places import current_supervisor, leading_with_the_cure
from tasklore.commands.render.screen import complain, print_json, printable, say
from tasklore.commands.render.words import count_of
from tasklore.contracts import subjects
from tasklore.contracts.errors import (
    InvalidInput,
    InvalidPipeline,
    MessageTooLarge,
    Unreachable,
)
from tasklore.contracts.messages import PipelineReply, PipelineRequest
from tasklore.runtime.messaging.presences import live_workers

R = TypeVar("R", bound=BaseModel)

#: Seconds for the reply: it takes a look at the catalogue and into Valkey, and a supervisor may have been replaced.
REPLY_S = 20.0
#: Seconds after which the request is sent again, which starts nothing twice.
AGAIN_S = 4.0


async def ask(
    client: Client, request: PipelineRequest, supervisor_id: str | None = None
) -> PipelineReply:
    """Send *request* to *supervisor_id*, None is that of the environment, and return the reply that accepts it.

    Raises:
        InvalidPipeline: it is refused, for problems that each have a place and a cure.
        InvalidInput: it is refused.
        MessageTooLarge: the request does not fit into a message.
        Unreachable: no supervisor takes the request, or it fell silent.
    """
    body = request.model_dump_json(exclude_none=True).encode()
    if len(body) > subjects.MAX_BODY:
        raise MessageTooLarge(
            f"the pipeline with its inputs has {len(body):,} bytes, at most {subjects.MAX_BODY:,} are taken; "
            "keep what is large in files and give their paths as inputs"
        )
    subject = subjects.pipelines(supervisor_id or current_supervisor())
    reply = read_reply(
        PipelineReply, await Call(client, subject, lambda: body).reply(REPLY_S, AGAIN_S)
    )
    if reply.kind == "accepted":
        return reply
    if reply.problems:
        raise InvalidPipeline(reply.problems)
    raise refusal(reply.text)


def read_reply(model: type[R], body: bytes) -> R:
    """Return the reply in *body*.

    Raises:
        Unreachable: it is none: another version replied.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        msg = f"the supervisor answered with something else than a reply: {body[:200]!r}; are the versions the same?"
        raise Unreachable(msg) from error


def refusal(text: str) -> InvalidInput:
    """Return the error for a reply that refuses for the reason *text*."""
    return InvalidInput(
        printable(text) or "the supervisor refused, and did not say why; its log does"
    )


def print_problems(problems: Sequence[str], *, as_json: bool) -> int:
    """Print a line for each problem, and return the exit code."""
    if as_json:
        print_json({"problems": list(problems)})
    for problem in problems:
        complain(printable(problem))
    if len(problems) > 1:
        complain(f"{count_of(len(problems), 'problem')}; nothing was run")
    return USAGE


async def absent_agents(client: Client, agents: Iterable[str]) -> list[str]:
    """Return which of *agents* have no live worker, in their order; a worker that died counts for 15 s.

    Raises:
        Unreachable: the bucket of workers did not answer.
    """
    with leading_with_the_cure():
        alive = {worker.agent_id for worker in await live_workers(client)}
    return [agent for agent in dict.fromkeys(agents) if agent not in alive]


def say_absent(agents: Sequence[str]) -> None:
    """Print a line about *agents* without a live worker, none when there are none."""
    if agents:
        whose = "its" if len(agents) == 1 else "their"
        cure = f"{whose} phases wait until one is started with `tasklore worker`"
        say(f"no worker of {', '.join(agents)} is alive; {cure}")
