"""Replies of a supervisor about analyses, and the agents that a run waits for."""

from collections.abc import Iterable
from typing import TypeVar

from nats.aio.client import Client
from pydantic import BaseModel, ValidationError

from tasklore.commands.places import leading_with_the_cure
from tasklore.commands.render.screen import printable
from tasklore.contracts.errors import (
    InvalidInput,
    Unreachable,
)
from tasklore.runtime.messaging.presences import live_workers

R = TypeVar("R", bound=BaseModel)


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


async def absent_agents(client: Client, agents: Iterable[str]) -> list[str]:
    """Return which of *agents* have no live worker, in their order; a worker that died counts for 15 s.

    Raises:
        Unreachable: the bucket of workers did not answer.
    """
    with leading_with_the_cure():
        alive = {worker.agent_id for worker in await live_workers(client)}
    return [agent for agent in dict.fromkeys(agents) if agent not in alive]
