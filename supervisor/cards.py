"""How a supervisor learns what there is: agent cards out of the bucket, first all of them, then each change."""

import structlog
from nats.aio.client import Client
from pydantic import ValidationError

from contracts import subjects
from contracts.messages import AgentCard
from runtime.buckets import read_bucket
from supervisor.catalogue import Catalogue

log = structlog.get_logger(__name__)


class CardIndex:
    """The catalogue as of now; `catalogue` is replaced as a whole by each change."""

    def __init__(self) -> None:
        self.catalogue = Catalogue()
        self._notices = 0

    def learn(self, card: AgentCard) -> None:
        """Take the card of an agent; a lower version than the known one is ignored."""
        self._notices += 1
        self.catalogue = self.catalogue.with_card(card)
        log.info("agent_known", agent=card.agent_id, version=card.version, tasks=len(card.tasks))

    def forget(self, agent_id: str) -> None:
        """Take note that an agent was retired."""
        self._notices += 1
        self.catalogue = self.catalogue.without(agent_id)
        log.info("agent_retired", agent=agent_id)

    async def load(self, client: Client) -> None:
        """Replace everything by what the bucket holds: at the start, and after a lost connection.

        Raises:
            Unreachable: the bucket did not answer.
        """
        heard = -1
        while heard != self._notices:
            # A notice that came meanwhile may tell of what was not read yet: it must not be undone.
            heard = self._notices
            cards = await read_cards(client)
        catalogue = Catalogue()
        for card in cards:
            catalogue = catalogue.with_card(card)
        self.catalogue = catalogue


async def read_cards(client: Client) -> list[AgentCard]:
    """Return every readable card in the bucket, by agent id.

    Raises:
        Unreachable: the bucket did not answer, or does not exist yet.
    """
    found = await read_bucket(client, subjects.AGENTS_BUCKET)
    return [card for body in found if (card := _read_card(body)) is not None]


def _read_card(body: bytes) -> AgentCard | None:
    try:
        return AgentCard.model_validate_json(body)
    except ValidationError as error:
        log.warning("unreadable_card", problems=error.error_count())
        return None
