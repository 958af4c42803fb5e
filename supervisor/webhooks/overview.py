"""Webhooks as people and programs see them: the command line and HTTP read the same."""

from datetime import datetime

from pydantic import BaseModel

from tasklore.memory.webhooks.outbox import Kept, Undelivered, WebhookOutbox


class WebhookView(BaseModel, frozen=True):
    """A webhook: `problem` is what the last of its `attempts` met; `due` is when it is sent next, if it waits."""

    id: str
    type: str
    url: str
    created_at: datetime
    attempts: int
    problem: str
    due: datetime

    @classmethod
    def of(cls, kept: Kept) -> "WebhookView":
        """Return *kept* without its body."""
        webhook, state = kept
        named = {
            name: getattr(webhook, name) for name in ("id", "type", "url", "created_at")
        }
        return cls(
            **named, attempts=state.attempts, problem=state.problem, due=state.due
        )


class WebhookList(BaseModel, frozen=True):
    """Webhooks, and how many there are of each kind."""

    webhooks: tuple[WebhookView, ...]
    waiting: int
    failed: int


async def list_webhooks(
    outbox: WebhookOutbox, state: Undelivered, limit: int
) -> WebhookList:
    """Return up to *limit* webhooks in *state*.

    Raises:
        MemoryUnavailable: the outbox cannot be read.
    """
    waiting, failed = await outbox.counts()
    found = tuple(WebhookView.of(one) for one in await outbox.find(state, limit))
    return WebhookList(webhooks=found, waiting=waiting, failed=failed)
