"""`tasklore memory` on real servers: output, changes, refusals, and awaiting the outcome of a turn."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.commands.exits import FAILED, OK, USAGE
from tasklore.commands.memory import tell as telling
from tasklore.commands.memory.files import export_documents, import_documents
from tasklore.commands.memory.history import (
    print_difference,
    print_explanation,
    print_history,
    print_undo,
)
from tasklore.commands.memory.migration import migrate_folder
from tasklore.commands.memory.review import print_audit, print_conflicts
from tasklore.commands.memory.stores import user_memory
from tasklore.commands.memory.tell import make_turn, outcome_of, publish_turn, tell
from tasklore.commands.memory.views import print_documents, print_facts
from tasklore.contracts.errors import (
    InvalidInput,
    TaskloreError,
    UndoRefused,
    UnknownPath,
    Unreachable,
)
from tasklore.contracts.messages import ExtractedFacts, Fact
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.claims import Closing
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.streams import Sizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.workers.agents.memory_worker.runner import edit
from tasklore.workers.listening.values import PendingFact
from tests.integration.documents import (
    FOOD,
    NOW,
    ROUTINE,
    commit,
    item,
    like,
    plan,
    store_on,
)
from tests.memory_bench import BenchContext, Model, batch
from tests.servers import PATIENCE_S

USER = "ana"

#: A file as they are written by hand, with entries aligned and numbers that JSON spells otherwise.
SEED = b"""{
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
ODD = rb'{"_metadata": {"resource_id": "resource_user_books"}, "a": [1, null, [], {}, {"b": "x\u001b[2J\ny"}], "": 1e3}'

OLDER = """# Food

## Likes
- Pasta
- Sushi on Fridays

## Whatever this is
- Peanuts
"""


pytestmark = pytest.mark.usefixtures("command_servers")


@pytest.fixture
def store(redis: Redis) -> DocumentStore:
    return store_on(redis)


def names_in(folder: Path) -> list[str]:
    """Return the names of the files in *folder*."""
    return sorted(one.name for one in folder.iterdir())


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


async def test_an_empty_memory_is_said_in_words_and_as_json(
    printed: Callable[[], str],
) -> None:
    await print_documents(USER, None, at=None, as_prompt=False, as_json=False)
    assert printed().startswith("Nothing is remembered of ana yet")
    await print_documents(USER, None, at=None, as_prompt=True, as_json=False)
    assert printed() == "Nothing is remembered.\n"
    await print_facts(USER, 20, as_json=False)
    assert printed() == "No fact was found yet in what ana said.\n"
    await print_history(USER, "food", 20, as_json=False)
    assert printed() == f"Nothing was ever edited for ana in {FOOD}.\n"
    await print_audit(USER, None, as_json=False)
    assert printed() == "Nothing is remembered of ana yet.\n"
    await print_conflicts(USER, None, as_json=False)
    assert printed() == "Nothing contradicts anything else.\n"
    await print_history(USER, None, 20, as_json=True)
    assert json.loads(printed()) == []


async def test_documents_are_shown_by_paths_that_explain_takes(
    store: DocumentStore, printed: Callable[[], str]
) -> None:
    await learn(store)
    await print_documents(USER, "food", at=None, as_prompt=False, as_json=False)
    first, eggs, lox = printed().splitlines()
    assert first == f"{FOOD}  revision 2"
    assert eggs.startswith("  food.likes[0]: Eggs")
    assert lox.startswith("  food.likes[1]: Lox  (until 2999-01-01, ")
    await print_documents(USER, "food", at=1, as_prompt=False, as_json=True)
    assert [one["display"] for one in json.loads(printed())[FOOD]["food"]["likes"]] == [
        "Eggs"
    ]
    await print_documents(USER, None, at=None, as_prompt=True, as_json=False)
    assert '- "Eggs"' in printed()
    await print_explanation(USER, None, "food.likes[0]", as_json=False)
    shown = printed()
    assert shown.startswith(f"{FOOD} food.likes[0]\n")
    assert "p-first-1" in shown
    assert "I like eggs" in shown
    assert "p-later-2" not in shown


async def test_a_document_of_any_shape_is_shown(
    tmp_path: Path, printed: Callable[[], str]
) -> None:
    (tmp_path / "odd.json").write_bytes(ODD)
    assert await import_documents([tmp_path / "odd.json"], USER, None) == OK
    printed()
    for as_json in (False, True):
        for resource, as_prompt in product(
            (None, "books", "resource_user_books"), (False, True)
        ):
            await print_documents(
                USER, resource, at=None, as_prompt=as_prompt, as_json=as_json
            )
            shown = printed()
            assert "\x1b" not in shown
            assert as_json or as_prompt or "  a[4].b: x[2J y\n" in shown
        await print_audit(USER, None, as_json=as_json)
        await print_conflicts(USER, "books", as_json=as_json)
        await print_history(USER, "books", 20, as_json=as_json)
        await print_difference(USER, "books", 0, None, as_json=as_json)


async def test_history_lists_plans_and_undo_takes_the_end_of_a_plan_id(
    store: DocumentStore, printed: Callable[[], str]
) -> None:
    await learn(store)
    await commit(
        store,
        plan("p-wide-3", *(like(f"dish {number} {'x' * 100}") for number in range(9))),
        user=USER,
    )
    await print_history(USER, "food", 20, as_json=False)
    lines = printed().splitlines()
    assert [line.split()[0] for line in lines] == [
        "PLAN",
        "p-wide-3",
        "-later-2",
        "-first-1",
    ]
    assert lines[1].endswith("; and 6 more")
    assert max(map(len, lines)) < 320
    await print_undo(USER, "-first-1", again=False, as_json=False)
    assert printed().splitlines() == ["taken back p-first-1", "  - food.likes[0]: Eggs"]
    await print_history(USER, None, 20, as_json=True)
    assert [one["state"] for one in json.loads(printed())] == [
        "takes back",
        "stands",
        "stands",
        "taken back",
    ]
    await print_undo(USER, None, again=True, as_json=True)
    assert json.loads(printed())["kind"] == "redo"
    with pytest.raises(UndoRefused, match="nowhere-1"):
        await print_undo(USER, "nowhere-1", again=False, as_json=False)
    await commit(
        store,
        plan("a-same-end-1", like("Tea")),
        plan("b-same-end-1", like("Milk")),
        user=USER,
    )
    with pytest.raises(
        InvalidInput, match=r"b-same-end-1, a-same-end-1|a-same-end-1, b-same-end-1"
    ):
        await print_undo(USER, "same-end-1", again=False, as_json=False)


async def test_a_difference_is_between_the_last_two_revisions_or_named_ones(
    store: DocumentStore, printed: Callable[[], str]
) -> None:
    await learn(store)
    await print_difference(USER, "food", None, None, as_json=False)
    assert printed().splitlines() == [
        f"{FOOD}, revision 1 to 2",
        "  + food.likes[1]: Lox",
    ]
    await print_difference(USER, "food", 2, 0, as_json=False)
    assert printed().splitlines()[1:] == [
        "  - food.likes[0]: Eggs",
        "  - food.likes[1]: Lox",
    ]
    await print_difference(USER, "food", 1, 1, as_json=False)
    assert printed().splitlines()[1:] == ["  nothing changed"]
    await print_difference(USER, "food", None, None, as_json=True)
    assert [one["path"] for one in json.loads(printed())["changes"]] == [
        "food.likes[1]"
    ]


@pytest.mark.parametrize(
    ("command", "error", "words"),
    [
        (
            lambda: print_documents(USER, None, at=1, as_prompt=False, as_json=False),
            InvalidInput,
            "--resource",
        ),
        (
            lambda: print_documents(USER, "food", at=9, as_prompt=False, as_json=False),
            InvalidInput,
            "from 0 to 2",
        ),
        (
            lambda: print_documents(
                USER, "fod", at=None, as_prompt=False, as_json=False
            ),
            InvalidInput,
            "--resource",
        ),
        (
            lambda: print_explanation(USER, None, "food.likes[9]", as_json=False),
            UnknownPath,
            "memory show",
        ),
        (
            lambda: print_explanation(USER, None, "food.likes[", as_json=False),
            InvalidInput,
            "character 12",
        ),
        (
            lambda: print_undo(USER, None, again=True, as_json=False),
            UndoRefused,
            "applied again",
        ),
        (lambda: export_documents(Path("-"), USER, None), InvalidInput, "--resource"),
        (
            lambda: export_documents(Path("/proc/none"), USER, None),
            InvalidInput,
            "/proc/none",
        ),
        (
            lambda: import_documents([Path("a"), Path("b")], USER, "food"),
            InvalidInput,
            "--resource",
        ),
        (
            lambda: import_documents([Path("a")], USER, "fod"),
            InvalidInput,
            r"resource_\.\.\. for a new one",
        ),
        (
            lambda: migrate_folder(Path("/nowhere"), USER, is_dry=True),
            InvalidInput,
            "/nowhere",
        ),
    ],
)
async def test_a_wrong_argument_is_refused_with_the_cure(
    command: Callable[[], Any],
    error: type[TaskloreError],
    words: str,
    store: DocumentStore,
) -> None:
    await learn(store)
    with pytest.raises(error, match=words):
        await command()
    assert len(await store.history(USER)) == 2


async def test_an_unreachable_store_is_named_with_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://127.0.0.1:1")
    with pytest.raises(Unreachable, match="tasklore up"):
        await print_documents(USER, None, at=None, as_prompt=False, as_json=False)
    with pytest.raises(Unreachable, match="TASKLORE_REDIS_URL"):
        await tell("I like eggs", USER, conversation=None, wait_s=0, as_json=False)


@pytest.mark.parametrize(
    "content", [SEED, ODD, SEED.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + ODD]
)
async def test_an_imported_document_is_exported_byte_for_byte(
    content: bytes, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "some.json"
    out = tmp_path / "new" / "folder"
    file.write_bytes(content)
    assert await import_documents([file], USER, None) == OK
    await export_documents(out, USER, None)
    exported = next(out.iterdir())
    assert exported.read_bytes() == content
    capfdbinary.readouterr()
    await export_documents(Path("-"), USER, exported.stem)
    assert capfdbinary.readouterr().out == content
    assert await import_documents([exported], USER, None) == OK
    assert b"as it is remembered already" in capfdbinary.readouterr().out


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"[]",
        b"\xff\xfe",
        b'{"a": 1}',
        SEED.replace(FOOD.encode(), b"../evil"),
        b" " * 3_000_000 + b"{}",
    ],
    ids=["folder", "list", "no text", "nameless", "evil", "huge"],
)
async def test_an_import_refuses_a_wrong_file_and_stores_the_others(
    content: bytes | None,
    tmp_path: Path,
    store: DocumentStore,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = tmp_path / "bad.json"
    good = tmp_path / "good.json"
    good.write_bytes(SEED)
    if content is None:
        bad.mkdir()
    else:
        bad.write_bytes(content)
    assert await import_documents([bad, good], USER, None, as_json=True) == USAGE
    out, err = capsys.readouterr()
    assert [sorted(one) for one in json.loads(out)] == [
        ["error", "file"],
        ["file", "plan_id", "revisions"],
    ]
    assert err.startswith(f"tasklore: {bad}: ")
    assert err.count("\n") == 1
    assert [record.revisions for record in await store.history(USER)] == [{FOOD: 1}]


async def test_a_nameless_file_is_imported_under_the_resource_option(
    tmp_path: Path, store: DocumentStore
) -> None:
    (tmp_path / "a.json").write_bytes(b'{"a": 1}')
    (tmp_path / "b.json").write_bytes(SEED)
    assert await import_documents([tmp_path / "a.json"], USER, "routine") == OK
    assert (
        await import_documents([tmp_path / "a.json"], USER, "resource_user_new.json")
        == OK
    )
    assert await import_documents([tmp_path / "b.json"], USER, "routine") == USAGE
    stored = [
        one
        for one, document in (await store.snapshot(USER)).documents.items()
        if document.revision
    ]
    assert stored == [ROUTINE, "resource_user_new"]


async def test_older_memories_are_migrated_and_archived(
    tmp_path: Path, store: DocumentStore, printed: Callable[[], str]
) -> None:
    older = tmp_path / f"{FOOD}.md"
    older.write_text(OLDER)
    assert await migrate_folder(tmp_path, USER, is_dry=True) == OK
    shown = printed()
    assert '+        "display": "Sushi on Fridays",' in shown
    assert "line 8 is kept at food.other as it is written" in shown
    assert older.read_text() == OLDER
    assert await store.history(USER) == ()
    assert await migrate_folder(tmp_path, USER, is_dry=False) == OK
    shown = printed()
    assert f"{FOOD}.md -> {FOOD}: 3 entries; kept as {FOOD}.md.archive" in shown
    assert "line 8 is kept at food.other" in shown
    assert names_in(tmp_path) == [f"{FOOD}.md.archive"]
    assert (tmp_path / f"{FOOD}.md.archive").read_text() == OLDER
    for is_dry in (True, False):
        assert await migrate_folder(tmp_path, USER, is_dry=is_dry) == OK
        assert printed().startswith("Nothing to migrate")
    assert len(await store.history(USER)) == 1


async def test_a_migration_that_stopped_before_the_rename_is_finished(
    tmp_path: Path, store: DocumentStore
) -> None:
    older = tmp_path / f"{FOOD}.md"
    older.write_text(OLDER)
    assert await migrate_folder(tmp_path, USER, is_dry=False) == OK
    (tmp_path / f"{FOOD}.md.archive").rename(older)
    assert await migrate_folder(tmp_path, USER, is_dry=False) == OK
    assert not older.exists()
    assert len(await store.history(USER)) == 1


async def test_a_migration_never_replaces_a_stored_document(
    tmp_path: Path, store: DocumentStore, capsys: pytest.CaptureFixture[str]
) -> None:
    await learn(store)
    (tmp_path / f"{FOOD}.md").write_text(OLDER)
    (tmp_path / "resource_user_health.md").write_bytes(b"\xff\xfe")
    (tmp_path / f"{ROUTINE}.md").write_text("# Routine\n## Daily\n- Up at 7\n")
    assert await migrate_folder(tmp_path, USER, is_dry=False) == FAILED
    assert names_in(tmp_path) == [
        f"{FOOD}.md",
        "resource_user_health.md",
        f"{ROUTINE}.md.archive",
    ]
    assert capsys.readouterr().err.count("\n") == 2
    assert len(await store.history(USER)) == 3


async def test_conflicts_and_an_audit_name_the_entries(
    store: DocumentStore, printed: Callable[[], str]
) -> None:
    disliked: list[JsonValue] = [item("eggs")]
    await commit(store, plan("p1", like("Eggs"), like("Lox"), like("lox")), user=USER)
    content = json.dumps(
        {
            "_metadata": {"resource_id": FOOD},
            "food": {"likes": [item("Eggs")] * 2, "dislikes": disliked},
        }
    )
    await store.import_document(USER, content.encode(), at=NOW)
    await print_conflicts(USER, "food", as_json=False)
    shown = printed()
    assert f"{FOOD} food.likes[0]: Eggs" in shown
    assert f"{FOOD} food.dislikes[0]: eggs" in shown
    await print_audit(USER, None, as_json=False)
    assert f"3 entries in {len(Kinds.load().ids)} documents" in printed()
    await print_audit(USER, None, as_json=True)
    assert json.loads(printed())["rates"]["duplicate"] == pytest.approx(1 / 3)
    await print_conflicts(USER, None, as_json=True)
    assert len(json.loads(printed())) == 1


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
    store: DocumentStore,
    printed: Callable[[], str],
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
    await print_conflicts(USER, "food", as_json=False)
    shown = printed()
    assert shown.count("\n  ") == 2
    assert sides in shown
    await print_conflicts(USER, "food", as_json=True)
    (conflict,) = json.loads(printed())
    assert len(conflict["entries"]) + len(conflict["against"]) == 2


@pytest.fixture
async def nats(servers: EmbeddedServers) -> Client:  # type: ignore[misc]  # it yields one
    async with connected(servers.nats_url, "test") as client:
        await declare_streams(client, Sizes())
        yield client


async def test_a_turn_that_no_worker_takes_is_kept_and_the_command_fails(
    nats: Client, printed: Callable[[], str]
) -> None:
    assert (
        await tell("I like eggs", USER, conversation=None, wait_s=0, as_json=False)
        == FAILED
    )
    assert printed().startswith("Kept as turn ")
    assert (
        await tell("I like eggs", USER, conversation=None, wait_s=0, as_json=True)
        == FAILED
    )
    assert json.loads(printed())["state"] is None
    assert (await nats.jetstream().stream_info("TURNS")).state.messages >= 1


async def test_the_outcome_of_a_turn_is_awaited_until_its_facts_are_decided(
    nats: Client,
    redis: Redis,
    store: DocumentStore,
    printed: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = make_turn("I like eggs", USER)
    await publish_turn(nats, turn)
    turns, facts = (
        PersonalQueue(redis, name, deadline_s=PATIENCE_S) for name in ("turns", "facts")
    )
    fact = Fact(fact_id="f-1", text="User likes eggs")
    extracted = ExtractedFacts(
        turn_id=turn.turn_id, conversation_id="c", user_id=USER, facts=(fact,), at=NOW
    )
    async with user_memory() as memory:
        assert (await outcome_of(memory, turn, 0)).state is None
        await turns.append(USER, [(turn.turn_id, turn.model_dump_json().encode())])
        assert (await outcome_of(memory, turn, 0)).state == "waiting"
        await close(turns, turn.turn_id, "learned")
        outcome = await outcome_of(memory, turn, 0)
        assert (outcome.state, outcome.is_settled) == ("waiting", False)
        await facts.append(USER, [("f-1", extracted.model_dump_json().encode())])
        await commit(store, plan("f-1", like("Eggs")), user=USER)
        await close(facts, "f-1", "tells like: eggs", plan_id="f-1")
        outcome = await outcome_of(memory, turn, 30)
    assert outcome.is_settled
    monkeypatch.setattr(telling, "make_turn", lambda *_: turn)
    assert (
        await tell("I like eggs", USER, conversation=None, wait_s=30, as_json=False)
        == OK
    )
    assert printed().splitlines() == [
        "done        User likes eggs",
        "  + food.likes[0]: Eggs",
        "  tells like: eggs",
    ]
    await print_facts(USER, 20, as_json=False)
    assert "User likes eggs  done" in printed()
    await print_facts(USER, 20, as_json=True)
    assert json.loads(printed())[0]["plan_id"] == "f-1"


async def close(
    queue: PersonalQueue, row_id: str, reason: str, plan_id: str | None = None
) -> None:
    """Close a row as done."""
    claim = await queue.claim(USER, holder="test", limit=1, lease_ms=30_000, now_ms=0)
    assert await queue.close(
        claim, [Closing(row_id=row_id, state="done", reason=reason, plan_id=plan_id)]
    )
    await queue.release(claim)
