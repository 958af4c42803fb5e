"""Answers that a strong model gave to our real prompts, replayed; and the prompts that are still to be answered.

`python -m tests.memory_reading.recorded PEOPLE.json --out DIR` lets made-up people speak, batch by batch, and writes
each prompt that has no answer yet to a file of its own, `ID-DIGEST.txt`. Later prompts show what earlier answers left:
it is run again after each round, until it writes nothing; then it prints how good the answers were.

PEOPLE.json is a list of `{"id", "turns", "facts", "traps"}`. A turn is `{"speaker", "text", "at"}`. `facts` is what is
to be current in the end, `{"category", "value", "subject"?}`, where categories may be several, split by `|`; `traps`
are texts that may stand in no item. Answers lie in `tests/recorded/memory_*.jsonl`, one `{"digest", "answer"}` a line.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from contracts.messages import ChatTurn
from memory.documents.entries import Entry, live_entries
from memory.documents.items import Body
from memory.episodes.words import words_of
from memory.rendering.tokens import counter
from runtime.llm import Expense, LlmSettings, Reply
from tests.memory_bench import KINDS, NOW, BenchContext, draft_of
from workers.agents.memory_worker.runner import edit
from workers.agents.switchboard import extract
from workers.fakes import FakeDocuments
from workers.listening.context import ListenContext
from workers.listening.values import FactBatch, PendingFact, TurnBatch
from workers.testing import KitServices

RECORDED = Path(__file__).parents[1] / "recorded"
#: Turns of a person in one batch, as a worker takes them.
BATCH = 8


class Unrecorded(Exception):
    """There is no answer to a prompt yet."""

    def __init__(self, digest: str, prompt: str) -> None:
        super().__init__(digest)
        self.digest = digest
        self.prompt = prompt


@dataclass
class Score:
    """How good the answers were, over all people that are answered to the end."""

    people: int = 0
    turns: int = 0
    calls: int = 0
    tokens: int = 0
    kept: int = 0
    kept_right: int = 0
    wanted: int = 0
    found: int = 0
    trapped: int = 0
    misses: list[str] = field(default_factory=list)


@cache
def answers() -> Mapping[str, Any]:
    """Return every recorded answer, by the digest of its prompt."""
    lines = (line for file in sorted(RECORDED.glob("memory_*.jsonl")) for line in file.read_text("utf-8").splitlines())
    return {one["digest"]: one["answer"] for one in map(json.loads, lines)}


class Replay:
    """A model that gives the recorded answer to each prompt."""

    configured = True

    def __init__(self) -> None:
        self.calls = 0
        self.tokens = 0

    def role(self, name: str) -> Any:
        """Return who answers."""
        return LlmSettings().role(name)

    async def ask(self, role: str, answer: Any, *, system: str, user: str, **_options: object) -> Any:
        """Answer as recorded.

        Raises:
            Unrecorded: nobody did.
        """
        schema = json.dumps(answer.model_json_schema(), sort_keys=True)
        prompt = f"{system}\n\n{user}\n\nAnswer with JSON of this schema:\n{schema}\n"
        digest = blake2b(prompt.encode(), digest_size=12).hexdigest()
        if digest not in answers():
            raise Unrecorded(digest, prompt)
        self.calls += 1
        self.tokens += counter()(system) + counter()(user)
        return Reply(answer.model_validate(answers()[digest]), Expense(), self.role(role).model, 1, 1.0)


async def live_through(person: Mapping[str, Any], model: Replay) -> dict[str, Body]:
    """Return the documents after all that *person* said.

    Raises:
        Unrecorded: a prompt has no answer yet.
    """
    llm: Any = model
    bodies: dict[str, Body] = {name: kind.complete({}) for name, kind in KINDS.by_id.items()}
    for batch in _batches(person):
        context = ListenContext(batch.user_id, KitServices(llm, NOW, documents=FakeDocuments(bodies)))
        learned = await extract(batch, context)
        editing = BenchContext(llm, draft_of(bodies))
        said = {turn.turn_id: turn.at for turn in batch.turns}
        pending = [PendingFact(fact, one.turn_id, said=said[one.turn_id]) for one in learned for fact in one.facts]
        await edit(FactBatch(batch.user_id, tuple(pending)), editing)
        bodies = {name: document.body for name, document in editing.draft.documents.items()}
    return bodies


def _batches(person: Mapping[str, Any]) -> Iterator[TurnBatch]:
    user = person["id"]
    turns = [
        ChatTurn(
            turn_id=f"{user}-{number}",
            conversation_id=user,
            user_id=user,
            speaker=one["speaker"],
            text=one["text"],
            at=datetime.fromisoformat(one["at"]),
        )
        for number, one in enumerate(person["turns"])
    ]
    own = [turn for turn in turns if turn.speaker == "person"]
    for begin in range(0, len(own), BATCH):
        batch = tuple(own[begin : begin + BATCH])
        before = tuple(turn for turn in turns if turn not in batch and turn.at <= batch[-1].at)
        yield TurnBatch(user, batch, before)


def score(person: Mapping[str, Any], bodies: Mapping[str, Body], total: Score) -> None:
    """Add to *total* how well *bodies* agree with what is to be known of *person*."""
    live = live_entries(bodies, KINDS, NOW.date())
    total.people += 1
    total.turns += len(person["turns"])
    total.kept += len(live)
    for wanted in person["facts"]:
        fitting = [entry for entry in live if _fits(entry, wanted)]
        total.wanted += 1
        total.found += bool(fitting)
        if not fitting:
            total.misses.append(f"{person['id']}: missed {wanted}")
    right = [entry for entry in live if any(_fits(entry, wanted) for wanted in person["facts"])]
    total.kept_right += len(right)
    total.misses += [f"{person['id']}: kept {one.category}: {one.text}" for one in live if one not in right]
    for trap in person.get("traps", ()):
        caught = [entry for entry in live if set(words_of(trap)) <= set(words_of(entry.text))]
        total.trapped += len(caught)
        total.misses += [f"{person['id']}: trapped by {trap!r}" for _ in caught]


def _fits(entry: Entry, wanted: Mapping[str, Any]) -> bool:
    words, told = set(words_of(wanted["value"])), set(words_of(entry.text))
    is_said = bool(words & told) and (words <= told or told <= words)
    is_subject = not wanted.get("subject") or bool(
        set(words_of(wanted["subject"])) & set(words_of(f"{entry.subject} {entry.text}"))
    )
    return is_said and is_subject and entry.category in wanted["category"].split("|")


async def run(people: Sequence[Mapping[str, Any]], out: Path | None) -> Score:
    """Return the score of *people*; prompts without an answer are written to *out*."""
    total = Score()
    for person in people:
        model = Replay()
        try:
            bodies = await live_through(person, model)
        except Unrecorded as missing:
            if out is None:
                raise
            _write(out / f"{person['id']}-{missing.digest}.txt", missing.prompt)
            total.misses.append(f"{person['id']}: unanswered {missing.digest}")
            continue
        total.calls += model.calls
        total.tokens += model.tokens
        score(person, bodies, total)
    return total


def _write(file: Path, prompt: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(prompt, "utf-8")


if __name__ == "__main__":
    reader = argparse.ArgumentParser()
    reader.add_argument("people", type=Path)
    reader.add_argument("--out", type=Path)
    given = reader.parse_args()
    done = asyncio.run(run(json.loads(given.people.read_text("utf-8")), given.out))
    counts = {name: value for name, value in vars(done).items() if name != "misses"}
    sys.stdout.write("\n".join([json.dumps(counts), *done.misses]) + "\n")
