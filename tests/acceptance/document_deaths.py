"""Kills whoever edits documents at random points, and looks whether anything was lost, doubled or torn.

`python -m tests.acceptance.document_deaths redis://127.0.0.1:6379 --kills 500` needs an empty database, and prints what
it counted as JSON; it ends with 1 when something is wrong.
"""

import argparse
import asyncio
import json
import os
import select
import signal
import sys
import time
from collections import Counter
from random import Random
from typing import Any

from redis.asyncio import Redis

from tasklore.contracts.edits import Delete, Edit, Insert
from tasklore.memory.documents.draft import Draft, Plan
from tasklore.memory.documents.edits import apply_changes
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.stamps import stamp
from tasklore.memory.documents.storage.history import LogEntry, json_bytes
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.claims import Claim, Closing
from tasklore.memory.queues.queue import PersonalQueue
from tests.integration.documents import FOOD, GENERAL, KINDS, NOW, USER, item, plan

#: The two places that every plan writes to, so that half of one would show.
PLACES = {FOOD: "food.likes", GENERAL: "general.about"}
#: Facts for each that is killed: more than one can deal with in the time it is given.
FACTS = 30
#: Milliseconds for which the rows of one that was killed are still its own; the next one waits for that.
LEASE_MS = 50
#: Items a list holds before each plan deletes one for each that it adds.
FULL = 40
#: Seconds in which the first plan of a child is stored, however busy the machine.
PATIENCE_S = 60.0


def plan_of(row_id: str, draft: Draft) -> Plan:
    """Return a plan that adds an item of this name in both documents, and takes the oldest one out where it is full."""
    edits: list[Edit] = []
    for resource_id, path in PLACES.items():
        first, _, second = path.partition(".")
        body: Any = draft.body(resource_id)
        edits.append(Insert(path=path, new_value=item(row_id), file=resource_id))
        if len(body[first][second]) >= FULL:
            edits.append(Delete(path=f"{path}[0]", file=resource_id))
    return plan(f"plan-{row_id}", *edits, fact_id=row_id)


async def work(url: str, holder: str, random: Random, told: int | None = None) -> None:
    """Deal with facts until none waits; *told* is a pipe into which a byte is written once something is stored."""
    async with Redis.from_url(url, socket_timeout=None) as client:
        store = DocumentStore(client, KINDS, deadline_s=10.0, keep_revisions=10**9)
        queue = PersonalQueue(client, "facts", deadline_s=10.0)
        while (await queue.counts(USER)).waiting:
            claim = await queue.claim(
                USER,
                holder=holder,
                limit=random.randint(1, 3),
                lease_ms=LEASE_MS,
                now_ms=int(time.time() * 1000),
            )
            if claim is None:
                continue
            await deal_with(claim, store)
            await queue.release(claim)
            if random.random() < 0.2:
                await store.undo(USER, at=NOW)
            if told is not None:
                os.write(told, b".")


async def deal_with(claim: Claim, store: DocumentStore) -> None:
    """Store the plans of all rows of *claim* and close them; when it is lost, the next one does."""
    draft = Draft(await store.snapshot(USER), LIMITS, NOW)
    plans = [draft.apply(plan_of(row.row_id, draft)).plan for row in claim.rows]
    closings = [
        Closing(row_id=str(one.origin.fact_id), state="done", plan_id=one.plan_id)
        for one in plans
    ]
    await store.commit(draft, claim=claim, closings=closings)


def kill_one(url: str, holder: str, random: Random) -> None:
    """Fork one that works, and kill it some milliseconds after it has stored something."""
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work(url, holder, Random(holder), told))
        finally:
            os._exit(1)
    os.close(told)
    try:
        select.select([heard], [], [], PATIENCE_S)
        time.sleep(random.uniform(0.0, 0.025))
    finally:
        os.close(heard)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


async def prepare(url: str, facts: int) -> None:
    """Have *facts* wait."""
    async with Redis.from_url(url, socket_timeout=None) as client:
        for start in range(0, facts, 500):
            rows = [
                (f"f{number}", b"{}")
                for number in range(start, min(facts, start + 500))
            ]
            await PersonalQueue(client, "facts", deadline_s=10.0).append(USER, rows)


async def verdict(url: str, facts: int) -> dict[str, int]:
    """Return what is wrong, counted, and how much there was to look at."""
    found: Counter[str] = Counter()
    async with Redis.from_url(url, socket_timeout=None) as client:
        store = DocumentStore(client, KINDS, deadline_s=60.0, keep_revisions=10**9)
        rows = await PersonalQueue(client, "facts", deadline_s=60.0).rows(USER, facts)
        look = await store._look(USER, list(PLACES), entries=-1)
        for resource_id, log in look.logs.items():
            first = (await store.at(USER, resource_id, 0)).body
            found["torn"] += json_bytes(first) != json_bytes(
                KINDS.by_id[resource_id].template
            )
            found["torn"] += replayed(first, resource_id, log) != json_bytes(
                look.snapshot.documents[resource_id].body
            )
            found["doubled"] += sum(
                count - 1 for count in Counter(entry.plan_id for entry in log).values()
            )
        logged = [{entry.plan_id for entry in log} for log in look.logs.values()]
        records = {record.plan_id for record in await store.history(USER, limit=10**6)}
        found["half"] += len(logged[0] ^ logged[1]) + len(records ^ logged[0])
        found["lost"] += facts - len(rows)
        found["lost"] += sum(
            row.state != "done" or row.plan_id not in records for row in rows
        )
        found["plans"] = len(records)
        found["undone"] = sum("plan-" not in one for one in records)
    return dict(found)


def replayed(body: Any, resource_id: str, log: list[LogEntry] | Any) -> bytes:
    """Return what the log makes of *body*."""
    for entry in log:
        body = stamp(
            apply_changes(body, entry.changes), resource_id, entry.revision, NOW.date()
        )[0]  # type: ignore[arg-type]
    return json_bytes(body)


def main() -> int:
    """Kill as many as asked for; return 1 when something is wrong."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("url")
    reader.add_argument("--kills", type=int, default=20)
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    random = Random(asked.seed)
    facts = FACTS * asked.kills
    asyncio.run(prepare(asked.url, facts))
    for number in range(asked.kills):
        kill_one(asked.url, f"{asked.seed}-{number}", random)
    asyncio.run(work(asked.url, "last", random))
    found = asyncio.run(verdict(asked.url, facts))
    sys.stdout.write(json.dumps({"kills": asked.kills, "facts": facts, **found}) + "\n")
    return int(any(found[what] for what in ("torn", "doubled", "half", "lost")))


if __name__ == "__main__":
    sys.exit(main())
