"""Which agents there are, and how long their tasks may take, as far as sending dead letters again needs to know."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import structlog
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import Unreachable
from tasklore.contracts.messages import AgentCard
from tasklore.contracts.pipelines import PIPELINE_AGENT
from tasklore.runtime.messaging.buckets import read_bucket
from tasklore.runtime.messaging.link import Link

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KnownAgents:
    """The agents that have a card, None while cards cannot be read, and the deadlines that their tasks declare.

    *deadlines* are by agent and task, None where a card declares none; a task of no card that was read is missing.
    """

    ids: frozenset[str] | None = None
    deadlines: Mapping[tuple[str, str], timedelta | None] = field(default_factory=dict)

    def has(self, agent_id: str) -> bool:
        """Return whether tasks of *agent_id* may find a worker; True where that is not known."""
        # Supervisors serve pipelines themselves, without a card.
        return self.ids is None or agent_id in self.ids or agent_id == PIPELINE_AGENT


async def read_known_agents(link: Link) -> KnownAgents:
    """Return what the cards of agents say; nothing while those cannot be read."""
    try:
        cards = await read_bucket(link, subjects.AGENTS_BUCKET)
    except Unreachable as error:
        log.warning("cards_not_read", error=str(error))
        return KnownAgents()
    deadlines: dict[tuple[str, str], timedelta | None] = {}
    for agent_id, body in cards.items():
        with contextlib.suppress(ValidationError):
            card = AgentCard.model_validate_json(body)
            deadlines |= {
                (agent_id, task.name): timedelta(seconds=task.deadline_s)
                if task.deadline_s
                else None
                for task in card.tasks
            }
    return KnownAgents(frozenset(cards), deadlines)
