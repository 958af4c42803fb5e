"""Every store in Redis, in the order of the flow of work: a new one is one line here."""

from typing import Final

from tasklore.memory.budgets import declaration as budgets
from tasklore.memory.concurrency import declaration as places
from tasklore.memory.conversations import declaration as conversations
from tasklore.memory.declarations import Store
from tasklore.memory.documents import declaration as documents
from tasklore.memory.episodes import declaration as episodes
from tasklore.memory.holdings import declaration as holdings
from tasklore.memory.ledger import declaration as ledger
from tasklore.memory.long_term import declaration as long_term
from tasklore.memory.projects import declaration as projects
from tasklore.memory.queues import declaration as queues
from tasklore.memory.run_messages import declaration as run_messages
from tasklore.memory.schedules import declaration as schedules
from tasklore.memory.sessions import declaration as sessions
from tasklore.memory.stories import declaration as stories
from tasklore.memory.tombstones import declaration as tombstones
from tasklore.memory.webhooks import declaration as webhooks

#: A user is forgotten in this order: sources before what comes of them, so that no pass leaves work for the next.
STORES: Final[tuple[Store, ...]] = (
    *tombstones.STORES,
    *schedules.STORES,
    *sessions.STORES,
    *ledger.STORES,
    *run_messages.STORES,
    *places.STORES,
    *queues.STORES,
    *episodes.STORES,
    *documents.STORES,
    *conversations.STORES,
    *webhooks.STORES,
    *long_term.STORES,
    *projects.STORES,
    *stories.STORES,
    *holdings.STORES,
    *budgets.STORES,
)
