"""Turns are found by meaning where an embedder is configured, and vectors come and go with their turns."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from contracts.identifiers import user_token
from memory import keys
from memory.episodes.store import Episode, Episodes
from memory.episodes.vectors import VectorIndex
from tests.servers import PATIENCE_S

NOW = datetime.now(UTC).replace(microsecond=0)
#: What the double takes for one meaning.
MEANINGS = ({"doctor", "physician", "dr"}, {"car", "vehicle"}, {"dog", "beagle"})


class Meanings:
    """An embedder that knows three meanings."""

    name = "meanings"

    def width(self) -> int:
        """Return one number for each, and one for everything else."""
        return len(MEANINGS) + 1

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return which of them each text speaks of."""
        return [self._vector(set(text.casefold().replace("?", "").split())) for text in texts]

    def _vector(self, words: set[str]) -> list[float]:
        vector = [float(bool(words & meaning)) for meaning in MEANINGS]
        return [*vector, float(not any(vector))]


@pytest.fixture
def vectors(valkey_or_redis: Redis) -> VectorIndex:
    """Return an index of that embedder."""
    return VectorIndex(valkey_or_redis, Meanings(), deadline_s=PATIENCE_S)


@pytest.fixture
def episodes(valkey_or_redis: Redis, vectors: VectorIndex) -> Episodes:
    """Return a store that searches by it."""
    return Episodes(valkey_or_redis, vectors=vectors, keep=timedelta(days=365), deadline_s=PATIENCE_S)


def _said(number: int, text: str, days_ago: int = 1) -> Episode:
    at = NOW - timedelta(days=days_ago) + timedelta(seconds=number)
    return Episode(turn_id=f"t{number}", conversation_id="c", speaker="person", at=at, text=text)


async def test_a_turn_in_other_words_is_found_once_it_is_embedded(episodes: Episodes, vectors: VectorIndex) -> None:
    await episodes.append("ana", [_said(n, f"small talk {n}") for n in range(200)])
    await episodes.append("ana", [_said(300, "dr Patel was friendly")])

    assert "t300" not in [hit.episode.turn_id for hit in (await episodes.search("ana", "my physician")).hits]
    assert await vectors.embed_pending("ana") == 128
    assert await vectors.embed_pending("ana") == 73
    assert await vectors.embed_pending("ana") == 0
    found = await episodes.search("ana", "my physician")
    assert found.hits[0].episode.turn_id == "t300"
    assert not found.is_nothing_said
    assert (await episodes.search("ana", "vehicle")).is_nothing_said
    assert (await episodes.search("bo", "my physician")).hits == ()


async def test_concurrent_embedding_stores_one_vector_a_turn(
    episodes: Episodes, vectors: VectorIndex, valkey_or_redis: Redis
) -> None:
    await episodes.append("ana", [_said(n, f"turn {n}") for n in range(10)])
    other = VectorIndex(valkey_or_redis, Meanings(), deadline_s=PATIENCE_S)

    await vectors.embed_pending("ana")
    await other.embed_pending("ana")

    assert await valkey_or_redis.strlen(keys.episodes(user_token("ana")).vectors) == 10 * (4 + 4)


async def test_vectors_are_removed_with_expired_turns(
    episodes: Episodes, vectors: VectorIndex, valkey_or_redis: Redis
) -> None:
    await episodes.append("ana", [_said(1, "my dog", 500), _said(2, "my car", 400), _said(3, "my doctor")])
    await vectors.embed_pending("ana")

    assert await episodes.trim("ana", NOW) == 2

    assert await valkey_or_redis.strlen(keys.episodes(user_token("ana")).vectors) == 4 + 4
    assert (await episodes.search("ana", "physician")).hits[0].episode.turn_id == "t3"


async def test_vectors_of_turns_forgotten_meanwhile_are_not_stored(episodes: Episodes, valkey_or_redis: Redis) -> None:
    await episodes.append("ana", [_said(1, "my dog")])

    class Forgetting(Meanings):
        """Forgets the person in the middle of its work."""

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            asyncio.run_coroutine_threadsafe(self.forget(), loop).result(PATIENCE_S)
            return super().embed(texts)

        async def forget(self) -> None:
            await episodes.forget("ana")
            await episodes.append("ana", [_said(9, "my car")])

    loop = asyncio.get_running_loop()
    await VectorIndex(valkey_or_redis, Forgetting(), deadline_s=PATIENCE_S).embed_pending("ana")

    assert await valkey_or_redis.exists(keys.episodes(user_token("ana")).vectors) == 0


async def test_vectors_expire_and_are_forgotten_with_their_turns(
    episodes: Episodes, vectors: VectorIndex, valkey_or_redis: Redis
) -> None:
    await episodes.append("ana", [_said(1, "my dog")])
    await vectors.embed_pending("ana")

    of = keys.episodes(user_token("ana"))
    longest = await valkey_or_redis.pttl(of.turns)
    assert 0 < await valkey_or_redis.pttl(of.vectors) <= longest

    await episodes.forget("ana")
    assert [key async for key in valkey_or_redis.scan_iter("tl:episodes:*")] == []


async def test_turns_behind_many_expired_ones_are_embedded(episodes: Episodes, vectors: VectorIndex) -> None:
    for at in range(0, 300, 50):
        await episodes.append("ana", [_said(at + n, f"old talk {n}", 500) for n in range(50)])
    while await episodes.trim("ana", NOW):
        pass
    await episodes.append("ana", [_said(400, "my doctor")])

    assert await vectors.embed_pending("ana") == 1


async def test_vectors_of_another_model_are_not_compared_but_replaced(
    episodes: Episodes, vectors: VectorIndex, valkey_or_redis: Redis
) -> None:
    """Whether they are of another name or of another length."""
    await episodes.append("ana", [_said(1, "my dog")])
    await vectors.embed_pending("ana")

    class Other(Meanings):
        """Another model."""

        name = "other"

    other = VectorIndex(valkey_or_redis, Other(), deadline_s=PATIENCE_S)
    assert await other.near("ana", "beagle", 5) == []
    assert await other.embed_pending("ana") == 1
    assert [number for number, *_ in await other.near("ana", "beagle", 5)] == [1]
    await valkey_or_redis.set(keys.episodes(user_token("ana")).vectors, b"x" * 13)
    assert await vectors.embed_pending("ana") == 1
    assert (await episodes.search("ana", "beagle")).hits[0].episode.turn_id == "t1"


async def test_a_period_without_turns_has_no_near_hits(episodes: Episodes, vectors: VectorIndex) -> None:
    await episodes.append("ana", [_said(1, "my doctor", 100)])
    await vectors.embed_pending("ana")

    assert (await episodes.search("ana", "physician", since=NOW.date())).is_nothing_said
    assert not (await episodes.search("ana", "physician")).is_nothing_said


@pytest.mark.parametrize("fault", ["gone", "hangs", "another width"])
async def test_search_by_words_works_while_the_embedder_does_not(valkey_or_redis: Redis, fault: str) -> None:
    class Faulty(Meanings):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            if texts != ["which physician"]:
                return super().embed(texts)
            if fault == "gone":
                raise ConnectionError("nobody answers")
            if fault == "hangs":
                time.sleep(1.0)
            return [[1.0, 0.0]]

    index = VectorIndex(valkey_or_redis, Faulty(), deadline_s=0.5)
    episodes = Episodes(valkey_or_redis, vectors=index, deadline_s=PATIENCE_S)
    await episodes.append("ana", [_said(1, "dr Patel was friendly"), _said(2, "a physician in Lisbon")])
    assert await index.embed_pending("ana") == 2
    asked: list[float] = []
    for _ in range(4):
        began = time.monotonic()
        found = await episodes.search("ana", "which physician")
        asked.append(time.monotonic() - began)
        assert found.hits[0].episode.turn_id == "t2"
        assert found.nearness is None
    # What hung three times is left alone.
    assert fault != "hangs" or (min(asked[:3]) >= 0.5 and index._breaker.is_open)
