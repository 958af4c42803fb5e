"""What people say is learned once, whoever is killed over it: real workers, a real stream, a real store."""

import asyncio
import base64
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.servers import valkey
from tests.acceptance.external_program import PATIENCE_S, Outside, outside
from tests.acceptance.system import AGENTS, Served, System

EAR = str(AGENTS / "ear.py")
FOOD = "resource_user_food_prefs"

#: Leases short enough to be waited for, and quick looks.
QUICK = {"ack_wait_s": 2, "listen_users": 4}


@dataclass
class Scene:
    """A system, a program that talks in it, and a look into its store."""

    system: System
    program: Outside
    turns: PersonalQueue
    facts: PersonalQueue
    store: DocumentStore

    async def say(self, user: str, turn_id: str, text: str) -> None:
        """Publish a turn as another program would."""
        token = base64.urlsafe_b64encode(user.encode()).rstrip(b"=").decode()
        turn = {
            "turn_id": turn_id,
            "conversation_id": "c",
            "user_id": user,
            "speaker": "person",
            "text": text,
            "at": datetime.now(UTC).isoformat(),
        }
        subject = f"turns.{zlib.crc32(user.encode()) % 16}.{token}"
        await self.program.publish(
            subject, json.dumps(turn).encode(), {"Nats-Msg-Id": turn_id}
        )

    async def facts_closed(self, user: str, count: int) -> None:
        """Return once *count* facts of *user* are dealt with for good."""

        async def all_closed() -> bool:
            return sum((await self.facts.counts(user)).closed.values()) >= count

        await self.program.eventually(all_closed)

    async def likes(self, user: str) -> list[str]:
        """Return what *user* is known to like, in order."""
        snapshot = await self.store.snapshot(user, [FOOD])
        food: Any = snapshot.documents[FOOD].body["food"]
        return [item["display"] for item in food["likes"]]


@asynccontextmanager
async def talk_in(system: System) -> AsyncIterator[Scene]:
    """Connect to the servers of *system*."""
    async with (
        outside(system.servers.nats_url) as program,
        valkey.connect(system.servers.redis_url) as client,
    ):
        yield Scene(
            system,
            program,
            PersonalQueue(client, "turns", deadline_s=PATIENCE_S),
            PersonalQueue(client, "facts", deadline_s=PATIENCE_S),
            DocumentStore(client, Kinds.load(), deadline_s=PATIENCE_S),
        )


async def test_no_turn_and_no_fact_is_lost_or_kept_twice_when_workers_are_killed(
    own_system: System,
) -> None:
    """Six users, thirty things each, and a worker killed three times in the middle of them."""
    users = [f"user-{number}" for number in range(6)]
    count = 30
    worker = own_system.worker(EAR, **QUICK).ready()
    async with talk_in(own_system) as scene:
        for number in range(count):
            await asyncio.gather(
                *(
                    scene.say(user, f"{user}-{number}", f"food {number}")
                    for user in users
                )
            )
        for strike in range(1, 4):
            await scene.program.eventually(
                lambda least=strike: runs_reach(own_system, "facts", 8 * least)
            )  # type: ignore[misc]
            worker.kill()
            worker = own_system.worker(EAR, **QUICK).ready()
        for user in users:
            await scene.facts_closed(user, count)
        for user in users:
            assert await scene.likes(user) == [
                f"food {number}" for number in range(count)
            ]
            assert len(await scene.store.history(user, limit=1000)) == count
            assert (await scene.facts.counts(user)).closed["done"] == count
        # What a killed worker had taken and not acknowledged comes once more, when its time is over.
        for stream in ("TURNS", "FACTS"):
            await scene.program.eventually(
                lambda emptied=stream: stream_is_empty(scene, emptied)
            )  # type: ignore[misc]
            assert {
                (await scene.facts.counts(user)).closed["done"] for user in users
            } == {count}


async def test_a_worker_that_leaves_gives_back_what_it_has_not_begun(
    own_system: System,
) -> None:
    """It ends within its grace period with status 0, and the next one waits for no lease."""
    slow = QUICK | {"ack_wait_s": 3600, "grace_s": 0.5}
    worker = own_system.worker(EAR, **slow).ready()
    async with talk_in(own_system) as scene:
        await scene.say("ann", "t0", "sleep")
        await scene.say("ann", "t1", "soup")
        await scene.program.eventually(lambda: runs_reach(own_system, "turn-t0", 1))
        worker.terminate()
        assert await asyncio.to_thread(worker.wait) == 0
        assert "Traceback" not in worker.log()
        claim = await scene.turns.claim(
            "ann", holder="next", limit=9, lease_ms=60_000, now_ms=0
        )
        assert claim is not None
        assert [(row.row_id, row.crashes) for row in claim.rows] == [
            ("t0", 0),
            ("t1", 0),
        ]


async def runs_reach(system: System, label: str, least: int) -> bool:
    """Return whether *label* has run *least* times."""
    return len(system.runs(label)) >= least


async def stream_is_empty(scene: Scene, stream: str) -> bool:
    """Return whether nothing lies in *stream*."""
    info = await scene.program.api(f"STREAM.INFO.{stream}")
    return bool(info["state"]["messages"] == 0)


async def test_a_fact_that_kills_every_worker_is_set_aside(own_system: System) -> None:
    """After its attempts; what was said before and after is kept, in order."""
    settings = QUICK | {"max_attempts": 1}
    worker: Served = own_system.worker(EAR, **settings).ready()
    async with talk_in(own_system) as scene:
        for number, text in enumerate(("one", "deadly", "three")):
            await scene.say("ann", f"t{number}", text)

        async def dealt_with() -> bool:
            nonlocal worker
            if not worker.is_running:
                worker = own_system.worker(EAR, **settings).ready()
            return sum((await scene.facts.counts("ann")).closed.values()) == 3

        await scene.program.eventually(dealt_with)
        assert await scene.likes("ann") == ["one", "three"]
        rows = {row.row_id: row.state for row in await scene.facts.rows("ann", 9)}
        assert rows == {"fact-t0": "done", "fact-t1": "failed", "fact-t2": "done"}
        assert (await scene.turns.counts("ann")).closed["done"] == 3
