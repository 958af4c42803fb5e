"""Operations on webhooks, on a real Valkey."""

from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import NotPermitted
from tasklore.memory.ledger.waits import Waits
from tasklore.memory.webhooks.outbox import WebhookOutbox, WebhookState
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.webhooks import (
    OPERATIONS,
    WebhookServices,
    list_webhooks,
    remove_webhook,
    retry_webhook,
    show_webhook,
)
from tasklore.supervisor.watches import WaitWatch
from tests.unit.supervisor.webhooks import a_webhook

BOSS = Caller(name="boss", roles=frozenset({"admin"}))


@pytest.fixture
async def outbox(redis: Redis) -> WebhookOutbox:
    """Return an outbox with one webhook that waits, for two hours, and one that was given up."""
    outbox = WebhookOutbox(redis, deadline_s=5.0)
    now = datetime.now(UTC)
    for number, outcome in ((1, "waits"), (2, "failed")):
        assert (
            await outbox.put(a_webhook(f"https://example.com/{number}", number), now)
            == 1
        )
        kept = (await outbox.read(f"msg_{number}"))[0]
        assert kept is not None
        state = WebhookState(
            now + timedelta(minutes=9),
            now - timedelta(hours=2 * number),
            7,
            "answered 503",
        )
        assert await outbox.note(kept, outcome, state, now)  # type: ignore[arg-type]  # a word of those above
    return outbox


@pytest.fixture
def services(outbox: WebhookOutbox) -> WebhookServices:
    return WebhookServices(outbox=outbox)


async def test_webhooks_that_were_given_up_or_wait_are_listed(
    services: WebhookServices,
) -> None:
    """Without their bodies, and with the numbers of both."""
    failed = await list_webhooks(services, BOSS)
    assert [one.id for one in failed.webhooks] == ["msg_2"]
    waiting = await list_webhooks(services, BOSS, state="waiting")
    assert (waiting.waiting, waiting.failed) == (1, 1)
    [one] = waiting.webhooks
    assert (one.id, one.attempts, one.problem) == ("msg_1", 7, "answered 503")
    assert "body" not in one.model_dump()


async def test_a_webhook_is_shown_sent_again_and_removed(
    services: WebhookServices,
) -> None:
    """The next attempt is at once, and the first of a new day."""
    shown = await show_webhook(services, BOSS, "msg_2")
    assert shown.body == '{"type":"task.completed"}'
    assert (await retry_webhook(services, BOSS, "msg_2")).attempts == 0
    assert await services.outbox.counts() == (2, 0)
    removed = await remove_webhook(services, BOSS, "msg_1")
    assert removed.url == "https://example.com/1"
    assert await services.outbox.counts() == (1, 0)
    for operation in (show_webhook, retry_webhook, remove_webhook):
        with pytest.raises(Refused, match="no webhook 'msg_1': it was delivered"):
            await operation(services, BOSS, "msg_1")


async def test_webhooks_are_for_administrators_of_everybody(
    services: WebhookServices,
) -> None:
    """A key of one user sees none, and none without the role."""
    with pytest.raises(NotPermitted, match="for one user"):
        await list_webhooks(services, BOSS.model_copy(update={"user": "ann"}))
    reader = Caller(name="reader", roles=frozenset({"read", "ask", "operate"}))
    for operation in OPERATIONS:
        with pytest.raises(NotPermitted, match="'admin'"):
            await operation(services, reader)
    assert await services.outbox.counts() == (1, 1)


async def test_the_age_of_the_oldest_webhook_that_waits_is_exported(
    outbox: WebhookOutbox, redis: Redis
) -> None:
    """One that was given up does not count."""
    watch = WaitWatch(Waits(redis), outbox)
    assert watch.oldest_s() == 0
    await watch.look()
    assert watch.oldest_s() == pytest.approx(7_200, abs=60)
    await outbox.remove("msg_1")
    await watch.look()
    assert (watch.oldest_s(), watch.failed) == (0, 1)
