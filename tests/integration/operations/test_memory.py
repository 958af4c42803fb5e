"""Operations on memories, called directly on real servers: what is shown, found, told, reviewed and changed."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    NotPermitted,
    UnknownPath,
)
from tasklore.contracts.messages import (
    ChatTurn,
    CompletionReport,
    ErrorNote,
    ExtractedFacts,
    Fact,
    MemoryNote,
)
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.queues.claims import Closing
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.servers.claims import free_port
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue, Offer
from tasklore.supervisor.operations import memories
from tasklore.supervisor.operations.forms import Lines, Tagged, Text
from tasklore.supervisor.operations.memory.documents import (
    export_files,
    list_documents,
    read_document,
    show_difference,
    show_memory,
)
from tasklore.supervisor.operations.memory.hand_edits import (
    DocumentFile,
    Erased,
    MemoryHands,
    OperatorMemory,
    Redo,
    Redoing,
    forget_everything,
    import_documents,
    redo_plan,
)
from tasklore.supervisor.operations.memory.history import (
    Undo,
    explain_entry,
    list_document_plans,
    list_plans,
    undo_document_plan,
    undo_plan,
)
from tasklore.supervisor.operations.memory.items import (
    KeptTurns,
    NewItem,
    add_item,
    bring_memory_back,
    change_settings,
    clear_memory,
    delete_item,
    list_items,
    show_settings,
)
from tasklore.supervisor.operations.memory.review import audit_memory, list_conflicts
from tasklore.supervisor.operations.memory.services import (
    MemoryServices,
    MemoryTask,
    TaskSeen,
    find_resource,
)
from tasklore.supervisor.operations.memory.turns import (
    Telling,
    list_facts,
    list_waiting,
    see_turn,
    tell_turn,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.table import Unfinished
from tasklore.workers.agents.memory_worker import agent
from tasklore.workers.agents.memory_worker.runner import edit
from tasklore.workers.card import card_of
from tasklore.workers.listening.values import PendingFact
from tests.integration.documents import (
    FOOD,
    HEALTH,
    NOW,
    ROUTINE,
    commit,
    item,
    like,
    plan,
    store_on,
)
from tests.integration.http_stand import http_stand
from tests.memory_bench import BenchContext, Model, batch
from tests.servers import PATIENCE_S

USER = "ana"
ROOT = Caller(name="root", roles=frozenset({"admin"}))
ANA = Caller(name="ana", roles=frozenset({"ask", "read", "operate"}), user=USER)
BOB = Caller(name="bob", roles=frozenset({"ask", "read", "operate"}), user="bob")

#: A file as they are written by hand, with entries aligned and numbers that JSON spells otherwise.
SEED = """{
  "_metadata": {
    "resource_id": "resource_user_food_prefs",
    "tags": ["food"],
    "last_updated": "2025-12-28"
  },
  "food": {
    "likes": [
      {
        "item": "pasta_carbonara",
        "display": "Pasta (especially carbonara)",
        "added": "2025-12-28",
        "expiry": null
      },
      {"item": "lox",   "display": "Lox", "confidence": 1.50}
    ]
  }
}
"""
#: Whatever JSON is, in a document of no kind.
ODD = r'{"_metadata": {"resource_id": "resource_user_books"}, "a": [1, null, [], {}, {"b": "x\u001b[2J\ny"}], "": 1e3}'


@dataclass
class Agreeing:
    """An embedder to which all texts are alike."""

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]


@dataclass
class Worker:
    """A memory worker that does an undo at once, and answers other tasks as it is told."""

    store: DocumentStore
    sent: list[MemoryTask] = field(default_factory=list)
    error: ErrorNote | None = None
    is_away: bool = False

    async def send(
        self, caller: Caller, offer: Offer, task: MemoryTask, wait_s: float
    ) -> TaskSeen:
        self.sent.append(task)
        if self.is_away:
            return TaskSeen(task_id="t-1", report=None)
        result: dict[str, Any] = dict(task.parameters)
        if task.name == "undo":
            plan_id = str(task.parameters["plan_id"])
            record = await self.store.undo(task.owner, plan_id, at=NOW)
            result = {
                "plan_id": record.plan_id,
                "undoes": record.undoes,
                "revisions": dict(record.revisions),
            }
        return TaskSeen(task_id="t-1", report=self._report(task.name, result))

    def _report(self, name: str, result: dict[str, Any]) -> CompletionReport:
        return CompletionReport(
            task_id="t-1",
            agent_id="MemoryAgent",
            supervisor_id="S",
            task_name=name,
            status="completed" if self.error is None else "rejected",
            result=result if self.error is None else None,
            error=self.error,
            memory=MemoryNote(outcome="off"),
            attempt=1,
            worker_id="w",
            finished_at=NOW,
        )


@pytest.fixture
def store(redis: Redis) -> DocumentStore:
    return store_on(redis)


@pytest.fixture
def worker(store: DocumentStore) -> Worker:
    return Worker(store)


@pytest.fixture
async def services(
    servers: EmbeddedServers, redis: Redis, store: DocumentStore, worker: Worker
) -> AsyncIterator[MemoryServices]:
    cards = Catalogue([card_of(agent)])
    async with http_stand(servers, redis, catalogue=lambda: cards) as stand:
        made = memories.for_supervisor(stand.parts)
        yield replace(
            made,
            reader=store,
            turns=PersonalQueue(redis, "turns", deadline_s=PATIENCE_S),
            facts=PersonalQueue(redis, "facts", deadline_s=PATIENCE_S),
            episodes=Episodes(redis, deadline_s=PATIENCE_S),
            send=worker.send,
            embedder=lambda: None,
        )


@pytest.fixture
def editing(store: DocumentStore) -> OperatorMemory:
    return editing_on(store)


def editing_on(store: DocumentStore, erased: Erased | None = None) -> OperatorMemory:
    """Return the services of an operator who edits what *store* has."""

    async def put(file: DocumentFile) -> Any:
        return await store.import_document(
            file.owner, file.content, at=file.at, resource=file.resource
        )

    async def redo(asked: Redo) -> Any:
        return await store.redo(asked.owner, asked.plan_id, at=asked.at)

    async def erase(_user: str) -> Erased:
        return erased or Erased(removed={}, left={}, beside={})

    async def purge(_user: str) -> Erased:
        return Erased(removed={"hidden keys": 3}, left={}, beside={})

    # Looks by it are those of supervisors.
    nothing: Any = None
    return OperatorMemory(
        reader=store,
        kinds=Kinds.load(),
        episodes=nothing,
        turns=nothing,
        facts=nothing,
        embedder=lambda: None,
        dispatch=nothing,
        records=nothing,
        hands=MemoryHands(put=put, redo=redo, erase=erase, purge=purge),
    )


async def learn(store: DocumentStore) -> None:
    """Store two plans of one like each."""
    await commit(
        store,
        plan("p-first-1", like("Eggs"), evidence="I like eggs", turn_id="t1"),
        user=USER,
    )
    await commit(
        store,
        plan("p-later-2", like("Lox", expiry="2999-01-01", confidence=0.5)),
        user=USER,
    )


@asynccontextmanager
async def refused(status: int, words: str) -> AsyncIterator[None]:
    """Demand a refusal with *status* and *words* within the block."""
    with pytest.raises(Refused, match=words) as raised:
        yield
    assert raised.value.problem.status == status


def lines_of(*values: Any) -> Lines:
    return Lines(tuple(values))


async def test_an_empty_memory_has_empty_views(services: MemoryServices) -> None:
    """Nothing is an answer, not an error."""
    shown = await show_memory(services, ROOT, USER)
    assert not isinstance(shown, Text)
    assert not any(one.revision for one in shown.documents)
    markdown = await show_memory(services, ROOT, USER, form="markdown")
    assert markdown == Text(text="", media_type="text/markdown")
    facts = await list_facts(services, ROOT, USER)
    assert (facts.facts, facts.after, facts.waiting) == ((), None, 0)
    plans = await list_plans(services, ROOT, USER, resource="food")
    assert (plans.plans, plans.after) == ((), None)
    found = await list_conflicts(services, ROOT, USER)
    assert found.conflicts == ()

    def must_not_load() -> None:
        raise AssertionError

    audit = await audit_memory(replace(services, embedder=must_not_load), ROOT, USER)
    assert (audit.entries, audit.alike) == (0, None)
    assert [one async for one in await export_files(services, ROOT, USER)] == []


async def test_documents_are_shown_by_paths_that_explain_takes(
    services: MemoryServices, store: DocumentStore
) -> None:
    """With revisions, days and how sure an entry is; as they were, too."""
    await learn(store)
    shown = await show_memory(services, ROOT, USER, resource="food")
    assert not isinstance(shown, Text)
    (food,) = shown.documents
    assert (food.resource, food.revision) == (FOOD, 2)
    eggs, lox = food.entries
    assert (eggs.path, eggs.text) == ("food.likes[0]", "Eggs")
    assert (lox.path, lox.text) == ("food.likes[1]", "Lox")
    assert lox.notes[0] == "until 2999-01-01"
    assert (
        food.body["food"] == (await store.snapshot(USER)).documents[FOOD].body["food"]
    )
    for at, count in (("1", 1), ("2", 2), ("2026-03-01", 2), ("2026-02-28", 0)):
        then = await show_memory(services, ROOT, USER, resource="food", at=at)
        assert not isinstance(then, Text)
        assert len(then.documents[0].entries) == count
    markdown = await show_memory(services, ROOT, USER, form="markdown")
    assert isinstance(markdown, Text)
    assert '- "Eggs"' in markdown.text
    explained = await explain_entry(services, ROOT, USER, path="food.likes[0]")
    assert (explained.resource, explained.path) == (FOOD, "food.likes[0]")
    (told,) = explained.plans
    assert (told.plan_id, told.evidence, told.turn_id) == (
        "p-first-1",
        "I like eggs",
        "t1",
    )


async def test_a_document_is_read_as_it_is_stored(
    services: MemoryServices, store: DocumentStore
) -> None:
    """With a tag that changes with it, or as Markdown; by its id or a word for it."""
    await learn(store)
    read = await read_document(services, ROOT, USER, "food")
    assert isinstance(read, Tagged)
    assert read.etag.startswith('"2-')
    assert read.view.root == (await store.snapshot(USER)).documents[FOOD].body
    empty = await read_document(services, ROOT, USER, ROUTINE)
    assert isinstance(empty, Tagged)
    assert empty.etag == '"0"'
    text = await read_document(services, ROOT, USER, FOOD, form="markdown")
    assert isinstance(text, Text)
    assert '- "Lox"' in text.text
    listed = (await list_documents(services, ROOT, USER)).documents
    assert {one.resource: one.revision for one in listed}[FOOD] == 2


async def test_a_document_of_any_shape_is_shown(
    services: MemoryServices, editing: OperatorMemory
) -> None:
    """What is JSON has an entry of one line each."""
    await import_documents(editing, ROOT, USER, lines_of({"content": ODD}))
    shown = await show_memory(services, ROOT, USER, resource="books")
    assert not isinstance(shown, Text)
    entries = {one.path: one.text for one in shown.documents[0].entries}
    assert entries["a[4].b"] == "x\x1b[2J y"
    read = await read_document(services, ROOT, USER, "books")
    assert isinstance(read, Tagged)
    assert json.loads(read.view.model_dump_json()) == read.view.root
    await audit_memory(services, ROOT, USER)
    await list_conflicts(services, ROOT, USER, resource="books")
    assert (await list_document_plans(services, ROOT, USER, "books")).plans
    difference = await show_difference(services, ROOT, USER, "books", since=0)
    assert difference.changes


async def test_history_pages_and_names_what_changed(
    services: MemoryServices, store: DocumentStore
) -> None:
    """Every plan once, the newest first, with a line for each change."""
    await learn(store)
    await commit(store, plan("p-third-3", like("Tea")), user=USER)
    first = await list_plans(services, ROOT, USER, resource="food", limit=2)
    assert [one.plan_id for one in first.plans] == ["p-third-3", "p-later-2"]
    assert first.after is not None
    # What is edited meanwhile shifts no page.
    await commit(store, plan("p-fourth-4", like("Milk")), user=USER)
    rest = await list_plans(services, ROOT, USER, resource="food", after=first.after)
    assert [one.plan_id for one in rest.plans] == ["p-first-1"]
    assert rest.after is None
    (line,) = rest.plans[0].lines[FOOD]
    assert (line.mark, line.where, line.what) == ("+", "food.likes[0]", "Eggs")
    change = rest.plans[0].changes[FOOD][-1]
    assert (change.had, change.has) == (False, True)
    assert [one.state for one in rest.plans] == ["stands"]


async def test_an_undo_takes_the_end_of_a_plan_id_or_the_last_that_stands(
    services: MemoryServices, store: DocumentStore, worker: Worker
) -> None:
    """As a list shows it; the memory agent does it."""
    await learn(store)
    done = await undo_plan(services, ROOT, USER, Undo(plan_id="-first-1"))
    assert not isinstance(done, Unfinished)
    assert (done.undoes, done.revisions) == ("p-first-1", {FOOD: 3})
    assert worker.sent[0].parameters == {"plan_id": "p-first-1"}
    last = await undo_plan(services, ROOT, USER, Undo())
    assert not isinstance(last, Unfinished)
    assert last.undoes == "p-later-2"
    states = [one.state for one in (await list_plans(services, ROOT, USER)).plans]
    assert states == ["takes back", "takes back", "taken back", "taken back"]
    async with refused(409, "no plan that could be taken back"):
        await undo_plan(services, ROOT, USER, Undo())
    async with refused(404, "nowhere-1"):
        await undo_plan(services, ROOT, USER, Undo(plan_id="nowhere-1"))
    async with refused(422, "plan_id"):
        await undo_plan(services, ROOT, USER, Undo(), idempotency_key="once")
    await commit(
        store,
        plan("a-same-end-1", like("Tea")),
        plan("b-same-end-1", like("Milk")),
        user=USER,
    )
    async with refused(422, "ends 2 ids"):
        await undo_plan(services, ROOT, USER, Undo(plan_id="same-end-1"))
    async with refused(404, "there is no plan"):
        await undo_document_plan(
            services, ROOT, USER, "health", Undo(plan_id="a-same-end-1")
        )


async def test_what_an_operator_applies_again_stands(
    store: DocumentStore, editing: OperatorMemory
) -> None:
    """By the plan, the end of its id, or the last that was taken back."""
    await learn(store)
    async with refused(409, "applied again"):
        await redo_plan(editing, ROOT, USER, Redoing())
    await store.undo(USER, "p-first-1", at=NOW)
    told = await redo_plan(editing, ROOT, USER, Redoing(plan_id="-first-1"))
    assert (told.kind, told.state) == ("redo", "applies again")
    async with refused(409, "nowhere-1"):
        await redo_plan(editing, ROOT, USER, Redoing(plan_id="nowhere-1"))


async def test_a_difference_is_between_the_last_two_revisions_or_named_ones(
    services: MemoryServices, store: DocumentStore
) -> None:
    """Both ways, and none."""
    await learn(store)

    async def lines(since: int | None, until: int | None) -> list[str]:
        found = await show_difference(
            services, ROOT, USER, "food", since=since, until=until
        )
        return [f"{one.mark} {one.where}: {one.what}" for one in found.lines]

    assert await lines(None, None) == ["+ food.likes[1]: Lox"]
    assert await lines(2, 0) == ["- food.likes[0]: Eggs", "- food.likes[1]: Lox"]
    assert await lines(1, 1) == []
    found = await show_difference(services, ROOT, USER, "food")
    assert (found.since, found.until) == (1, 2)
    assert [one.path for one in found.changes] == ["food.likes[1]"]


async def test_a_wrong_argument_is_refused_with_the_cure(
    services: MemoryServices, store: DocumentStore
) -> None:
    """Whatever is looked for."""
    await learn(store)
    async with refused(422, "resource"):
        await show_memory(services, ROOT, USER, at="1")
    async with refused(422, "2026-05-01"):
        await show_memory(services, ROOT, USER, at="yesterday")
    with pytest.raises(InvalidInput, match="from 0 to 2"):
        await show_memory(services, ROOT, USER, resource="food", at="9")
    async with refused(404, FOOD):
        await show_memory(services, ROOT, USER, resource="fod")
    async with refused(422, "means several"):
        await read_document(services, ROOT, USER, "user")
    async with refused(404, "documents shows what is there"):
        await explain_entry(services, ROOT, USER, path="food.likes[9]")
    with pytest.raises(UnknownPath):
        await explain_entry(services, ROOT, USER, path="food.likes[9]", resource="food")
    with pytest.raises(InvalidInput, match="character 12"):
        await explain_entry(services, ROOT, USER, path="food.likes[")
    with pytest.raises(InvalidInput, match="user_id"):
        await show_memory(services, ROOT, " ")
    async with refused(422, "first page"):
        await list_facts(services, ROOT, USER, after="f-9")
    assert len(await store.history(USER)) == 2


@pytest.mark.parametrize("word", [FOOD, f"{FOOD}.json", "food", "FOOD"])
def test_a_document_is_found_by_id_file_tag_or_word(word: str) -> None:
    """One of a user that is of no kind, too."""
    assert find_resource(word, Kinds.load()) == FOOD
    stored = ["resource_user_books"]
    for books in ("resource_user_books", "books"):
        assert find_resource(books, Kinds.load(), stored) == stored[0]


@pytest.mark.parametrize(
    ("word", "status"), [("foo", 404), ("user", 422), ("", 404), ("books", 404)]
)
async def test_a_word_for_no_document_or_several_is_refused(
    word: str, status: int
) -> None:
    """With those that there are."""
    async with refused(status, FOOD):
        find_resource(word, Kinds.load())


@pytest.mark.parametrize(
    "content", [SEED, ODD, SEED.replace("\n", "\r\n"), "\ufeff" + ODD]
)
async def test_an_imported_document_is_exported_to_the_byte(
    content: str, services: MemoryServices, editing: OperatorMemory
) -> None:
    """However it was written."""
    given = lines_of({"file": "some.json", "content": content})
    done = await import_documents(editing, ROOT, USER, given)
    assert [one.error for one in done.files] == [None]
    (file,) = [one async for one in await export_files(services, ROOT, USER)]
    assert file.content.encode() == content.encode()
    named = await export_files(services, ROOT, USER, resource=file.resource)
    assert [one async for one in named] == [file]
    again = await import_documents(editing, ROOT, USER, given)
    assert [(one.plan_id, one.revisions) for one in again.files] == [(None, {})]


@pytest.mark.parametrize(
    "content",
    ["[]", "no json", '{"a": 1}', SEED.replace(FOOD, "../evil"), " " * 3_000_000],
    ids=["list", "no json", "nameless", "evil", "huge"],
)
async def test_an_import_refuses_a_wrong_file_and_stores_the_others(
    content: str, store: DocumentStore, editing: OperatorMemory
) -> None:
    """Each is answered by its name."""
    given = lines_of(
        {"file": "bad.json", "content": content},
        {"file": "good.json", "content": SEED},
    )
    bad, good = (await import_documents(editing, ROOT, USER, given)).files
    assert (bad.file, good.file) == ("bad.json", "good.json")
    assert bad.error
    assert good.error is None
    assert [record.revisions for record in await store.history(USER)] == [{FOOD: 1}]


async def test_lines_that_are_no_files_are_named_and_nothing_is_stored(
    store: DocumentStore, editing: OperatorMemory
) -> None:
    """A line of another shape is a fault of the request."""
    async with refused(422, r"line 2\.content"):
        await import_documents(
            editing, ROOT, USER, lines_of({"content": SEED}, {"content": 1})
        )
    assert await store.history(USER) == ()


async def test_a_nameless_file_is_imported_under_a_resource(
    store: DocumentStore, editing: OperatorMemory
) -> None:
    """A word means a document that there is; a whole name may be new."""
    done = await import_documents(
        editing,
        ROOT,
        USER,
        lines_of(
            {"content": '{"a": 1}', "resource": "routine"},
            {"content": '{"a": 1}', "resource": "resource_user_new.json"},
            {"content": '{"a": 1}', "resource": "fod"},
            {"content": SEED, "resource": "routine"},
        ),
    )
    errors = [one.error or "" for one in done.files]
    assert errors[:2] == ["", ""]
    assert "resource_... for a new one" in errors[2]
    assert "not 'resource_user_routine'" in errors[3]
    documents = (await store.snapshot(USER)).documents
    stored = [one for one, document in documents.items() if document.revision]
    assert stored == [ROUTINE, "resource_user_new"]


async def test_conflicts_and_an_audit_name_the_entries(
    services: MemoryServices, store: DocumentStore
) -> None:
    """With the share of each finding."""
    disliked: list[JsonValue] = [item("eggs")]
    await commit(store, plan("p1", like("Eggs"), like("Lox"), like("lox")), user=USER)
    content = json.dumps(
        {
            "_metadata": {"resource_id": FOOD},
            "food": {"likes": [item("Eggs")] * 2, "dislikes": disliked},
        }
    )
    await store.import_document(USER, content.encode(), at=NOW)
    (conflict,) = (
        await list_conflicts(services, ROOT, USER, resource="food")
    ).conflicts
    assert conflict.why == "opposite"
    entries = {(one.resource, one.path, one.text) for one in conflict.entries}
    assert (FOOD, "food.likes[0]", "Eggs") in entries
    assert (FOOD, "food.dislikes[0]", "eggs") in entries
    assert (
        await list_conflicts(services, ROOT, USER, resource="health")
    ).conflicts == ()
    audit = await audit_memory(services, ROOT, USER)
    assert (audit.entries, audit.documents) == (3, len(Kinds.load().ids))
    assert audit.rates["duplicate"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("fact", "inferred", "sides"),
    [
        # The conclusion is no item: the words that it rests on are shown.
        ({"relation": "ends", "text": "You may eat eggs again"}, True, "You may eat"),
        # A plain text cannot be marked.
        ({"relation": "contradicts", "text": "Lox", "value": "lox"}, True, "Eggs"),
    ],
)
async def test_both_sides_of_a_conflict_are_shown(
    services: MemoryServices,
    store: DocumentStore,
    fact: dict[str, Any],
    sides: str,
    *,
    inferred: bool,
) -> None:
    """Whichever of them is an entry, and in whichever document the other one stands."""
    is_item = fact["relation"] == "ends"
    eggs: JsonValue = item("Eggs", source="stated:t0") if is_item else "Eggs"
    document = {"_metadata": {"resource_id": FOOD}, "food": {"avoids": [eggs]}}
    await store.import_document(USER, json.dumps(document).encode(), at=NOW)
    draft = Draft(await store.snapshot(USER), LIMITS, NOW)
    entry = "food.avoids.eggs" if is_item else "food.avoids[0]"
    said = Fact(
        fact_id="f1",
        category="food.avoids",
        inferred=inferred,
        related=(f"{FOOD}:{entry}",),
        **fact,
    )
    context = BenchContext(Model(), draft)
    (ruling,) = await edit(batch(PendingFact(fact=said, turn_id="t9")), context)
    assert ruling.outcome == "conflict"
    await store.commit(draft)
    (conflict,) = (
        await list_conflicts(services, ROOT, USER, resource="food")
    ).conflicts
    texts = [one.text for one in conflict.entries] + list(conflict.against)
    assert len(texts) == 2
    assert any(sides in text for text in texts)


async def test_an_audit_proposes_pairs_of_one_list_and_changes_nothing(
    services: MemoryServices, store: DocumentStore
) -> None:
    """What numbers distinguish, and what stands in two lists, is no pair."""
    likes = [
        item("photography"),
        item("taking photos"),
        item("taking 3 photos"),
        item("Photography"),
    ]
    food: dict[str, Any] = {"likes": likes, "dislikes": [item("photos")], "pets": 2}
    content = json.dumps({"_metadata": {"resource_id": FOOD}, "food": food})
    await store.import_document(USER, content.encode(), at=NOW)
    before = await store.snapshot(USER)
    audit = await audit_memory(replace(services, embedder=Agreeing), ROOT, USER)
    assert audit.alike is not None
    pairs = [[one.path for one in pair] for pair in audit.alike]
    assert pairs == [
        ["food.likes[0]", "food.likes[1]"],
        ["food.likes[1]", "food.likes[3]"],
    ]
    assert (await audit_memory(services, ROOT, USER)).alike is None
    assert await store.snapshot(USER) == before


async def test_a_turn_that_no_worker_takes_is_kept_and_not_settled(
    services: MemoryServices,
) -> None:
    """The answer says where to ask for its end."""
    told = await tell_turn(
        services, ROOT, USER, Telling(text=" I like eggs ", wait_seconds=0)
    )
    assert isinstance(told, Unfinished)
    assert (told.view.state, told.view.settled) == (None, False)
    assert told.location == f"/v1/memory/ana/turns/{told.view.turn_id}"
    assert isinstance(
        await see_turn(services, ROOT, USER, told.view.turn_id), Unfinished
    )
    with pytest.raises(ValueError, match="blanks"):
        Telling(text=" ")


async def test_a_turn_that_is_told_again_under_one_key_is_one_turn(
    services: MemoryServices,
) -> None:
    """Also where its first answer was lost; other words under the key are refused, and each user has their own."""
    telling = Telling(text="I like eggs", wait_seconds=0)
    first, again, other = [
        await tell_turn(services, ROOT, user, telling, idempotency_key="k")
        for user in (USER, USER, "bob")
    ]
    for told in (first, again, other):
        assert isinstance(told, Unfinished)
    assert first == again
    assert first.location != other.location
    with pytest.raises(Refused, match="another body") as refused:
        await tell_turn(
            services,
            ROOT,
            USER,
            telling.model_copy(update={"text": "I like tea"}),
            idempotency_key="k",
        )
    assert refused.value.problem.status == 409
    assert await tell_turn(services, ROOT, USER, telling) != first


async def test_the_outcome_of_a_turn_is_seen_until_its_facts_are_decided(
    services: MemoryServices, store: DocumentStore
) -> None:
    """Read, learned, found, decided; its facts and plans come along."""
    turns, facts = services.turns, services.facts
    turn = ChatTurn(
        turn_id="turn-1",
        conversation_id="c",
        user_id=USER,
        speaker="person",
        text="I like eggs",
        at=NOW,
    )
    extracted = ExtractedFacts(
        turn_id="turn-1",
        conversation_id="c",
        user_id=USER,
        facts=(Fact(fact_id="f-1", text="User likes eggs"),),
        at=NOW,
    )

    async def state() -> tuple[str | None, bool]:
        seen = await see_turn(services, ROOT, USER, "turn-1")
        view = seen.view if isinstance(seen, Unfinished) else seen
        return view.state, view.settled

    assert await state() == (None, False)
    await turns.append(USER, [("turn-1", turn.model_dump_json().encode())])
    assert await state() == ("waiting", False)
    waiting = await list_waiting(services, ROOT, USER)
    assert [(one.kind, one.row_id) for one in waiting.rows] == [("turn", "turn-1")]
    assert waiting.total == 1
    await close(turns, "turn-1", "learned")
    assert await state() == ("waiting", False)
    await facts.append(USER, [("f-1", extracted.model_dump_json().encode())])
    await commit(store, plan("f-1", like("Eggs")), user=USER)
    await close(facts, "f-1", "tells like: eggs", plan_id="f-1")
    done = await see_turn(services, ROOT, USER, "turn-1")
    assert not isinstance(done, Unfinished)
    assert (done.state, done.settled) == ("done", True)
    (fact,) = done.facts
    assert (fact.text, fact.state, fact.reason) == (
        "User likes eggs",
        "done",
        "tells like: eggs",
    )
    assert [one.plan_id for one in done.plans] == ["f-1"]
    listed = await list_facts(services, ROOT, USER)
    assert listed.facts == (fact,)
    assert listed.closed["done"] == 1


async def test_facts_come_page_by_page(services: MemoryServices) -> None:
    """Each once, whatever its state."""
    body = b'{"unreadable": true}'
    await services.facts.append(USER, [(f"f-{n}", body) for n in range(5)])
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await list_facts(services, ROOT, USER, after=after, limit=2)
        seen += [one.fact_id for one in page.facts]
        after = page.after
    assert seen == [f"f-{n}" for n in range(5)]
    assert page.facts[0].fact is None


async def test_changes_are_tasks_of_the_memory_agent(
    services: MemoryServices, store: DocumentStore, worker: Worker
) -> None:
    """Each with its parameters, under the id that its sender chose; only what adds is counted."""
    await learn(store)
    items = (await list_items(services, ROOT, USER, category="food")).items
    assert [one.text for one in items] == ["Eggs", "Lox"]
    new = NewItem(category="food.likes", value="Tea")
    await add_item(services, ROOT, USER, new, idempotency_key="once")
    await delete_item(services, ROOT, USER, items[0].reference)
    await change_settings(services, ROOT, USER, KeptTurns(is_on=False))
    await clear_memory(services, ROOT, USER, confirm="forget")
    await bring_memory_back(services, ROOT, USER)
    sent = [(one.name, one.chosen, one.adds, one.owner) for one in worker.sent]
    assert sent == [
        ("change_item", "once", True, USER),
        ("change_item", None, False, USER),
        ("keep_turns", None, False, USER),
        ("forget_me", None, False, USER),
        ("bring_back", None, False, USER),
    ]
    assert worker.sent[1].parameters == {
        "operation": "delete",
        "reference": items[0].reference,
    }
    assert (await show_settings(services, ROOT, USER)).is_on
    async with refused(404, "there is no item"):
        await delete_item(services, ROOT, USER, "food:nothing")


async def test_a_change_says_how_it_ended(
    services: MemoryServices, worker: Worker
) -> None:
    """Later, refused, or impossible without a memory worker."""
    new = NewItem(category="food.likes", value="Tea")
    worker.is_away = True
    later = await add_item(services, ROOT, USER, new)
    assert isinstance(later, Unfinished)
    assert (later.view.state, later.location) == ("accepted", "/v1/tasks/t-1")
    worker.is_away = False
    worker.error = ErrorNote(type="InvalidInput", message="category is unknown")
    async with refused(422, "category is unknown"):
        await add_item(services, ROOT, USER, new)
    worker.error = ErrorNote(type="UndoRefused", message="touched later")
    async with refused(409, "touched later"):
        await add_item(services, ROOT, USER, new)
    nobody = replace(services, catalogue=lambda: Catalogue([]))
    async with refused(503, "no memory worker"):
        await add_item(nobody, ROOT, USER, new)


async def test_nothing_is_sent_while_the_store_is_away(
    services: MemoryServices, worker: Worker
) -> None:
    """No worker could do it: who asks hears so at once, and not when the time for an answer is over."""
    async with Redis(port=free_port(), retry=None) as nowhere:
        away = replace(services, episodes=Episodes(nowhere, deadline_s=0.2))
        with pytest.raises(MemoryUnavailable):
            await clear_memory(away, ROOT, USER, confirm="forget")
        with pytest.raises(MemoryUnavailable):
            await change_settings(away, ROOT, USER, KeptTurns())
        with pytest.raises(MemoryUnavailable):
            await add_item(away, ROOT, USER, NewItem(category="food", value="Tea"))
    assert worker.sent == []


async def test_forgetting_answers_with_its_proof(store: DocumentStore) -> None:
    """What was removed, what is left, and beside what remains may lie."""
    done = Erased(removed={"turns": 2}, left={"tasks": 1}, beside={"TASKS": 3})
    shown = await forget_everything(editing_on(store, done), ANA, USER)
    assert (shown.removed, shown.left, shown.beside) == (
        {"turns": 2},
        {"tasks": 1},
        {"TASKS": 3},
    )
    assert not shown.now
    part = await forget_everything(editing_on(store, done), ANA, USER, now=True)
    assert (part.now, part.removed, part.left) == (True, {"hidden keys": 3}, {})


#: What each operation is called with beside its user.
_GIVEN: dict[str, dict[str, Any]] = {
    "memory_tell": {"telling": Telling(text="hi")},
    "memory_turn": {"turn_id": "t"},
    "memory_document": {"resource": "food"},
    "memory_diff": {"resource": "food"},
    "memory_search": {"question": "food?"},
    "memory_hand_in": {"said": None},
    "memory_add_item": {"new": NewItem(category="food.likes", value="Tea")},
    "memory_change_item": {"reference": "r", "changed": None},
    "memory_delete_item": {"reference": "r"},
    "memory_change_settings": {"kept": KeptTurns()},
    "memory_clear": {"confirm": "forget"},
    "memory_document_history": {"resource": "food"},
    "memory_explain": {"path": "food.likes[0]"},
    "memory_undo": {"undo": Undo()},
    "memory_document_undo": {"resource": "food", "undo": Undo()},
    "memory_import": {"lines": lines_of()},
    "memory_redo": {"redo": Redoing()},
}


@pytest.mark.parametrize("operation", memories.OPERATIONS, ids=lambda one: one.id)
async def test_a_key_of_another_user_sees_and_changes_nothing(
    operation: Any,
    services: MemoryServices,
    store: DocumentStore,
    editing: OperatorMemory,
) -> None:
    """Neither is a role enough, nor another user's key; a scope beside users needs a key of none."""
    await learn(store)
    lent = editing if operation in memories.EDITS else services
    given = _GIVEN.get(operation.id, {})
    nobody = Caller(name="none", roles=frozenset({"approve"}), user=USER)
    with pytest.raises(NotPermitted, match="role"):
        await operation(lent, nobody, USER, **given)
    with pytest.raises(NotPermitted, match="another user"):
        await operation(lent, BOB, USER, **given)
    if operation.id not in ("memory_tell", "memory_turn", "memory_forget"):
        async with refused(403, "for one user"):
            await operation(lent, BOB, USER, scope="org", **given)
    assert len(await store.history(USER)) == 2


async def test_a_key_of_a_user_sees_its_own(
    services: MemoryServices, store: DocumentStore
) -> None:
    """And a key of none sees the memory of an organisation."""
    await learn(store)
    assert (await list_items(services, ANA, USER)).items
    shown = await list_items(services, ROOT, "acme", scope="org")
    assert (shown.user, shown.items) == ("org/acme", ())
    assert (await show_memory(services, ANA, USER, resource=HEALTH)) is not None


async def close(
    queue: PersonalQueue, row_id: str, reason: str, plan_id: str | None = None
) -> None:
    """Close a row as done."""
    claim = await queue.claim(USER, holder="test", limit=1, lease_ms=30_000, now_ms=0)
    assert claim is not None
    assert await queue.close(
        claim, [Closing(row_id=row_id, state="done", reason=reason, plan_id=plan_id)]
    )
    await queue.release(claim)
