"""Vectors of episodes: 384 numbers of 8 bits a turn, in one string an owner, made after the turn was kept.

A record is the turn's number and its vector, 388 bytes with MiniLM, in the order of the numbers. The whole string is
read for a search: 4 MB for 10,000 turns, 3 ms. A writer appends behind the last number it saw, or not at all.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import structlog
from redis.asyncio import Redis

from tasklore.contracts.extensions import Embedder
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.episodes.bodies import read_bodies
from tasklore.memory.episodes.episode import Episode, NearTurns
from tasklore.memory.scripts import load

__all__ = ["VectorIndex"]

log = structlog.get_logger(__name__)

#: Turns that are embedded in one call.
BATCH = 128
#: Seconds for which questions are answered by their words alone once three in a row were not embedded.
_REST_S = 30.0
_NUMBER = 4

ADD = load(Path(__file__).parent, "vectors", "refuse")


#: What a deviation from the usual cosine counts; turns from which on there is a usual one, and what counts below that.
_LEAD = 0.1
_LEAST_TURNS = 50
_USUAL_LEAD = 3.4


class VectorIndex:
    """The vectors of all owners.

    Args:
        embedder: Makes the vectors.
        deadline_s: Seconds for one round trip; then MemoryUnavailable, which every method may raise. A question has
            as many to be embedded.
    """

    def __init__(
        self, client: Redis, embedder: Embedder, *, deadline_s: float = 2.0
    ) -> None:
        self._embedder = embedder
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)
        self._deadline_s = deadline_s
        self._breaker = Breaker(rest_s=_REST_S)

    async def embed_pending(self, owner: str) -> int:
        """Embed up to 128 turns of *owner* that have no vector yet; return how many.

        Of several who do so at once one stores its vectors, and the others' work is dropped.
        """
        of = keys.episodes(user_token(owner))
        end, known = await self._batch.run(
            [
                ("STRLEN", of.vectors),
                ("HMGET", of.meta, "last", "first", "born", "model"),
            ]
        )
        last, first, born, model = known
        if born is None:
            return 0
        width = _NUMBER + await asyncio.to_thread(self._embedder.width)
        if end and (model != self._embedder.name.encode() or int(end) % width):
            # Of another model: nothing of it can be compared.
            await self._batch.run([("UNLINK", of.vectors)])
            end = 0
        seen = 0
        if end:
            start = int(end) - width
            last_number = (
                await self._batch.run(
                    [("GETRANGE", of.vectors, start, start + _NUMBER - 1)]
                )
            )[0]
            seen = int.from_bytes(last_number, "big")
        begin = max(seen + 1, int(first or 1))
        numbers = list(range(begin, min(int(last or 0), begin + BATCH - 1) + 1))
        if not numbers:
            return 0
        bodies = await read_bodies(self._batch, of.turns, numbers)
        said = [
            (number, _text_of(owner, Episode.model_validate_json(body), number - first))
            for number, (first, body) in bodies.items()
        ]
        if not said:
            return 0
        records = await asyncio.to_thread(self._records, said)
        where = (of.vectors, of.meta, of.turns)
        add: Command = (
            "FCALL",
            ADD,
            3,
            *where,
            born,
            self._embedder.name,
            seen,
            width,
            records,
        )
        await self._batch.run([add])
        return len(said)

    async def near(self, owner: str, question: str) -> NearTurns | None:
        """Return how near all turns of *owner* that have a vector are to *question*.

        None where none has one, and where the question cannot be embedded in time: it is answered by its words then.
        """
        of = keys.episodes(user_token(owner))
        # The question is embedded while the store looks for its words.
        (stored, model), asked = await asyncio.gather(
            self._batch.run([("GET", of.vectors), ("HGET", of.meta, "model")]),
            self._embed_all(question),
        )
        if (
            not stored
            or not asked
            or model != self._embedder.name.encode()
            or len(stored) % (_NUMBER + len(asked))
        ):
            return None
        return await asyncio.to_thread(_nearness, stored, asked)

    async def _embed_all(self, question: str) -> Sequence[float]:
        """Return the vector of *question*, none while its embedder fails: each waits for that in a thread of all."""
        if not self._breaker.allows():
            return ()
        try:
            async with asyncio.timeout(self._deadline_s):
                vector = (await asyncio.to_thread(self._embedder.embed, [question]))[0]
        except Exception as error:  # noqa: BLE001 - an endpoint may raise whatever it likes; words find something, too
            log.warning("question_not_embedded", error=type(error).__name__)
            self._breaker.failed()
            return ()
        self._breaker.succeeded()
        return vector

    def _records(self, said: Sequence[tuple[int, str]]) -> bytes:
        import numpy as np

        told = [text for _, text in said if text]
        vectors = iter(self._embedder.embed(told) if told else ())
        nothing = np.zeros(self._embedder.width())
        made = np.array([next(vectors) if text else nothing for _, text in said])
        packed = np.clip(np.rint(made * 127), -127, 127).astype("i1")
        return b"".join(
            number.to_bytes(_NUMBER, "big") + row.tobytes()
            for (number, _), row in zip(said, packed, strict=True)
        )


def _text_of(owner: str, episode: Episode, passage: int) -> str:
    """Return the text to embed of a passage: speaker, day and words; "" where it only asks."""
    if episode.is_asking:
        return ""
    who = episode.agent_id or (
        owner if episode.speaker == "person" and "/" not in owner else episode.speaker
    )
    text = episode.texts[min(passage, len(episode.texts) - 1)]
    return f"{who}, {episode.at:%d %B %Y}: {text}"


def _nearness(stored: bytes, vector: Sequence[float]) -> NearTurns:
    import numpy as np

    asked = np.array(vector, dtype="f4")
    width = _NUMBER + len(asked)
    rows = np.frombuffer(stored, dtype="u1").reshape(-1, width)
    # What only asks has a vector of zeros.
    rows = rows[rows[:, _NUMBER:].any(axis=1)]
    cosines = rows[:, _NUMBER:].view("i1").astype("f4") @ asked / 127
    numbers = rows[:, :_NUMBER].astype("u4") @ np.array(
        [1 << 24, 1 << 16, 1 << 8, 1], dtype="u4"
    )
    leads = np.full(len(cosines), _USUAL_LEAD, dtype="f4")
    if len(cosines) >= _LEAST_TURNS:
        leads = (cosines - cosines.mean()) / max(float(cosines.std()), 1e-6)
    return NearTurns(numbers, cosines, cosines + _LEAD * leads)
