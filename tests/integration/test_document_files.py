"""Files of documents: imported as a plan that can be undone, and exported byte for byte."""

import pytest
from redis.asyncio import Redis

from contracts.edits import Insert
from contracts.errors import InvalidInput
from memory.documents.storage.store import DocumentStore
from tests.integration.documents import FOOD, NOW, ROUTINE, USER, body_of, commit, like, liked, plan, store_on

FILE = b'{\n  "_metadata": {"resource_id": "resource_user_food_prefs", "tags": ["food"]},\n  "food": {"likes": []}\n}\n'


@pytest.fixture
def store(redis: Redis) -> DocumentStore:
    """Return a store on a server."""
    return store_on(redis)


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


async def test_an_imported_file_replaces_the_document_as_a_plan_that_can_be_undone(store: DocumentStore) -> None:
    first = FILE.replace(b"[]", b'[{"item": "a", "display": "A"}]')
    await store.import_document(USER, first, at=NOW)
    await store.import_document(USER, FILE.replace(b"  ", b"\t"), at=NOW)
    assert await liked(store) == []
    assert await store.export_document(USER, FOOD) == FILE.replace(b"  ", b"\t")
    await store.undo(USER, at=NOW)
    assert await store.export_document(USER, FOOD) == first
    await store.redo(USER, at=NOW)
    assert await store.export_document(USER, FOOD) == FILE.replace(b"  ", b"\t")


async def test_an_import_of_other_metadata_is_undone_beneath_a_later_edit(store: DocumentStore) -> None:
    await store.import_document(USER, FILE, at=NOW)
    record = await store.import_document(USER, FILE.replace(b'["food"]', b'["food", "drink"]'), at=NOW)
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
    assert (await body_of(store))["_metadata"]["revision"] == (await store.snapshot(USER, [FOOD])).documents[
        FOOD
    ].revision


async def test_a_document_of_no_known_kind_is_kept_edited_and_forgotten(store: DocumentStore) -> None:
    await store.import_document(USER, b'{"books":{"read":["Emma"]}}', at=NOW, resource="resource_user_books.json")
    await commit(store, plan("p1", Insert(path="books.read", new_value="Ulysses", file="resource_user_books")))
    assert (await store.snapshot(USER)).documents["resource_user_books"].body["books"] == {"read": ["Emma", "Ulysses"]}
    await store.undo(USER, at=NOW)
    assert await store.export_document(USER, "resource_user_books") == b'{"books":{"read":["Emma"]}}'
    assert (await store.forget(USER)).documents == 1
    assert "resource_user_books" not in (await store.snapshot(USER)).documents


@pytest.mark.parametrize(
    ("file", "resource"),
    [
        (b"[]", FOOD),
        (b"no json", FOOD),
        (b'{"food": {}}', None),
        (FILE, ROUTINE),
        (b'{"_metadata": []}', FOOD),
        (b'{"food": "' + b"x" * 3_000 + b'"}', FOOD),
        (b" " * 2_000_000 + b"{}", FOOD),
    ],
    ids=["list", "broken", "nameless", "another", "metadata", "long text", "long file"],
)
async def test_a_file_that_is_no_such_document_is_refused(
    store: DocumentStore, file: bytes, resource: str | None
) -> None:
    with pytest.raises(InvalidInput):
        await store.import_document(USER, file, at=NOW, resource=resource)
    assert await store.history(USER) == ()
