"""The desk of webhooks: sends those that are due, each host by itself, until they are delivered or a day has passed."""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import structlog

from contracts.errors import MemoryUnavailable
from memory.webhooks.outbox import Kept, Outcome, State, WebhookOutbox
from runtime.lease_loop import LeaseLoop, jitter
from runtime.metrics import Metrics
from supervisor.webhooks.sender import DEADLINE_S, NotDelivered, Sender

log = structlog.get_logger(__name__)

#: Hosts sent to at once, webhooks of one of them that are sent at once, and that are taken in one turn.
_HOSTS, _OF_HOST, _TAKEN = 256, 8, 16
#: Long enough for all that are taken in one turn: after it another process sends them.
LEASE = timedelta(seconds=DEADLINE_S * (_TAKEN / _OF_HOST + 1))
#: Seconds before the second attempt; each further pause is three times as long, up to the longest.
_PAUSE_S, _LONGEST_S = 5.0, 7200.0
#: How long a webhook is tried.
TRIED_FOR = timedelta(days=1)


class WebhookDesk(LeaseLoop[str, list[Kept]]):
    """Sends webhooks from this process; `run` until `drain`. Its keys are hosts."""

    #: Two processes take different webhooks of one host.
    is_exclusive: ClassVar[bool] = False

    def __init__(self, outbox: WebhookOutbox, sender: Sender, meter: Metrics) -> None:
        super().__init__("webhook", at_once=_HOSTS, lease_s=LEASE.total_seconds())
        self._outbox = outbox
        self._sender = sender
        self._meter = meter

    async def due(self, limit: int) -> Sequence[str]:
        """Return hosts with webhooks that are due."""
        return await self._outbox.due(_now(), limit)

    async def claim(self, key: str) -> list[Kept] | None:
        """Return due webhooks of a host, None when another process has them."""
        return await self._outbox.take(key, _now(), LEASE, _TAKEN) or None

    async def work(self, key: str, lease: list[Kept]) -> float:
        """Send them, some at once: one that is slow delays no others."""
        waiting = deque(lease)

        async def send_some() -> None:
            while waiting:
                try:
                    await self._send(waiting.popleft())
                except MemoryUnavailable as error:
                    # Those that were sent and not noted are sent again under their id: no more of them now.
                    waiting.clear()
                    log.info("webhook_not_noted", host=key, error=str(error))

        async with asyncio.TaskGroup() as group:
            for _ in range(min(_OF_HOST, len(waiting))):
                group.create_task(send_some())
        return 0.0

    async def renew(self, lease: list[Kept]) -> bool:
        """Return True: a turn takes less than its lease."""
        return lease is not None

    async def give_back(self, lease: list[Kept]) -> None:
        """Do nothing: the outcome of each is noted, and what is not sent is due again after the lease."""

    async def _send(self, kept: Kept) -> None:
        webhook, state = kept
        problem, is_over = "", False
        try:
            await self._sender.send(webhook)
        except NotDelivered as error:
            problem, is_over = str(error), error.is_final
        now = _now()
        if not problem:
            await self._outbox.note(kept, "delivered", state, now)
            self._meter.count_webhook("delivered")
            return
        attempts = state.attempts + 1
        due = now + timedelta(seconds=jitter(min(_LONGEST_S, _PAUSE_S * 3.0 ** min(state.attempts, 10))))
        is_over = is_over or due > state.since + TRIED_FOR
        outcome: Outcome = "failed" if is_over else "waits"
        await self._outbox.note(kept, outcome, State(due, state.since, attempts, problem), now)
        self._meter.count_webhook("failed" if is_over else "retried")
        tell = log.warning if is_over else log.info
        tell(f"webhook_{outcome}", webhook_id=webhook.id, type=webhook.type, host=webhook.host, error=problem)


def _now() -> datetime:
    return datetime.now(UTC)
