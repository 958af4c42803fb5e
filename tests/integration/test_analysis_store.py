"""Stored analyses of a story: document, record and changes are one write."""

import asyncio
import itertools
import subprocess
import sys
from random import Random

import pytest
from redis.asyncio import Redis

from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.contracts.analysis.stories import StoryChange, StoryMemory, StoryResponse
from tasklore.contracts.errors import InvalidInput, UnknownStory
from tasklore.memory import keys
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.view import CHANGING
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.stories import BASE, KEEP, MARA, PAIR, STORY, Shelf, shelf_on

LEASE_MS = 60_000
SUPERVISOR = "main"


@pytest.fixture
async def shelf(valkey_or_redis: Redis) -> Shelf:
    """Return stores with one story."""
    stores = shelf_on(valkey_or_redis)
    await stores.stories.load(BASE)
    return stores


def memory_of(number: int, suffix: str = "x") -> StoryMemory:
    return StoryMemory(id=f"MEM-{number}-{suffix}", character=MARA, response=number)


async def read(shelf: Shelf, number: int) -> AnalysisDocument:
    found = await shelf.analyses.read(STORY, number)
    assert found is not None
    return found


async def test_a_document_comes_back_byte_for_byte(shelf: Shelf) -> None:
    document = '{"version":"1.0", "a{b}":[[],{},2.50,1e2,"\\u00e9é\u2028 😀"],"meta":{ }}'.encode()
    record = b'{"seats":[],"cost":0.000750,"x":"\x00\xff"}'
    revision, nothing, none = await shelf.analyses.record(STORY, 7)

    assert (nothing, none) == (None, None)
    assert await shelf.analyses.fold(STORY, 7, revision, document, record, {}, KEEP)
    assert await shelf.analyses.raw(STORY, 7) == document
    assert (await shelf.analyses.record(STORY, 7))[1:] == (document, record)


async def test_a_fold_against_an_older_revision_writes_nothing(shelf: Shelf) -> None:
    revision, _, _ = await shelf.analyses.record(STORY, 1)
    await shelf.folded(2, word="other")
    change = StoryChange(points={PAIR: 10})

    assert not await shelf.analyses.fold(
        STORY, 1, revision, b"{}", b"{}", {"relationship": change}, KEEP
    )
    assert (await shelf.analyses.record(STORY, 1))[1:] == (None, None)
    assert (await shelf.stories.standing(STORY, 9)).scores == {PAIR: 18}
    assert not await shelf.analyses.fold(STORY, 1, revision + 2, b"{}", b"{}", {}, KEEP)


async def test_a_record_is_written_before_and_without_a_document(shelf: Shelf) -> None:
    revision, _, _ = await shelf.analyses.record(STORY, 1)
    assert await shelf.analyses.fold(STORY, 1, revision, None, b"begun", {}, KEEP)
    assert (await shelf.analyses.record(STORY, 1))[1:] == (None, b"begun")
    assert await shelf.analyses.read(STORY, 1) is None
    assert await shelf.analyses.numbers(STORY) == ()

    document = await shelf.folded(1)
    revision, _, _ = await shelf.analyses.record(STORY, 1)
    assert await shelf.analyses.fold(STORY, 1, revision, None, b"further", {}, KEEP)
    assert (await shelf.analyses.record(STORY, 1))[1:] == (document, b"further")


async def test_a_change_of_a_section_that_changes_no_story_is_refused(
    shelf: Shelf,
) -> None:
    revision, _, _ = await shelf.analyses.record(STORY, 1)
    with pytest.raises(
        InvalidInput,
        match="'fact_extract' changes no story; those that do are resp_analyzer, ",
    ):
        await shelf.analyses.fold(
            STORY,
            1,
            revision,
            b"{}",
            b"{}",
            {"fact_extract": StoryChange(scene="x")},
            KEEP,
        )
    assert await shelf.analyses.fold(
        STORY, 1, revision, b"{}", b"{}", {"fact_extract": None}, KEEP
    )


async def test_a_document_is_stale_once_a_later_response_or_another_text_is_stored(
    shelf: Shelf,
) -> None:
    await shelf.told(2)
    document = await shelf.folded(2)
    await shelf.told(1)
    await shelf.told(2)
    assert (await read(shelf, 2)).meta.status == "fresh"

    await shelf.told(2, "Another text.")
    assert (await read(shelf, 2)).meta.status == "stale"
    await shelf.folded(2)
    assert (await read(shelf, 2)).meta.status == "fresh"
    await shelf.told(3)
    assert (await read(shelf, 2)).meta.status == "stale"
    assert await shelf.analyses.raw(STORY, 2) == document


async def test_a_document_of_a_replaced_text_is_not_folded(shelf: Shelf) -> None:
    await shelf.told(1, "Old.")
    await shelf.told(1, "New.")
    revision, _, _ = await shelf.analyses.record(STORY, 1)
    for text, is_folded in (("Old.", False), ("New.", True)):
        of = StoryResponse(number=1, text=text)
        assert (
            await shelf.analyses.fold(STORY, 1, revision, b"{}", b"{}", {}, KEEP, of=of)
            is is_folded
        )


async def test_the_analyses_written_last_are_kept(
    shelf: Shelf, valkey_or_redis: Redis
) -> None:
    """What the others changed counts for good, and takes no more space than that."""
    for number in (1, 2, 3):
        await shelf.folded(
            number, {"relationship": StoryChange(points={PAIR: 1})}, keep=3
        )
    await shelf.folded(1, keep=3)
    await shelf.folded(4, keep=3)
    assert await shelf.analyses.numbers(STORY) == (1, 3, 4)
    assert (await shelf.analyses.record(STORY, 2))[1:] == (None, None)
    assert await shelf.stories.section(STORY, 2, "knowledge") is None
    assert (await shelf.stories.standing(STORY, 9)).scores == {PAIR: 21}

    for number in range(12):
        await shelf.told(number, keep=3)
        await shelf.folded(number, keep=2)
    key = keys.story(STORY)
    hashes = [
        await valkey_or_redis.hlen(one)
        for one in (key.documents, key.records, key.responses)
    ]
    indexes = [await valkey_or_redis.zcard(one) for one in (key.folded, key.written)]
    assert (hashes, indexes) == ([2, 6, 6], [2, 3])


async def test_analyses_under_way_are_kept_however_few_are_to_be_kept(
    shelf: Shelf,
) -> None:
    for number in range(1, 6):
        await shelf.folded(number, keep=2, is_under_way=True)
    assert await shelf.analyses.numbers(STORY) == (1, 2, 3, 4, 5)
    for number in (2, 1, 3):
        await shelf.folded(number, keep=2)
    assert await shelf.analyses.numbers(STORY) == (1, 3, 4, 5)

    await shelf.folded(1, keep=2, is_under_way=True)
    for number in (4, 5):
        await shelf.folded(number, keep=2)
    assert await shelf.analyses.numbers(STORY) == (1, 4, 5)
    await shelf.folded(1, keep=2)
    assert await shelf.analyses.numbers(STORY) == (1, 5)


async def test_a_text_is_kept_while_it_is_held_or_analysed(shelf: Shelf) -> None:
    for number in (1, 2, 3):
        await shelf.told(number, keep=2, hold_ms=LEASE_MS)
    await shelf.told(4, keep=2)
    assert await shelf.stories.numbers(STORY) == (1, 2, 3, 4)
    await shelf.folded(1, keep=2)
    await shelf.folded(2, keep=2, is_under_way=True)
    await shelf.folded(3, keep=2)
    await shelf.told(5, keep=2)
    assert await shelf.stories.numbers(STORY) == (2, 4, 5)
    await shelf.folded(2, keep=2)
    await shelf.told(6, keep=2)
    assert await shelf.stories.numbers(STORY) == (5, 6)


async def test_nothing_is_folded_for_a_response_that_is_gone(shelf: Shelf) -> None:
    revision, _, _ = await shelf.analyses.record(STORY, 1)
    of = StoryResponse(number=1, text="Old.")

    assert not await shelf.analyses.fold(
        STORY, 1, revision, b"{}", b"{}", {}, KEEP, of=of
    )
    assert (await shelf.analyses.record(STORY, 1))[1:] == (None, None)


async def test_a_document_is_stale_once_an_earlier_response_changed_the_story(
    shelf: Shelf,
) -> None:
    ten, five = (
        {"relationship": StoryChange(points={PAIR: points})} for points in (10, 5)
    )
    await shelf.told(1)
    await shelf.told(2)
    await shelf.folded(1, {**ten})
    await shelf.folded(2, {**ten})
    await shelf.folded(1, {**ten})
    assert (await read(shelf, 2)).meta.status == "fresh"

    told, _, _ = await shelf.analyses.record(STORY, 2)
    await shelf.folded(1, {**five})
    assert (await read(shelf, 2)).meta.status == "stale"
    await shelf.folded(2, {**five}, rests_on=told)
    assert (await read(shelf, 2)).meta.status == "stale"
    await shelf.folded(2, {**ten})
    assert (await read(shelf, 2)).meta.status == "fresh"


async def test_a_response_that_is_not_kept_makes_nothing_stale(shelf: Shelf) -> None:
    await shelf.told(1_000_000_000)
    await shelf.told(1, keep=2)
    await shelf.folded(1)
    assert (await read(shelf, 1)).meta.status == "stale"
    await shelf.told(0, keep=2)
    assert (await read(shelf, 1)).meta.status == "fresh"
    await shelf.told(2, keep=2)
    assert (await read(shelf, 1)).meta.status == "stale"


async def test_an_analysis_under_way_is_claimed_by_one_supervisor_until_its_lease_is_over(
    shelf: Shelf,
) -> None:
    await shelf.analyses.begin(SUPERVISOR, STORY, 1)
    await shelf.analyses.begin(SUPERVISOR, STORY, 2, LEASE_MS)
    await shelf.analyses.begin("other", STORY, 3)
    assert await shelf.analyses.due(SUPERVISOR, LEASE_MS, 10) == [(STORY, 1)]
    assert await shelf.analyses.due(SUPERVISOR, LEASE_MS, 10) == []
    assert await shelf.analyses.renew(SUPERVISOR, STORY, 2, 0)
    assert await shelf.analyses.due(SUPERVISOR, LEASE_MS) == [(STORY, 2)]
    await shelf.analyses.renew(SUPERVISOR, STORY, 1, 0)
    await shelf.analyses.renew(SUPERVISOR, STORY, 9, 0)
    await shelf.analyses.end(SUPERVISOR, STORY, 2)
    assert not await shelf.analyses.renew(SUPERVISOR, STORY, 2, 0)
    assert await shelf.analyses.due(SUPERVISOR, 0) == [(STORY, 1)]

    await shelf.analyses.end(SUPERVISOR, STORY, 1)
    for number in range(5):
        await shelf.analyses.begin(SUPERVISOR, STORY, number)
    found = [await shelf.analyses.due(SUPERVISOR, LEASE_MS, 2) for _ in range(3)]
    assert [len(some) for some in found] == [2, 2, 1]
    assert sorted(itertools.chain(*found)) == [(STORY, number) for number in range(5)]


async def test_concurrent_folds_lose_nothing(shelf: Shelf) -> None:
    """Twenty responses, each folded section by section in any order by two writers."""
    random = Random(3)
    folds = [
        (number, section)
        for number in range(20)
        for section in ("relationship", "memory_create")
    ] * 2
    random.shuffle(folds)

    async def fold(number: int, section: str) -> None:
        change = StoryChange(points={PAIR: number + 1}, memories=(memory_of(number),))
        await shelf.folded(number, {section: change})

    await asyncio.gather(*(fold(number, section) for number, section in folds))
    story = await shelf.stories.standing(STORY, 99)
    changes = await shelf.stories.changes(STORY, CHANGING)

    assert await shelf.analyses.numbers(STORY) == tuple(range(20))
    assert story.scores == {PAIR: 18 + sum(range(1, 21))}
    assert {one.id for one in story.memories} == {
        "MEM-0-fire",
        *(f"MEM-{number}-x" for number in range(20)),
    }
    assert all(set(by) == {"relationship", "memory_create"} for by in changes.values())


async def test_concurrent_folds_that_read_the_story_give_each_number_away_once(
    shelf: Shelf,
) -> None:
    given: list[int] = []

    async def fold(number: int) -> None:
        while True:
            revision, _, _ = await shelf.analyses.record(STORY, number)
            taken = (
                await shelf.stories.standing(STORY, 99, ("memory_create",))
            ).memories
            change = StoryChange(memories=(memory_of(len(taken), "nth"),))
            if await shelf.analyses.fold(
                STORY, number, revision, b"{}", b"{}", {"memory_create": change}, KEEP
            ):
                given.append(len(taken))
                return

    await asyncio.gather(*(fold(number) for number in range(1, 13)))
    assert sorted(given) == list(range(1, 13))


async def test_an_unreadable_document_names_the_cure_and_hides_no_other(
    redis: Redis,
) -> None:
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE)
    await shelf.folded(1)
    await shelf.folded(2)
    await redis.hset(keys.story(STORY).documents, "2", '{"version":"1.1"}')

    cure = r"tl:analysis:{lighthouse} cannot be read at '2': .*; analyse response 2 of story 'lighthouse' again"
    with pytest.raises(InvalidInput, match=cure):
        await shelf.analyses.read(STORY, 2)
    assert (await read(shelf, 1)).meta.response_number == 1
    await shelf.folded(2)
    assert (await read(shelf, 2)).meta.response_number == 2


async def test_an_index_of_another_type_is_replaced(valkey_or_redis: Redis) -> None:
    analyses = AnalysisStore(valkey_or_redis, deadline_s=60.0)
    for _ in range(2):
        await valkey_or_redis.set(keys.analysing(SUPERVISOR), "x")
        assert await analyses.due(SUPERVISOR, LEASE_MS) == []
    await valkey_or_redis.set(keys.analysing(SUPERVISOR), "x")
    await analyses.begin(SUPERVISOR, STORY, 1)
    assert await analyses.due(SUPERVISOR, LEASE_MS) == [(STORY, 1)]


_FOLDING = """
import asyncio, itertools, sys
from redis.asyncio import Redis
from tasklore.contracts.analysis.stories import StoryChange
from tasklore.memory.stories.analyses import AnalysisStore

async def main() -> None:
    store = AnalysisStore(Redis.from_url(sys.argv[1]), deadline_s=60.0)
    for count in itertools.count(1):
        word = f"{count:09}".encode() * 20_000
        revision, _, _ = await store.record("lighthouse", 1)
        changes = {section: StoryChange(scene=str(count)) for section in ("knowledge", "plot_threads", "resp_analyzer")}
        if await store.fold("lighthouse", 1, revision, word, word, changes, 9):
            print(count, flush=True)

asyncio.run(main())
"""


async def test_a_killed_writer_leaves_document_record_and_changes_of_one_fold(
    servers: EmbeddedServers, redis: Redis
) -> None:
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE)
    last = 0
    for after in (1, 3):
        with subprocess.Popen(  # noqa: ASYNC220 - it is waited for line by line
            [sys.executable, "-c", _FOLDING, servers.redis_url],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            for _ in range(after):
                assert process.stdout.readline()
            process.kill()
        revision, document, record = await shelf.analyses.record(STORY, 1)
        changes = (await shelf.stories.changes(STORY, CHANGING))[1]
        assert document is not None
        assert document == record == document[:9] * 20_000
        assert {change.scene for change in changes.values()} == {str(int(document[:9]))}
        assert len(changes) == 3
        assert revision > last
        last = revision


async def test_the_analysis_of_a_deleted_story_is_refused_and_can_be_ended(
    shelf: Shelf,
) -> None:
    await shelf.analyses.begin(SUPERVISOR, STORY, 1)
    await shelf.stories.delete(STORY)
    [(story_id, number)] = await shelf.analyses.due(SUPERVISOR, LEASE_MS)
    with pytest.raises(UnknownStory):
        await shelf.analyses.record(story_id, number)
    await shelf.analyses.end(SUPERVISOR, story_id, number)
    assert await shelf.analyses.due(SUPERVISOR, 0) == []


async def test_a_deleted_story_that_is_loaded_again_begins_empty(shelf: Shelf) -> None:
    await shelf.told(5)
    await shelf.folded(5, {"relationship": StoryChange(points={PAIR: 10})})
    await shelf.stories.delete(STORY)
    await shelf.stories.load(BASE)
    await shelf.told(1)
    await shelf.folded(1)

    assert (
        await shelf.analyses.numbers(STORY)
        == await shelf.stories.numbers(STORY)
        == (1,)
    )
    assert (await shelf.stories.standing(STORY, 9)).scores == {PAIR: 18}
    assert (await read(shelf, 1)).meta.status == "fresh"
