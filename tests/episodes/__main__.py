"""Measure the search over made-up chats: `python -m tests.episodes [development|held]` beside a server of its own."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.minilm import load_minilm
from tasklore.memory.episodes.recall import quotations_of, recall
from tasklore.memory.episodes.store import Episodes, SearchResult
from tasklore.memory.episodes.vectors import VectorIndex
from tasklore.memory.rendering.documents import render
from tasklore.memory.rendering.quoting import quote
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import ValkeyServer
from tests.episodes.chats import Person, Question, make_people

KINDS = Kinds.load()


async def _main(part: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = ValkeyServer(Path(folder))
        await server.start()
        try:
            await _measure(part, server.url)
        finally:
            await server.stop()


async def _measure(part: str, url: str) -> None:
    async with valkey.connect(url, name="episodes") as redis:
        model = load_minilm() if "--vectors" in sys.argv else None
        vectors = None if model is None else VectorIndex(redis, model, deadline_s=30.0)
        episodes = Episodes(redis, vectors=vectors, deadline_s=30.0)
        tally: dict[str, list[int]] = {}
        times: list[float] = []
        nothing = [0, 0, 0, 0]
        people = make_people(part)
        for person in people:
            await _keep(episodes, person)
            while vectors is not None and await vectors.embed_pending(person.person_id):
                pass
        for person in people:
            for question in person.questions:
                started = time.perf_counter()
                found = await recall(
                    episodes, person.person_id, question.text, question.asked_at
                )
                times.append(time.perf_counter() - started)
                if question.kind == "never":
                    nothing[0] += found.is_nothing_said
                    nothing[1] += 1
                    continue
                nothing[2] += found.is_nothing_said
                nothing[3] += 1
                block = _block(question, found)
                texts = {turn.turn_id: turn.text for turn in person.turns}
                seen = [quote(texts[one]) in block for one in question.evidence]
                row = tally.setdefault(question.kind, [0, 0, 0])
                row[0] += 1
                row[1] += all(seen)
                row[2] += any(seen)
        used = int((await redis.info("memory"))["used_memory_dataset"])
    for kind, (asked, every, some) in sorted(tally.items()):
        print(
            f"{kind:10} {asked:4} questions: all evidence {every / asked:6.1%}, any {some / asked:6.1%}"
        )
    asked, every, some = (
        sum(row[place] for row in tally.values()) for place in range(3)
    )
    print(
        f"{'together':10} {asked:4} questions: all evidence {every / asked:6.1%}, any {some / asked:6.1%}"
    )
    never = nothing[0] / nothing[1]
    others = nothing[2] / nothing[3]
    print(
        f"nothing said: {never:.1%} of {nothing[1]} never said, {others:.1%} of the others"
    )
    times.sort()
    print(
        f"ms a question: p50 {times[len(times) // 2] * 1e3:.2f}, p95 {times[int(len(times) * 0.95)] * 1e3:.2f}"
    )
    print(f"bytes a turn: {used / sum(len(person.turns) for person in people):.0f}")


def _block(question: Question, found: SearchResult) -> str:
    """Return the block of 1,000 tokens for a prompt; what would not be shown as said by nobody is shown here, too."""
    return render(
        {},
        KINDS,
        today=question.asked_at.date(),
        query=question.text,
        budget_tokens=1_000,
        said=quotations_of(found),
    ).text


async def _keep(episodes: Episodes, person: Person) -> None:
    said = [
        Episode(
            turn_id=turn.turn_id,
            conversation_id=turn.conversation_id,
            speaker=turn.speaker,
            at=turn.at,
            text=turn.text,
        )
        for turn in person.turns
    ]
    for at in range(0, len(said), 100):
        await episodes.append(person.person_id, said[at : at + 100])


if __name__ == "__main__":
    asyncio.run(
        _main(next((word for word in sys.argv[1:] if word[0] != "-"), "development"))
    )
