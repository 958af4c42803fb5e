"""The history of documents: plans and their reasons, undo and redo, and files imported and exported byte for byte."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from tasklore.contracts.edits import Delete, Insert, Update
from tasklore.contracts.errors import InvalidInput, UndoRefused, UnknownPath
from tasklore.memory import keys
from tasklore.memory.documents.edits import ABSENT, apply_changes
from tasklore.memory.documents.items import Body
from tasklore.memory.documents.storage.history import MAX_RECORD, PlanRecord
from tasklore.memory.documents.storage.store import DocumentStore
from tests.integration.documents import (
    FOOD,
    GENERAL,
    NOW,
    ROUTINE,
    USER,
    body_of,
    commit,
    content,
    ids,
    item,
    like,
    liked,
    plan,
    store_on,
)


@pytest.fixture
def store(redis: Redis) -> DocumentStore:
    return store_on(redis)


async def test_the_history_is_listed_newest_first(store: DocumentStore) -> None:
    about = Insert(path="general.about", new_value=item("Vegan"), file=GENERAL)
    await commit(store, plan("p1", like("Eggs")), plan("p2", about))
    await commit(
        store, plan("p3", like("Ham"), Delete(path="general.about[0]", file=GENERAL))
    )
    await commit(store, plan("p4", like("Tea")))
    assert ids(await store.history(USER)) == ["p4", "p3", "p2", "p1"]
    assert ids(await store.history(USER, limit=2)) == ["p4", "p3"]
    assert ids(await store.history(USER, GENERAL)) == ["p3", "p2"]
    assert ids(await store.history(USER, FOOD + ".json", limit=1)) == ["p4"]
    assert await store.history(USER, limit=0) == ()
    assert [record.number for record in await store.history(USER)] == [4, 3, 2, 1]


async def test_a_record_has_its_changes_in_every_document(store: DocumentStore) -> None:
    await commit(
        store,
        plan(
            "p1",
            like("Eggs"),
            Insert(path="general.about", new_value=item("Vegan"), file=GENERAL),
        ),
    )
    for number in range(5):
        await commit(store, plan(f"q{number}", like(f"{number}")))
    (record,) = await store.history(USER, GENERAL, limit=1)
    assert record.revisions == {FOOD: 1, GENERAL: 1}
    assert {
        resource: [str(change.path) for change in changes]
        for resource, changes in record.changes.items()
    } == {
        FOOD: ["food.likes[0]"],
        GENERAL: ["general.about[0]"],
    }
    assert record.changes[FOOD][0].before is ABSENT


async def test_a_record_says_who_when_and_why(store: DocumentStore) -> None:
    """A model's answer that is too long is replaced by a mark."""
    finder = {
        "model": "nano",
        "temperature": 0.1,
        "locations": [{"path": "food.likes"}],
    }
    editor = {"model": "mini", "temperature": 0.2, "decision": "proceed"}
    wanted = plan(
        "p1",
        Insert(path="food.likes", new_value=item("Eggs"), file=FOOD, reason="said so"),
        by="mini",
        at=NOW - timedelta(seconds=1),
        turn_id="t1",
        fact_id="f1",
        fact_text="User likes eggs",
        evidence="I like eggs",
        reasoning="not known yet",
        finder=finder,
        editor=editor,
    )
    await commit(store, wanted)
    (record,) = await store.history(USER)
    assert record.origin == wanted.origin
    assert record.edits == wanted.edits
    assert (record.kind, record.undoes, record.undone_by) == ("edit", None, None)
    await commit(
        store,
        plan(
            "p2",
            like("Ham"),
            finder={"model": "nano", "said": "x" * MAX_RECORD},
            editor=["x"],
        ),
    )
    (record,) = await store.history(USER, limit=1)
    assert (record.origin.finder, record.origin.editor) == (
        {"model": "nano", "omitted": True},
        None,
    )


async def test_an_unknown_revision_or_place_is_refused(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")))
    for revision in (-1, 2):
        with pytest.raises(InvalidInput, match="from 0 to 1"):
            await store.at(USER, FOOD, revision)
    with pytest.raises(InvalidInput, match="no_such"):
        await store.at(USER, "no_such", 0)
    with pytest.raises(UnknownPath, match=r"food\.likes"):
        await store.explain(USER, FOOD, "food.likes[4]")


async def test_the_difference_of_two_revisions_is_few_changes(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p1", *(like(f"{number}") for number in range(5))))
    await commit(store, plan("p2", Delete(path="food.likes[1]", file=FOOD)))
    await commit(
        store,
        plan("p3", Update(path="food.likes[2].display", new_value="three", file=FOOD)),
    )
    forth = await store.diff(USER, FOOD, 1, 3)
    back = await store.diff(USER, FOOD, 3, 1)
    assert [str(change.path) for change in forth] == [
        "food.likes[3].display",
        "food.likes[1]",
    ]
    first = await store.at(USER, FOOD, 1)
    last = await store.at(USER, FOOD, 3)
    assert content(cast("Body", apply_changes(first.body, forth))) == content(last.body)
    assert content(cast("Body", apply_changes(last.body, back))) == content(first.body)
    assert await store.diff(USER, FOOD, 2, 2) == ()


async def test_a_place_is_explained_wherever_its_list_has_moved_it(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    await commit(
        store,
        plan("p3", Insert(path="food.likes[0]", new_value=item("Tea"), file=FOOD)),
    )
    await commit(
        store,
        plan("p4", Update(path="food.likes[2].confidence", new_value=0.5, file=FOOD)),
    )
    await commit(store, plan("p5", Delete(path="food.likes[1]", file=FOOD)))
    assert ids(await store.explain(USER, FOOD, "food.likes[1]")) == ["p4", "p2"]
    assert ids(await store.explain(USER, FOOD, "food.likes[-2]")) == ["p3"]
    assert ids(await store.explain(USER, FOOD, "food.likes[1].display")) == ["p2"]
    assert ids(await store.explain(USER, FOOD, "$.food.likes")) == [
        "p5",
        "p4",
        "p3",
        "p2",
        "p1",
    ]
    assert await store.explain(USER, FOOD, "food.diets") == ()


async def test_a_value_that_an_undo_brought_back_is_explained_through_the_undo(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p1", like("Eggs"), like("Ham")), plan("p2", like("Tea")))
    await commit(
        store,
        plan("p3", Update(path="food.likes[1].confidence", new_value=0.5, file=FOOD)),
    )
    await commit(store, plan("p4", Delete(path="food.likes[1]", file=FOOD)))
    await commit(
        store,
        plan("p5", Insert(path="food.likes[0]", new_value=item("Rice"), file=FOOD)),
    )
    back = await store.undo(USER, "p4", at=NOW)
    assert (await body_of(store))["food"]["likes"][2]["display"] == "Ham"
    assert ids(await store.explain(USER, FOOD, "food.likes[2]")) == [
        back.plan_id,
        "p4",
        "p3",
        "p1",
    ]


async def test_the_history_is_bounded(redis: Redis) -> None:
    """Old log entries are dropped, and their plans with the last of them."""
    store = store_on(redis, keep_revisions=3)
    await commit(
        store,
        plan(
            "p0",
            like("Both"),
            Insert(path="general.about", new_value=item("Both"), file=GENERAL),
        ),
    )
    for number in range(1, 6):
        await commit(store, plan(f"p{number}", like(f"{number}")))
    assert ids(await store.history(USER)) == ["p5", "p4", "p3", "p0"]
    record = (await store.history(USER))[-1]
    assert (record.revisions, list(record.changes)) == (
        {FOOD: 1, GENERAL: 1},
        [GENERAL],
    )
    oldest: Any = (await store.at(USER, FOOD, 3)).body
    assert len(oldest["food"]["likes"]) == 3
    with pytest.raises(
        InvalidInput, match="older than its history, which goes from 3 to 6"
    ):
        await store.at(USER, FOOD, 2)
    assert ids(await store.explain(USER, FOOD, "food.likes[0]")) == []
    for number in range(3):
        await commit(
            store,
            plan(
                f"q{number}",
                Insert(path="general.about", new_value=item(f"{number}"), file=GENERAL),
            ),
        )
    assert "p0" not in ids(await store.history(USER))


async def test_dropped_plans_leave_no_records_behind(redis: Redis) -> None:
    store = store_on(redis, keep_revisions=2)
    await commit(
        store,
        plan(
            "p0",
            like("Both"),
            Insert(path="general.about", new_value=item("Both"), file=GENERAL),
        ),
    )
    await store.undo(USER, at=NOW)
    for number in range(2):
        about = Insert(path="general.about", new_value=item(f"{number}"), file=GENERAL)
        await commit(store, plan(f"p{number + 1}", like(f"{number}"), about))
    fields = {field.decode() for field in await redis.hkeys(keys.plans("dXNlci0x"))}
    assert fields == {"p1", "p2", "p1#", "p2#", "#last", "#resources"}


def about(display: str) -> Insert:
    return Insert(path="general.about", new_value=item(display), file=GENERAL)


async def test_the_latest_plan_is_undone_as_a_revision_of_its_own(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p1", like("Eggs")))
    before = content(await body_of(store))
    await commit(
        store, plan("p2", like("Ham"), Delete(path="food.likes[0]", file=FOOD))
    )
    record = await store.undo(USER, by="anna", at=NOW)
    assert content(await body_of(store)) == before
    assert (record.kind, record.undoes, record.revisions, record.origin.by) == (
        "undo",
        "p2",
        {FOOD: 3},
        "anna",
    )
    assert [(one.plan_id, one.undone_by) for one in await store.history(USER)] == [
        (record.plan_id, None),
        ("p2", record.plan_id),
        ("p1", None),
    ]
    await store.redo(USER, at=NOW)
    assert [one.undone_by for one in await store.history(USER)][-2:] == [None, None]
    with pytest.raises(UndoRefused, match="no plan that could be applied again"):
        await store.redo(USER, at=NOW)


async def test_a_plan_of_several_documents_is_undone_in_all(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p1", like("Tofu"), about("Vegan")))
    record = await store.undo(USER, at=NOW)
    assert record.revisions == {FOOD: 2, GENERAL: 2}
    assert await liked(store) == []
    assert (await body_of(store, GENERAL))["general"]["about"] == []


async def test_a_plan_that_cannot_be_undone_in_one_document_is_undone_in_none(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p1", like("Tofu"), about("Vegan")))
    await commit(
        store,
        plan(
            "p2",
            Update(
                path="general.about[0].display", new_value="Vegetarian", file=GENERAL
            ),
        ),
    )
    with pytest.raises(UndoRefused, match=r"'p1' cannot be taken back.*general.*'p2'"):
        await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Tofu"]
    assert len(await store.history(USER)) == 2


async def test_a_plan_that_a_later_one_touched_is_refused_with_its_name(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    await commit(
        store,
        plan(
            "p3",
            Update(path="food.likes[0].display", new_value="Fried eggs", file=FOOD),
        ),
    )
    await commit(store, plan("p4", like("Tea")))
    with pytest.raises(UndoRefused, match=r"food\.likes\[0\].*'p3'"):
        await store.undo(USER, "p1", at=NOW)
    await store.undo(USER, "p3", at=NOW)
    await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Ham", "Tea"]


async def test_neighbours_come_back_in_their_order_whichever_is_undone_first(
    store: DocumentStore,
) -> None:
    """Deleted by two plans at one index; they come and go again in either order."""
    await commit(store, plan("p1", like("Eggs"), like("Ham"), like("Tea")))
    for name in ("p2", "p3"):
        await commit(store, plan(name, Delete(path="food.likes[0]", file=FOOD)))
    for order in (("p2", "p3"), ("p3", "p2")) * 2:
        for name in order:
            await store.undo(USER, name, at=NOW)
        assert await liked(store) == ["Eggs", "Ham", "Tea"]
        for name in order:
            await store.redo(USER, name, at=NOW)
        assert await liked(store) == ["Tea"]


async def test_a_plan_is_undone_once_until_it_is_applied_again(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    with pytest.raises(UndoRefused, match="'p1' stands"):
        await store.redo(USER, "p1", at=NOW)
    back = await store.undo(USER, "p1", at=NOW)
    for name in ("p1", back.plan_id):
        with pytest.raises(UndoRefused, match="is taken back already"):
            await store.undo(USER, name, at=NOW)
    await store.redo(USER, back.plan_id, at=NOW)
    assert await liked(store) == ["Eggs", "Ham"]
    await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Ham"]


async def test_an_unknown_plan_or_that_of_another_user_is_refused(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p1", like("Eggs")), user="neighbour")
    for name in ("p1", "p9"):
        with pytest.raises(UndoRefused, match=name):
            await store.undo(USER, name, at=NOW)
    with pytest.raises(UndoRefused, match="no plan"):
        await store.undo(USER, at=NOW)
    assert await liked(store, "neighbour") == ["Eggs"]


async def test_a_plan_older_than_the_history_is_refused(redis: Redis) -> None:
    store = store_on(redis, keep_revisions=3)
    await commit(store, plan("p1", like("Tofu"), about("Vegan")))
    for number in range(3):
        await commit(store, plan(f"q{number}", like(f"{number}")))
    with pytest.raises(
        UndoRefused, match="older than the history of 'resource_user_food_prefs'"
    ):
        await store.undo(USER, "p1", at=NOW)
    assert (await body_of(store, GENERAL))["general"]["about"] != []


async def test_concurrent_undos_undo_one_plan_each(store: DocumentStore) -> None:
    for number in range(8):
        await commit(store, plan(f"p{number}", like(f"{number}")))
    records = await asyncio.gather(*(store.undo(USER, at=NOW) for _ in range(8)))
    assert sorted(str(record.undoes) for record in records) == [
        f"p{number}" for number in range(8)
    ]
    assert await liked(store) == []


async def test_an_undo_that_another_overtook_undoes_the_plan_before(
    store: DocumentStore, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    history = store.history
    other = store_on(redis)

    async def overtaken(user_id: str, *, limit: int) -> tuple[PlanRecord, ...]:
        monkeypatch.undo()
        found = await history(user_id, limit=limit)
        await other.undo(USER, at=NOW)
        return found

    monkeypatch.setattr(store, "history", overtaken)
    assert (await store.undo(USER, at=NOW)).undoes == "p1"
    assert await liked(store) == []


async def test_plans_far_back_in_a_long_history_are_undone(
    store: DocumentStore,
) -> None:
    await commit(store, plan("p0", like("First")))
    for number in range(1, 16):
        await commit(store, plan(f"p{number}", like(f"{number}")))
    for _ in range(16):
        await store.undo(USER, at=NOW)
    assert await liked(store) == []
    assert ids(await store.history(USER, limit=1_000))[-1] == "p0"
    await store.redo(USER, "p0", at=NOW)
    assert await liked(store) == ["First"]


FILE = b'{\n  "_metadata": {"resource_id": "resource_user_food_prefs", "tags": ["food"]},\n  "food": {"likes": []}\n}\n'


async def test_a_file_comes_back_byte_for_byte(store: DocumentStore) -> None:
    """Spaces, order of names and spelling of numbers, and again once later edits are undone."""
    file = (
        b'{"food":{"likes":[{"item":"x","display":"X","confidence":1.50}],\t"n":1e3},\r\n'
        b' "_metadata":{"resource_id":"resource_user_food_prefs"}}'
    )
    record = await store.import_document(USER, file, at=NOW)
    assert record is not None
    assert (record.origin.by, record.revisions) == ("import", {FOOD: 1})
    assert await store.export_document(USER, FOOD) == file
    await commit(store, plan("p1", like("Eggs")))
    assert await store.export_document(USER, FOOD) != file
    await store.undo(USER, at=NOW)
    assert await store.export_document(USER, FOOD) == file


async def test_an_imported_file_replaces_the_document_as_a_plan_that_can_be_undone(
    store: DocumentStore,
) -> None:
    first = FILE.replace(b"[]", b'[{"item": "a", "display": "A"}]')
    await store.import_document(USER, first, at=NOW)
    await store.import_document(USER, FILE.replace(b"  ", b"\t"), at=NOW)
    assert await liked(store) == []
    assert await store.export_document(USER, FOOD) == FILE.replace(b"  ", b"\t")
    await store.undo(USER, at=NOW)
    assert await store.export_document(USER, FOOD) == first
    await store.redo(USER, at=NOW)
    assert await store.export_document(USER, FOOD) == FILE.replace(b"  ", b"\t")


async def test_an_import_that_orders_the_names_anew_is_undone_to_the_byte(
    store: DocumentStore,
) -> None:
    """All of them were taken out and put in again, the metadata among them."""
    other = (
        b'{"food": {"likes": []}, "_metadata": '
        b'{"resource_id": "resource_user_food_prefs", "tags": ["drink"]}}'
    )
    await store.import_document(USER, FILE, at=NOW)
    await store.import_document(USER, other, at=NOW)
    assert await store.export_document(USER, FOOD) == other
    await store.undo(USER, at=NOW)
    assert await store.export_document(USER, FOOD) == FILE


async def test_an_import_of_other_metadata_is_undone_beneath_a_later_edit(
    store: DocumentStore,
) -> None:
    await store.import_document(USER, FILE, at=NOW)
    record = await store.import_document(
        USER, FILE.replace(b'["food"]', b'["food", "drink"]'), at=NOW
    )
    assert record is not None
    await commit(store, plan("p1", like("Eggs")))
    assert (await body_of(store))["_metadata"]["tags"] == ["food", "drink"]
    for call, tags in ((store.undo, ["food"]), (store.redo, ["food", "drink"])):
        revision = (await call(USER, record.plan_id, at=NOW)).revisions[FOOD]
        metadata = (await body_of(store))["_metadata"]
        assert (metadata["tags"], metadata["revision"]) == (tags, revision)
        assert await liked(store) == ["Eggs"]


async def test_a_file_that_is_there_already_is_no_plan(store: DocumentStore) -> None:
    assert await store.import_document(USER, FILE, at=NOW) is not None
    assert await store.import_document(USER, FILE, at=NOW) is None
    await commit(store, plan("p1", like("Eggs")))
    await store.import_document(USER, await store.export_document(USER, FOOD), at=NOW)
    assert await liked(store) == ["Eggs"]
    assert (await body_of(store))["_metadata"]["revision"] == (
        await store.snapshot(USER, [FOOD])
    ).documents[FOOD].revision


async def test_a_document_of_no_known_kind_is_kept_edited_and_forgotten(
    store: DocumentStore,
) -> None:
    await store.import_document(
        USER,
        b'{"books":{"read":["Emma"]}}',
        at=NOW,
        resource="resource_user_books.json",
    )
    await commit(
        store,
        plan(
            "p1",
            Insert(path="books.read", new_value="Ulysses", file="resource_user_books"),
        ),
    )
    assert (await store.snapshot(USER)).documents["resource_user_books"].body[
        "books"
    ] == {"read": ["Emma", "Ulysses"]}
    await store.undo(USER, at=NOW)
    assert (
        await store.export_document(USER, "resource_user_books")
        == b'{"books":{"read":["Emma"]}}'
    )
    assert (await store.forget(USER)).documents == 1
    assert "resource_user_books" not in (await store.snapshot(USER)).documents


async def test_a_record_has_no_changes_of_the_plans_of_a_document_made_anew(
    store: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person is forgotten, and says something else, between the record and its log."""
    repository = store._repository
    read = repository.records

    async def outrun(token: str, plan_ids: Sequence[str]) -> Any:
        found = await read(token, plan_ids)
        monkeypatch.undo()
        await store.forget(USER)
        await commit(store, plan("p2", like("Ham")))
        return found

    monkeypatch.setattr(repository, "records", outrun)
    record = await store.import_document(USER, FILE, at=NOW)
    assert record is not None
    assert (dict(record.revisions), record.changes) == ({FOOD: 1}, {})


async def test_a_file_that_is_no_such_document_is_refused(store: DocumentStore) -> None:
    for file, resource in (
        (b"[]", FOOD),
        (b"no json", FOOD),
        (b'{"food": {}}', None),
        (FILE, ROUTINE),
        (b'{"_metadata": []}', FOOD),
        (b'{"food": "' + b"x" * 3_000 + b'"}', FOOD),
        (b" " * 2_000_000 + b"{}", FOOD),
    ):
        with pytest.raises(InvalidInput):
            await store.import_document(USER, file, at=NOW, resource=resource)
    assert await store.history(USER) == ()
