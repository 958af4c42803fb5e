"""What was said word for word: keeping a turn, as the path of a chat does, and searching ten thousand of one person.

A turn kept and a bare SET take turns in one process, on connections of their own; a search stands alone.
"""

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

#: Turns of the person who is asked about, and hits of a search.
TURNS = 10_000
FOUND = 40
#: Milliseconds at the 95th percentile that keeping a turn may add to a reply, and that a search may take.
KEPT_MS = 5.0
SEARCHED_MS = 20.0


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
        for at in range(0, TURNS, 100):
            await episodes.append(
                person.person_id,
                [_episode(turn) for turn in person.turns[at : at + 100]],
            )
        rows.append(await _searched(episodes, person, profile, "words"))
        if model is not None:
            index = VectorIndex(lent, model, deadline_s=60.0)
            while await index.embed_pending(person.person_id):
                pass
            by_meaning = Episodes(lent, vectors=index, deadline_s=60.0)
            rows.append(
                await _searched(
                    by_meaning, person, profile, "words and meaning (MiniLM)"
                )
            )
    return rows


async def _searched(
    episodes: Episodes, person: Person, profile: Profile, by: str
) -> Row:
    async def search(number: int) -> object:
        question = person.questions[number % len(person.questions)]
        return await recall(
            episodes, person.person_id, question.text, question.asked_at, limit=FOUND
        )

    (taken,) = await in_turns([search], profile.questions)
    how = (
        f"{TURNS:,} turns, {FOUND} found at most; p95 asked at most {SEARCHED_MS:g} ms"
    )
    return timed(f"turns searched by {by}", taken, how)


def _episode(turn: Turn, turn_id: str = "") -> Episode:
    return Episode(
        turn_id=turn_id or turn.turn_id,
        conversation_id=turn.conversation_id,
        speaker=turn.speaker,
        at=turn.at,
        text=turn.text,
    )
