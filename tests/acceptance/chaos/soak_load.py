"""A steady load of everything that a busy day brings, and a count of what comes back of it."""

import asyncio
import json
import random
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nats.errors
from nats.aio.msg import Msg

from tests.acceptance.chaos.stage import AGENT
from tests.acceptance.external_program import Outside, outside

#: Tasks of all kinds in a second.
TASKS_PER_S = 100.0
#: Questions by a person, through the supervisor, in a second.
QUESTIONS_PER_S = 2.0
#: Seconds after which a task that has no report counts as lost: scheduled retries and a restart of NATS are in it.
LOST_AFTER_S = 60.0

#: How often each kind is drawn, in hundredths; see `Load._draw`.
_MIX = {
    "hit": 50,
    "miss": 20,
    "work": 19,
    "retry": 5,
    "later": 1,
    "cancel": 4,
    "give_up": 1,
}
#: Questions that are asked again and again.
KNOWN = 50
#: Seconds that a scheduled retry asks to wait: above what a worker waits for by handing back.
_LATER_S = 6.0
_CONVERSATIONS = 20
#: Seconds in which a question is asked again and again while nobody takes it: NATS may just be coming back.
_ASKS_S = 20.0


class Load(Outside):
    """The program that asks: it forgets every report once it is counted, so that it can go on for hours."""

    def __init__(self, *outside: Any) -> None:
        super().__init__(*outside)
        #: When each task without a report was sent, in seconds of the loop.
        self.open: dict[str, float] = {}
        self.statuses: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self._random = random.Random(1)
        self._number = KNOWN

    async def hear_report(self, message: Msg) -> None:
        """Count a report, and forget it unless somebody waits for it."""
        report = json.loads(message.data)
        if self.open.pop(report["task_id"], None) is not None:
            self.statuses[report["status"]] += 1
        if report["task_name"] == "census":
            await super().hear_report(message)

    @property
    def lost(self) -> int:
        """How many tasks have had no report for too long."""
        too_old = asyncio.get_running_loop().time() - LOST_AFTER_S
        return sum(1 for sent_at in self.open.values() if sent_at < too_old)

    async def keep_sowing(self) -> None:
        """Publish at an even pace until cancelled."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        async with asyncio.TaskGroup() as group:
            for count in range(10**9):
                group.create_task(self._sow(*self._draw()))
                await asyncio.sleep(
                    max(0.0, started + count / TASKS_PER_S - loop.time())
                )

    async def keep_asking(self) -> None:
        """Ask the supervisor at an even pace until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._ask_supervisor())
                await asyncio.sleep(1 / QUESTIONS_PER_S)

    def _draw(self) -> tuple[str, str, dict[str, Any]]:
        """Return a kind, its task and its parameters."""
        (kind,) = self._random.choices([*_MIX], [*_MIX.values()])
        self._number += 1
        number = self._number
        match kind:
            case "hit":
                return kind, "known", {"number": self._random.randrange(KNOWN)}
            case "miss":
                return kind, "known", {"number": number, "ms": 2}
            case "retry":
                return kind, "stumble", {"number": number, "times": 1}
            case "later":
                return (
                    kind,
                    "stumble",
                    {"number": number, "times": 1, "after_s": _LATER_S},
                )
            case "cancel":
                return kind, "work", {"number": number, "ms": 20_000}
            case "give_up":
                return kind, "refuse", {"number": number}
        return kind, "work", {"number": number, "ms": self._random.randrange(30)}

    async def _sow(self, kind: str, task: str, parameters: dict[str, Any]) -> None:
        assignment = self.assignment(AGENT, task, parameters)
        task_id = assignment["task_id"]
        self.kinds[kind] += 1
        self.open[task_id] = asyncio.get_running_loop().time()
        await self.publish(
            f"tasks.{AGENT}.{task}",
            json.dumps(assignment).encode(),
            {"Nats-Msg-Id": f"{task_id}:1"},
        )
        if kind == "cancel":
            await asyncio.sleep(0.2)
            wish = json.dumps(
                {"task_id": task_id, "reason": "changed my mind"}
            ).encode()
            await self.client.publish(f"cancel.{task_id}", wish)

    async def _ask_supervisor(self) -> None:
        spent = self._random.randrange(1_000_000)
        request = {
            "text": f"limit 50k, spent {spent}",
            "request_id": str(uuid.uuid4()),
            "conversation_id": f"soak-{self._random.randrange(_CONVERSATIONS)}",
            "wait_ms": 10_000,
        }
        body = json.dumps(request).encode()
        gives_up_at = asyncio.get_running_loop().time() + _ASKS_S
        while asyncio.get_running_loop().time() < gives_up_at:
            try:
                reply = await self.client.request(
                    "requests.SupervisorAgent", body, timeout=15
                )
            except (nats.errors.Error, TimeoutError):
                # An answer on its way is lost with the connection; the same id again starts nothing twice.
                await asyncio.sleep(0.2)
            else:
                self.answers[json.loads(reply.data)["kind"]] += 1
                return
        self.answers["none"] += 1


@asynccontextmanager
async def load(url: str) -> AsyncIterator[Load]:
    """Connect the program that asks; nothing is asked before `keep_sowing`."""
    async with outside(url) as program:
        sower = Load(program.client, f"Soak-{uuid.uuid4().hex[:8]}")
        await program.client.subscribe(
            f"reports.{sower.supervisor_id}.>", cb=sower.hear_report
        )
        await program.client.flush()
        yield sower
