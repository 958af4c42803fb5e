"""The sender of webhooks: sends those that are due, until they are delivered or a day has passed.

Each host has a few lanes, of which each sends one webhook at a time: one that is slow holds up a lane and nothing else.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import structlog

from tasklore.memory.webhooks.outbox import Kept, Outcome, WebhookOutbox, WebhookState
from tasklore.runtime.claim_loop import ClaimLoop, jitter
from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.makers import HELD, RELEASED, Makers, spell_hold, until_look
from tasklore.supervisor.webhooks.delivery import DEADLINE_S, NotDelivered, Sender

log = structlog.get_logger(__name__)

#: Webhooks sent at once, and to one host; where half of all are on their way, each host has one lane.
_AT_ONCE = 1_024
_OF_HOST = 8
#: How long a webhook that was taken is left to its process; after it another one sends it.
LEASE = timedelta(seconds=2 * DEADLINE_S)
#: Seconds before the second attempt; each further pause is three times as long, up to the longest.
_PAUSE_S = 5.0
_LONGEST_S = 7200.0
#: How long a webhook is tried.
TRIED_FOR = timedelta(days=1)


class WebhookSender(ClaimLoop[tuple[str, int], list[Kept]]):
    """Sends webhooks from this process; `run` until `drain`. Its keys are hosts with the number of a lane."""

    #: Two processes take different webhooks of one host.
    is_exclusive: ClassVar[bool] = False

    def __init__(
        self,
        outbox: WebhookOutbox,
        sender: Sender,
        meter: Metrics,
        makers: Makers | None = None,
    ) -> None:
        super().__init__("webhook", at_once=_AT_ONCE, lease_s=LEASE.total_seconds())
        self._makers = makers or Makers()
        self._outbox = outbox
        self._sender = sender
        self._meter = meter

    async def is_idle(self) -> bool:
        """Return whether there is none to send, or to drop."""
        return await self._outbox.is_idle()

    async def due(self, limit: int) -> Sequence[tuple[str, int]]:
        """Return a free lane of each host with webhooks that are due."""
        lanes = range(_OF_HOST if self.busy < _AT_ONCE // 2 else 1)
        hosts = await self._outbox.due(_now(), limit)
        free = (
            [(host, lane) for lane in lanes if (host, lane) not in self._serving]
            for host in hosts
        )
        return [found[0] for found in free if found]

    async def claim(self, key: tuple[str, int]) -> list[Kept]:
        """Return the next webhook of a host, none when others have all that are due."""
        found = await self._outbox.take(key[0], _now(), LEASE, 1)
        if found:
            # There may be more, for another lane.
            self.look_soon()
        return found

    async def work(self, key: tuple[str, int], lease: list[Kept]) -> float:  # noqa: ARG002 - as the loop calls it
        """Send it, and note the outcome."""
        for kept in lease:
            await self._send(kept)
        return 0.0

    async def renew(self, lease: list[Kept]) -> bool:
        """Return True: to send one takes less than its lease."""
        return lease is not None

    async def give_back(self, lease: list[Kept]) -> None:
        """Do nothing: the outcome is noted, and an unsent one is due again after the lease."""

    async def _send(self, kept: Kept) -> None:
        webhook, state = kept
        is_released = state.problem.startswith(RELEASED)
        loss = self._makers.find_loss(webhook.caller, "ask")
        if loss is not None and not is_released:
            await self._hold(kept, loss)
            return
        if state.problem.startswith(HELD):
            # The time in which it rested is none in which its receiver was away.
            state = state._replace(since=_now())
        problem = ""
        is_over = False
        try:
            await self._sender.send(webhook)
        except NotDelivered as error:
            problem = str(error)
            is_over = error.is_final
        now = _now()
        if not problem:
            await self._outbox.note(kept, "delivered", state, now)
            self._meter.count_webhook("delivered")
            return
        if is_released:
            problem = f"{RELEASED}; {problem}"
        attempts = state.attempts + 1
        due = now + timedelta(
            seconds=jitter(min(_LONGEST_S, _PAUSE_S * 3.0 ** min(state.attempts, 10)))
        )
        is_over = is_over or due > state.since + TRIED_FOR
        outcome: Outcome = "failed" if is_over else "waits"
        await self._outbox.note(
            kept, outcome, WebhookState(due, state.since, attempts, problem), now
        )
        self._meter.count_webhook("failed" if is_over else "retried")
        tell = log.warning if is_over else log.info
        tell(
            f"webhook_{outcome}",
            webhook_id=webhook.id,
            type=webhook.type,
            host=webhook.host,
            error=problem,
        )

    async def _hold(self, kept: Kept, loss: str) -> None:
        """Let the webhook rest, as long as it takes, until it is looked at again."""
        webhook, state = kept
        why = spell_hold(loss, f"tasklore webhooks retry {webhook.id}")
        if why != state.problem:
            log.warning("webhook_paused", webhook_id=webhook.id, why=why)
        now = _now()
        due = now + until_look(now, webhook.created_at)
        held = WebhookState(due, now, state.attempts, why)
        await self._outbox.note(kept, "waits", held, now)


def _now() -> datetime:
    return datetime.now(UTC)
