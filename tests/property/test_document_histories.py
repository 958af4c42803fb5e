"""Whatever is done to documents can be seen again and taken back, to the byte, on either store."""

import asyncio
import json
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from tasklore.contracts.errors import UndoRefused
from tasklore.memory.documents.differences import differences
from tasklore.memory.documents.edits import apply_changes, dump_changes
from tasklore.memory.documents.storage.history import json_bytes
from tasklore.memory.documents.storage.store import DocumentStore
from tests.fakes.documents import FakeDocumentStore
from tests.integration.documents import FOOD, KINDS, NOW, USER
from tests.property.examples import examples, scale
from tests.random_plans import back_and_forth, contents, grow


@examples(6)
@given(seed=st.integers(0, 2**32))
def test_step_by_step_everything_is_taken_back_and_applied_again(seed: int) -> None:
    asyncio.run(back_and_forth(FakeDocumentStore(KINDS), Random(seed)))


@examples(8)
@given(seed=st.integers(0, 2**32))
def test_taking_back_any_plan_changes_all_or_nothing(seed: int) -> None:
    async def scenario() -> None:
        store = FakeDocumentStore(KINDS)
        random = Random(seed)
        await grow(store, random)
        for _ in range(4):
            records = await store.history(USER)
            before = await contents(store)
            count = len(records)
            try:
                await store.undo(
                    USER, random.choice([record.plan_id for record in records]), at=NOW
                )
            except UndoRefused:
                assert (await contents(store), len(await store.history(USER))) == (
                    before,
                    count,
                )
                continue
            after = await contents(store)
            assert after != before
            await store.redo(USER, at=NOW)
            assert await contents(store) == before
            await store.undo(USER, at=NOW)
            assert await contents(store) == after

    asyncio.run(scenario())


@examples(8)
@given(seed=st.integers(0, 2**32))
def test_every_revision_is_told_to_the_byte(seed: int) -> None:
    async def scenario() -> None:
        store = FakeDocumentStore(KINDS)
        random = Random(seed)
        await grow(store, random)
        document = (await store.snapshot(USER, [FOOD])).documents[FOOD]
        revisions = [
            await store.at(USER, FOOD, number)
            for number in range(document.revision + 1)
        ]
        assert json_bytes(revisions[0].body) == json_bytes(KINDS.by_id[FOOD].template)
        assert json_bytes(revisions[-1].body) == json_bytes(document.body)
        for earlier, later in pairwise(revisions):
            assert json_bytes(earlier.body) != json_bytes(later.body)
        one = random.choice(revisions)
        other = random.choice(revisions)
        led = apply_changes(one.body, list(differences(one.body, other.body)))
        assert json.loads(json_bytes(led)) == json.loads(json_bytes(other.body))

    asyncio.run(scenario())


@examples(8)
@given(seed=st.integers(0, 2**32))
def test_a_place_is_explained_by_the_plans_that_name_what_is_there(seed: int) -> None:
    async def scenario() -> None:
        store = FakeDocumentStore(KINDS)
        random = Random(seed)
        await grow(store, random)
        for _ in range(random.randint(0, 4)):
            try:
                await random.choice([store.undo, store.redo])(USER, at=NOW)
            except UndoRefused:
                continue
        await grow(store, random, 4, "q")
        records = await store.history(USER, FOOD)
        text = {
            record.plan_id: json.dumps(dump_changes(record.changes[FOOD]))
            for record in records
        }
        body = (await store.snapshot(USER, [FOOD])).documents[FOOD].body
        for name, held in body["food"].items():  # type: ignore[union-attr] # the template says so
            for index, one in enumerate(held):  # type: ignore[arg-type]
                display = f'"{one["display"]}"'  # type: ignore[index,call-overload]
                expected = [
                    plan_id for plan_id, changes in text.items() if display in changes
                ]
                found = await store.explain(USER, FOOD, f"food.{name}[{index}]")
                assert [record.plan_id for record in found] == expected

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(scale(1)))
async def test_the_real_store_does_what_its_stand_in_does(
    redis: Redis, seed: int
) -> None:
    """Plan by plan, back, and forth."""
    real = DocumentStore(redis, KINDS, deadline_s=5.0)
    fake = FakeDocumentStore(KINDS)
    seen = await grow(real, Random(seed), 30)
    assert seen == await grow(fake, Random(seed), 30)
    for expected in reversed(seen[:-1]):
        back = await real.undo(USER, at=NOW), await fake.undo(USER, at=NOW)
        assert back[0].changes == back[1].changes
        assert await contents(real) == expected
    for _ in seen[1:]:
        await real.redo(USER, at=NOW)
    assert await contents(real) == seen[-1]
