"""`tasklore webhooks` on a real Valkey: output of each command, and its refusals."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from redis.asyncio import Redis

from tasklore.commands.webhooks.views import print_webhook, print_webhooks
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.ledger.waits import Waits
from tasklore.memory.webhooks.outbox import State, WebhookOutbox
from tasklore.supervisor.watches import WaitWatch
from tests.unit.supervisor.webhooks import a_webhook

pytestmark = pytest.mark.usefixtures("command_servers")


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
        state = State(
            now + timedelta(minutes=9),
            now - timedelta(hours=2 * number),
            7,
            "answered 503",
        )
        assert await outbox.note(kept, outcome, state, now)  # type: ignore[arg-type]  # a word of those above
    return outbox


async def test_webhooks_that_were_given_up_or_wait_are_listed(
    outbox: WebhookOutbox, printed: Callable[[], str]
) -> None:
    """As `GET /v1/webhooks` has them, without their bodies."""
    await print_webhooks("failed", 10, as_json=False)
    shown = printed()
    assert shown.split()[:6] == ["ID", "EVENT", "AGE", "ATTEMPTS", "PROBLEM", "ADDRESS"]
    assert ("msg_2" in shown, "msg_1" in shown) == (True, False)
    await print_webhooks("waiting", 10, as_json=True)
    listed = json.loads(printed())
    assert (listed["waiting"], listed["failed"]) == (1, 1)
    [one] = listed["webhooks"]
    assert (one["id"], one["attempts"], one["problem"], "body" in one) == (
        "msg_1",
        7,
        "answered 503",
        False,
    )
    assert await outbox.oldest() is not None


async def test_a_webhook_is_shown_sent_again_and_removed(
    outbox: WebhookOutbox, printed: Callable[[], str]
) -> None:
    """The next attempt is at once, and the first of a new day."""
    await print_webhook("msg_2", then="show", as_json=True)
    assert json.loads(printed())["body"] == '{"type":"task.completed"}'
    await print_webhook("msg_2", then="retry", as_json=True)
    assert json.loads(printed())["attempts"] == 0
    assert await outbox.counts() == (2, 0)
    await print_webhook("msg_1", then="remove", as_json=False)
    assert "https://example.com/1" in printed()
    assert await outbox.counts() == (1, 0)
    words: tuple[Literal["show", "retry", "remove"], ...] = ("show", "retry", "remove")
    for word in words:
        with pytest.raises(
            InvalidInput,
            match="there is no webhook 'msg_1': it was delivered, or removed; `tasklore",
        ):
            await print_webhook("msg_1", then=word, as_json=False)


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
