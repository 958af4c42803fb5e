"""Memory workers of 0.2 and of today share the rows of a person: whichever listens to turns, and whichever to facts."""

import asyncio
import base64
import json
import subprocess
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.servers import valkey
from tests.acceptance.external_program import PATIENCE_S, Outside, outside
from tests.acceptance.system import Served, System
from tests.acceptance.test_beside_0_2 import PYTHON_OF_0_2

USERS = [f"user-{number}" for number in range(8)]
FOODS = ("omelettes", "sushi", "olives", "plums", "cherries", "rice")
FOOD = "resource_user_food_prefs"
#: Leases short enough to be waited for.
QUICK = {"ack_wait_s": 2}

Start = Callable[[System, str], Served]


def of_0_2(system: System, agent: str) -> Served:
    """Start a worker of 0.2 for *agent*."""
    return system.installed(PYTHON_OF_0_2, "worker", agent, **QUICK)


def of_today(system: System, agent: str) -> Served:
    """Start a worker of today for *agent*."""
    return system.worker(agent, **QUICK)


async def say(program: Outside, user: str, food: str) -> None:
    """Publish what *user* likes as another program would."""
    token = base64.urlsafe_b64encode(user.encode()).rstrip(b"=").decode()
    turn_id = f"{user}-{food}"
    turn = {
        "turn_id": turn_id,
        "conversation_id": f"c-{user}",
        "user_id": user,
        "speaker": "person",
        "text": f"I like {food}.",
        "at": datetime.now(UTC).isoformat(),
    }
    await program.publish(
        f"turns.{zlib.crc32(user.encode()) % 16}.{token}",
        json.dumps(turn).encode(),
        {"Nats-Msg-Id": turn_id},
    )


@pytest.mark.parametrize(
    ("hears", "hears_next", "rules"),
    [
        (of_today, of_today, of_0_2),
        (of_0_2, of_0_2, of_today),
        (of_0_2, of_today, of_0_2),
        (of_today, of_0_2, of_today),
    ],
    ids=["turns today", "turns 0.2", "upgraded", "gone back"],
)
async def test_what_is_said_while_a_worker_is_killed_is_known_once(
    own_system: System, hears: Start, hears_next: Start, rules: Start
) -> None:
    """The worker that hears is killed in the middle, and one of either version goes on with its turns."""
    ruling = rules(own_system, "memory")
    hearing = hears(own_system, "switchboard").ready()
    async with (
        outside(own_system.servers.nats_url) as program,
        valkey.connect(own_system.servers.redis_url) as client,
    ):
        facts = PersonalQueue(client, "facts", deadline_s=PATIENCE_S)
        store = DocumentStore(client, Kinds.load(), deadline_s=PATIENCE_S)

        async def are_dealt_with(least: int) -> bool:
            counts = [await facts.counts(user) for user in USERS]
            return sum(sum(one.closed.values()) for one in counts) >= least

        for food in FOODS[:3]:
            await asyncio.gather(*(say(program, user, food) for user in USERS))
        ruling.ready()
        await program.eventually(lambda: are_dealt_with(1))
        hearing.kill()
        for food in FOODS[3:]:
            await asyncio.gather(*(say(program, user, food) for user in USERS))
        hears_next(own_system, "switchboard").ready()
        await program.eventually(lambda: are_dealt_with(len(USERS) * len(FOODS)))

        for user in USERS:
            snapshot = await store.snapshot(user, [FOOD])
            food_prefs: Any = snapshot.documents[FOOD].body["food"]
            known = [item["display"].lower() for item in food_prefs["likes"]]
            assert sorted(known) == sorted(FOODS)
            assert len(await facts.rows(user, 100)) == len(FOODS)
            assert len(await store.history(user, limit=100)) == len(FOODS)
        published = (await program.api("STREAM.INFO.FACTS"))["state"]["last_seq"]
        assert (published > 0) == (of_0_2 in {hears, hears_next})


#: What a process of 0.2 finds of Ann's turns: by a question, the last three, those before the last, and what it trims.
READ_BY_0_2 = """
import asyncio, json, sys
from datetime import UTC, datetime, timedelta
from redis.asyncio import Redis
from memory.episodes.store import Episodes

async def read():
    async with Redis.from_url(sys.argv[1]) as client:
        turns = Episodes(client, keep=timedelta(days=1), deadline_s=60.0)
        found = await turns.search("ann", "What is our boat called, and who painted it?")
        recent = await turns.recent("ann", 3)
        before = await turns.before("ann", "t2", 3)
        later = datetime.now(UTC) + timedelta(days=2)
        trimmed = await turns.trim("ann", later)
        print(json.dumps({
            "found": [hit.episode.turn_id for hit in found.hits],
            "recent": [one.turn_id for one in recent],
            "before": [one.turn_id for one in before],
            "trimmed": trimmed,
        }))

asyncio.run(read())
"""


async def test_a_process_of_0_2_reads_turns_of_several_passages(
    own_system: System,
) -> None:
    """They have numbers of their own, under which it knows no turn."""
    days = " ".join(f"On day {day} it was at quay {day}." for day in range(60))
    long = f"Our boat is called Marigold. {days} Lena painted it."
    said = [
        Episode(
            turn_id=f"t{number}",
            conversation_id="c",
            speaker="person",
            text=text,
            at=datetime.now(UTC),
        )
        for number, text in enumerate(("I like tea.", long, "And coffee."))
    ]
    async with valkey.connect(own_system.servers.redis_url) as client:
        turns = Episodes(client, deadline_s=PATIENCE_S)
        await turns.append("ann", said)
        assert [one.turn_id for one in await turns.recent("ann", 2)] == ["t1", "t2"]
    read = await asyncio.to_thread(
        subprocess.run,
        [PYTHON_OF_0_2, "-P", "-c", READ_BY_0_2, own_system.servers.redis_url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    found = json.loads(read.stdout)
    assert found["found"][0] == "t1"
    assert found["recent"] == ["t2"]
    assert found["before"] == []
    assert found["trimmed"] == 3
