"""Measure the search over made-up chats: `python -m tests.episodes [seen|unseen|development|held]`, on a server of its own.

`--vectors` searches by meaning too, `--long` makes turns of 300 words, `--asked` keeps 50 questions of each person before
any is asked, `--tokens=2000` gives the block another budget.
"""

import asyncio
import math
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.minilm import load_minilm
from tasklore.memory.episodes.recall import quotations_of, recall
from tasklore.memory.episodes.store import Episodes, SearchResult
from tasklore.memory.episodes.vectors import VectorIndex
from tasklore.memory.episodes.words import words_of
from tasklore.memory.rendering.documents import render, tokens_of
from tasklore.memory.rendering.quoting import plain
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import ValkeyServer
from tests.episodes.chats import Person, Question, Turn, make_people
from tests.episodes.lives import make_lives

KINDS = Kinds.load()
#: People of a run; fewer are quicker: `EPISODE_PEOPLE=2 python -m tests.episodes`.
PEOPLE = int(os.environ.get("EPISODE_PEOPLE", "20"))
_SENTENCES = re.compile(r"(?<=[.!?])\s+")
#: Characters from which on a sentence tells turns apart.
_TELLING = 12
#: Questions that a person has asked before, with `--asked`.
_ASKED_BEFORE = 50


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured, and how."""

    part: str
    has_vectors: bool
    is_long: bool
    is_asked_before: bool
    budget: int

    @classmethod
    def read(cls, words: Iterable[str]) -> "Options":
        """Return the options that *words* of a command line say."""
        said = list(words)
        budgets = (
            word.partition("=")[2] for word in said if word.startswith("--tokens=")
        )
        return cls(
            part=next((word for word in said if word[0] != "-"), "seen"),
            has_vectors="--vectors" in said,
            is_long="--long" in said,
            is_asked_before="--asked" in said,
            budget=int(next(budgets, "1000")),
        )

    def people(self) -> list[Person]:
        """Return the people of the part."""
        if self.part in ("seen", "unseen"):
            return make_lives(self.part, PEOPLE, are_turns_long=self.is_long)
        return make_people(self.part, PEOPLE)


@dataclass
class Tally:
    """How often blocks held all and any evidence of a question, by its kind, ours and those of plain BM25."""

    held: dict[str, list[int]] = field(default_factory=dict)
    nothing: dict[str, list[int]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def note(self, question: Question, blocks: Iterable[str], person: Person) -> None:
        """Count *question*, whose evidence is looked for in the two *blocks*."""
        cores = {turn.turn_id: _sentences_of(turn) for turn in person.turns}
        row = self.held.setdefault(question.kind, [0, 0, 0, 0, 0])
        row[0] += 1
        for place, block in enumerate(blocks):
            seen = [
                all(sentence in block for sentence in cores[one])
                for one in question.evidence
            ]
            row[1 + 2 * place] += all(seen)
            row[2 + 2 * place] += any(seen)

    def note_nothing(self, question: Question, found: SearchResult) -> None:
        """Count whether the search says that nothing was said."""
        kind = question.kind if question.kind in ("never", "stranger") else "others"
        row = self.nothing.setdefault(kind, [0, 0])
        row[0] += found.is_nothing_said
        row[1] += 1

    def print(self) -> None:
        """Print all figures."""
        rows = dict(sorted(self.held.items()))
        rows["together"] = [sum(column) for column in zip(*rows.values(), strict=True)]
        for kind, (asked, every, some, plain_every, plain_some) in rows.items():
            print(
                f"{kind:10} {asked:4} questions: all evidence {every / asked:6.1%}, any {some / asked:6.1%};"
                f" by plain BM25 {plain_every / asked:6.1%}, {plain_some / asked:6.1%}"
            )
        for kind, (said, asked) in sorted(self.nothing.items()):
            print(f"nothing said: {said / asked:.1%} of {asked} {kind}")
        times = sorted(self.seconds)
        print(
            f"ms a question: p50 {times[len(times) // 2] * 1e3:.2f}, p95 {times[int(len(times) * 0.95)] * 1e3:.2f}"
        )


def _sentences_of(turn: Turn) -> list[str]:
    """Return the sentences of what *turn* tells, as a block shows them; the short ones only where it has no others."""
    shown = [plain(one) for one in _SENTENCES.split(turn.core or turn.text)]
    return [one for one in shown if len(one) > _TELLING] or shown


async def _main(options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = ValkeyServer(Path(folder))
        await server.start()
        try:
            await _measure(options, server.url)
        finally:
            await server.stop()


async def _measure(options: Options, url: str) -> None:
    async with valkey.connect(url, name="episodes") as redis:
        model = load_minilm() if options.has_vectors else None
        vectors = None if model is None else VectorIndex(redis, model, deadline_s=30.0)
        # Without end: what was made up goes back further than turns are usually kept.
        episodes = Episodes(redis, vectors=vectors, keep=None, deadline_s=30.0)
        tally = Tally()
        plain_search = PlainRanking(options.budget)
        people = options.people()
        for person in people:
            if options.is_asked_before:
                _ask_before(person)
            await _keep(episodes, person)
            while vectors is not None and await vectors.embed_pending(person.person_id):
                pass
        for person in people:
            for question in person.questions:
                started = time.perf_counter()
                found = await recall(
                    episodes, person.person_id, question.text, question.asked_at
                )
                tally.seconds.append(time.perf_counter() - started)
                tally.note_nothing(question, found)
                if question.evidence:
                    blocks = (
                        _block(question, found, options.budget),
                        plain_search.block(person, question),
                    )
                    tally.note(question, blocks, person)
        used = int((await redis.info("memory"))["used_memory_dataset"])
    tally.print()
    print(f"bytes a turn: {used / sum(len(person.turns) for person in people):.0f}")


def _ask_before(person: Person) -> None:
    """Put questions of *person* between conversations, as the chat keeps them; some are asked again later."""
    dice = random.Random(person.person_id)
    for number in range(_ASKED_BEFORE):
        begins = [
            place
            for place in range(1, len(person.turns))
            if person.turns[place].conversation_id
            != person.turns[place - 1].conversation_id
        ]
        place = dice.choice(begins)
        asked = Turn(
            turn_id=f"asked-{number}",
            conversation_id=f"asked-{number}",
            speaker="person",
            at=person.turns[place].at,
            text=dice.choice(person.questions).text,
        )
        person.turns.insert(place, asked)


def _block(question: Question, found: SearchResult, budget: int) -> str:
    """Return the block for a prompt."""
    return render(
        {},
        KINDS,
        today=question.asked_at.date(),
        query=question.text,
        budget_tokens=budget,
        said=quotations_of(found),
    ).text


class PlainRanking:
    """BM25 over turns and nothing more, whole turns until the budget is used: what every step has to be better than."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._words: dict[str, list[Counter[str]]] = {}

    def block(self, person: Person, question: Question) -> str:
        """Return the best turns, each with speaker and day, as many as the budget holds."""
        lines = list[str]()
        left = self._budget
        for turn in self._best(person, question):
            line = f'- "{plain(turn.text, 20_000)}" (said {turn.at:%Y-%m-%d}, {turn.speaker})\n'
            left -= tokens_of(line)
            if left < 0:
                break
            lines.append(line)
        return "".join(lines)

    def _best(self, person: Person, question: Question) -> list[Turn]:
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
        order = sorted(range(len(turns)), key=lambda number: -scores[number])
        return [person.turns[number] for number in order if scores[number] > 0]


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
    asyncio.run(_main(Options.read(sys.argv[1:])))
