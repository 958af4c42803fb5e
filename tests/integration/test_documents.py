"""The store of documents: plans, drafts and facts are committed whole, once, and for one user."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.edits import Delete, Insert, NoChange, Update
from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.documents.draft import Document, Draft, Snapshot
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.storage.store import (
    Committed,
    DocumentStore,
    RemovedDocuments,
    Stale,
)
from tasklore.memory.queues.claims import Claim, Closing
from tasklore.memory.queues.queue import PersonalQueue
from tests.integration.documents import (
    FOOD,
    GENERAL,
    HEALTH,
    KINDS,
    NOW,
    USER,
    body_of,
    commit,
    drafted,
    item,
    like,
    liked,
    plan,
    store_on,
)

FILE = b'{\n  "_metadata": {"resource_id": "resource_user_food_prefs", "tags": ["food"]},\n  "food": {"likes": []}\n}\n'
NOBODY: list[Any] = [None, "", " ", "\t\n", "x" * 257, 7, b"user-1", "\ud800"]


@pytest.fixture
def store(valkey_or_redis: Redis) -> DocumentStore:
    return store_on(valkey_or_redis)


@pytest.fixture
def queue(valkey_or_redis: Redis) -> PersonalQueue:
    return PersonalQueue(valkey_or_redis, "facts", deadline_s=60.0)


async def test_a_document_that_was_never_edited_is_its_template(
    store: DocumentStore,
) -> None:
    snapshot = await store.snapshot(USER)
    assert list(snapshot.documents) == list(KINDS.ids)
    assert snapshot.documents[FOOD] == Document(
        resource_id=FOOD, revision=0, body=KINDS.by_id[FOOD].template
    )
    assert (await store.snapshot(USER, [FOOD, "no_such_kind"])).documents.keys() == {
        FOOD
    }
    assert await store.history(USER) == ()


async def test_a_plan_is_stored_and_stamped(store: DocumentStore) -> None:
    done = await commit(
        store,
        plan(
            "p1",
            Insert(path="food.likes", new_value={"display": "Omelettes"}, file=FOOD),
        ),
    )
    document = (await store.snapshot(USER, [FOOD])).documents[FOOD]
    assert done == Committed({FOOD: 1}, ("p1",))
    assert (document.revision, document.body["_metadata"]) == (
        1,
        {
            "resource_id": FOOD,
            "tags": ["food"],
            "last_updated": "2026-03-01",
            "revision": 1,
        },
    )
    assert (await body_of(store))["food"]["likes"] == [
        {"display": "Omelettes", "added": "2026-03-01"}
    ]


async def test_the_order_of_names_and_the_spelling_of_numbers_are_kept(
    store: DocumentStore,
) -> None:
    odd = {
        "z": 1.0,
        "a": 1,
        "m": [-0.0, 9007199254740991, 1e-7, True, None, "ü\u0000\U0001f95a"],
        "b": {"y": 0, "x": 0.1},
    }
    await commit(store, plan("p1", Insert(path="food.extra", new_value=odd, file=FOOD)))
    found = (await body_of(store))["food"]["extra"]
    assert repr(found) == repr(odd)


async def test_a_draft_of_a_document_that_changed_meanwhile_is_stale_as_a_whole(
    store: DocumentStore,
) -> None:
    late = await drafted(
        store,
        plan(
            "p1",
            like("Late"),
            Insert(path="general.about", new_value=item("Late"), file=GENERAL),
        ),
    )
    await commit(store, plan("p2", like("Early")))
    assert await store.commit(late) == Stale(moved=(FOOD,))
    assert await liked(store) == ["Early"]
    assert (await store.snapshot(USER, [GENERAL])).documents[GENERAL].revision == 0
    assert [record.plan_id for record in await store.history(USER)] == ["p2"]


async def test_a_draft_is_stale_when_a_document_that_it_read_has_changed(
    store: DocumentStore,
) -> None:
    careless = await drafted(store, plan("p1", like("Bread")))
    careful = await drafted(store, plan("p2", like("Cake")))
    careful.body(HEALTH)
    await commit(
        store,
        plan(
            "p3", Insert(path="health.allergies", new_value=item("Gluten"), file=HEALTH)
        ),
    )
    assert await store.commit(careful) == Stale(moved=(HEALTH,))
    assert await store.commit(careless) == Committed({FOOD: 1}, ("p1",))


async def test_a_draft_that_only_read_can_be_stale_and_then_closes_no_fact(
    store: DocumentStore, queue: PersonalQueue
) -> None:
    claim = await claimed(queue, "f1")
    draft = await drafted(store)
    draft.body(FOOD)
    await commit(store, plan("p1", like("Eggs")))
    closings = [Closing(row_id="f1", state="done")]
    assert await store.commit(draft, claim=claim, closings=closings) == Stale(
        moved=(FOOD,)
    )
    assert (await queue.counts(USER)).waiting == 1
    assert await store.commit(
        await drafted(store), claim=claim, closings=closings
    ) == Committed({})
    assert (await queue.counts(USER)).waiting == 0


async def test_a_plan_without_effect_leaves_no_trace(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")))
    edits = (
        NoChange(reason="known"),
        Update(path="food.likes[0].display", new_value="Eggs", file=FOOD),
    )
    assert await commit(store, plan("p2", *edits)) == Committed({})
    assert (await store.snapshot(USER, [FOOD])).documents[FOOD].revision == 1
    assert len(await store.history(USER)) == 1


async def test_a_repeated_commit_is_stored_once(store: DocumentStore) -> None:
    draft = await drafted(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    assert await store.commit(draft) == Committed({FOOD: 2}, ("p1", "p2"))
    assert await store.commit(draft) == Committed({}, known=("p1", "p2"))
    assert await liked(store) == ["Eggs", "Ham"]


async def test_a_plan_that_another_applied_is_left_out(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")))
    assert await store.commit(
        await drafted(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    ) == Stale(known=("p1",))
    draft = Draft(await store.snapshot(USER), LIMITS, NOW, known=("p1",))
    assert draft.apply(plan("p1", like("Eggs"))).known
    draft.apply(plan("p2", like("Ham")))
    assert await store.commit(draft) == Committed({FOOD: 2}, ("p2",))
    assert await liked(store) == ["Eggs", "Ham"]


async def test_concurrent_edits_of_one_document_lose_nothing(
    store: DocumentStore,
) -> None:
    async def add(number: int) -> None:
        mine = plan(f"p{number}", like(f"{number}"))
        while isinstance(await store.commit(await drafted(store, mine)), Stale):
            pass

    await asyncio.gather(*(add(number) for number in range(25)))
    assert sorted(await liked(store), key=int) == [str(number) for number in range(25)]
    assert (await store.snapshot(USER, [FOOD])).documents[FOOD].revision == 25


async def claimed(queue: PersonalQueue, *row_ids: str, owner: str = USER) -> Claim:
    await queue.append(owner, [(row_id, b"{}") for row_id in row_ids])
    claim = await queue.claim(owner, holder="w1", limit=10, lease_ms=60_000, now_ms=0)
    assert claim is not None
    return claim


async def test_facts_are_closed_in_the_same_step_as_their_plan(
    store: DocumentStore, queue: PersonalQueue
) -> None:
    claim = await claimed(queue, "f1", "f2")
    draft = await drafted(store, plan("p1", like("Eggs")))
    closings = [
        Closing(row_id="f1", state="done", reason="liked", plan_id="p1"),
        Closing(row_id="f2", state="rejected", reason="known"),
    ]
    assert await store.commit(draft, claim=claim, closings=closings) == Committed(
        {FOOD: 1}, ("p1",)
    )
    assert await store.commit(draft, claim=claim, closings=closings) == Committed(
        {}, known=("p1",)
    )
    rows = {row.row_id: (row.state, row.plan_id) for row in await queue.rows(USER, 10)}
    assert rows["f1"] == ("done", "p1")
    assert rows["f2"][0] == "rejected"
    assert (await queue.counts(USER)).waiting == 0


async def test_a_commit_under_a_lost_lease_stores_nothing(
    store: DocumentStore, queue: PersonalQueue
) -> None:
    claim = await claimed(queue, "f1")
    await queue.release(claim)
    assert (
        await queue.claim(USER, holder="w1", limit=10, lease_ms=60_000, now_ms=0)
        is not None
    )
    draft = await drafted(store, plan("p1", like("Eggs")))
    assert await store.commit(
        draft, claim=claim, closings=[Closing(row_id="f1", state="done")]
    ) == Stale(lease=True)
    assert await liked(store) == []
    assert (await queue.counts(USER)).waiting == 1


async def test_a_commit_under_another_users_claim_or_none_is_refused(
    store: DocumentStore, queue: PersonalQueue
) -> None:
    claim = await claimed(queue, "f1", owner="somebody else")
    draft = await drafted(store, plan("p1", like("Eggs")))
    with pytest.raises(InvalidInput, match="somebody else"):
        await store.commit(
            draft, claim=claim, closings=[Closing(row_id="f1", state="done")]
        )
    with pytest.raises(InvalidInput, match="claim"):
        await store.commit(draft, closings=[Closing(row_id="f1", state="done")])
    assert await liked(store) == []
    assert (await queue.counts("somebody else")).waiting == 1


@pytest.mark.parametrize("nobody", NOBODY, ids=repr)
async def test_without_a_user_nothing_is_read_or_written(
    store: DocumentStore, nobody: Any
) -> None:
    draft = Draft(Snapshot(nobody, (await store.snapshot(USER)).documents), LIMITS, NOW)
    draft.apply(plan("p1", like("Eggs")))
    calls = [
        lambda: store.snapshot(nobody),
        lambda: store.history(nobody),
        lambda: store.at(nobody, FOOD, 0),
        lambda: store.explain(nobody, FOOD, "food"),
        lambda: store.note_reads(nobody, [(FOOD, "food")], NOW),
        lambda: store.reads(nobody),
        lambda: store.commit(draft),
        lambda: store.undo(nobody, at=NOW),
        lambda: store.redo(nobody, at=NOW),
        lambda: store.diff(nobody, FOOD, 0, 0),
        lambda: store.import_document(nobody, FILE, at=NOW),
        lambda: store.export_document(nobody, FOOD),
        lambda: store.sweep(nobody, NOW),
        lambda: store.forget(nobody),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="user_id"):
            await call()
    with pytest.raises(InvalidInput, match="user_id"):
        store.of(nobody)


async def test_users_do_not_mix(store: DocumentStore) -> None:
    """Whatever characters their ids contain."""
    users = ["a", "a ", "A", "a}", "{a}", "a:plans", "*", "ä", "a" * 256, f"u:{FOOD}"]
    for number, user in enumerate(users):
        await commit(store, plan("p", like(f"{number}")), user=user)
    assert [await liked(store, user) for user in users] == [
        [f"{number}"] for number in range(len(users))
    ]
    assert [len(await store.history(user)) for user in users] == [1] * len(users)
    own = store.of("a")
    assert (await own.snapshot([FOOD])).documents[FOOD].body == await body_of(
        store, user="a"
    )
    assert [len(await own.history()), len(await own.explain(FOOD, "food"))] == [1, 1]
    assert (await own.at(FOOD, 0)).body == KINDS.by_id[FOOD].template


@pytest.mark.parametrize(
    "name", ["", "plans", "reads", "a}:b", "a:log", "../x", "x" * 65, "a b"]
)
async def test_a_resource_name_that_could_be_another_key_is_refused(
    store: DocumentStore, name: str
) -> None:
    for call in (
        store.snapshot(USER, [name]),
        store.at(USER, name, 0),
        store.explain(USER, name, "food"),
    ):
        with pytest.raises(InvalidInput):
            await call


async def test_the_documents_of_a_forgotten_user_are_gone(
    store: DocumentStore, valkey_or_redis: Redis
) -> None:
    await commit(
        store,
        plan(
            "p1",
            like("Eggs"),
            Insert(path="general.about", new_value=item("Vegan"), file=GENERAL),
        ),
    )
    await commit(store, plan("p2", like("Ham")))
    await store.note_reads(USER, [(FOOD, "food.likes.eggs")], NOW)
    await commit(store, plan("p1", like("Tea")), user="neighbour")
    await valkey_or_redis.set(keys.document("dXNlci0x", "stray"), "left behind")
    assert await store.forget(USER) == RemovedDocuments(
        documents=2, entries=3, plans=2, reads=1
    )
    assert [key for key in await valkey_or_redis.keys() if b"dXNlci0x" in key] == []
    assert await store.forget(USER) == RemovedDocuments()
    assert await liked(store) == []
    assert await store.history(USER) == ()
    assert await store.reads(USER) == {}
    await commit(store, plan("p1", like("Soup")))
    assert await liked(store) == ["Soup"]
    assert await liked(store, "neighbour") == ["Tea"]


async def test_a_draft_from_before_forgetting_is_stale(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Secret")))
    old = await drafted(store, plan("p2", like("Ham")))
    await store.forget(USER)
    await commit(store, plan("p3", like("Soup")))
    assert await store.commit(old) == Stale(moved=(FOOD,))
    assert await liked(store) == ["Soup"]


async def test_the_last_time_each_place_was_shown_is_kept(store: DocumentStore) -> None:
    later = datetime(2026, 3, 2, tzinfo=UTC)
    await store.note_reads(
        USER, [(FOOD, "food.likes.eggs"), (FOOD, 'food.likes["odd one"]')], NOW
    )
    await store.note_reads(USER, [(FOOD, "food.likes.eggs")], later)
    await store.note_reads(USER, [], later)
    assert await store.reads(USER) == {
        (FOOD, "food.likes.eggs"): later,
        (FOOD, 'food.likes["odd one"]'): NOW,
    }


async def test_expired_items_are_swept_as_one_plan(store: DocumentStore) -> None:
    assert await store.sweep(USER, NOW) is None
    assert await store.history(USER) == ()
    over = {"expiry": "2026-02-28"}
    today = {"expiry": "2026-03-01"}
    await commit(
        store,
        plan("p1", like("Over", **over), like("Today", **today), like("Ever")),
        plan(
            "p2",
            Insert(
                path="general.about", new_value=item("In Rome", **over), file=GENERAL
            ),
        ),
    )
    record = await store.sweep(USER, NOW)
    assert record is not None
    assert (record.origin.by, record.revisions) == ("expiry", {FOOD: 2, GENERAL: 2})
    assert await liked(store) == ["Today", "Ever"]
    assert (await body_of(store, GENERAL))["general"]["about"] == []
    assert await store.sweep(USER, NOW) is None


async def test_an_undone_sweep_is_not_repeated(store: DocumentStore) -> None:
    await commit(
        store,
        plan(
            "p1", like("Over", expiry="2026-02-28"), like("Later", expiry="2026-03-05")
        ),
    )
    await store.sweep(USER, NOW)
    await store.undo(USER, at=NOW)
    assert await store.sweep(USER, NOW) is None
    assert await liked(store) == ["Over", "Later"]
    assert await store.sweep(USER, datetime(2026, 3, 6, tzinfo=UTC)) is not None
    assert await liked(store) == ["Over"]


async def test_two_stores_see_what_the_other_wrote(valkey_or_redis: Redis) -> None:
    one = store_on(valkey_or_redis)
    other = store_on(valkey_or_redis)
    await commit(one, plan("p1", like("Eggs")))
    assert await liked(other) == ["Eggs"]
    await commit(other, plan("p2", like("Ham")))
    assert await liked(one) == ["Eggs", "Ham"]
    await other.forget(USER)
    await commit(other, plan("p1", like("Tea")))
    await commit(other, plan("p2", like("Milk")))
    assert await liked(one) == ["Tea", "Milk"]


@pytest.mark.parametrize("broken", ["document", "log", "plans"])
async def test_a_key_of_another_type_stores_nothing_half(
    valkey_or_redis: Redis, broken: str
) -> None:
    store = store_on(valkey_or_redis)
    await commit(
        store,
        plan("p1", Insert(path="general.about", new_value=item("Vegan"), file=GENERAL)),
    )
    token = "dXNlci0x"
    document = keys.document(token, FOOD)
    log = keys.document_log(token, FOOD)
    key = {"document": document, "log": log, "plans": keys.plans(token)}[broken]
    draft = await drafted(
        store, plan("p2", like("Eggs"), Delete(path="general.about[0]", file=GENERAL))
    )
    await valkey_or_redis.set(key, "foreign")
    before = {
        key: await valkey_or_redis.dump(key)
        for key in sorted(await valkey_or_redis.keys())
    }
    with pytest.raises(MemoryUnavailable):
        await store.commit(draft)
    assert {
        key: await valkey_or_redis.dump(key)
        for key in sorted(await valkey_or_redis.keys())
    } == before
