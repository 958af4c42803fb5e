"""A person who talks to the two agents that remember: turns go in as any program publishes them, documents come out."""

import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import ChatTurn
from tasklore.memory.documents.items import (
    METADATA,
    Body,
    Item,
    leaf_text,
    leaves,
    make_item,
)
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.reader import DocumentReader
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.claims import KnownRow
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.servers import valkey
from tests.acceptance.external_program import PATIENCE_S, Outside, outside
from tests.acceptance.system import Served, System, running_system

SWITCHBOARD = "tasklore.workers.agents.switchboard"
MEMORY = "tasklore.workers.agents.memory_worker"
FOOD = "resource_user_food_prefs"
ROUTINE = "resource_user_routine"

#: Rows of one person that are looked through: more than a test says.
_ROWS = 200


@dataclass(frozen=True)
class Remembering:
    """A system in which one worker hears what is said and writes it down."""

    system: System
    worker: Served


@contextmanager
def remembering(folder: Path, **settings: Any) -> Iterator[Remembering]:
    """Run servers and a worker for both agents; without *settings* it has no model, whatever the environment says."""
    # No turn waits for another one: a test says them one by one.
    unset = {"llm_base_url": "", "llm_api_key": "", "listen_idle_s": 0}
    with running_system(folder) as system:
        yield Remembering(
            system, system.worker(SWITCHBOARD, MEMORY, **{**unset, **settings}).ready()
        )


class Talk:
    """Says things, waits for what becomes of them, and reads documents back; no two tests share a person."""

    def __init__(self, program: Outside, redis: Redis) -> None:
        self.program = program
        self.kinds = Kinds.load()
        self.reader = DocumentReader(redis, self.kinds, deadline_s=PATIENCE_S)
        self._store = DocumentStore(redis, self.kinds, deadline_s=PATIENCE_S)
        self._turns = PersonalQueue(redis, "turns", deadline_s=PATIENCE_S)
        self._facts = PersonalQueue(redis, "facts", deadline_s=PATIENCE_S)

    async def say(self, user: str, text: str) -> str:
        """Publish *text* as a turn of *user*; return its id once the stream has it."""
        turn = ChatTurn(
            turn_id=new_id(time.time_ns() // 1_000_000),
            conversation_id=f"chat-{user}",
            user_id=user,
            speaker="person",
            text=text,
            at=datetime.now(UTC),
        )
        body = turn.model_dump_json(exclude_none=True).encode()
        await self.program.publish(
            subjects.turns(user), body, {subjects.MESSAGE_ID_HEADER: turn.turn_id}
        )
        return turn.turn_id

    async def tell(
        self, user: str, text: str, within_s: float = PATIENCE_S
    ) -> Sequence[KnownRow]:
        """Say *text*, and return the facts that were heard in it once each of them is dealt with."""
        return await self.settled(user, await self.say(user, text), within_s)

    async def settled(
        self, user: str, turn_id: str, within_s: float = PATIENCE_S
    ) -> Sequence[KnownRow]:
        """Return the facts of a turn, in order, once it and they wait for nothing."""
        found: list[KnownRow] = []

        async def is_settled() -> bool:
            turns = {row.row_id: row for row in await self._turns.rows(user, _ROWS)}
            facts = [
                row
                for row in await self._facts.rows(user, _ROWS)
                if row.row_id.startswith(f"{turn_id}-")
            ]
            found[:] = sorted(facts, key=lambda row: row.row_id)
            turn = turns.get(turn_id)
            if turn is None or turn.state == "waiting":
                return False
            # The facts of a turn that told something reach their table together, a moment after it is closed.
            is_on_its_way = turn.reason == "learned" and not facts
            return not is_on_its_way and all(fact.state != "waiting" for fact in facts)

        await self.program.eventually(is_settled, within_s)
        return tuple(found)

    async def facts(self, user: str) -> Sequence[KnownRow]:
        """Return all facts that were ever heard of *user*."""
        return await self._facts.rows(user, _ROWS)

    async def given(self, user: str, resource: str, **places: Sequence[str]) -> None:
        """Import a document of *user* as a file of it would be; `food__likes=["Pasta"]` puts items to `food.likes`."""
        body: Body = {
            METADATA: {
                "resource_id": resource,
                "tags": list(self.kinds.by_id[resource].tags),
            }
        }
        for name, displays in places.items():
            top, _, inner = name.partition("__")
            holder = cast("Body", body.setdefault(top, {}))
            holder[inner] = [
                make_item(one, added=date(2025, 12, 28), source="told")
                for one in displays
            ]
        await self.imported(user, json.dumps(body, indent=2).encode())

    async def imported(self, user: str, content: bytes) -> None:
        """Import a file of a document of *user*."""
        await self._store.import_document(user, content, at=datetime.now(UTC))

    async def undo(self, user: str) -> None:
        """Take back what was last done to the documents of *user*."""
        await self._store.undo(user, at=datetime.now(UTC))

    async def bodies(self, user: str) -> Mapping[str, Body]:
        """Return all documents of *user* without what each revision is stamped with."""
        documents = (await self.reader.snapshot(user)).documents
        return {
            name: {key: value for key, value in one.body.items() if key != METADATA}
            for name, one in documents.items()
        }

    async def kept(self, user: str) -> dict[str, list[str]]:
        """Return what holds of *user* now: what a reader sees of each list that holds something, by its path."""
        found: dict[str, list[str]] = {}
        for body in (await self.bodies(user)).values():
            for path, _, value in leaves(body):
                item = Item.read(value)
                if (
                    item is not None
                    and item.state(datetime.now(UTC).date()) != "current"
                ):
                    continue
                found.setdefault(str(path.parent), []).append(
                    leaf_text(value).partition(" (until ")[0]
                )
        return found


@asynccontextmanager
async def talk_in(system: System) -> AsyncIterator[Talk]:
    """Connect to the servers of *system*."""
    async with (
        outside(system.servers.nats_url) as program,
        valkey.connect(system.servers.redis_url) as client,
    ):
        yield Talk(program, client)
