"""`tasklore story` against a real server: what is loaded, how a story is shown, and what is removed."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from redis.asyncio import Redis

from contracts.analysis.stories import StoryChange, StoryMemory, StoryResponse, StoryThread
from contracts.errors import InvalidInput, UnknownStory, Unreachable
from memory.stories.analyses import AnalysisStore
from memory.stories.store import StoryStore
from runtime.servers.embedded import EmbeddedServers
from tasklore.exits import OK, USAGE, Aborted
from tasklore.story.files import read_story
from tasklore.story.views import delete_story, load_story, print_stories, print_story

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


@pytest.fixture(autouse=True)
def _place(servers: EmbeddedServers, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands find the servers of the tests, with an empty store."""
    monkeypatch.setenv("TASKLORE_NATS_URL", servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", servers.redis_url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a story and return its folder."""
    for name, text in FILES.items():
        file = tmp_path / "quay" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "quay"


@pytest.fixture
def stories(redis: Redis) -> StoryStore:
    """Return the store that the commands look into."""
    return StoryStore(redis, deadline_s=30.0)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Return what returns what was printed since it was last called."""
    return lambda: capsys.readouterr().out


async def _go_on(stories: StoryStore, redis: Redis, number: int, **changes: StoryChange) -> None:
    """Store response *number* of the story, and what agents found that it changed."""
    await stories.put_response("quay", StoryResponse(number=number, text=f"Response {number}."), keep=100)
    analyses = AnalysisStore(redis, deadline_s=30.0)
    revision, _, _ = await analyses.record("quay", number)
    assert await analyses.fold("quay", number, revision, b"{}", b"{}", changes, 100)


async def test_what_is_loaded_is_what_the_folder_says(folder: Path, stories: StoryStore, printed: Printed) -> None:
    """A second time it is told that nothing is new; a folder that changed is."""
    assert await load_story(folder, as_json=False) == OK
    assert printed() == "Loaded quay (The [2JQuay): 3 entities, 1 memory, 2 bonds, 4 threads, 1 fact.\n"
    base = read_story(folder)
    assert await stories.base_digest("quay") == base.digest()
    assert (await stories.standing("quay", 1)).memories == base.memories

    await load_story(folder, as_json=False)
    assert printed().endswith("1 fact; it is as it was before.\n")
    (folder / "memories.toml").unlink()
    await load_story(folder, as_json=True)
    told = json.loads(printed())
    assert (told["changed"], told["memories"], told["digest"]) == (True, 0, await stories.base_digest("quay"))
    assert (await stories.standing("quay", 1)).memories == ()


async def test_a_broken_folder_loads_nothing(folder: Path, stories: StoryStore, printed: Printed) -> None:
    """What was loaded before stays."""
    await load_story(folder, as_json=False)
    digest = await stories.base_digest("quay")
    (folder / "memories.toml").write_text('[[memories]]\nid = "x"\n')
    printed()

    assert await load_story(folder, as_json=True) == USAGE
    assert json.loads(printed())["problems"] == [f"{folder}/memories.toml: memories[0].character (x): is needed"]
    assert await stories.base_digest("quay") == digest


async def test_stories_are_listed(folder: Path, stories: StoryStore, redis: Redis, printed: Printed) -> None:
    """With what is kept of each; where there are none, that is said."""
    await print_stories(as_json=False)
    assert printed() == "No story is loaded; `tasklore story load DIR` loads one.\n"
    await print_stories(as_json=True)
    assert json.loads(printed()) == []

    await load_story(folder, as_json=False)
    await _go_on(stories, redis, 1)
    printed()
    await print_stories(as_json=False)
    head, row = printed().splitlines()
    assert head.split() == ["STORY", "TITLE", "ENTITIES", "RESPONSES", "ANALYSES", "CHANGED"]
    assert row.split()[:6] == ["quay", "The", "[2JQuay", "3", "1", "1"]
    await print_stories(as_json=True)
    [info] = json.loads(printed())
    assert (info["story_id"], info["entities"], info["responses"], info["analyses"]) == ("quay", 3, 1, 1)


async def test_a_story_is_shown_as_it_stands_after_its_last_response(
    folder: Path, stories: StoryStore, redis: Redis, printed: Printed
) -> None:
    """Scores with their tiers, countdowns from the last response, and what was found since the beginning."""
    await load_story(folder, as_json=False)
    await _go_on(stories, redis, 4, relationship=StoryChange(points={"Ana Reyes|Ben Okafor": 10}))
    found = StoryChange(threads=(StoryThread(id="THREAD-004", title="The letter"),), resolved=("THREAD-003",))
    await _go_on(stories, redis, 6, plot_threads=found)
    remembered = StoryMemory(id="MEM-6-letter", character="Ana Reyes", summary="A letter came.", response=6)
    await _go_on(stories, redis, 7, memory_create=StoryChange(memories=(remembered,)))
    printed()
    await print_story("quay", as_json=True)
    told = json.loads(printed())

    assert (told["responses"], told["last_response"]) == ([4, 6, 7], 7)
    assert (told["memories"], told["facts"], told["resolved_threads"]) == (2, 1, 1)
    assert told["entities"] == {"character": 2, "location": 1}
    assert told["settings"]["critical_countdown"] == 5
    assert told["relationships"] == [
        {
            "characters": ["Ben Okafor", "The Old Quay"],
            "score": 95,
            "tier": "Family",
            "next_tier": None,
            "points_needed": None,
        },
        {
            "characters": ["Ana Reyes", "Ben Okafor"],
            "score": 28,
            "tier": "Acquaintance",
            "next_tier": "Friend",
            "points_needed": 3,
        },
    ]
    threads = [
        (one["id"], one["status"], one["consequence_countdown"], one["time_until"], one["last_mention"])
        for one in told["threads"]
    ]
    assert threads == [
        ("THREAD-001", "critical", 2, None, None),
        ("THREAD-002", "on_track", None, 23, None),
        ("THREAD-000", "active", None, None, None),
        ("THREAD-004", "active", None, None, 6),
    ]


async def test_a_story_is_shown_to_people(folder: Path, stories: StoryStore, redis: Redis, printed: Printed) -> None:
    """In a page that nothing in the story can make steer a terminal."""
    await load_story(folder, as_json=False)
    gained = StoryChange(points={"Ana Reyes|Ben Okafor": 10})
    await _go_on(stories, redis, 4, relationship=gained, plot_threads=StoryChange(resolved=("THREAD-003",)))
    printed()
    await print_story("quay", as_json=False)
    shown = printed()
    facts, bonds, threads, resolved = shown.split("\n\n")

    assert "\x1b" not in shown
    assert "1 kept, the last is 4" in facts
    assert "2 characters, 1 location; " in facts
    assert "contradiction" in facts
    assert "foreshadowing (ForeshadowingAgent)" in facts
    assert " ".join(bonds.splitlines()[2].split()) == "Ana Reyes, Ben Okafor 28 Acquaintance Friend with 3 more"
    assert threads.splitlines()[1].split() == ["THREAD-001", "The", "licence", "critical", "5", "responses"]
    assert resolved == "1 thread resolved.\n"


async def test_a_story_that_is_not_there_is_told_with_its_cure() -> None:
    """Nor is one shown whose name is none."""
    with pytest.raises(UnknownStory, match=r"'quay'.*tasklore story load"):
        await print_story("quay", as_json=False)
    with pytest.raises(UnknownStory, match=r"'quay'.*tasklore story"):
        await delete_story("quay", is_sure=True, as_json=False)
    with pytest.raises(InvalidInput, match="STORY 'a b' must be 1 to 64"):
        await print_story("a b", as_json=False)
    with pytest.raises(InvalidInput, match="STORY 'a:b' must be 1 to 64"):
        await delete_story("a:b", is_sure=True, as_json=False)


async def test_what_is_deleted_is_gone(folder: Path, stories: StoryStore, redis: Redis, printed: Printed) -> None:
    """With everything that responses brought; its folder stays, and begins anew."""
    await load_story(folder, as_json=False)
    await _go_on(stories, redis, 4, relationship=StoryChange(points={"Ana Reyes|Ben Okafor": 10}))
    printed()
    await delete_story("quay", is_sure=True, as_json=True)
    assert json.loads(printed()) == {"story_id": "quay", "deleted": True}
    assert await stories.stories() == ()

    await load_story(folder, as_json=False)
    printed()
    await print_story("quay", as_json=True)
    told = json.loads(printed())
    assert (told["responses"], told["relationships"][1]["score"]) == ([], 18)


async def test_nothing_is_deleted_unasked(folder: Path, stories: StoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal it has to be said, on one it is asked."""
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


async def test_without_a_server_that_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the cure."""
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://127.0.0.1:1")
    with pytest.raises(Unreachable, match="tasklore up"):
        await load_story(folder, as_json=False)
