"""A story against plain sums: in whatever order, however often and by whomever responses are folded, it is the same."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from redis.asyncio import Redis

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.pieces import Section
from tasklore.contracts.analysis.section_agents import model_of
from tasklore.contracts.analysis.stories import (
    Bond,
    Relations,
    StoryBase,
    StoryChange,
    StoryMemory,
    StorySettings,
    StoryThread,
    pair_of,
)
from tasklore.memory.stories.settlement import settle_section
from tasklore.memory.stories.view import CHANGING, StandingStory, standing
from tests.integration.stories import Shelf, document_of, fake_shelf, shelf_on
from tests.property.examples import examples

STORY = "lighthouse"
NAMES = ("Ann", "Bo", "Cy")
TITLES = ("Fog", "Storm", "Key", "Boat")
LAST = 6
BASE = StoryBase(
    settings=StorySettings(story_id=STORY),
    memories=(StoryMemory(id="MEM-3-a", character="Ann"),),
    relations=Relations(bonds=(Bond(characters=("Ann", "Bo"), score=18),)),
    threads=(
        StoryThread(id="THREAD-001", title="Fog", consequence_at=4),
        StoryThread(id="THREAD-007", title="Key"),
    ),
    knowledge=(KnownFact(subject="Lamp", fact="is lit"),),
)

_names = st.lists(st.sampled_from(NAMES), min_size=0, max_size=3)
_slugs = st.sampled_from(["", "a", "a-2", "b!", "MEM-3-a", "MEM-9"])
_titles = st.sampled_from(["", *TITLES, "fog.", "boat "])
_threads = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["", "THREAD-001", "THREAD-007", "THREAD-008", "THREAD"]),
        "title": _titles,
    },
    optional={"conseq_countdown": st.integers(-2, 9), "time_until": st.integers(0, 9)},
)
_words = st.sampled_from(["", "is lit", "Is  lit.", "is dark", "hums"])
FOUND: dict[str, Any] = {
    "relationship": st.fixed_dictionaries(
        {
            "interactions": st.lists(
                st.fixed_dictionaries(
                    {
                        "chars": _names,
                        "change": st.integers(-40, 40)
                        | st.sampled_from([0.1, 0.2, -0.3]),
                    },
                    optional={"trigger": st.sampled_from(["wit", "calm"])},
                ),
                max_size=4,
            )
        }
    ),
    "memory_create": st.fixed_dictionaries(
        {
            "memories": st.lists(
                st.fixed_dictionaries(
                    {
                        "id": _slugs,
                        "char": st.sampled_from(["", *NAMES]),
                        "sum": _words,
                    },
                    optional={"sig": st.integers(0, 10)},
                ),
                max_size=4,
            )
        }
    ),
    "plot_threads": st.fixed_dictionaries(
        {
            part: st.lists(_threads, max_size=3)
            for part in ("new", "mentioned", "resolved")
        }
    ),
    "knowledge": st.fixed_dictionaries(
        {
            "facts": st.lists(
                st.fixed_dictionaries(
                    {"subj": st.sampled_from(["Lamp", "lamp", "Winch"]), "fact": _words}
                ),
                max_size=4,
            )
        }
    ),
    "resp_analyzer": st.fixed_dictionaries(
        {
            "scene": st.fixed_dictionaries(
                {
                    "type": st.sampled_from(["action", "dialogue"]),
                    "tension": st.integers(0, 10),
                }
            )
        }
    ),
}
one_found = st.sampled_from(sorted(FOUND)).flatmap(
    lambda section: st.tuples(st.just(section), FOUND[section])
)
#: What agents found, as (number of the response, (section, what)); the same seat may be found anew.
folds = st.lists(st.tuples(st.integers(1, LAST), one_found), max_size=12)
changes = st.builds(
    StoryChange,
    points=st.dictionaries(
        st.sampled_from([pair_of(a, b) for a in NAMES for b in NAMES if a < b]),
        st.integers(-9, 9).map(float),
    ),
)


def read(section: str, found: dict[str, Any]) -> Section:
    """Return what an agent found."""
    model = model_of(section)
    assert model is not None
    return model.model_validate(found)


def seen(story: StandingStory) -> dict[str, Any]:
    """Return all that a story shows, in a form that tells what it is."""
    return {
        "memories": sorted(one.model_dump_json() for one in story.memories),
        "threads": {
            state.thread.id: (state.thread.title, state.last_mention, state.resolved_at)
            for state in story.threads
        },
        "knowledge": sorted(
            (one.subject, one.fact, one.source) for one in story.knowledge
        ),
        "scores": dict(story.scores),
        "scenes": story.scenes,
    }


async def loaded(shelf: Shelf) -> Shelf:
    """Return *shelf* with the story as it begins, and nothing else of it."""
    await shelf.stories.delete(STORY)
    await shelf.stories.load(BASE)
    return shelf


async def fold(shelf: Shelf, number: int, section: str, found: dict[str, Any]) -> None:
    """Settle what was found beside what is stored, and fold it, as a supervisor does."""
    while True:
        revision, _, _ = await shelf.analyses.record(STORY, number)
        story = await shelf.stories.standing(STORY, number)
        _, change = settle_section(section, number, 1, read(section, found), story)
        if await shelf.analyses.fold(
            STORY, number, revision, document_of(number), b"{}", {section: change}, 100
        ):
            return


async def put(
    shelf: Shelf, number: int, section: str, change: StoryChange | None
) -> None:
    """Fold a change as it is."""
    revision, _, _ = await shelf.analyses.record(STORY, number)
    assert await shelf.analyses.fold(
        STORY, number, revision, b"{}", b"{}", {section: change}, 100
    )


@given(
    st.dictionaries(st.integers(1, LAST), changes),
    st.randoms(use_true_random=False),
    st.integers(0, LAST + 1),
)
def test_scores_are_plain_sums_in_whatever_order_and_however_often(
    told: dict[int, StoryChange], random: Any, number: int
) -> None:
    """Of the beginning and of the responses before; nothing counts twice, nothing of a later one counts."""

    async def scenario() -> StandingStory:
        shelf = await loaded(fake_shelf())
        order = [*told, *(one for one in told if random.random() < 0.5)]
        random.shuffle(order)
        for one in order:
            await put(shelf, one, "relationship", told[one])
        return await shelf.stories.standing(STORY, number)

    expected: dict[str, float] = {pair_of("Ann", "Bo"): 18}
    for one, change in told.items():
        for pair, points in change.points.items() if one < number else ():
            expected[pair] = expected.get(pair, 0) + points
    assert asyncio.run(scenario()).scores == expected


@given(
    st.dictionaries(
        st.tuples(st.integers(1, LAST), st.sampled_from(CHANGING)), changes
    ),
    changes,
    st.integers(1, LAST),
)
def test_a_change_that_is_replaced_was_never_there(
    others: dict[tuple[int, str], StoryChange], old: StoryChange, number: int
) -> None:
    """Whether another takes its place or none."""

    async def scenario(*own: StoryChange | None) -> dict[str, Any]:
        shelf = await loaded(fake_shelf())
        for (one, section), change in others.items():
            if (one, section) != (number, "relationship"):
                await put(shelf, one, section, change)
        for change_of_own in own:
            await put(shelf, number, "relationship", change_of_own)
        return seen(await shelf.stories.standing(STORY, LAST + 1))

    new = StoryChange(points={"Bo|Cy": 2})
    assert (
        asyncio.run(scenario(old, new))
        == asyncio.run(scenario(new))
        == asyncio.run(scenario(old, new, new))
    )
    assert asyncio.run(scenario(old, None)) == asyncio.run(scenario())


@given(folds, one_found)
def test_analysing_the_last_response_again_changes_nothing(
    before: Sequence[tuple[int, tuple[str, Any]]], last: tuple[str, Any]
) -> None:
    """The same findings leave the same story, ids included."""

    async def scenario() -> None:
        shelf = await loaded(fake_shelf())
        for number, (section, found) in before:
            await fold(shelf, number, section, found)
        await fold(shelf, LAST, *last)
        first = seen(await shelf.stories.standing(STORY, LAST + 1))
        await fold(shelf, LAST, *last)
        assert seen(await shelf.stories.standing(STORY, LAST + 1)) == first

    asyncio.run(scenario())


@given(folds, st.integers(1, LAST), one_found)
def test_analysing_any_response_again_leaves_the_others_their_ids(
    before: Sequence[tuple[int, tuple[str, Any]]], number: int, again: tuple[str, Any]
) -> None:
    """No id is given away twice, and what others made keeps its own."""

    async def scenario() -> None:
        shelf = await loaded(fake_shelf())
        for one, (section, found) in before:
            await fold(shelf, one, section, found)
        others = {
            one: by
            for one, by in (await shelf.stories.changes(STORY, CHANGING)).items()
            if one != number
        }
        await fold(shelf, number, *again)
        first = await shelf.stories.changes(STORY, CHANGING)
        await fold(shelf, number, *again)
        after = await shelf.stories.changes(STORY, CHANGING)
        assert after == first
        assert {one: by for one, by in after.items() if one != number} == others
        for part, base in (("memories", BASE.memories), ("threads", BASE.threads)):
            ids = [
                made.id
                for by in after.values()
                for change in by.values()
                for made in getattr(change, part)
            ]
            ids += [made.id for made in base]
            assert len(set(ids)) == len(ids)

    asyncio.run(scenario())


@given(
    st.lists(st.tuples(st.integers(1, LAST), one_found), max_size=6),
    one_found,
    st.integers(1, LAST),
)
def test_settling_is_done_once(
    before: Sequence[tuple[int, tuple[str, Any]]], told: tuple[str, Any], number: int
) -> None:
    section, found = told
    known: dict[int, dict[str, StoryChange]] = {}
    for one, (other, what) in before:
        change = settle_section(
            other, one, 1, read(other, what), standing(BASE, known, one)
        )[1]
        known.setdefault(one, {})[other] = change or StoryChange()
    known.get(number, {}).pop(section, None)
    first, change = settle_section(
        section, number, 1, read(section, found), standing(BASE, known, number)
    )
    assert (
        settle_section(section, number, 1, first, standing(BASE, known, number))[1]
        == change
    )
    known.setdefault(number, {})[section] = change or StoryChange()
    again, same = settle_section(
        section, number, 1, first, standing(BASE, known, number)
    )

    assert again.model_dump() == first.model_dump()
    assert same == change


@given(folds)
def test_what_a_section_says_is_what_the_story_becomes(
    told: Sequence[tuple[int, tuple[str, Any]]],
) -> None:
    """Scores, ids and facts of the document are those of the story after the response."""
    known: dict[int, dict[str, StoryChange]] = {}
    for number, (section, found) in told:
        result, change = settle_section(
            section, number, 1, read(section, found), standing(BASE, known, number)
        )
        by = known.setdefault(number, {})
        by.pop(section, None)
        if change is not None:
            by[section] = change
        after = standing(BASE, known, number, after=True)
        body = result.model_dump(mode="json")
        for one in body.get("interactions", ()):
            assert (
                abs(after.scores.get(pair_of(*one["chars"]), 0) - one["score"]) < 1e-6
            )
            assert abs(one["prev"] + one["change"] - one["score"]) < 1e-6
        assert {one["id"] for one in body.get("memories", ())} <= {
            one.id for one in after.memories
        }
        states = {state.thread.id: state for state in after.threads}
        for part, is_open in (("new", True), ("mentioned", True), ("resolved", False)):
            for one in body.get(part, ()):
                assert states[one["id"]].is_open is is_open
                assert states[one["id"]].last_mention == number
        assert {(one["subj"], one["fact"]) for one in body.get("facts", ())} <= {
            (one.subject, one.fact) for one in after.knowledge
        }


@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=folds)
async def test_the_real_store_does_what_its_stand_in_does(
    redis: Redis, told: list[tuple[int, tuple[str, Any]]]
) -> None:
    """Fold for fold, byte for byte of what both keep."""
    real = await loaded(shelf_on(redis))
    fake = await loaded(fake_shelf())
    for number, (section, found) in told:
        for shelf in (real, fake):
            await fold(shelf, number, section, found)
    for number in range(LAST + 2):
        assert seen(await real.stories.standing(STORY, number)) == seen(
            await fake.stories.standing(STORY, number)
        )
        assert (await real.analyses.record(STORY, number))[1:] == (
            await fake.analyses.record(STORY, number)
        )[1:]
    assert await real.stories.changes(STORY, CHANGING) == await fake.stories.changes(
        STORY, CHANGING
    )
