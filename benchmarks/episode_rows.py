"""What was said word for word: keeping a turn, as the path of a chat does, and searching a thousand and ten thousand.

A turn kept and a bare SET take turns in one process, on connections of their own; so do a search and a GET.
"""

from dataclasses import replace

from redis.asyncio import Redis

from benchmarks.document_rows import bare_client, in_turns, timed
from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.minilm import load_minilm
from tasklore.memory.episodes.recall import recall
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.episodes.vectors import VectorIndex
from tasklore.runtime.servers import valkey
from tests.episodes.chats import Person, Turn, make_people

#: Turns of each person who is asked about, and hits of a search.
SIZES = (1_000, 10_000)
TURNS = max(SIZES)
FOUND = 40
#: Milliseconds at the 95th percentile that keeping a turn may add to a reply.
KEPT_MS = 5.0
#: How many times a GET a search may take at the median, by words and by meaning too, for each number of turns.
ASKED = {(1_000, "words"): 8, (10_000, "words"): 15, (10_000, "meaning"): 60}


async def measure(redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, all measured on the running loop; that of a search by meaning where MiniLM is installed."""
    (person,) = make_people("development", count=1, turns=TURNS)
    model = load_minilm()
    async with (
        bare_client(redis_url) as bare,
        valkey.connect(redis_url, deadline_s=60.0) as lent,
    ):
        episodes = Episodes(lent, deadline_s=60.0)

        async def bare_set(number: int) -> object:
            return await bare.set(
                f"bench:turn:{number}", person.turns[number % TURNS].text
            )

        async def keep(number: int) -> object:
            return await episodes.append(
                "bench-chat", [_episode(person.turns[number % TURNS], f"kept-{number}")]
            )

        raw, kept = await in_turns((bare_set, keep), profile.recalls)
        at_95 = percentile(kept.ms, 0.95) - percentile(raw.ms, 0.95)
        how = f"adds {at_95:.1f} ms at p95 to the path of a chat, asked at most {KEPT_MS:g}"
        rows = [
            timed("redis-py SET of a turn", raw, ""),
            timed("turn kept word for word", kept, how, ("SET", raw)),
        ]
        index = None if model is None else VectorIndex(lent, model, deadline_s=60.0)
        for turns in SIZES:
            of = replace(person, person_id=f"bench-{turns}")
            for at in range(0, turns, 100):
                told = person.turns[at : at + 100]
                await episodes.append(of.person_id, [_episode(turn) for turn in told])
            rows += await _searched(episodes, bare, of, profile, turns, "words")
            if index is not None and (turns, "meaning") in ASKED:
                while await index.embed_pending(of.person_id):
                    pass
                by_meaning = Episodes(lent, vectors=index, deadline_s=60.0)
                rows += await _searched(by_meaning, bare, of, profile, turns, "meaning")
    return rows


async def _searched(
    episodes: Episodes,
    bare: Redis,
    person: Person,
    profile: Profile,
    turns: int,
    by: str,
) -> list[Row]:
    """Return the row of searches among *turns* of *person*, which take turns with a GET."""

    async def bare_get(number: int) -> object:
        return await bare.get(f"bench:turn:{number}")

    async def search(number: int) -> object:
        question = person.questions[number % len(person.questions)]
        return await recall(
            episodes, person.person_id, question.text, question.asked_at, limit=FOUND
        )

    raw, taken = await in_turns((bare_get, search), profile.questions)
    how = f"{FOUND} found at most; asked at most {ASKED[turns, by]}x at p50"
    what = f"{turns:,} turns searched by " + (
        by if by == "words" else "words and meaning (MiniLM)"
    )
    return [timed(what, taken, how, ("GET", raw))]


def _episode(turn: Turn, turn_id: str = "") -> Episode:
    return Episode(
        turn_id=turn_id or turn.turn_id,
        conversation_id=turn.conversation_id,
        speaker=turn.speaker,
        at=turn.at,
        text=turn.text,
    )
