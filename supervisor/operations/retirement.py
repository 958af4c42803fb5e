"""Agents: take one out of the catalogue."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from tasklore.contracts import subjects
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import Unreachable
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.runtime.messaging.buckets import BUCKET_FAILURES, BUCKET_S
from tasklore.runtime.messaging.direct import Line, client_of
from tasklore.runtime.messaging.presences import live_workers
from tasklore.supervisor.cards import read_cards
from tasklore.supervisor.operations.dependencies import OperatorDependencies
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import Refused, not_found
from tasklore.supervisor.operations.table import Shows, operation


@dataclass(frozen=True, kw_only=True)
class RetirementServices:
    """What retiring an agent works with: a connection by the rights of an operator."""

    line: Line


class AgentToRetire(Form):
    """How an agent is retired."""

    force: Annotated[
        bool, Field(description="Retire it even if it has live workers.")
    ] = False


class AgentRetired(View):
    """An agent that was taken out of the catalogue, and its workers that were alive."""

    agent_id: str
    workers: tuple[str, ...]


@operation(
    "agents",
    "retire",
    "POST /v1/agents/{agent_id}/retire",
    roles=("operate",),
    mounted="operations",
    problems=(404, 409),
    shows=Shows(example="agents retire OldAgent"),
)
async def retire_agent(
    services: RetirementServices,
    caller: Caller,
    agent_id: Annotated[
        str, Field(pattern=NAME_PATTERN, description="The id of an agent.")
    ],
    wanted: AgentToRetire,
) -> AgentRetired:
    """Take an agent out of the catalogue: it accepts no tasks until one of its workers starts again."""
    caller.demand_unbound()
    known = [card.agent_id for card in await read_cards(services.line)]
    if agent_id not in known:
        names = ", ".join(known) or "none yet"
        raise not_found(
            f"no agent is called {agent_id!r}; known are {names}; GET /v1/agents lists them"
        )
    alive = tuple(
        worker.worker_id
        for worker in await live_workers(services.line)
        if worker.agent_id == agent_id
    )
    if alive and not wanted.force:
        raise Refused(
            409,
            "alive",
            f"{agent_id} has {len(alive)} live worker(s): {', '.join(alive)}; stop them first, or set `force`",
        )
    await _remove_card(services.line, agent_id)
    return AgentRetired(agent_id=agent_id, workers=alive)


OPERATIONS = (retire_agent,)


async def _remove_card(line: Line, agent_id: str) -> None:
    """Take the card of *agent_id* out of the bucket.

    Raises:
        Unreachable: it did not answer.
    """
    try:
        async with asyncio.timeout(BUCKET_S):
            bucket = await client_of(line).jetstream().key_value(subjects.AGENTS_BUCKET)
            await bucket.delete(agent_id)
    except BUCKET_FAILURES as error:
        msg = f"the bucket {subjects.AGENTS_BUCKET!r} did not answer: {error or type(error).__name__}"
        raise Unreachable(msg) from error


def for_operator(parts: OperatorDependencies) -> RetirementServices:
    """Return the services of retiring agents."""
    return RetirementServices(line=parts.link)


NOUN = NounDeclaration(operations=OPERATIONS, operator=serve(for_operator, OPERATIONS))
