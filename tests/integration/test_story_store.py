"""Stories on a real store: loading, standing before and after each response, and unreadable values."""

import asyncio
import threading
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.stories import (
    Relations,
    StoryBase,
    StoryChange,
    StoryMemory,
    StoryResponse,
    StorySettings,
    StoryThread,
)
from tasklore.contracts.errors import InvalidInput, UnknownStory
from tasklore.memory import keys
from tasklore.memory.stories.store import StoryStore
from tasklore.memory.stories.view import CHANGING, PastScene, StandingStory, standing
from tasklore.workers.context.story import TaskStory
from tests.fakes.stories import FakeSharedAnswers
from tests.integration.stories import (
    BASE,
    MARA,
    PAIR,
    STORY,
    Shelf,
    document_of,
    shelf_on,
)

FIRE = StoryMemory(id="MEM-2-spark", character=MARA, summary="A spark", response=2)
OPENED = StoryThread(id="THREAD-002", title="The stranger's trunk", opened=2)
RUST = KnownFact(
    category="object",
    subject="Winch",
    fact="rusted {solid}",
    confidence="low",
    source="Ch1-R2",
)


@pytest.fixture
async def shelf(valkey_or_redis: Redis) -> Shelf:
    shelf = shelf_on(valkey_or_redis)
    await shelf.stories.load(BASE)
    return shelf


async def test_a_story_stands_as_it_was_loaded(shelf: Shelf) -> None:
    stories = shelf.stories

    assert await stories.settings(STORY) == BASE.settings
    assert await stories.entities(STORY) == tuple(
        sorted(BASE.entities, key=lambda entity: entity.name)
    )
    begins = await stories.standing(STORY, 1)
    assert begins.memories == BASE.memories
    assert tuple(state.thread for state in begins.threads) == BASE.threads
    assert begins.knowledge == BASE.knowledge
    assert await stories.relations(STORY) == BASE.relations
    assert await stories.base_digest(STORY) == BASE.digest()
    assert await stories.changes(STORY, CHANGING) == {}
    assert await stories.numbers(STORY) == ()


async def test_loading_again_replaces_the_base_and_keeps_changes(shelf: Shelf) -> None:
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


async def test_a_story_stands_before_and_after_each_response(shelf: Shelf) -> None:
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

    assert (before.memories, before.scores, before.scenes) == (
        BASE.memories,
        {PAIR: 18},
        (),
    )
    assert before.own == told
    assert before.memory_ids == {"MEM-0-fire", "MEM-3-x"}
    assert (before.thread_ids, before.settings) == ({"THREAD-001"}, BASE.settings)
    assert (after.memories, after.scores, after.knowledge) == (
        (*BASE.memories, FIRE),
        {PAIR: 28.5},
        (*BASE.knowledge, RUST),
    )
    assert [(one.thread.id, one.last_mention) for one in after.threads] == [
        ("THREAD-001", 2),
        ("THREAD-002", 2),
    ]
    assert after.scenes == (PastScene(2, "action", 7, "noon"),)
    assert (some.scores, some.threads, some.knowledge, some.memories) == (
        {PAIR: 28.5},
        (),
        (),
        (),
    )
    assert await shelf.stories.changes(STORY, ("knowledge",)) == {
        2: {"knowledge": told["knowledge"]}
    }


async def test_a_task_sees_its_story_with_or_without_its_own_response(
    shelf: Shelf,
) -> None:
    await shelf.told(2, "She {waits}.")
    await shelf.folded(1, {"resp_analyzer": StoryChange(scene="dialogue", tension=3)})
    await shelf.folded(
        2,
        {
            "relationship": StoryChange(points={PAIR: 10}),
            "knowledge": StoryChange(facts=(RUST,)),
        },
    )
    story = TaskStory(STORY, 2, shelf.stories, FakeSharedAnswers(), run="run-1")

    assert (await story.response()).text == "She {waits}."
    assert (await story.scores(before=True), await story.scores()) == (
        {PAIR: 18},
        {PAIR: 28},
    )
    assert await story.knowledge(before=True) == BASE.knowledge
    assert await story.knowledge() == (*BASE.knowledge, RUST)
    assert [scene.scene for scene in await story.past_scenes(4)] == ["dialogue"]
    assert await story.past_scenes(0) == ()
    assert [state.thread for state in await story.threads()] == list(BASE.threads)
    assert await story.memories() == BASE.memories
    assert await story.section("knowledge") == {
        "facts": [],
        "by": "x",
        "more": [{}, [], None],
    }
    assert await story.section("memory_create") is None


async def test_the_latest_responses_are_kept_in_their_last_form(shelf: Shelf) -> None:
    for number in (1, 2, 3):
        assert await shelf.told(number, keep=3) is True
    assert await shelf.told(1, keep=3) is False
    assert await shelf.told(4, keep=3) is True

    assert await shelf.stories.numbers(STORY) == (1, 3, 4)
    assert [one.responses for one in await shelf.stories.stories()] == [3]
    assert await shelf.stories.response(STORY, 2) is None
    assert await shelf.told(3, "She lit it again.") is True
    assert await shelf.stories.response(STORY, 3) == StoryResponse(
        number=3, text="She lit it again."
    )
    assert await shelf.stories.put_response(
        STORY, StoryResponse(number=3, chapter=2, text="She lit it again."), keep=3
    )


async def test_stories_are_listed_with_their_sizes_until_they_are_deleted(
    shelf: Shelf, valkey_or_redis: Redis
) -> None:
    await shelf.told(1)
    await shelf.told(2)
    await shelf.folded(2)
    await shelf.stories.load(
        StoryBase(settings=StorySettings(story_id="other", title="Other"))
    )
    await valkey_or_redis.hset(keys.story("other").base, "settings", "?")
    listed = {
        one.story_id: (one.title, one.entities, one.responses, one.analyses)
        for one in await shelf.stories.stories()
    }
    unreadable = (
        "(cannot be read; load story 'other' again with `tasklore stories load FOLDER`)"
    )
    assert listed == {
        STORY: (BASE.settings.title, 3, 2, 1),
        "other": (unreadable, 0, 0, 0),
    }
    assert await shelf.stories.delete(STORY) is True
    assert [one.story_id for one in await shelf.stories.stories()] == ["other"]


async def test_a_deleted_story_leaves_nothing(
    shelf: Shelf, valkey_or_redis: Redis
) -> None:
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


async def test_an_unknown_story_is_an_error_with_the_cure_whatever_is_asked(
    shelf: Shelf,
) -> None:
    stories = shelf.stories
    analyses = shelf.analyses
    for ask in (
        stories.settings("nowhere"),
        stories.base_digest("nowhere"),
        stories.entities("nowhere"),
        stories.relations("nowhere"),
        stories.changes("nowhere", CHANGING),
        stories.standing("nowhere", 1),
        stories.response("nowhere", 1),
        stories.numbers("nowhere"),
        stories.section("nowhere", 1, "knowledge"),
        analyses.read("nowhere", 1),
        analyses.raw("nowhere", 1),
        analyses.record("nowhere", 1),
        analyses.numbers("nowhere"),
    ):
        with pytest.raises(
            UnknownStory,
            match="no story 'nowhere'; load it with `tasklore stories load FOLDER`",
        ):
            await ask
    for story_id in ("a}b", "lighthouse}:entities", "", "ä"):
        with pytest.raises(InvalidInput, match="story id"):
            await stories.settings(story_id)


async def test_an_unreadable_value_is_an_error_with_place_and_cure(
    shelf: Shelf, valkey_or_redis: Redis
) -> None:
    await shelf.folded(1, {"relationship": StoryChange(points={PAIR: 1})})
    of = keys.story(STORY)
    await valkey_or_redis.hset(of.entities, MARA, '{"name":""}')
    await valkey_or_redis.hset(of.base, "threads", "[{]")
    await valkey_or_redis.hset(
        keys.story_changes(STORY, "relationship"), "2", '{"points":{"a|b":"much"}}'
    )
    await valkey_or_redis.hset(
        keys.story_changes(STORY, "relationship"), "3", '{"points":{"a|b":null}}'
    )
    await valkey_or_redis.hset(of.responses, "4", "")
    await valkey_or_redis.hset(of.documents, "4", "[1]")

    folder = r"load story 'lighthouse' again with `tasklore stories load FOLDER`"
    with pytest.raises(
        InvalidInput,
        match=rf"tl:story:{{lighthouse}}:entities cannot be read at '{MARA}'.*{folder}",
    ):
        await shelf.stories.entities(STORY)
    with pytest.raises(
        InvalidInput,
        match=rf"tl:story:{{lighthouse}} cannot be read at 'threads'.*{folder}",
    ):
        await shelf.stories.standing(STORY, 1, ("plot_threads",))
    with pytest.raises(
        InvalidInput,
        match=r"changes:relationship cannot be read at '3'.*analyse response 3 .*again",
    ):
        await shelf.stories.standing(STORY, 2, ("relationship",))
    with pytest.raises(
        InvalidInput, match=r"responses cannot be read at '4'.*again, with its text"
    ):
        await shelf.stories.response(STORY, 4)
    with pytest.raises(
        InvalidInput, match=r"tl:analysis:{lighthouse} cannot be read at '4'.*again"
    ):
        await shelf.stories.section(STORY, 4, "knowledge")
    assert (
        await shelf.stories.standing(STORY, 9, ("memory_create", "knowledge"))
    ).knowledge == BASE.knowledge
    assert [one.title for one in await shelf.stories.stories()] == [BASE.settings.title]

    await shelf.stories.load(BASE)
    begins = await shelf.stories.standing(STORY, 1, ("plot_threads",))
    assert tuple(state.thread for state in begins.threads) == BASE.threads
    assert len(await shelf.stories.entities(STORY)) == len(BASE.entities)
    await shelf.folded(3, {"relationship": None})
    assert (
        await shelf.stories.standing(STORY, 2, ("relationship",), after=True)
    ).scores == {PAIR: 19}
    await shelf.told(4)
    await shelf.folded(4)
    assert await shelf.stories.section(STORY, 4, "memory_create") is None


async def test_a_key_of_another_type_is_replaced(
    shelf: Shelf, valkey_or_redis: Redis
) -> None:
    of = keys.story(STORY)
    theirs = [
        key for key in (*of, keys.story_changes(STORY, "knowledge")) if key != of.base
    ]

    async def occupy(*names: str) -> None:
        for key in names:
            await valkey_or_redis.delete(key)
            await valkey_or_redis.rpush(key, "x")

    await occupy(*theirs)
    assert await shelf.stories.entities(STORY) == ()
    assert await shelf.stories.response(STORY, 1) is None
    assert (await shelf.stories.standing(STORY, 3)).knowledge == BASE.knowledge
    assert await shelf.analyses.numbers(STORY) == ()
    await occupy(*theirs)
    await shelf.told(1)
    await shelf.folded(1, {"knowledge": StoryChange(facts=(RUST,))})
    assert (
        await shelf.stories.numbers(STORY)
        == await shelf.analyses.numbers(STORY)
        == (1,)
    )
    assert (await shelf.stories.standing(STORY, 2)).knowledge == (*BASE.knowledge, RUST)
    await occupy(of.base)
    with pytest.raises(UnknownStory):
        await shelf.stories.settings(STORY)
    await shelf.stories.load(BASE)
    assert (await shelf.stories.standing(STORY, 2)).knowledge == (*BASE.knowledge, RUST)


async def test_reading_one_section_transfers_no_other(
    shelf: Shelf, valkey_or_redis: Redis
) -> None:
    """A thousand responses of one agent do not slow the reading of another."""
    big = StoryChange(
        facts=(RUST.model_copy(update={"fact": "x" * 10_000}),)
    ).model_dump_json()
    changes = keys.story_changes(STORY, "knowledge")
    await valkey_or_redis.hset(
        changes, mapping=dict.fromkeys(map(str, range(100)), big)
    )
    before = (await valkey_or_redis.info("stats"))["total_net_output_bytes"]
    await shelf.stories.standing(
        STORY, 50, ("relationship", "plot_threads", "memory_create")
    )
    sent = (await valkey_or_redis.info("stats"))["total_net_output_bytes"] - before
    assert sent < 50_000


async def test_each_question_of_a_task_to_its_story_is_one_round_trip(
    shelf: Shelf, valkey_or_redis: Redis
) -> None:
    await shelf.told(2)
    story = TaskStory(STORY, 2, shelf.stories, FakeSharedAnswers(), run="run-1")
    questions = [
        *(story.response, story.settings, story.entities, story.relations),
        *(story.memories, story.knowledge, story.threads, story.scores),
        lambda: story.past_scenes(4),
        lambda: story.section("knowledge"),
    ]

    async def scripts() -> int:
        return (await valkey_or_redis.info("commandstats"))["cmdstat_fcall_ro"]["calls"]

    await story.settings()
    before = await scripts()
    for ask in questions:
        await ask()
    assert await scripts() - before == len(questions)


async def test_a_long_story_is_read_whole_and_sections_are_found_in_either_group(
    shelf: Shelf, valkey_or_redis: Redis
) -> None:
    key = keys.story_changes(STORY, "relationship")
    one = StoryChange(points={PAIR: 1}).model_dump_json()
    await valkey_or_redis.hset(
        key, mapping={str(number): one for number in range(1, 501)}
    )
    assert (await shelf.stories.standing(STORY, 400, ("relationship",))).scores == {
        PAIR: 18 + 399
    }
    await valkey_or_redis.hset(key, "500", "?")
    assert (await shelf.stories.standing(STORY, 500, ("relationship",))).scores == {
        PAIR: 18 + 499
    }
    with pytest.raises(InvalidInput, match="cannot be read at '500'"):
        await shelf.stories.standing(STORY, 400, ("relationship",))
    revision, _, _ = await shelf.analyses.record(STORY, 5)
    await shelf.analyses.fold(
        STORY, 5, revision, document_of(5, entity_analysis={"tier3": []}), b"{}", {}, 9
    )
    assert await shelf.stories.section(STORY, 5, "entity_analysis") == {"tier3": []}
    assert await shelf.stories.section(STORY, 5, "fact_extract") is None
    assert await shelf.stories.section(STORY, 6, "knowledge") is None


async def test_concurrent_loads_and_responses_lose_nothing(shelf: Shelf) -> None:
    others = [
        StoryBase(settings=BASE.settings, entities=BASE.entities[:count])
        for count in (1, 2, 3)
    ]
    await asyncio.gather(
        *(shelf.stories.load(one) for one in others),
        *(shelf.told(number) for number in range(40)),
    )

    digest = await shelf.stories.base_digest(STORY)
    [loaded] = [one for one in others if one.digest() == digest]
    assert {one.name for one in await shelf.stories.entities(STORY)} == {
        one.name for one in loaded.entities
    }
    assert await shelf.stories.numbers(STORY) == tuple(range(40))


@pytest.mark.parametrize("is_long", [False, True])
async def test_a_long_story_is_parsed_in_a_thread(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    stories = StoryStore(redis, deadline_s=60.0)
    memories = (
        *BASE.memories,
        *(
            StoryMemory(id=f"MEM-0-{n}", character=MARA, text="x" * 700)
            for n in range(100)
        ),
    )
    await stories.load(
        BASE.model_copy(update={"memories": memories}) if is_long else BASE
    )
    seen: list[int] = []

    def observed(*words: Any, **options: Any) -> StandingStory:
        seen.append(threading.get_ident())
        return standing(*words, **options)

    monkeypatch.setattr("tasklore.memory.stories.store.standing", observed)
    told = await stories.standing(STORY, 3)

    assert told.memories == (memories if is_long else BASE.memories)
    assert (seen[0] != threading.get_ident()) is is_long
