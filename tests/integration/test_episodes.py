"""Turns are kept word for word, once, in order, and found by words and by meaning until they expire."""

import asyncio
import random
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.store import APPEND, EpisodePeriod, Episodes
from tasklore.memory.episodes.vectors import VectorIndex
from tests.servers import PATIENCE_S

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def episodes(valkey_or_redis: Redis) -> Episodes:
    """Return a store that keeps a year."""
    return Episodes(valkey_or_redis, keep=timedelta(days=365), deadline_s=PATIENCE_S)


def _said(
    number: int,
    text: str,
    *,
    days_ago: int = 1,
    speaker: str = "person",
    conversation_id: str = "c1",
) -> Episode:
    at = NOW - timedelta(days=days_ago) + timedelta(seconds=number)
    return Episode(
        turn_id=f"t{number}",
        conversation_id=conversation_id,
        speaker=speaker,
        at=at,
        text=text,
    )


def _day(ago: int) -> date:
    return (NOW - timedelta(days=ago)).date()


async def test_turns_are_kept_word_for_word_once_and_in_order(
    episodes: Episodes,
) -> None:
    said = [
        _said(1, "I moved to Łódź \U0001f600\n"),
        _said(2, "Nice!", speaker="assistant"),
        _said(3, "  "),
    ]

    assert await episodes.append("ana", said) == 2
    assert await episodes.append("ana", said) == 0

    assert await episodes.recent("ana", 10) == tuple(said[:2])
    assert await episodes.recent("ana", 1) == (said[1],)
    assert await episodes.before("ana", "t2", 5) == (said[0],)
    assert await episodes.before("ana", "unknown", 5) == ()
    assert await episodes.count("ana") == 2
    assert await episodes.recent("bo", 10) == ()


async def test_the_turn_with_the_rarer_words_is_found_first(episodes: Episodes) -> None:
    await episodes.append(
        "ana",
        [
            _said(1, "The weather is nice", conversation_id="c0"),
            _said(10, "I bought two tents for the lake"),
            _said(20, "The lake was cold"),
            _said(30, "Café au lait, please", conversation_id="c2"),
        ],
    )
    await episodes.append("bo", [_said(1, "My tent is red")])

    found = await episodes.search("ana", "Which TENT did I buy?")
    assert found.hits[0].episode.turn_id == "t10"
    assert found.turns == 4
    assert (await episodes.search("ana", "cafe")).hits[0].episode.turn_id == "t30"
    assert (await episodes.search("ana", "xylophone")).hits == ()
    assert (await episodes.search("ana", "?!")).hits == ()
    assert (await episodes.search("nobody", "tent")).hits == ()


async def test_a_small_limit_returns_the_first_of_all_hits(episodes: Episodes) -> None:
    dice = random.Random(5)
    words = [f"word{number}" for number in range(40)]
    said = [
        _said(
            number,
            " ".join(dice.choices(words, range(1, 41), k=6))
            if number % 3
            else f"other{number}",
            conversation_id=f"c{number // 7}",
        )
        for number in range(1, 599)
    ]
    for at in range(0, len(said), 100):
        await episodes.append("ana", said[at : at + 100])
    for _ in range(20):
        question = " ".join(dice.choices(words, k=3))
        every = (await episodes.search("ana", question, limit=200)).hits
        assert len(every) > 50
        for limit in (1, 5, 20):
            assert (await episodes.search("ana", question, limit=limit)).hits == every[
                :limit
            ]


async def test_an_answer_is_found_beside_its_question(episodes: Episodes) -> None:
    await episodes.append(
        "ana",
        [
            *(_said(number, f"Chatter {number} about nothing") for number in range(50)),
            _said(60, "When is your dentist appointment?", speaker="assistant"),
            _said(61, "Friday at nine"),
        ],
    )

    found = await episodes.search("ana", "dentist appointment", limit=2)

    assert {hit.episode.turn_id for hit in found.hits} == {"t60", "t61"}


async def test_what_a_person_only_asked_is_kept_and_answers_nothing(
    episodes: Episodes,
) -> None:
    """What was said next may be its answer, whatever its words."""
    asked = [_said(n, "What pets do I have?", conversation_id="c2") for n in range(9)]
    await episodes.append("ana", [_said(100, "My pets are two cats"), *asked])
    await episodes.append(
        "ana",
        [
            _said(200, "When is my dentist appointment?", conversation_id="c3"),
            _said(201, "Friday at nine", speaker="assistant", conversation_id="c3"),
        ],
    )

    found = await episodes.search("ana", "which pets do I have?", limit=5)
    assert [hit.episode.turn_id for hit in found.hits] == ["t100"]
    answered = await episodes.search("ana", "dentist appointment", limit=5)
    assert [hit.episode.turn_id for hit in answered.hits] == ["t201"]
    assert await episodes.count("ana") == 12


async def test_nothing_was_said_of_a_stranger_and_else_something_may_have_been(
    episodes: Episodes,
) -> None:
    """By words alone: what answers a question may share none with it."""
    await episodes.append(
        "ana",
        [
            _said(1, "Rosa is a nurse now"),
            _said(10, "We adopted a beagle", conversation_id="c2"),
            _said(20, "Where does Petra live?", conversation_id="c3"),
        ],
    )

    async def is_nothing(question: str) -> bool:
        return (await episodes.search("ana", question, asked=question)).is_nothing_said

    assert await is_nothing("What is the job of Petra?")
    assert await is_nothing("Where does Petra live?")
    assert await is_nothing("What did Ana hear of Petra?")
    assert not await is_nothing("What is the job of Rosa?")
    assert not await is_nothing("Did Rosa and Petra meet?")
    assert not await is_nothing("Which animals do we own?")
    found = await episodes.search("ana", "Which animals do we own?")
    assert [hit.episode.turn_id for hit in found.hits] == ["t10"]


async def test_a_person_is_asked_about_by_name_though_no_turn_has_it(
    episodes: Episodes,
) -> None:
    said = [_said(n, f"Ana met {n} people", speaker="assistant") for n in range(1, 40)]
    await episodes.append("ana", [*said, _said(90, "I met a whale")])

    found = await episodes.search("ana", "Which whale did Ana meet?", limit=1)
    assert [hit.episode.turn_id for hit in found.hits] == ["t90"]


async def test_a_period_raises_what_was_said_in_it_and_excludes_nothing(
    episodes: Episodes,
) -> None:
    await episodes.append(
        "ana",
        [
            _said(1, "We walked the coast", days_ago=300),
            _said(50, "Fine", days_ago=250, conversation_id="c4"),
            _said(100, "Good bread there", days_ago=200, conversation_id="c2"),
            _said(150, "Fine", days_ago=150, conversation_id="c5"),
            _said(200, "We walked in the woods", days_ago=100, conversation_id="c3"),
        ],
    )
    period = EpisodePeriod(_day(201), _day(199))

    async def ids(question: str, period: EpisodePeriod | None) -> list[str]:
        found = await episodes.search("ana", question, period=period)
        assert not found.is_nothing_said
        return [hit.episode.turn_id for hit in found.hits]

    assert await ids("coast", period) == ["t1", "t100"]
    assert await ids("woods walked", EpisodePeriod(_day(301), _day(299))) == [
        "t200",
        "t1",
    ]
    assert await ids("zeppelin", period) == ["t100"]
    assert (await episodes.search("ana", "zeppelin")).hits == ()


async def test_a_long_turn_is_found_by_its_passages_and_counts_as_one(
    episodes: Episodes, valkey_or_redis: Redis
) -> None:
    story = [f"Of day {number} there is nothing to tell. " * 9 for number in range(6)]
    story[3] += "At noon we saw a heron. "
    long = _said(100, "".join(story))
    await episodes.append("ana", [_said(1, "hello"), long, _said(200, "bye")])

    hit = (await episodes.search("ana", "the heron")).hits[0]
    assert hit.episode.text == long.text
    assert "heron" in hit.text
    assert len(hit.text) <= 400
    assert await episodes.count("ana") == 3
    said = await episodes.recent("ana", 3)
    assert [one.turn_id for one in said] == ["t1", "t100", "t200"]
    assert [one.turn_id for one in await episodes.before("ana", "t200", 1)] == ["t100"]

    await episodes.settle("ana", days=1)
    assert await episodes.trim("ana", NOW + timedelta(days=9)) == 3
    of = keys.episodes(user_token("ana"))
    assert await valkey_or_redis.hlen(of.words) == 0
    assert await valkey_or_redis.hlen(of.turns) == 0
    assert await valkey_or_redis.hmget(of.meta, "count", "length", "further") == [
        b"0",
        b"0",
        b"0",
    ]


async def test_a_long_turn_kept_before_there_were_passages_is_found_and_removed(
    episodes: Episodes, valkey_or_redis: Redis
) -> None:
    """Its words lie under one number, and no month."""
    # The function is called by its name below, which the store would load.
    await episodes.append("bo", [_said(1, "hello")])
    text = "a heron stood there, " * 60
    old = _said(1, text, days_ago=400)
    body = old.model_dump_json(exclude_none=True, exclude={"passages"})
    of = keys.episodes(user_token("ana"))
    words = ["a", "heron", "stood", "ther"]
    postings: list[str | int] = []
    for word in words:
        postings += [word, 60]
    hidden = keys.tombstone(user_token("ana"))
    said_ms = int(old.at.timestamp() * 1000)
    turn = ("t1", body, 9_000, 1, said_ms, 1, 240, len(words), *postings)
    await valkey_or_redis.fcall(APPEND, 5, *of[:4], hidden, *turn)
    await valkey_or_redis.hdel(of.meta, "further")

    (hit,) = (await Episodes(valkey_or_redis, keep=None).search("ana", "heron")).hits
    assert hit.episode == old
    assert await episodes.trim("ana", NOW) == 1
    assert await valkey_or_redis.hlen(of.words) == 0


async def test_a_search_is_narrowed_by_days_speaker_and_conversation(
    episodes: Episodes,
) -> None:
    await episodes.append(
        "ana",
        [
            _said(1, "Trip to Rome", days_ago=300),
            _said(2, "Trip to Oslo", days_ago=100, conversation_id="c2"),
            _said(3, "Have a nice trip", days_ago=10, speaker="assistant"),
        ],
    )

    async def ids(**narrowed: object) -> set[str]:
        found = await episodes.search("ana", "trip", **narrowed)  # type: ignore[arg-type]
        return {
            hit.episode.turn_id
            for hit in found.hits
            if hit.coverage > 0 and "rip" in hit.episode.text
        }

    assert await ids() == {"t1", "t2", "t3"}
    assert "t1" not in await ids(since=_day(200), until=_day(50))
    assert (await episodes.search("ana", "trip", since=_day(200), limit=1)).hits[
        0
    ].episode.turn_id != "t1"
    assert (await episodes.search("ana", "trip", speaker="assistant", limit=1)).hits[
        0
    ].episode.turn_id == "t3"
    assert await ids(conversation_id="c2") == {"t2"}


async def test_nothing_is_kept_for_a_user_or_deployment_that_switched_it_off(
    episodes: Episodes, valkey_or_redis: Redis
) -> None:
    await episodes.settle("ana", is_on=False)
    off = Episodes(valkey_or_redis, keep=timedelta(0), deadline_s=PATIENCE_S)

    assert await episodes.append("ana", [_said(1, "secret")]) == 0
    assert await off.append("bo", [_said(1, "secret")]) == 0
    await episodes.settle("ana", is_on=True)
    assert await episodes.append("ana", [_said(1, "said")]) == 1


async def test_expired_turns_are_removed_with_every_trace_of_their_words(
    episodes: Episodes, valkey_or_redis: Redis
) -> None:
    await episodes.append(
        "ana",
        [
            _said(1, "ancient zeppelin trip", days_ago=400),
            _said(2, "recent trip", days_ago=40),
        ],
    )

    assert await episodes.trim("ana", NOW) == 1
    assert await episodes.trim("ana", NOW) == 0
    words = await valkey_or_redis.hkeys(keys.episodes(user_token("ana")).words)
    month = f"@{NOW - timedelta(days=40):%Y-%m}"
    held = {"recent", "trip", "~rece", "~trip", month}
    assert {word.decode() for word in words} == held
    # How long a turn usually is weighs in the score of each hit.
    meta = keys.episodes(user_token("ana")).meta
    assert await valkey_or_redis.hmget(meta, "count", "length") == [b"1", b"2"]
    assert [
        hit.episode.turn_id for hit in (await episodes.search("ana", "trip")).hits
    ] == ["t2"]

    await episodes.settle("ana", days=30)
    assert await episodes.trim("ana", NOW) == 1
    assert await valkey_or_redis.hlen(keys.episodes(user_token("ana")).words) == 0
    with pytest.raises(InvalidInput, match="days 0 must be 1 or more"):
        await episodes.settle("ana", days=0)


async def test_forgetting_leaves_no_key_of_this_owner_and_all_of_others(
    episodes: Episodes, valkey_or_redis: Redis
) -> None:
    await episodes.append("ana", [_said(1, "a secret word")])
    await episodes.append("bo", [_said(1, "another")])

    assert await episodes.forget("ana") == 1
    assert await episodes.forget("ana") == 0

    left = [key async for key in valkey_or_redis.scan_iter("tl:episodes:*")]
    assert left
    assert all(user_token("bo") in key.decode() for key in left)


async def test_the_word_index_agrees_with_the_turns_that_are_kept(
    episodes: Episodes, valkey_or_redis: Redis
) -> None:
    dice = random.Random(7)
    vocabulary = [f"word{number}" for number in range(30)]
    said = [
        _said(
            number,
            " ".join(dice.choices(vocabulary, k=dice.randrange(1, 12))),
            days_ago=dice.choice([1, 500]),
        )
        for number in range(200)
    ]
    said.sort(key=lambda one: one.at)
    for at in range(0, 200, 23):
        await episodes.append("ana", said[at : at + 23])
        await episodes.trim("ana", NOW)
    while await episodes.trim("ana", NOW):
        pass

    kept = [one for one in said if one.at >= NOW - timedelta(days=365)]
    assert await episodes.recent("ana", 500) == tuple(kept)
    for word in vocabulary:
        postings = (
            await valkey_or_redis.hget(keys.episodes(user_token("ana")).words, word)
            or b""
        )
        assert len(postings) // 8 == sum(word in one.text.split() for one in kept)


async def test_a_turn_with_a_wrong_time_removes_no_other(episodes: Episodes) -> None:
    said = [_said(number, f"turn {number}") for number in range(49)]
    await episodes.append("ana", said)
    await episodes.append("ana", [_said(50, "from the future", days_ago=-4_000)])

    assert await episodes.count("ana") == 50


async def test_turns_kept_without_end_do_not_expire(
    episodes: Episodes, valkey_or_redis: Redis
) -> None:
    await episodes.append("ana", [_said(1, "a")])
    await Episodes(valkey_or_redis, keep=None, deadline_s=PATIENCE_S).append(
        "ana", [_said(2, "b")]
    )

    assert await valkey_or_redis.pttl(keys.episodes(user_token("ana")).turns) == -1


#: What the double takes for one meaning.
MEANINGS = ({"doctor", "physician", "dr"}, {"car", "vehicle"}, {"dog", "beagle"})


class Meanings:
    name = "meanings"

    def width(self) -> int:
        return len(MEANINGS) + 1

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [
            self._vector(set(text.casefold().replace("?", "").split()))
            for text in texts
        ]

    def _vector(self, words: set[str]) -> list[float]:
        vector = [float(bool(words & meaning)) for meaning in MEANINGS]
        return [*vector, float(not any(vector))]


@pytest.fixture
def vectors(valkey_or_redis: Redis) -> VectorIndex:
    return VectorIndex(valkey_or_redis, Meanings(), deadline_s=PATIENCE_S)


@pytest.fixture
def by_meaning(valkey_or_redis: Redis, vectors: VectorIndex) -> Episodes:
    return Episodes(
        valkey_or_redis,
        vectors=vectors,
        keep=timedelta(days=365),
        deadline_s=PATIENCE_S,
    )


async def test_a_turn_in_other_words_is_found_once_it_is_embedded(
    by_meaning: Episodes, vectors: VectorIndex
) -> None:
    await by_meaning.append("ana", [_said(n, f"small talk {n}") for n in range(200)])
    await by_meaning.append("ana", [_said(300, "dr Patel was friendly")])

    assert "t300" not in [
        hit.episode.turn_id
        for hit in (await by_meaning.search("ana", "my physician")).hits
    ]
    assert await vectors.embed_pending("ana") == 128
    assert await vectors.embed_pending("ana") == 73
    assert await vectors.embed_pending("ana") == 0
    found = await by_meaning.search("ana", "my physician")
    assert found.hits[0].episode.turn_id == "t300"
    assert not found.is_nothing_said
    assert (await by_meaning.search("ana", "vehicle")).is_nothing_said
    assert (await by_meaning.search("bo", "my physician")).hits == ()


async def test_concurrent_embedding_stores_one_vector_a_turn(
    by_meaning: Episodes, vectors: VectorIndex, valkey_or_redis: Redis
) -> None:
    await by_meaning.append("ana", [_said(n, f"turn {n}") for n in range(10)])
    other = VectorIndex(valkey_or_redis, Meanings(), deadline_s=PATIENCE_S)

    await vectors.embed_pending("ana")
    await other.embed_pending("ana")

    assert await valkey_or_redis.strlen(
        keys.episodes(user_token("ana")).vectors
    ) == 10 * (4 + 4)


async def test_vectors_are_removed_with_expired_turns(
    by_meaning: Episodes, vectors: VectorIndex, valkey_or_redis: Redis
) -> None:
    await by_meaning.append(
        "ana",
        [
            _said(1, "my dog", days_ago=500),
            _said(2, "my car", days_ago=400),
            _said(3, "my doctor"),
        ],
    )
    await vectors.embed_pending("ana")

    assert await by_meaning.trim("ana", NOW) == 2

    assert (
        await valkey_or_redis.strlen(keys.episodes(user_token("ana")).vectors) == 4 + 4
    )
    assert (await by_meaning.search("ana", "physician")).hits[0].episode.turn_id == "t3"


async def test_vectors_of_turns_forgotten_meanwhile_are_not_stored(
    by_meaning: Episodes, valkey_or_redis: Redis
) -> None:
    await by_meaning.append("ana", [_said(1, "my dog")])

    class Forgetting(Meanings):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            asyncio.run_coroutine_threadsafe(self.forget(), loop).result(PATIENCE_S)
            return super().embed(texts)

        async def forget(self) -> None:
            await by_meaning.forget("ana")
            await by_meaning.append("ana", [_said(9, "my car")])

    loop = asyncio.get_running_loop()
    await VectorIndex(
        valkey_or_redis, Forgetting(), deadline_s=PATIENCE_S
    ).embed_pending("ana")

    assert await valkey_or_redis.exists(keys.episodes(user_token("ana")).vectors) == 0


async def test_vectors_expire_and_are_forgotten_with_their_turns(
    by_meaning: Episodes, vectors: VectorIndex, valkey_or_redis: Redis
) -> None:
    await by_meaning.append("ana", [_said(1, "my dog")])
    await vectors.embed_pending("ana")

    of = keys.episodes(user_token("ana"))
    longest = await valkey_or_redis.pttl(of.turns)
    assert 0 < await valkey_or_redis.pttl(of.vectors) <= longest

    await by_meaning.forget("ana")
    assert [key async for key in valkey_or_redis.scan_iter("tl:episodes:*")] == []


async def test_turns_behind_many_expired_ones_are_embedded(
    by_meaning: Episodes, vectors: VectorIndex
) -> None:
    for at in range(0, 300, 50):
        await by_meaning.append(
            "ana", [_said(at + n, f"old talk {n}", days_ago=500) for n in range(50)]
        )
    while await by_meaning.trim("ana", NOW):
        pass
    await by_meaning.append("ana", [_said(400, "my doctor")])

    assert await vectors.embed_pending("ana") == 1


async def test_vectors_of_another_model_are_not_compared_but_replaced(
    by_meaning: Episodes, vectors: VectorIndex, valkey_or_redis: Redis
) -> None:
    """Whether they are of another name or of another length."""
    await by_meaning.append("ana", [_said(1, "my dog")])
    await vectors.embed_pending("ana")

    class Other(Meanings):
        name = "other"

    other = VectorIndex(valkey_or_redis, Other(), deadline_s=PATIENCE_S)
    assert await other.near("ana", "beagle") is None
    assert await other.embed_pending("ana") == 1
    near = await other.near("ana", "beagle")
    assert near is not None
    assert near.numbers.tolist() == [1]
    await valkey_or_redis.set(keys.episodes(user_token("ana")).vectors, b"x" * 13)
    assert await vectors.embed_pending("ana") == 1
    assert (await by_meaning.search("ana", "beagle")).hits[0].episode.turn_id == "t1"


async def test_a_period_without_turns_has_no_near_hits(
    by_meaning: Episodes, vectors: VectorIndex
) -> None:
    await by_meaning.append("ana", [_said(1, "my doctor", days_ago=100)])
    await vectors.embed_pending("ana")

    assert (
        await by_meaning.search("ana", "physician", since=NOW.date())
    ).is_nothing_said
    assert not (await by_meaning.search("ana", "physician")).is_nothing_said


@pytest.mark.parametrize("fault", ["gone", "hangs", "another width"])
async def test_search_by_words_works_while_the_embedder_does_not(
    valkey_or_redis: Redis, fault: str
) -> None:
    class Faulty(Meanings):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            if texts != ["which physician"]:
                return super().embed(texts)
            if fault == "gone":
                raise ConnectionError("nobody answers")
            if fault == "hangs":
                time.sleep(1.0)
            return [[1.0, 0.0]]

    index = VectorIndex(valkey_or_redis, Faulty(), deadline_s=PATIENCE_S)
    by_meaning = Episodes(valkey_or_redis, vectors=index, deadline_s=PATIENCE_S)
    await by_meaning.append(
        "ana", [_said(1, "dr Patel was friendly"), _said(2, "a physician in Lisbon")]
    )
    assert await index.embed_pending("ana") == 2
    index._deadline_s = 0.5 if fault == "hangs" else PATIENCE_S
    asked: list[float] = []
    for _ in range(4):
        began = time.monotonic()
        found = await by_meaning.search("ana", "which physician")
        asked.append(time.monotonic() - began)
        assert found.hits[0].episode.turn_id == "t2"
        assert found.nearness is None
    # What hung three times is left alone.
    assert fault != "hangs" or (min(asked[:3]) >= 0.5 and index._breaker.is_open)
