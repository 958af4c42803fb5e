"""The contract of stories, for the store on real servers and for the fake that stands for it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from contracts.analysis.background import KnownFact
from contracts.analysis.stories import (
    Relations,
    StoryBase,
    StoryChange,
    StoryMemory,
    StoryResponse,
    StorySettings,
    StoryThread,
)
from contracts.errors import InvalidInput, MemoryUnavailable, UnknownStory
from memory import keys
from memory.stories.store import StoryStore
from memory.stories.view import CHANGING, PastScene, StandingStory, standing
from tests.integration.stories import BASE, MARA, PAIR, STORY, Shelf, document_of, fake_shelf, shelf_on
from tests.servers import PATIENCE_S
from workers.context.story import TaskStory
from workers.testing.stories import FakeSharedAnswers

FIRE = StoryMemory(id="MEM-2-spark", character=MARA, summary="A spark", response=2)
OPENED = StoryThread(id="THREAD-002", title="The stranger's trunk", opened=2)
RUST = KnownFact(category="object", subject="Winch", fact="rusted {solid}", confidence="low", source="Ch1-R2")


@pytest.fixture(params=["store", "fake"])
async def shelf(request: pytest.FixtureRequest, valkey_or_redis: Redis) -> Shelf:
    """Return each kind of stores, with one story."""
    kind = shelf_on(valkey_or_redis) if request.param == "store" else fake_shelf()
    await kind.stories.load(BASE)
    return kind


async def test_a_story_begins_as_it_was_loaded(shelf: Shelf) -> None:
    """Braces, line separators, zero bytes and all; entities in the order of their names."""
    stories = shelf.stories

    assert await stories.settings(STORY) == BASE.settings
    assert await stories.entities(STORY) == tuple(sorted(BASE.entities, key=lambda entity: entity.name))
    begins = await stories.standing(STORY, 1)
    assert begins.memories == BASE.memories
    assert tuple(state.thread for state in begins.threads) == BASE.threads
    assert begins.knowledge == BASE.knowledge
    assert await stories.relations(STORY) == BASE.relations
    assert await stories.base_digest(STORY) == BASE.digest()
    assert await stories.changes(STORY, CHANGING) == {}
    assert await stories.numbers(STORY) == ()


async def test_loading_tells_whether_anything_is_new(shelf: Shelf) -> None:
    """What is not in the folder any more is gone, what responses changed is not, and analyses may rest on the old."""
    await shelf.folded(2, {"memory_create": StoryChange(memories=(FIRE,))})
    revision, _, _ = await shelf.analyses.record(STORY, 2)
    assert await shelf.stories.load(BASE) is False
    assert (await shelf.analyses.record(STORY, 2))[0] == revision

    bare = StoryBase(settings=BASE.settings, entities=BASE.entities[:1])
    assert await shelf.stories.load(bare) is True
    assert (await shelf.analyses.record(STORY, 2))[0] > revision
    assert await shelf.stories.entities(STORY) == BASE.entities[:1]
    assert (await shelf.stories.standing(STORY, 1)).memories == ()
    assert await shelf.stories.relations(STORY) == Relations()
    assert (await shelf.stories.standing(STORY, 3)).memories == (FIRE,)


async def test_the_story_systems_as_it_stood(shelf: Shelf) -> None:
    """Before and after each response, whatever came later, and only as far as it is asked for."""
    told = {
        "memory_create": StoryChange(memories=(FIRE,)),
        "relationship": StoryChange(points={PAIR: 10.5}),
        "plot_threads": StoryChange(threads=(OPENED,), mentioned=("THREAD-001",)),
        "knowledge": StoryChange(facts=(RUST,)),
        "resp_analyzer": StoryChange(scene="action", tension=7, timestamp="noon"),
    }
    later = StoryChange(memories=(FIRE.model_copy(update={"id": "MEM-3-x"}),))
    await shelf.folded(3, {"memory_create": later})
    await shelf.folded(2, told)
    before = await shelf.stories.standing(STORY, 2)
    after = await shelf.stories.standing(STORY, 2, after=True)
    some = await shelf.stories.standing(STORY, 9, ("relationship",))

    assert (before.memories, before.scores, before.scenes) == (BASE.memories, {PAIR: 18}, ())
    assert before.own == told
    assert before.memory_ids == {"MEM-0-fire", "MEM-3-x"}
    assert (before.thread_ids, before.settings) == ({"THREAD-001"}, BASE.settings)
    assert (after.memories, after.scores, after.knowledge) == (
        (*BASE.memories, FIRE),
        {PAIR: 28.5},
        (*BASE.knowledge, RUST),
    )
    assert [(one.thread.id, one.last_mention) for one in after.threads] == [("THREAD-001", 2), ("THREAD-002", 2)]
    assert after.scenes == (PastScene(2, "action", 7, "noon"),)
    assert (some.scores, some.threads, some.knowledge, some.memories) == ({PAIR: 28.5}, (), (), ())
    assert await shelf.stories.changes(STORY, ("knowledge",)) == {2: {"knowledge": told["knowledge"]}}


async def test_a_task_sees_its_story_through_one_look_each(shelf: Shelf) -> None:
    """What the response itself changed only when it is asked for."""
    await shelf.told(2, "She {waits}.")
    await shelf.folded(1, {"resp_analyzer": StoryChange(scene="dialogue", tension=3)})
    await shelf.folded(2, {"relationship": StoryChange(points={PAIR: 10}), "knowledge": StoryChange(facts=(RUST,))})
    story = TaskStory(STORY, 2, shelf.stories, FakeSharedAnswers(), run="run-1")

    assert (await story.response()).text == "She {waits}."
    assert (await story.scores(before=True), await story.scores()) == ({PAIR: 18}, {PAIR: 28})
    assert await story.knowledge(before=True) == BASE.knowledge
    assert await story.knowledge() == (*BASE.knowledge, RUST)
    assert [scene.scene for scene in await story.past_scenes(4)] == ["dialogue"]
    assert await story.past_scenes(0) == ()
    assert [state.thread for state in await story.threads()] == list(BASE.threads)
    assert await story.memories() == BASE.memories
    assert await story.section("knowledge") == {"facts": [], "by": "x", "more": [{}, [], None]}
    assert await story.section("memory_create") is None


async def test_responses_are_kept_as_they_were_written_last(shelf: Shelf) -> None:
    """An old one that is told again is not the first to go, and is another one when its text or chapter is."""
    for number in (1, 2, 3):
        assert await shelf.told(number, keep=3) is True
    assert await shelf.told(1, keep=3) is False
    assert await shelf.told(4, keep=3) is True

    assert await shelf.stories.numbers(STORY) == (1, 3, 4)
    assert [one.responses for one in await shelf.stories.stories()] == [3]
    assert await shelf.stories.response(STORY, 2) is None
    assert await shelf.told(3, "She lit it again.") is True
    assert await shelf.stories.response(STORY, 3) == StoryResponse(number=3, text="She lit it again.")
    assert await shelf.stories.put_response(STORY, StoryResponse(number=3, chapter=2, text="She lit it again."), keep=3)


async def test_sections_are_found_in_either_group(shelf: Shelf) -> None:
    """None stands for what is not there yet."""
    revision, _, _ = await shelf.analyses.record(STORY, 5)
    await shelf.analyses.fold(STORY, 5, revision, document_of(5, entity_analysis={"tier3": []}), b"{}", {}, 9)

    assert await shelf.stories.section(STORY, 5, "entity_analysis") == {"tier3": []}
    assert await shelf.stories.section(STORY, 5, "fact_extract") is None
    assert await shelf.stories.section(STORY, 6, "knowledge") is None


async def test_stories_are_listed_with_what_they_hold(shelf: Shelf) -> None:
    """Until they are deleted."""
    await shelf.told(1)
    await shelf.told(2)
    await shelf.folded(2)
    await shelf.stories.load(StoryBase(settings=StorySettings(story_id="other")))
    told = {
        one.story_id: (one.title, one.entities, one.responses, one.analyses) for one in await shelf.stories.stories()
    }

    assert told == {STORY: (BASE.settings.title, 3, 2, 1), "other": ("", 0, 0, 0)}
    assert await shelf.stories.delete(STORY) is True
    assert [one.story_id for one in await shelf.stories.stories()] == ["other"]


async def test_a_deleted_story_leaves_nothing(shelf: Shelf, valkey_or_redis: Redis) -> None:
    """No key, and whoever still works on it is told."""
    await shelf.told(1)
    await shelf.folded(1, dict.fromkeys(CHANGING, StoryChange(scene="x")))
    revision, _, _ = await shelf.analyses.record(STORY, 1)

    assert await shelf.stories.delete(STORY) is True
    assert await shelf.stories.delete(STORY) is False
    assert await valkey_or_redis.keys("*") == []
    with pytest.raises(UnknownStory, match="no story 'lighthouse'; load it"):
        await shelf.analyses.fold(STORY, 1, revision, b"{}", b"{}", {}, 9)
    with pytest.raises(UnknownStory):
        await shelf.told(1)
    assert await valkey_or_redis.keys("*") == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda shelf: shelf.stories.settings("nowhere"),
        lambda shelf: shelf.stories.base_digest("nowhere"),
        lambda shelf: shelf.stories.entities("nowhere"),
        lambda shelf: shelf.stories.relations("nowhere"),
        lambda shelf: shelf.stories.changes("nowhere", CHANGING),
        lambda shelf: shelf.stories.standing("nowhere", 1),
        lambda shelf: shelf.stories.response("nowhere", 1),
        lambda shelf: shelf.stories.numbers("nowhere"),
        lambda shelf: shelf.stories.section("nowhere", 1, "knowledge"),
        lambda shelf: shelf.analyses.read("nowhere", 1),
        lambda shelf: shelf.analyses.raw("nowhere", 1),
        lambda shelf: shelf.analyses.record("nowhere", 1),
        lambda shelf: shelf.analyses.numbers("nowhere"),
    ],
)
async def test_a_story_that_is_not_there_is_an_error(shelf: Shelf, ask: Callable[[Shelf], Awaitable[object]]) -> None:
    """With its id and the cure, whatever was asked."""
    with pytest.raises(UnknownStory, match="there is no story 'nowhere'; load it with `tasklore story load FOLDER`"):
        await ask(shelf)


async def test_an_id_that_can_be_none_opens_no_other_key(valkey_or_redis: Redis) -> None:
    """A story called like a part of another one's key is refused before anything is asked."""
    for story_id in ("a}b", "lighthouse}:entities", "", "ä"):
        with pytest.raises(InvalidInput, match="story id"):
            await StoryStore(valkey_or_redis, deadline_s=PATIENCE_S).settings(story_id)


async def test_what_cannot_be_read_any_more_stops_nobody_else(redis: Redis) -> None:
    """The error names the key, the place in it and the cure, and the cure works."""
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE)
    await shelf.folded(1, {"relationship": StoryChange(points={PAIR: 1})})
    of = keys.story(STORY)
    await redis.hset(of.entities, MARA, '{"name":""}')
    await redis.hset(of.base, "threads", "[{]")
    await redis.hset(keys.story_changes(STORY, "relationship"), "2", '{"points":{"a|b":"much"}}')
    await redis.hset(keys.story_changes(STORY, "relationship"), "3", '{"points":{"a|b":null}}')
    await redis.hset(of.responses, "4", "")
    await redis.hset(of.documents, "4", "[1]")

    folder = r"load story 'lighthouse' again with `tasklore story load FOLDER`"
    with pytest.raises(InvalidInput, match=rf"tl:story:{{lighthouse}}:entities cannot be read at '{MARA}'.*{folder}"):
        await shelf.stories.entities(STORY)
    with pytest.raises(InvalidInput, match=rf"tl:story:{{lighthouse}} cannot be read at 'threads'.*{folder}"):
        await shelf.stories.standing(STORY, 1, ("plot_threads",))
    with pytest.raises(InvalidInput, match=r"changes:relationship cannot be read at '3'.*analyse response 3 .*again"):
        await shelf.stories.standing(STORY, 2, ("relationship",))
    with pytest.raises(InvalidInput, match=r"responses cannot be read at '4'.*again, with its text"):
        await shelf.stories.response(STORY, 4)
    with pytest.raises(InvalidInput, match=r"tl:analysis:{lighthouse} cannot be read at '4'.*again"):
        await shelf.stories.section(STORY, 4, "knowledge")
    assert (await shelf.stories.standing(STORY, 9, ("memory_create", "knowledge"))).knowledge == BASE.knowledge
    assert [one.title for one in await shelf.stories.stories()] == [BASE.settings.title]

    await shelf.stories.load(BASE)
    begins = await shelf.stories.standing(STORY, 1, ("plot_threads",))
    assert tuple(state.thread for state in begins.threads) == BASE.threads
    assert len(await shelf.stories.entities(STORY)) == len(BASE.entities)
    await shelf.folded(3, {"relationship": None})
    assert (await shelf.stories.standing(STORY, 2, ("relationship",), after=True)).scores == {PAIR: 19}
    await shelf.told(4)
    await shelf.folded(4)
    assert await shelf.stories.section(STORY, 4, "memory_create") is None


async def test_settings_that_cannot_be_read_hide_no_other_story(redis: Redis) -> None:
    """The list says so in place of the title."""
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE)
    await shelf.stories.load(StoryBase(settings=StorySettings(story_id="other", title="Other")))
    await redis.hset(keys.story("other").base, "settings", "?")

    titles = {one.story_id: one.title for one in await shelf.stories.stories()}
    assert titles[STORY] == BASE.settings.title
    assert titles["other"] == "(cannot be read; load story 'other' again with `tasklore story load FOLDER`)"


@pytest.mark.parametrize("kind", ["string", "list", "set"])
async def test_a_key_of_another_type_is_replaced(valkey_or_redis: Redis, kind: str) -> None:
    """What somebody else put there stops neither reading nor writing, and nothing beside it is lost."""
    shelf = shelf_on(valkey_or_redis)
    await shelf.stories.load(BASE)
    of = keys.story(STORY)
    theirs = [key for key in (*of, keys.story_changes(STORY, "knowledge")) if key != of.base]

    async def occupy(key: str) -> None:
        await valkey_or_redis.delete(key)
        match kind:
            case "string":
                await valkey_or_redis.set(key, "x")
            case "list":
                await valkey_or_redis.rpush(key, "x")
            case _:
                await valkey_or_redis.sadd(key, "x")

    for key in theirs:
        await occupy(key)
    assert await shelf.stories.entities(STORY) == ()
    assert await shelf.stories.response(STORY, 1) is None
    assert (await shelf.stories.standing(STORY, 3)).knowledge == BASE.knowledge
    assert await shelf.analyses.numbers(STORY) == ()
    for key in theirs:
        await occupy(key)
    await shelf.told(1)
    await shelf.folded(1, {"knowledge": StoryChange(facts=(RUST,))})
    assert await shelf.stories.numbers(STORY) == await shelf.analyses.numbers(STORY) == (1,)
    assert (await shelf.stories.standing(STORY, 2)).knowledge == (*BASE.knowledge, RUST)

    await occupy(of.base)
    with pytest.raises(UnknownStory):
        await shelf.stories.settings(STORY)
    await shelf.stories.load(BASE)
    assert (await shelf.stories.standing(STORY, 2)).knowledge == (*BASE.knowledge, RUST)


async def test_whoever_reads_one_section_is_not_sent_the_others(redis: Redis) -> None:
    """A thousand responses of one agent do not slow another one's reading."""
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE)
    big = StoryChange(facts=(RUST.model_copy(update={"fact": "x" * 10_000}),)).model_dump_json()
    await redis.hset(keys.story_changes(STORY, "knowledge"), mapping=dict.fromkeys(map(str, range(100)), big))
    before = (await redis.info("stats"))["total_net_output_bytes"]
    await shelf.stories.standing(STORY, 50, ("relationship", "plot_threads", "memory_create"))
    sent = (await redis.info("stats"))["total_net_output_bytes"] - before

    assert sent < 50_000


async def test_a_long_story_is_read_whole(redis: Redis) -> None:
    """Five hundred responses, and an unreadable one among them is told of as in a short one."""
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE)
    key = keys.story_changes(STORY, "relationship")
    one = StoryChange(points={PAIR: 1}).model_dump_json()
    await redis.hset(key, mapping={str(number): one for number in range(1, 501)})
    assert (await shelf.stories.standing(STORY, 400, ("relationship",))).scores == {PAIR: 18 + 399}

    await redis.hset(key, "500", "?")
    assert (await shelf.stories.standing(STORY, 500, ("relationship",))).scores == {PAIR: 18 + 499}
    with pytest.raises(InvalidInput, match="cannot be read at '500'"):
        await shelf.stories.standing(STORY, 400, ("relationship",))


async def test_what_a_task_asks_of_its_story_is_one_round_trip(redis: Redis) -> None:
    """Where it begins and what changed it come together."""
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE)
    await shelf.told(2)
    story = TaskStory(STORY, 2, shelf.stories, FakeSharedAnswers(), run="run-1")
    asked = [
        story.response,
        story.settings,
        story.entities,
        story.relations,
        story.memories,
        story.knowledge,
        story.threads,
        story.scores,
        lambda: story.past_scenes(4),
        lambda: story.section("knowledge"),
    ]

    async def scripts() -> int:
        return (await redis.info("commandstats"))["cmdstat_fcall_ro"]["calls"]

    await story.settings()
    before = await scripts()
    for ask in asked:
        await ask()
    assert await scripts() - before == len(asked)


async def test_a_store_that_is_away_is_an_error_in_time() -> None:
    """Of the kind after which the work is done again."""
    nowhere = Redis.from_url("redis://127.0.0.1:1", socket_connect_timeout=5)
    with pytest.raises(MemoryUnavailable):
        await StoryStore(nowhere, deadline_s=0.05).settings(STORY)
    await nowhere.aclose()


async def test_many_load_and_tell_at_once(shelf: Shelf) -> None:
    """Every response is there in the end, and the story is one of those that were loaded, whole."""
    others = [StoryBase(settings=BASE.settings, entities=BASE.entities[:count]) for count in (1, 2, 3)]
    await asyncio.gather(*(shelf.stories.load(one) for one in others), *(shelf.told(number) for number in range(40)))

    digest = await shelf.stories.base_digest(STORY)
    [loaded] = [one for one in others if one.digest() == digest]
    assert {one.name for one in await shelf.stories.entities(STORY)} == {one.name for one in loaded.entities}
    assert await shelf.stories.numbers(STORY) == tuple(range(40))


@pytest.mark.parametrize("is_long", [False, True])
async def test_a_long_story_is_read_beside_the_loop(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    """Everybody else goes on meanwhile; a short one is not worth a thread."""
    stories = StoryStore(redis, deadline_s=60.0)
    memories = (*BASE.memories, *(StoryMemory(id=f"MEM-0-{n}", character=MARA, text="x" * 700) for n in range(100)))
    await stories.load(BASE.model_copy(update={"memories": memories}) if is_long else BASE)
    seen: list[int] = []

    def observed(*words: Any, **options: Any) -> StandingStory:
        seen.append(threading.get_ident())
        return standing(*words, **options)

    monkeypatch.setattr("memory.stories.store.standing", observed)
    told = await stories.standing(STORY, 3)

    assert told.memories == (memories if is_long else BASE.memories)
    assert (seen[0] != threading.get_ident()) is is_long
