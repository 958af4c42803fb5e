"""Every record of a project is found by its words, and comes back from a file."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from tasklore.memory.projects.lines import as_document, read_record
from tasklore.memory.projects.project import ProjectMemory, Record
from tasklore.memory.projects.records import LETTERS, check_loaded
from tasklore.memory.projects.search import SearchFilter, read_filter
from tasklore.memory.projects.words import words_of
from tests.fakes.projects import meets

#: Few, so that they meet: beginnings of each other, other letters, an accent, one that is common.
WORDS = [
    "a",
    "an",
    "ant",
    "antler",
    "the",
    "They",
    "ÉTÉ",
    "été",
    "ete",
    "決定",
    "x1",
    "naming",
    "name",
]
TAGS = ["x", "X", "name", "a b", "é:#", "naming"]


@given(text=st.text(max_size=200))
def test_every_word_of_a_text_is_a_word_of_its_own(text: str) -> None:
    words = words_of(text)
    assert len(set(words)) == len(words)
    for word in words:
        assert words_of(word) == [word]
        assert 1 <= len(word) <= 64
        assert " " not in word


@given(text=st.text(max_size=60))
def test_capitals_make_no_other_words(text: str) -> None:
    """Where capitals come back to the letters that they were made of."""
    if text.upper().casefold() == text.casefold():
        assert words_of(text.upper()) == words_of(text)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
names = st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20
).filter(str.strip)
records = st.builds(
    lambda kind, number, text, tags, times, by, session, data: Record(
        record_id=f"{LETTERS[kind]}{number}",
        kind=kind,
        text=text,
        tags=tuple(tags),
        at_ms=times[0],
        by=by,
        supersedes=None,
        superseded_by=None,
        session_id=session,
        data=data,
        redacted_ms=times[1],
    ),
    st.sampled_from(list(LETTERS)),
    st.integers(1, 10**15 - 1),
    names,
    st.lists(
        st.text(
            st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=64
        ),
        max_size=5,
    ),
    st.tuples(
        st.integers(0, 2**53 // 1024 - 1), st.none() | st.integers(1, 2**53 // 1024 - 1)
    ),
    st.none() | names,
    st.none() | st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True),
    st.dictionaries(st.text(max_size=5), json_values, max_size=3),
)


@given(record=records)
def test_any_record_comes_back_from_its_line(record: Record) -> None:
    """To the letter."""
    kept = check_loaded(record)
    line = json.dumps(as_document(kept))
    assert read_record(json.loads(line)) == kept
    assert kept.data == json.loads(json.dumps(record.data))


def some_records(random: Random, count: int) -> list[Record]:
    """Return records of few words and times, of which some supersede others."""
    made: list[Record] = []
    for number in range(1, count + 1):
        kind = random.choice(list(LETTERS))
        at_ms = random.choice([0, 1000, 1001, number * 1000])
        taken = {one.supersedes for one in made}
        free = [
            one.record_id
            for one in made
            if one.kind == kind and one.at_ms <= at_ms and one.record_id not in taken
        ]
        text = random.choices(WORDS, k=random.randint(1, 6))
        tags = random.sample(TAGS, random.randint(0, 3))
        by = random.choice([None, "ana", "bo"])
        old = random.choice(free) if free and random.random() < 0.4 else None
        made.append(
            Record(
                record_id=f"{LETTERS[kind]}{number}",
                kind=kind,
                text=" ".join(text),
                tags=tuple(tags),
                at_ms=at_ms,
                by=by,
                supersedes=old,
            )
        )
    return made


def some_wish(random: Random, records: list[Record]) -> dict[str, Any]:
    """Return conditions of which about one record in ten fulfils all."""
    wish: dict[str, Any] = {"limit": random.choice([1, 3, 20, 1000])}
    if random.random() < 0.6:
        words = random.choices(WORDS, k=random.randint(1, 3))
        wish["text"] = " ".join(word[: random.randint(1, len(word))] for word in words)
    if random.random() < 0.3:
        wish["tags"] = random.sample(TAGS, random.randint(1, 2))
    if random.random() < 0.3:
        wish["kind"] = random.choice(list(LETTERS))
    if random.random() < 0.3:
        wish["since_ms"] = random.choice([0, 1000, 1001, 50_000])
    if random.random() < 0.3:
        wish["until_ms"] = random.choice([1000, 1001, 100_000])
    if random.random() < 0.3:
        wish["before"] = random.choice(records).record_id
    return {**wish, "in_force": random.random() < 0.3}


def ids(records: list[Record]) -> list[str]:
    """Return which records those are."""
    return [record.record_id for record in records]


async def demand_all_found(store: ProjectMemory, project: str, random: Random) -> None:
    """Search for some of what is stored, and compare with a look at every record."""
    assert (
        await store.load(project, some_records(random, random.choice([5, 40, 150])))
    ).refused == ()
    if random.random() < 0.5:
        await store.redact("ana")
    newest_first = [record async for record in store.export(project)][::-1]
    by_id = {record.record_id: record for record in newest_first}
    for _ in range(30):
        asked = some_wish(random, newest_first)
        wish = read_filter(
            **{
                "kind": None,
                "tags": (),
                "text": "",
                "since_ms": None,
                "until_ms": None,
                "before": None,
                **asked,
            }
        )
        rest = (
            newest_first[ids(newest_first).index(asked["before"]) + 1 :]
            if "before" in asked
            else newest_first
        )
        expected = (
            []
            if wish is None
            else [record for record in rest if meets(record, wish)][: wish.limit]
        )
        assert await store.search(project, **asked) == expected, asked
    for record in random.sample(newest_first, 3):
        chain = [record]
        while (earlier := chain[0].supersedes) is not None:
            chain.insert(0, by_id[earlier])
        while (later := chain[-1].superseded_by) is not None:
            chain.append(by_id[later])
        assert await store.chain(project, record.record_id) == chain
    tags = random.sample(TAGS, 2)
    wish = SearchFilter(kind="standard", tags=tuple(tags), in_force=True, any_tag=True)
    assert await store.standards(project, tags) == [
        record for record in newest_first if meets(record, wish)
    ]


@pytest.mark.parametrize("seed", range(12))
async def test_the_store_finds_what_looking_at_every_record_finds(
    redis: Redis, seed: int
) -> None:
    """Whichever index it walks."""
    await demand_all_found(ProjectMemory(redis, deadline_s=30.0), "shop", Random(seed))


@pytest.mark.parametrize("seed", range(8))
async def test_exporting_and_loading_is_identity(redis: Redis, seed: int) -> None:
    """Also of redacted records, and twice."""
    store = ProjectMemory(redis, deadline_s=30.0)
    await store.load("one", some_records(Random(seed), 30))
    await store.redact("bo")
    exported = [record async for record in store.export("one")]
    lines = [as_document(record) for record in exported]
    assert (await store.load("two", map(read_record, lines))).added == len(exported)
    assert [record async for record in store.export("two")] == exported
    assert (await store.load("two", map(read_record, lines))).known == len(exported)
