"""Users who try to reach each other's documents by every call that the store has, and a check that none did."""

import base64
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.documents.draft import Draft, Snapshot
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.storage.history import json_bytes
from tasklore.memory.documents.storage.store import DocumentStore, Stale
from tasklore.memory.queues.claims import Closing
from tasklore.memory.queues.queue import PersonalQueue
from tests.integration.documents import FOOD, GENERAL, NOW, commit, like, plan

#: Ids that are each other's prefix, token, key, case or form, and some that name nobody.
NAMES = [
    "ann",
    "ann ",
    "Ann",
    "an",
    "ann:plans",
    "{ann}",
    "tl:doc:{YW5u}",
    "YW5u",
    "ann}",
    "*",
    "ann\u0301",
    "0",
]
NOBODY: list[Any] = [None, "", " ", "\n", "x" * 300, 0, "\udcff", ["ann"], b"ann"]


class Strangers:
    """Each user has a secret, a plan and a row that waits; everybody tries to get at those of the others."""

    def __init__(
        self, store: DocumentStore, queue: PersonalQueue, random: Random
    ) -> None:
        self.outcomes = Counter[str]()
        self._store = store
        self._queue = queue
        self._random = random
        self._snapshots: dict[str, Snapshot] = {}
        self._claims: dict[str, Any] = {}
        self._tries: list[Callable[[str, str], Awaitable[object]]] = [
            self._reads, self._reads_bound, self._reads_history, self._reads_back, self._explains, self._exports,
            self._undoes, self._redoes, self._relabels, self._borrows_claim, self._names_key, self._imports,
            self._notes,
        ]  # fmt: skip

    async def settle(self) -> None:
        """Give everybody a document with a secret."""
        for name in NAMES:
            await commit(
                self._store,
                plan(f"plan-of-{NAMES.index(name)}", like(_secret(name))),
                user=name,
            )
            self._snapshots[name] = await self._store.snapshot(name)
            await self._queue.append(name, [("row", _secret(name).encode())])
            self._claims[name] = await self._queue.claim(
                name, holder="w", limit=1, lease_ms=3_600_000, now_ms=0
            )

    async def intrude(self, accesses: int) -> None:
        """Try *accesses* times; raises AssertionError when one of them gave or changed what is somebody else's."""
        for _ in range(accesses):
            attempt = self._random.choice(self._tries)
            me, other = self._random.sample(NAMES, 2)
            if self._random.random() < 0.1:
                me = self._random.choice(NOBODY)
            try:
                found = await attempt(me, other)
            except TaskloreError as error:
                self.outcomes[type(error).__name__] += 1
                continue
            assert me in NAMES, f"{attempt.__name__} served {me!r}"
            self.outcomes["served"] += 1
            told = repr(found)
            for name in NAMES:
                assert name == me or _secret(name) not in told, (
                    f"{attempt.__name__} told {me!r} of {name!r}"
                )

    async def check(self) -> None:
        """Raise AssertionError unless everybody's documents, rows and history are as they were."""
        for name in NAMES:
            found = await self._store.snapshot(name)
            before = self._snapshots[name].documents[FOOD]
            now = found.documents[FOOD]
            assert json_bytes(now.body) == json_bytes(before.body), name
            assert now.revision == 1
            assert len(await self._store.history(name)) == 1
            assert (await self._queue.counts(name)).waiting == 1

    async def _reads(self, me: str, other: str) -> object:
        return await self._store.snapshot(
            me, self._random.choice([None, [FOOD], [FOOD, GENERAL]])
        )

    async def _reads_history(self, me: str, other: str) -> object:
        return await self._store.history(me, self._random.choice([None, FOOD]))

    async def _reads_back(self, me: str, other: str) -> object:
        return await self._store.at(me, FOOD, self._random.randint(0, 1))

    async def _explains(self, me: str, other: str) -> object:
        return await self._store.explain(
            me, FOOD, self._random.choice(["food.likes[0]", "food", "$"])
        )

    async def _exports(self, me: str, other: str) -> object:
        return await self._store.export_document(me, FOOD)

    async def _reads_bound(self, me: str, other: str) -> object:
        own = self._store.of(me)
        return await own.snapshot(), await own.history(), await own.reads()

    async def _undoes(self, me: str, other: str) -> object:
        record = await self._store.undo(me, f"plan-of-{NAMES.index(other)}", at=NOW)
        raise AssertionError(f"{me!r} took back {record!r}")

    async def _redoes(self, me: str, other: str) -> object:
        record = await self._store.redo(me, f"plan-of-{NAMES.index(other)}", at=NOW)
        raise AssertionError(f"{me!r} applied {record!r} again")

    async def _relabels(self, me: str, other: str) -> object:
        """Hand in the other's documents as one's own: the store knows their life and takes them for stale."""
        draft = Draft(Snapshot(me, self._snapshots[other].documents), LIMITS, NOW)
        draft.apply(
            plan(f"mine-{self._random.random()}".replace(".", "-"), like("stolen"))
        )
        done = await self._store.commit(draft)
        assert isinstance(done, Stale), done
        return done

    async def _borrows_claim(self, me: str, other: str) -> object:
        draft = Draft(await self._store.snapshot(me), LIMITS, NOW)
        done = await self._store.commit(
            draft,
            claim=self._claims[other],
            closings=[Closing(row_id="row", state="done")],
        )
        raise AssertionError(f"{me!r} closed a row of {other!r}: {done!r}")

    async def _names_key(self, me: str, other: str) -> object:
        """Ask for a resource that is spelled like the other's key, or a piece of one."""
        token = user_token(other)
        key = keys.document(token, FOOD)
        names = [
            key,
            key[1:],
            f"}}:{key}",
            f"../{token}:{FOOD}",
            f"{FOOD}:log",
            "plans",
            "reads",
            other,
            token,
        ]
        name = self._random.choice(names)
        call = self._random.choice(
            [
                self._store.export_document,
                lambda user, one: self._store.snapshot(user, [one]),
            ]
        )
        return await call(me, name)

    async def _imports(self, me: str, other: str) -> object:
        """Hand in a file that calls itself by the other's key."""
        token = base64.b64encode(other.encode()).decode()
        name = self._random.choice(
            [
                keys.document(user_token(other), FOOD),
                f"{token}/{FOOD}",
                f"{{{token}}}:{FOOD}",
            ]
        )
        content = json_bytes({"_metadata": {"resource_id": name}, "food": {}})
        record = await self._store.import_document(me, content, at=NOW)
        raise AssertionError(f"{me!r} imported {record!r}")

    async def _notes(self, me: str, other: str) -> object:
        await self._store.note_reads(
            me, [(FOOD, f"food.likes.{self._random.randint(0, 9)}")], NOW
        )
        return await self._store.reads(me)


def _secret(name: str) -> str:
    return f"secret number {NAMES.index(name)};"
