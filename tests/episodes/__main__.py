"""Measure the search over made-up chats: `python -m tests.episodes [development|held]` beside a server of its own."""

import asyncio
import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.minilm import load_minilm
from tasklore.memory.episodes.recall import quotations_of, recall
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.episodes.vectors import VectorIndex
from tasklore.memory.episodes.words import words_of
from tasklore.memory.rendering.documents import Quotation, render
from tasklore.memory.rendering.quoting import quote
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import ValkeyServer
from tests.episodes.chats import Person, Question, make_people

KINDS = Kinds.load()
#: People of a run; fewer are quicker: `EPISODE_PEOPLE=2 python -m tests.episodes`.
PEOPLE = int(os.environ.get("EPISODE_PEOPLE", "10"))


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
        plain = PlainRanking()
        people = make_people(part, PEOPLE)
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
                texts = {turn.turn_id: turn.text for turn in person.turns}
                row = tally.setdefault(question.kind, [0, 0, 0, 0, 0])
                row[0] += 1
                for place, said in enumerate(
                    (quotations_of(found), plain.of(person, question))
                ):
                    block = _block(question, said)
                    seen = [quote(texts[one]) in block for one in question.evidence]
                    row[1 + 2 * place] += all(seen)
                    row[2 + 2 * place] += any(seen)
        used = int((await redis.info("memory"))["used_memory_dataset"])
    tally = dict(sorted(tally.items()))
    tally["together"] = [sum(column) for column in zip(*tally.values(), strict=True)]
    for kind, (asked, every, some, plain_every, plain_some) in tally.items():
        print(
            f"{kind:10} {asked:4} questions: all evidence {every / asked:6.1%}, any {some / asked:6.1%};"
            f" by plain BM25 {plain_every / asked:6.1%}, {plain_some / asked:6.1%}"
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


def _block(question: Question, said: Sequence[Quotation]) -> str:
    """Return the block of 1,000 tokens for a prompt."""
    return render(
        {},
        KINDS,
        today=question.asked_at.date(),
        query=question.text,
        budget_tokens=1_000,
        said=said,
    ).text


class PlainRanking:
    """BM25 over turns and nothing more: what every step has to be better than."""

    def __init__(self) -> None:
        self._words: dict[str, list[Counter[str]]] = {}

    def of(self, person: Person, question: Question) -> list[Quotation]:
        """Return the 100 best turns."""
        if person.person_id not in self._words:
            self._words[person.person_id] = [
                Counter(words_of(turn.text)) for turn in person.turns
            ]
        turns = self._words[person.person_id]
        usual = sum(words.total() for words in turns) / len(turns)
        scores = [0.0] * len(turns)
        for word in set(words_of(question.text)):
            held = sum(word in words for words in turns)
            weight = math.log(1 + (len(turns) - held + 0.5) / (held + 0.5))
            for number, words in enumerate(turns):
                often = words[word]
                length = 1.2 * (0.25 + 0.75 * words.total() / usual)
                scores[number] += weight * often * 2.2 / (often + length)
        best = sorted(range(len(turns)), key=lambda number: -scores[number])[:100]
        return [
            Quotation(
                person.turns[number].text,
                person.turns[number].speaker,
                person.turns[number].at.date(),
                scores[number],
            )
            for number in best
            if scores[number] > 0
        ]


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
