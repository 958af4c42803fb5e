"""Operations on stories, on a real Valkey: loading, listing, showing and deleting; who may; and what a person sees."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from redis.asyncio import Redis

from tasklore.commands.pictures import story as picture
from tasklore.commands.stories.files import read_story
from tasklore.contracts.analysis.stories import (
    StoryChange,
    StoryMemory,
    StoryResponse,
    StoryThread,
)
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import NotPermitted, UnknownStory
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.stories import (
    OPERATIONS,
    LoadedStory,
    NewStory,
    StoryServices,
    delete_story,
    list_stories,
    load_story,
    show_story,
)
from tests.integration.operations.doors import door_of

BOSS = Caller(name="boss", roles=frozenset({"operate"}))
READER = Caller(name="reader", roles=frozenset({"read"}))
BOUND = (
    Caller(name="alice", roles=frozenset({"admin"}), user="alice"),
    Caller(name="acme", roles=frozenset({"admin"}), tenant="acme"),
)
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


@pytest.fixture
def services(stories: StoryStore) -> StoryServices:
    return StoryServices(stories=stories)


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


def sent(folder: Path) -> dict[str, Any]:
    """Return the body that `stories load` sends of the story in *folder*."""
    return read_story(folder).model_dump(mode="json")


async def load(services: StoryServices, folder: Path) -> LoadedStory:
    return await load_story(services, BOSS, NewStory.model_validate(sent(folder)))


def new(**fields: Any) -> NewStory:
    return NewStory.model_validate({"settings": {"story_id": "quay"}, **fields})


async def test_a_story_is_loaded_and_again_when_it_changed(
    folder: Path, services: StoryServices, stories: StoryStore
) -> None:
    base = read_story(folder)
    loaded = await load(services, folder)
    assert loaded.model_dump() == {
        "story_id": "quay",
        "title": base.settings.title,
        "digest": base.digest(),
        "entities": 3,
        "entity_tokens": sum(one.tokens for one in base.entities),
        "memories": 1,
        "bonds": 2,
        "threads": 4,
        "facts": 1,
        "changed": True,
    }
    assert await stories.base_digest("quay") == base.digest()
    assert (await stories.standing("quay", 1)).memories == base.memories
    assert not (await load(services, folder)).changed

    (folder / "memories.toml").unlink()
    again = await load(services, folder)
    assert (again.changed, again.memories) == (True, 0)
    assert await stories.base_digest("quay") == again.digest
    assert (await stories.standing("quay", 1)).memories == ()


async def test_tokens_of_an_entity_are_counted_where_they_are_left_out(
    services: StoryServices, stories: StoryStore
) -> None:
    entities = [
        {"name": "Ana", "text": "Steers the ferry."},
        {"name": "Ben", "text": "Mends nets.", "tokens": 77},
    ]
    loaded = await load_story(services, BOSS, new(entities=entities))
    ana, ben = await stories.entities("quay")
    assert 0 < ana.tokens < 20
    assert ben.tokens == 77
    assert loaded.entity_tokens == ana.tokens + 77


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"nosuch": 1}, ("nosuch",)),
        ({"settings": {"story_id": "quay", "late": 5}}, ("settings", "late")),
        ({"entities": [{"name": "Ana", "kin": "x"}]}, ("entities", 0, "kin")),
        ({"knowledge": [{"subj": "a", "fact": "b", "c": 1}]}, ("knowledge", 0, "c")),
        ({"threads": [{"id": "t", "due_at": "5"}]}, ("threads", 0, "due_at")),
    ],
)
def test_a_field_that_no_part_of_a_story_has_or_of_another_kind_is_refused_by_its_place(
    part: Mapping[str, Any], place: tuple[str | int, ...]
) -> None:
    with pytest.raises(ValidationError) as refused:
        new(**part)
    assert [one["loc"] for one in refused.value.errors()] == [place]


async def test_what_stands_twice_is_refused_and_nothing_is_loaded(
    services: StoryServices,
) -> None:
    twice = new(
        entities=[{"name": "Ana Reyes"}, {"name": "ana  reyes"}],
        memories=[{"id": "m", "character": "Ana"}] * 2,
        threads=[{"id": "t"}] * 2,
        relations={"bonds": [{"characters": ["A", "B"]}, {"characters": ["B", "A"]}]},
        settings={"story_id": "quay", "agents": {"foreshadowing": {}}},
    )
    with pytest.raises(Refused) as refused:
        await load_story(services, BOSS, twice)
    assert [one.where for one in refused.value.problem.problems] == [
        "entities.1",
        "memories.1",
        "relations.bonds.1",
        "threads.1",
        "settings.agents",
    ]
    assert (await list_stories(services, READER)).stories == ()


async def test_stories_are_listed_in_pages_the_last_changed_first(
    folder: Path, services: StoryServices, stories: StoryStore, redis: Redis
) -> None:
    assert (await list_stories(services, READER)).model_dump() == {
        "stories": (),
        "after": None,
    }
    for story_id in ("net", "oar"):
        await load_story(services, BOSS, new(settings={"story_id": story_id}))
    await load(services, folder)
    await go_on(stories, redis, 1)
    whole = await list_stories(services, READER)
    assert whole.after is None
    quay = next(one for one in whole.stories if one.story_id == "quay")
    assert (quay.entities, quay.responses, quay.analyses) == (3, 1, 1)
    assert whole.stories[0] == quay

    seen: list[str] = []
    after = ""
    while True:
        page = await list_stories(services, READER, after=after, limit=1)
        seen += [one.story_id for one in page.stories]
        if page.after is None:
            break
        after = page.after
    assert seen == [one.story_id for one in whole.stories]


async def test_a_story_is_shown_as_it_stands_after_its_last_response(
    folder: Path, services: StoryServices, stories: StoryStore, redis: Redis
) -> None:
    await load(services, folder)
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
    shown = (await show_story(services, READER, "quay")).model_dump(mode="json")
    assert (shown["responses"], shown["last_response"]) == ([4, 6, 7], 7)
    assert (shown["memories"], shown["facts"], shown["resolved_threads"]) == (2, 1, 1)
    assert shown["entities"] == {"character": 2, "location": 1}
    assert shown["settings"]["critical_countdown"] == 5
    assert shown["switched_off"] == ["contradiction"]
    own = {"section": "foreshadowing", "agent_id": "ForeshadowingAgent"}
    assert shown["own_agents"] == [own]
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
    page = picture.draw(shown)
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
    assert resolved == "1 thread resolved."


async def test_a_deleted_story_is_gone_and_a_dry_run_removes_nothing(
    folder: Path, services: StoryServices, stories: StoryStore, redis: Redis
) -> None:
    await load(services, folder)
    await go_on(stories, redis, 1)
    for dry_run in (True, False):
        assert [one.story_id for one in await stories.stories()] == ["quay"]
        gone = await delete_story(services, BOSS, "quay", dry_run=dry_run)
        assert (gone.entities, gone.responses, gone.analyses) == (3, 1, 1)
        assert gone.dry_run is dry_run
    assert await stories.stories() == ()
    for act in (show_story(services, READER, "quay"), delete_story(services, BOSS, "quay")):  # fmt: skip
        with pytest.raises(UnknownStory, match=r"'quay'.*tasklore stories load"):
            await act


async def test_a_story_is_for_keys_of_the_whole_deployment_alone(
    folder: Path, services: StoryServices, stories: StoryStore
) -> None:
    await load(services, folder)
    again = NewStory.model_validate(sent(folder))
    for caller in BOUND:
        for act in (
            list_stories(services, caller),
            show_story(services, caller, "quay"),
            load_story(services, caller, again),
            delete_story(services, caller, "quay"),
        ):
            with pytest.raises(NotPermitted, match="for one user or tenant"):
                await act
    for act in (
        load_story(services, READER, again),
        delete_story(services, READER, "quay"),
    ):
        with pytest.raises(NotPermitted, match="'operate'"):
            await act
    assert [one.story_id for one in await stories.stories()] == ["quay"]


async def test_stories_are_reached_over_http(
    servers: EmbeddedServers,
    redis: Redis,
    tmp_path: Path,
    folder: Path,
    services: StoryServices,
) -> None:
    door = door_of(
        servers, redis, tmp_path, services, OPERATIONS, boss=("operate",), asker=("ask",)
    )  # fmt: skip
    async with door as desks:
        boss = desks["boss"]
        loaded = await boss.ask("POST", "/v1/stories", json=sent(folder))
        assert (loaded.status_code, loaded.json()["changed"]) == (200, True)
        listed = await boss.ask("GET", "/v1/stories")
        assert [one["story_id"] for one in listed.json()["stories"]] == ["quay"]
        shown = await boss.ask("GET", "/v1/stories/quay")
        assert shown.json()["entities"] == {"character": 2, "location": 1}
        faulty = {**sent(folder), "settings": {"story_id": "quay", "late": 1}}
        refused = await boss.ask("POST", "/v1/stories", json=faulty)
        assert refused.status_code == 422
        assert refused.json()["problems"][0]["where"] == "settings.late"
        assert (await desks["asker"].ask("GET", "/v1/stories")).status_code == 403
        gone = await boss.ask("DELETE", "/v1/stories/quay")
        assert (gone.status_code, gone.json()["title"]) == (200, shown.json()["title"])
        assert (await boss.ask("GET", "/v1/stories/quay")).status_code == 404
