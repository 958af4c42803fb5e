"""A person talks, works and fails in a real system; forgotten, they are in no file and no log; others are as before."""

import asyncio
import base64
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.commands.memory_hands import lend_hands
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.servers import valkey
from tasklore.runtime.settings import Settings
from tasklore.supervisor.operations.memory.hand_edits import Erased
from tasklore.supervisor.operator_process import open_operator
from tests.acceptance.external_program import PATIENCE_S, Outside, outside
from tests.acceptance.system import AGENTS, BUDGET, PROBE, Served, System
from tests.http_client import ask
from tests.traces import files_with, until_away

EAR = str(AGENTS / "ear.py")
FOOD = "resource_user_food_prefs"
ANN = "ann.of.the.hills"
BOB = "bob.of.the.sea"


def marker(user: str) -> str:
    """Return words that only *user* uses; JSON escapes one of their letters."""
    return f"quetzal-{user[:3]}-crêpe"


@dataclass
class Village:
    """A system with a worker and a supervisor, and a program that speaks for people in it."""

    system: System
    program: Outside
    redis: Redis
    processes: tuple[Served, ...]

    @property
    def facts(self) -> PersonalQueue:
        """The table of facts."""
        return PersonalQueue(self.redis, "facts", deadline_s=PATIENCE_S)

    async def say(self, user: str, turn_id: str, text: str) -> None:
        """Say *text* in a chat, and return once it is learned."""
        token = base64.urlsafe_b64encode(user.encode()).rstrip(b"=").decode()
        turn = {
            "turn_id": turn_id,
            "conversation_id": f"chat-{user[:3]}",
            "user_id": user,
            "speaker": "person",
            "text": text,
            "at": datetime.now(UTC).isoformat(),
        }
        subject = f"turns.{zlib.crc32(user.encode()) % 16}.{token}"
        await self.program.publish(
            subject, json.dumps(turn).encode(), {"Nats-Msg-Id": turn_id}
        )

        async def learned() -> bool:
            rows = {row.row_id: row.state for row in await self.facts.rows(user, 1000)}
            return rows.get(f"fact-{turn_id}") == "done"

        await self.program.eventually(learned)

    async def ask_supervisor(self, user: str, text: str) -> dict[str, Any]:
        """Ask as a person does; return the reply."""
        request = json.dumps(
            {"text": text, "user_id": user, "conversation_id": f"chat-{user[:3]}"}
        )
        reply = await self.program.client.request(
            "requests.SupervisorAgent", request.encode(), timeout=PATIENCE_S
        )
        return dict(json.loads(reply.data))

    async def live(self, user: str, number: int) -> None:
        """Leave something of *user* wherever a system keeps anything; *number* is known to them alone."""
        words = marker(user)
        await self.say(user, f"t-{user[:3]}", words)
        budget = await self.ask_supervisor(
            user, f"{words}: budget limit {number}, spent 42000, history [5000, 7000]"
        )
        assert budget["kind"] == "answer", budget
        await self.ask_supervisor(user, f"What about {words}?")
        # Over HTTP a reply is kept beside its request.
        answered = await ask(
            self.processes[1].api, "POST", "/v1/requests", {"text": words, "user": user}
        )
        assert answered.status == 200, answered.body
        asked = {"user_id": user}
        answer = await self.program.ask(
            "ProbeAgent", "remembered", {"label": words}, **asked
        )
        assert answer["status"] == "completed"
        unread = await self.program.ask(
            "ProbeAgent", "remembered", {"label": words, "nonsense": words}, **asked
        )
        assert unread["status"] == "rejected"
        for kind in ("give_up", "error"):
            died = await self.program.ask(
                "ProbeAgent",
                "trouble",
                {"label": words, "kind": kind},
                max_attempts=2,
                **asked,
            )
            assert died["status"] == "failed"
        await self.program.assign("NobodyAgent", "ask", {"label": words}, **asked)
        later = {"label": f"{words}-later", "kind": "later", "after_s": 3600}
        await self.program.assign("ProbeAgent", "trouble", later, **asked)
        await self.program.assign(
            "ProbeAgent", "fresh", {"label": f"{words}-long", "ms": 3_600_000}, **asked
        )
        for label in ("later", "long"):
            await self.program.eventually(
                lambda label=label: self._ran(f"{words}-{label}")
            )  # type: ignore[misc]
        # What was said in the chat, and three questions with their answers.
        await self.learned(user, 7)

    async def learned(self, user: str, count: int) -> None:
        """Return once *count* facts of *user* are dealt with."""

        async def all_closed() -> bool:
            return (await self.facts.counts(user)).closed["done"] == count

        await self.program.eventually(all_closed)

    async def _ran(self, label: str) -> bool:
        return bool(self.system.runs(label))

    async def likes(self, user: str) -> list[str]:
        """Return what is known that *user* likes."""
        store = DocumentStore(self.redis, Kinds.load(), deadline_s=PATIENCE_S)
        food: Any = (await store.snapshot(user, [FOOD])).documents[FOOD].body["food"]
        return [item["display"] for item in food["likes"]]

    async def forget(self, user: str) -> dict[str, Any]:
        """Run the command; return what it says as JSON."""
        done = await asyncio.to_thread(
            self.system.command, "--direct", "memory", "forget", user, "--yes", "--json"
        )
        assert done.returncode == 0, (done.stdout, done.stderr, self.processes[0].log())
        # The audit has who forgot, and not whom.
        assert '"operation": "memory_forget"' in done.stderr
        assert user not in done.stderr
        return dict(json.loads(done.stdout))

    async def forget_again(self, user: str) -> Erased:
        """Do what the command does, without another process, which takes seconds to start on a busy machine."""
        servers = self.system.servers
        settings = Settings.load(nats_url=servers.nats_url, redis_url=servers.redis_url)
        metrics = Metrics("0")
        async with open_operator(settings, "test", metrics, lend_hands) as opened:
            return await opened.hands.erase(user)


@asynccontextmanager
async def village_in(
    system: System, level: str, erase_said: str
) -> AsyncIterator[Village]:
    """Open a village whose processes log at *level* and erase what is done when *erase_said* says."""
    worker = system.worker(BUDGET, PROBE, EAR, log_level=level, erase_said=erase_said)
    supervisor = system.supervisor(log_level=level)
    worker.ready(), supervisor.ready()
    async with (
        outside(system.servers.nats_url) as program,
        valkey.connect(system.servers.redis_url) as redis,
    ):
        await asyncio.to_thread(supervisor.await_agents, 3)
        yield Village(system, program, redis, (worker, supervisor))


@pytest.mark.parametrize(
    ("level", "erase_said"), [("info", "on_forget"), ("debug", "at_once")]
)
async def test_whoever_is_forgotten_leaves_no_trace_in_files_and_logs(
    own_system: System, level: str, erase_said: str
) -> None:
    """However it is spelled; what others said is all still there, and the name can be used again."""
    async with village_in(own_system, level, erase_said) as village:
        await village.live(ANN, 912_345_678_901)
        await village.live(BOB, 812_345_678_902)
        folders = [own_system.servers.nats.data_dir, own_system.servers.valkey.data_dir]
        token = base64.urlsafe_b64encode(ANN.encode()).rstrip(b"=").decode()
        traces = (marker(ANN), ANN, token, "912345678901", "912,345,678,901")
        assert all(files_with(folder, marker(ANN)) for folder in folders)
        # Of nobody at all, forgotten or not.
        assert all("quetzal" not in process.log() for process in village.processes)
        before = (await village.likes(BOB), await village.facts.rows(BOB, 100))
        said = await village.forget(ANN)
        assert said["left"] == {}
        kinds = {
            "tasks",
            "messages",
            "turns",
            "facts",
            "documents",
            "conversations",
            "answers",
            "requests",
        }
        assert kinds <= said["removed"].keys()
        await until_away(folders, *traces)
        assert all(
            trace not in process.log()
            for process in village.processes
            for trace in traces
        )
        assert (await village.likes(BOB), await village.facts.rows(BOB, 100)) == before
        assert marker(BOB) in await village.likes(BOB)
        assert all(files_with(folder, marker(BOB)) for folder in folders)
        assert await village.likes(ANN) == []
        await village.say(ANN, "t-again", "hello again")
        assert await village.likes(ANN) == ["hello again"]
        again = await village.ask_supervisor(
            ANN, "budget limit 700001, spent 42000, history [5000, 7000]"
        )
        assert again["kind"] == "answer"
        await village.learned(ANN, 3)
        assert (await village.forget_again(ANN)).removed["documents"] == 1
        assert (await village.forget_again(ANN)).removed == {}


async def test_nobody_is_forgotten_unasked(own_system: System) -> None:
    """Without a terminal and without `--yes` the command refuses, and says how to mean it."""
    refused = await asyncio.to_thread(
        own_system.command, "--direct", "memory", "forget", ANN
    )
    assert (refused.returncode != 0, refused.stdout) == (True, "")
    assert "--yes" in refused.stderr
