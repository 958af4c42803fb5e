"""KEDA and the horizontal autoscaler as their documentation has them, on the live monitoring of NATS and real workers.

Every `polling_s` the scaler asks `/jsz` for what waits at a consumer and what is under way from it. Above none the
Deployment is active: from none to one at once, then as many as `ceil(value / lag_threshold)`, of which the largest
wish within `calm_s` counts on the way down, and one goes at a time. After `cooldown_s` without anything the last goes.
"""

import asyncio
import json
import math
import urllib.request
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.acceptance.system import Served

#: Seconds for one page of the monitoring.
_PAGE_S = 5.0


@dataclass(frozen=True)
class Trigger:
    """The scaler's metadata, and the times of its loops, in seconds, shorter than in a cluster."""

    stream: str
    consumer: str
    lag_threshold: int
    most: int
    polling_s: float = 0.2
    calm_s: float = 1.5
    cooldown_s: float = 2.0


def monitored(urls: Sequence[str], stream: str, consumer: str) -> int | None:
    """Return what waits at *consumer* and is under way from it, as its leader knows it; None when no server leads it.

    Followers of a replicated stream have a consumer of that name too, at which nothing ever waits.
    """
    for url in urls:
        with urllib.request.urlopen(f"{url}/varz", timeout=_PAGE_S) as page:  # noqa: S310 - our own server
            own_name = json.load(page)["server_name"]
        with urllib.request.urlopen(  # noqa: S310
            f"{url}/jsz?consumers=true&config=true", timeout=_PAGE_S
        ) as page:
            accounts = json.load(page).get("account_details") or []
        for found in _consumers(accounts, stream):
            leader = (found.get("cluster") or {}).get("leader", own_name)
            if found["name"] == consumer and leader == own_name:
                return int(found["num_pending"]) + int(found["num_ack_pending"])
    return None


def _consumers(accounts: list[dict[str, Any]], stream: str) -> list[dict[str, Any]]:
    details = [
        one for account in accounts for one in account.get("stream_detail") or []
    ]
    return [
        consumer
        for one in details
        if one["name"] == stream
        for consumer in one.get("consumer_detail") or []
    ]


@dataclass
class Autoscaler:
    """Starts and stops workers until there is nothing left to do; *start* starts one, as a pod is started."""

    trigger: Trigger
    urls: Sequence[str]
    start: Callable[[], Served]
    running: list[Served] = field(default_factory=list)
    leaving: list[Served] = field(default_factory=list)
    #: How many there were wanted, at each change.
    history: list[int] = field(default_factory=lambda: [0])
    #: What was read, at each look.
    values: list[int] = field(default_factory=list)

    async def run_to_zero(self, within_s: float) -> None:
        """Return once there were workers and none is left; fails after *within_s* seconds."""
        loop = asyncio.get_running_loop()
        wishes: deque[tuple[float, int]] = deque()
        active_at = loop.time()
        async with asyncio.timeout(within_s):
            while len(self.history) == 1 or self.history[-1] > 0:
                value = await asyncio.to_thread(
                    monitored, self.urls, self.trigger.stream, self.trigger.consumer
                )
                if value is not None:
                    self.values.append(value)
                    now = loop.time()
                    if value > 0:
                        active_at = now
                    self._scale(
                        self._wanted(value, wishes, now, idle_s=now - active_at)
                    )
                # The loop of a poller: there is no event to wait for.
                await asyncio.sleep(self.trigger.polling_s)
            for worker in self.leaving:
                status = await asyncio.to_thread(worker.wait)
                assert status == 0, (
                    f"a worker that was scaled down ended with {status}:\n{worker.log()}"
                )

    def _wanted(
        self, value: int, wishes: deque[tuple[float, int]], now: float, *, idle_s: float
    ) -> int:
        current = self.history[-1]
        if current == 0:
            return 1 if value > 0 else 0
        if value == 0 and idle_s >= self.trigger.cooldown_s:
            return 0
        wish = min(
            self.trigger.most, max(1, math.ceil(value / self.trigger.lag_threshold))
        )
        wishes.append((now, wish))
        while wishes[0][0] < now - self.trigger.calm_s:
            wishes.popleft()
        calm = max(one for _, one in wishes)
        return max(calm, current - 1) if calm < current else max(current, wish)

    def _scale(self, wanted: int) -> None:
        while len(self.running) < wanted:
            self.running.append(self.start())
        while len(self.running) > wanted:
            worker = self.running.pop()
            worker.terminate()
            self.leaving.append(worker)
        if wanted != self.history[-1]:
            self.history.append(wanted)
