"""What the receivers of webhooks are told, and whose words that are."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from tasklore.contracts.messages import CompletionReport, MemoryNote
from tasklore.memory.webhooks.outbox import Callback, Webhook
from tasklore.supervisor.webhooks.events import WebhookEvents

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class _Outbox:
    """An outbox that stores everything; each task has the address that it is given."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self.stored: list[Webhook] = []

    async def callbacks(self, task_ids: Sequence[str]) -> list[Callback]:
        return [self._callback for _ in task_ids]

    async def put(self, webhook: Webhook, _now: datetime) -> int:
        self.stored.append(webhook)
        return 1

    async def note_ended(self, _task_ids: Sequence[str], _now: datetime) -> None:
        """Keep nothing of it."""


def _report(generation: int = 1) -> CompletionReport:
    return CompletionReport(
        task_id="t1",
        generation=generation,
        agent_id="A",
        supervisor_id="S",
        task_name="look",
        status="completed",
        memory=MemoryNote(outcome="off"),
        worker_id="w1",
        finished_at=NOW,
    )


@pytest.mark.parametrize(
    ("asked_for", "reported_for", "owner"),
    [("ann", "", "ann"), ("", "ann", "ann"), ("ann", "bob", "ann"), ("", "", "")],
)
async def test_a_webhook_is_of_the_user_whose_address_it_is_then_of_the_tasks(
    asked_for: str, reported_for: str, owner: str
) -> None:
    """So that forgetting them finds it."""
    outbox = _Outbox(
        Callback(url="https://x.test/", host="x.test:443", owner=asked_for)
    )
    events = WebhookEvents(cast("Any", outbox), cast("Any", None), now=lambda: NOW)
    await events.note_reports([(_report(), reported_for)])
    [webhook] = outbox.stored
    assert webhook.owner == owner


async def test_each_generation_of_a_task_is_an_event_of_its_own() -> None:
    outbox = _Outbox(Callback(url="https://x.test/", host="x.test:443"))
    events = WebhookEvents(cast("Any", outbox), cast("Any", None), now=lambda: NOW)
    for generation in (1, 1, 2):
        await events.note_reports([(_report(generation), "")])
    first, again, second = (webhook.id for webhook in outbox.stored)
    assert first == again != second
