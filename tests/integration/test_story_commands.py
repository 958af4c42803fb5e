"""`tasklore story` on a real server: loading, listing, showing and deleting stories."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from redis.asyncio import Redis

from tasklore.commands.exits import OK, USAGE, Aborted
from tasklore.commands.stories.files import read_story
from tasklore.commands.story.views import (
    delete_story,
    load_story,
    print_stories,
    print_story,
)
from tasklore.contracts.analysis.stories import (
    StoryChange,
    StoryMemory,
    StoryResponse,
    StoryThread,
)
from tasklore.contracts.errors import InvalidInput, UnknownStory, Unreachable
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore

Printed = Callable[[], str]

FILES = {
    "story.toml": """\
story_id = "quay"
title = "The \\u001b[2JQuay"

[agents.foreshadowing]
agent = "ForeshadowingAgent"
task = "look_ahead"
""",
    "entities/ana.md": "# Ana Reyes\n\nSteers the ferry.\n",
    "entities/ben.md": "# Ben Okafor\n\nMends nets.\n",
    "entities/quay.md": "# The Old Quay\n\n- Kind: location\n",
    "relationships.toml": """\
[[bonds]]
characters = ["Ana", "Ben"]
score = 18

[[bonds]]
characters = ["Ben", "Old Quay"]
score = 95
""",
    "memories.toml": '[[memories]]\nid = "MEM-000-storm"\ncharacter = "Ana"\nsummary = "A storm."\n',
    "threads.toml": """\
[[threads]]
id = "THREAD-000"
title = "The dog"

[[threads]]
id = "THREAD-002"
title = "The regatta"
due_at = 30

[[threads]]
id = "THREAD-001"
title = "The licence"
consequence_at = 9

[[threads]]
id = "THREAD-003"
title = "The net"
""",
    "knowledge.toml": '[[facts]]\nsubject = "The Old Quay"\nfact = "The bell has no clapper"\n',
}


pytestmark = pytest.mark.usefixtures("command_servers")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "quay" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "quay"


@pytest.fixture
def stories(redis: Redis) -> StoryStore:
    return StoryStore(redis, deadline_s=30.0)


async def go_on(
    stories: StoryStore, redis: Redis, number: int, **changes: StoryChange
) -> None:
    """Store response *number* of the story, and the changes that agents found in it."""
    await stories.put_response(
        "quay", StoryResponse(number=number, text=f"Response {number}."), keep=100
    )
    analyses = AnalysisStore(redis, deadline_s=30.0)
    revision, _, _ = await analyses.record("quay", number)
    assert await analyses.fold("quay", number, revision, b"{}", b"{}", changes, 100)


async def test_a_folder_is_loaded_and_again_when_it_changed(
    folder: Path, stories: StoryStore, printed: Printed
) -> None:
    assert await load_story(folder, as_json=False) == OK
    assert (
        printed()
        == "Loaded quay (The [2JQuay): 3 entities, 1 memory, 2 bonds, 4 threads, 1 fact.\n"
    )
    base = read_story(folder)
    assert await stories.base_digest("quay") == base.digest()
    assert (await stories.standing("quay", 1)).memories == base.memories

    await load_story(folder, as_json=False)
    assert printed().endswith("1 fact; it is as it was before.\n")
    (folder / "memories.toml").unlink()
    await load_story(folder, as_json=True)
    shown = json.loads(printed())
    assert (shown["changed"], shown["memories"], shown["digest"]) == (
        True,
        0,
        await stories.base_digest("quay"),
    )
    assert (await stories.standing("quay", 1)).memories == ()

    (folder / "memories.toml").write_text('[[memories]]\nid = "x"\n')
    assert await load_story(folder, as_json=True) == USAGE
    assert json.loads(printed())["problems"] == [
        f"{folder}/memories.toml: memories[0].character (x): is needed"
    ]
    assert await stories.base_digest("quay") == shown["digest"]


async def test_stories_are_listed(
    folder: Path, stories: StoryStore, redis: Redis, printed: Printed
) -> None:
    await print_stories(as_json=False)
    assert printed() == "No story is loaded; `tasklore story load DIR` loads one.\n"
    await print_stories(as_json=True)
    assert json.loads(printed()) == []

    await load_story(folder, as_json=False)
    await go_on(stories, redis, 1)
    printed()
    await print_stories(as_json=False)
    head, row = printed().splitlines()
    assert head.split() == [
        "STORY",
        "TITLE",
        "ENTITIES",
        "RESPONSES",
        "ANALYSES",
        "CHANGED",
    ]
    assert row.split()[:6] == ["quay", "The", "[2JQuay", "3", "1", "1"]
    await print_stories(as_json=True)
    [info] = json.loads(printed())
    assert (
        info["story_id"],
        info["entities"],
        info["responses"],
        info["analyses"],
    ) == ("quay", 3, 1, 1)


async def test_a_story_is_shown_as_it_stands_after_its_last_response(
    folder: Path, stories: StoryStore, redis: Redis, printed: Printed
) -> None:
    await load_story(folder, as_json=False)
    await go_on(
        stories, redis, 4, relationship=StoryChange(points={"Ana Reyes|Ben Okafor": 10})
    )
    found = StoryChange(
        threads=(StoryThread(id="THREAD-004", title="The letter"),),
        resolved=("THREAD-003",),
    )
    await go_on(stories, redis, 6, plot_threads=found)
    remembered = StoryMemory(
        id="MEM-6-letter", character="Ana Reyes", summary="A letter came.", response=6
    )
    await go_on(stories, redis, 7, memory_create=StoryChange(memories=(remembered,)))
    printed()
    await print_story("quay", as_json=True)
    shown = json.loads(printed())
    assert (shown["responses"], shown["last_response"]) == ([4, 6, 7], 7)
    assert (shown["memories"], shown["facts"], shown["resolved_threads"]) == (2, 1, 1)
    assert shown["entities"] == {"character": 2, "location": 1}
    assert shown["settings"]["critical_countdown"] == 5
    bonds = [tuple(one.values()) for one in shown["relationships"]]
    assert bonds == [
        (["Ben Okafor", "The Old Quay"], 95, "Family", None, None),
        (["Ana Reyes", "Ben Okafor"], 28, "Acquaintance", "Friend", 3),
    ]
    threads = [
        (
            one["id"],
            one["status"],
            one["consequence_countdown"],
            one["time_until"],
            one["last_mention"],
        )
        for one in shown["threads"]
    ]
    assert threads == [
        ("THREAD-001", "critical", 2, None, None),
        ("THREAD-002", "on_track", None, 23, None),
        ("THREAD-000", "active", None, None, None),
        ("THREAD-004", "active", None, None, 6),
    ]
    await print_story("quay", as_json=False)
    page = printed()
    facts, table, rows, resolved = page.split("\n\n")
    assert "\x1b" not in page
    assert "3 kept, the last is 7" in facts
    assert "2 characters, 1 location; " in facts
    assert "contradiction" in facts
    assert "foreshadowing (ForeshadowingAgent)" in facts
    assert (
        " ".join(table.splitlines()[2].split())
        == "Ana Reyes, Ben Okafor 28 Acquaintance Friend with 3 more"
    )
    assert rows.splitlines()[1].split() == [
        "THREAD-001",
        "The",
        "licence",
        "critical",
        "2",
        "responses",
    ]
    assert resolved == "1 thread resolved.\n"


async def test_deleting_asks_first(
    folder: Path, stories: StoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await load_story(folder, as_json=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(Aborted, match="say --yes to mean it"):
        await delete_story("quay", is_sure=False, as_json=False)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: False)
    with pytest.raises(Aborted, match="nothing was removed"):
        await delete_story("quay", is_sure=False, as_json=False)
    assert [one.story_id for one in await stories.stories()] == ["quay"]

    monkeypatch.setattr(typer, "confirm", lambda *_, **__: True)
    await delete_story("quay", is_sure=False, as_json=False)
    assert await stories.stories() == ()
    with pytest.raises(UnknownStory, match=r"'quay'.*tasklore story load"):
        await print_story("quay", as_json=False)
    with pytest.raises(UnknownStory, match=r"'quay'.*tasklore story"):
        await delete_story("quay", is_sure=True, as_json=False)
    with pytest.raises(InvalidInput, match="STORY 'a:b' must be 1 to 64"):
        await delete_story("a:b", is_sure=True, as_json=False)


async def test_an_unreachable_store_is_named_with_the_cure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://127.0.0.1:1")
    with pytest.raises(Unreachable, match="tasklore up"):
        await load_story(folder, as_json=False)
