"""A supervisor killed with a request half read or half done, and the repeat of it to another; and one that froze."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

from redis.asyncio import Redis

from tasklore.memory.conversations.conversation import Conversations
from tests.acceptance.external_program import PATIENCE_S, Json, Outside, outside
from tests.acceptance.system import NAPPER, PROBE, System
from tests.http_client import ask
from tests.llm_double import Asked, Canned, ScriptedLlm, answer

REQUESTS = "requests.SupervisorAgent"
#: What a request calls its runs.
_LABEL = re.compile(r"L[0-9a-f]{32}")


@dataclass
class Fickle:
    """A model that finds another task in the same words every other time, and says so when the gate opens."""

    gate: threading.Event = field(default_factory=threading.Event)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _times: "count[int]" = field(default_factory=count)

    def __call__(self, asked: Asked) -> Canned:
        """Return its next reading."""
        label = _LABEL.findall(asked.user)[-1]
        slots = [
            {"field": name, "value": value, "quotation": value, "source": "now"}
            for name, value in (("label", label), ("number", "17"))
        ]
        task = "remembered" if next(self._times) % 2 == 0 else "fresh"
        intent = {"agent_id": "ProbeAgent", "task_name": task, "slots": slots}
        self.asked.release()
        return answer(
            {"reasoning": "as asked", "intents": [intent], "unfit": []}
        ).behind(self.gate)

    async def is_asked(self) -> None:
        """Return when it is asked, once for each call."""
        assert await asyncio.to_thread(self.asked.acquire, timeout=PATIENCE_S)


@dataclass
class Scene:
    """A system with a model and a worker, and a program that asks for one run of the probe in words for a model."""

    system: System
    model: Fickle
    program: Outside
    settings: dict[str, Any]
    label: str = field(default_factory=lambda: f"L{uuid4().hex}")

    async def ask(self) -> Json:
        """Return the reply to the request; it is the same each time."""
        said = {
            "request_id": self.label,
            "conversation_id": self.label,
            "wait_ms": 30_000,
        }
        body = json.dumps(
            {"text": f"remembered probe, label {self.label}, number, hm, 17"} | said
        ).encode()
        return dict(
            json.loads(
                (await self.program.client.request(REQUESTS, body, timeout=90)).data
            )
        )

    async def turns(self) -> list[Json]:
        """Return the conversation as it is kept."""
        async with Redis.from_url(self.system.servers.redis_url) as redis:
            return [
                json.loads(turn)
                for turn in await Conversations(redis, deadline_s=PATIENCE_S).recent(
                    self.label
                )
            ]


@asynccontextmanager
async def scene_in(system: System) -> AsyncIterator[Scene]:
    """Open it within the block."""
    async with AsyncExitStack() as stack:
        fickle = Fickle()
        model = await stack.enter_async_context(ScriptedLlm(fickle))
        program = await stack.enter_async_context(outside(system.servers.nats_url))
        system.worker(PROBE).ready()
        yield Scene(
            system,
            fickle,
            program,
            {"llm_base_url": model.base_url, "llm_max_attempts": 1},
        )


async def test_a_request_whose_supervisor_died_while_a_model_read_it_is_read_once_more_and_then_kept(
    own_system: System,
) -> None:
    """The words were kept; the second reading is the one that counts, however often it is asked again."""
    async with scene_in(own_system) as scene:
        dying = own_system.supervisor(**scene.settings).ready()
        lost = asyncio.create_task(scene.ask())
        await scene.model.is_asked()

        async def is_kept() -> bool:
            return bool(await scene.turns())

        await scene.program.eventually(is_kept)
        dying.kill()
        lost.cancel()
        assert "read_as" not in (await scene.turns())[0]
        scene.model.gate.set()
        own_system.supervisor(**scene.settings).ready()
        replies = [await scene.ask() for _ in range(3)]
        assert {reply["kind"] for reply in replies} == {"answer"}
        assert [reply["task"]["name"] for reply in replies] == ["fresh"] * 3
        assert [turn["speaker"] for turn in await scene.turns()] == [
            "person",
            "assistant",
        ]
        assert len(own_system.runs(scene.label)) == 1


async def test_a_supervisor_that_froze_with_a_request_does_what_another_read_meanwhile(
    own_system: System,
) -> None:
    """Each of the two was told something else by the model; one run comes of it."""
    async with scene_in(own_system) as scene:
        frozen = own_system.supervisor(**scene.settings).ready()
        asked = [asyncio.create_task(scene.ask())]
        await scene.model.is_asked()
        frozen.stop()
        own_system.supervisor(**scene.settings).ready()
        # The server draws one of the two each time; those of the frozen one are answered when it goes on.
        asked += [asyncio.create_task(scene.ask()) for _ in range(24)]
        await scene.model.is_asked()
        scene.model.gate.set()
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        frozen.go_on()
        replies = await asyncio.gather(*asked)
        assert {reply["kind"] for reply in replies} == {"answer"}
        assert len({json.dumps(reply["task"]) for reply in replies}) == 1
        assert len(own_system.runs(scene.label)) == 1


async def test_a_repeat_waits_for_the_part_that_was_not_done_and_runs_the_other_no_more(
    own_system: System,
) -> None:
    label = f"L{uuid4().hex}"
    conversation = uuid4().hex
    worker = own_system.worker(NAPPER).ready()
    own_system.worker(PROBE).ready()
    dying = own_system.supervisor().ready()
    said = {
        "text": f"fresh probe, label {label}, and take a nap of 7",
        "conversation_id": conversation,
    }
    body = json.dumps(said | {"request_id": "once", "wait_ms": 30_000}).encode()
    async with outside(own_system.servers.nats_url) as program:
        worker.kill()
        lost = asyncio.create_task(program.client.request(REQUESTS, body, timeout=90))

        async def has_run() -> bool:
            return bool(own_system.runs(label))

        await program.eventually(has_run)
        dying.kill()
        lost.cancel()
        own_system.supervisor().ready()
        own_system.worker(NAPPER).ready()
        reply = json.loads(
            (await program.client.request(REQUESTS, body, timeout=90)).data
        )
    assert [part["kind"] for part in reply["parts"]] == ["answer", "answer"]
    assert len(own_system.runs(label)) == 1


async def test_a_supervisor_killed_between_report_and_reply_leaves_one_reply(
    own_system: System,
) -> None:
    """Whoever is asked next makes it, and whoever after that has the same; the task ran once."""
    label = f"L{uuid4().hex}"
    own_system.worker(PROBE).ready()
    dying = own_system.supervisor().ready()
    dying.await_agents(1)
    async with outside(own_system.servers.nats_url) as program:
        body = {
            "text": f"fresh probe, label {label}, ms 1500",
            "user": "ann",
            "wait_seconds": 0,
        }
        path, key = "/v1/requests", {"Idempotency-Key": label}
        sent = await ask(dying.api, "POST", path, body, key)
        assert sent.status == 202, sent.body

        async def has_begun() -> bool:
            return bool(own_system.runs(label))

        await program.eventually(has_begun)
        dying.stop()

        async def is_reported() -> bool:
            return bool(await program.counts("REPORTS", "reports.>"))

        await program.eventually(is_reported)
        dying.kill()
        told = []
        for _ in range(2):
            with own_system.supervisor().ready() as next_one:
                look = f"{path}/{label}"

                async def is_done(url: str = next_one.api, look: str = look) -> bool:
                    return (await ask(url, "GET", look)).body["state"] == "done"

                await program.eventually(is_done)
                told.append((await ask(next_one.api, "POST", path, body, key)).body)
    assert told[0]["reply"]["kind"] == "answer"
    assert told[0] == told[1]
    assert len(own_system.runs(label)) == 1
