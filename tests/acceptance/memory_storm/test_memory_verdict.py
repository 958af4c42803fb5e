"""The verdict finds what storms are to rule out: each wrong is done to a store on purpose."""

import json
from itertools import islice
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.edits import Delete, Edit, Insert
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.claims import Closing
from tasklore.memory.queues.queue import PersonalQueue
from tests.acceptance.memory_storm.told import (
    FOOD,
    LISTS,
    ROUTINE,
    Told,
    expected,
    tellings,
)
from tests.acceptance.memory_storm.verdict import Verdict, judge
from tests.integration.documents import KINDS, NOW, item, plan

USER = "stormy"


class Ground:
    """A store in which some facts were dealt with as they should be."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.store = DocumentStore(redis, KINDS, deadline_s=5.0)
        self.queue = PersonalQueue(redis, "facts", deadline_s=5.0)
        self.told = list(islice(tellings(("by_rules", "both")), 24))

    async def deal_with(self, told: Told) -> None:
        """Store the plan of one fact, and close it."""
        fact_id = f"{USER}-{told.number}"
        await self.queue.append(USER, [(fact_id, b"{}")])
        claim = await self.queue.claim(
            USER, holder="w", limit=1, lease_ms=60_000, now_ms=0
        )
        assert claim is not None
        draft = Draft(await self.store.snapshot(USER), LIMITS, NOW)
        edits = [self._edit(told, draft, resource) for resource in told.resources]
        draft.apply(plan(fact_id, *edits, fact_id=fact_id))
        await self.store.commit(
            draft,
            claim=claim,
            closings=[Closing(row_id=fact_id, state="done", plan_id=fact_id)],
        )
        await self.queue.release(claim)

    def _edit(self, told: Told, draft: Draft, resource: str) -> Edit:
        path = LISTS[resource]
        if not told.is_taken_back:
            return Insert(
                path=path, new_value=item(f"Brel {told.number}"), file=resource
            )
        first, _, second = path.partition(".")
        body: Any = draft.body(resource)
        named = told.text.split("rel ")[1].split()[0]
        place = [one["display"] for one in body[first][second]].index(f"Brel {named}")
        return Delete(path=f"{path}[{place}]", file=resource)

    async def verdict(self) -> Verdict:
        """Return what a storm would say."""
        return await judge(
            DocumentStore(self.redis, KINDS, deadline_s=5.0),
            self.queue,
            {USER: self.told},
        )

    async def rewrite(self, resource: str, change: Any) -> None:
        """Let *change* alter the stored body of a document behind everybody's back."""
        key = keys.document(user_token(USER), resource)
        stored = await self.redis.hget(key, "body")
        assert stored is not None
        body = json.loads(stored)
        change(body)
        await self.redis.hset(key, "body", json.dumps(body, separators=(",", ":")))


@pytest.fixture
async def ground(redis: Redis) -> Ground:
    """Everything that was told is done."""
    made = Ground(redis)
    for told in made.told:
        await made.deal_with(told)
    return made


async def test_what_went_well_is_found_fine(ground: Ground) -> None:
    verdict = await ground.verdict()
    assert (verdict.is_fine, verdict.facts, verdict.examples) == (True, 24, [])


async def test_an_item_that_is_gone_is_lost_and_its_document_torn(
    ground: Ground,
) -> None:
    await ground.rewrite(FOOD, lambda body: body["food"]["avoids"].pop(3))
    wrong = (await ground.verdict()).wrong
    assert wrong["lost"] == 1
    assert wrong["torn"] == 1


async def test_an_item_that_is_there_twice_was_applied_twice(ground: Ground) -> None:
    await ground.rewrite(
        FOOD, lambda body: body["food"]["avoids"].append(body["food"]["avoids"][0])
    )
    assert (await ground.verdict()).wrong["applied twice"] == 1


async def test_items_in_another_order_are_out_of_order(ground: Ground) -> None:
    await ground.rewrite(FOOD, lambda body: body["food"]["avoids"].reverse())
    assert (await ground.verdict()).wrong["out of order"] == 1


async def test_a_plan_that_one_of_two_logs_lacks_is_half_applied(
    ground: Ground,
) -> None:
    await ground.redis.rpop(keys.document_log(user_token(USER), ROUTINE))
    wrong = (await ground.verdict()).wrong
    assert wrong["half applied"] == 1
    assert wrong["torn"] == 1


async def test_a_fact_whose_row_is_gone_is_lost_and_one_that_waits_is_not_applied(
    ground: Ground,
) -> None:
    more = list(islice(tellings(("by_rules", "both")), 26))
    ground.told = more
    await ground.queue.append(USER, [(f"{USER}-{more[24].number}", b"{}")])
    wrong = (await ground.verdict()).wrong
    assert wrong["not applied"] == 1
    # The other's row, and the items of both.
    assert wrong["lost"] >= 2


def test_what_is_taken_back_stands_nowhere_in_the_end() -> None:
    told = list(islice(tellings(("by_rules", "by_model", "both")), 90))
    gone = [one for one in told if one.is_taken_back]
    assert gone
    assert sum(map(len, expected(told).values())) == sum(
        len(one.resources) * (-1 if one.is_taken_back else 1) for one in told
    )
