"""Answers that a strong model gave to our real prompts, replayed; and the prompts that are still to be answered.

`python -m tests.memory_reading.recorded PEOPLE.json --out DIR` lets made-up people speak, batch by batch, and writes
each prompt that has no answer yet to a file of its own, `ID-DIGEST.txt`. Later prompts show what earlier answers left:
it is run again after each round, until it writes nothing; then it prints how good the answers were.

PEOPLE.json is `{"people": [{"id", "part", "batches": [{"turns", "facts", "optional", "traps"}]}]}`. A turn is `{"n",
"speaker", "at", "text"}`. `facts` are to be kept, `optional` ones may be: each has words that it `must_mention`, with
alternatives split by `|`, and for one that ends its `relation`. `traps` name a turn and words that nothing kept from it
may mention. Answers lie in `tests/recorded/memory_*.jsonl`, one `{"digest", "answer"}` a line.
"""

import argparse
import asyncio
import json
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.documents.entries import home_of, live_entries, reference_of
from tasklore.memory.documents.items import Body
from tasklore.memory.rendering.tokens import counter
from tasklore.runtime.models.llm import Expense, LlmSettings, Reply
from tasklore.workers.agents.memory_worker.runner import edit
from tasklore.workers.agents.switchboard import checks, extract
from tasklore.workers.agents.switchboard.second_look import SecondLook
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import FactBatch, PendingFact, TurnBatch
from tasklore.workers.testing import KitServices
from tests.memory_bench import KINDS, BenchContext, draft_of
from tests.memory_reading.oracle import agreed

RECORDED = Path(__file__).parents[1] / "recorded"


class Unrecorded(Exception):
    """There is no answer to a prompt yet."""

    def __init__(self, digest: str, prompt: str) -> None:
        super().__init__(digest)
        self.digest = digest
        self.prompt = prompt


@dataclass
class Score:
    """How good the answers were, over all people that are answered to the end; see `python -m` of this module."""

    people: int = 0
    turns: int = 0
    turns_with_facts: int = 0
    calls: int = 0
    tokens: int = 0
    kept: int = 0
    kept_right: int = 0
    wanted: int = 0
    found: int = 0
    trapped: int = 0
    set_aside: int = 0
    misses: list[str] = field(default_factory=list)


@cache
def answers() -> Mapping[str, Any]:
    """Return every recorded answer, by the digest of its prompt."""
    lines = (
        line
        for file in sorted(RECORDED.glob("memory_*.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    )
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

    async def ask(
        self, role: str, answer: Any, *, system: str, user: str, **_options: object
    ) -> Any:
        """Answer as recorded.

        Raises:
            Unrecorded: nobody did.
        """
        if answer is SecondLook:
            # It came later than the recordings, which measure the first reading alone: here all passes.
            passed = SecondLook.model_validate(agreed(user))
            return Reply(passed, Expense(), self.role(role).model, 1, 1.0)
        schema = json.dumps(answer.model_json_schema(), sort_keys=True)
        prompt = f"{system}\n\n{user}\n\nAnswer with JSON of this schema:\n{schema}\n"
        digest = blake2b(prompt.encode(), digest_size=12).hexdigest()
        if digest not in answers():
            raise Unrecorded(digest, prompt)
        self.calls += 1
        self.tokens += counter()(system) + counter()(user)
        return Reply(
            answer.model_validate(answers()[digest]),
            Expense(),
            self.role(role).model,
            1,
            1.0,
        )


@dataclass
class Heard:
    """What was kept of one batch: each fact with what became of it, and what all items say that hold after it."""

    facts: list[tuple[Fact, str]] = field(default_factory=list)
    holding: list[str] = field(default_factory=list)


async def live_through(person: Mapping[str, Any], model: Replay) -> list[Heard]:
    """Return what was kept of each batch of *person*.

    Raises:
        Unrecorded: a prompt has no answer yet.
    """
    llm: Any = model
    bodies: dict[str, Body] = {
        name: kind.complete({}) for name, kind in KINDS.by_id.items()
    }
    lived = []
    for batch in _batches(person):
        now = batch.turns[-1].at
        context = ListenContext(batch.user_id, KitServices(llm, now, bodies=bodies))
        learned = await extract(batch, context)
        editing = BenchContext(llm, draft_of(bodies))
        said = {turn.turn_id: turn.at for turn in batch.turns}
        pending = [
            PendingFact(fact=fact, turn_id=one.turn_id, said=said[one.turn_id])
            for one in learned
            for fact in one.facts
        ]
        facts = tuple(_as_recorded(pending))
        rulings = await edit(FactBatch(batch.user_id, facts), editing)
        outcomes = {ruling.fact_id: ruling.outcome for ruling in rulings}
        bodies = {
            name: document.body for name, document in editing.draft.documents.items()
        }
        holding = [
            f"{entry.subject} {entry.text}"
            for entry in live_entries(bodies, KINDS, now.date())
        ]
        lived.append(
            Heard([(one.fact, outcomes[one.fact.fact_id]) for one in pending], holding)
        )
    return lived


def _as_recorded(facts: Sequence[PendingFact]) -> Iterator[PendingFact]:
    """Yield *facts* as they changed the documents while answers were recorded.

    A fact that adds to a kept item took that away then, unless both were said in one turn; later prompts show what was
    left, and are known by what they show.
    """
    said: dict[str, str] = {}
    taken: set[str] = set()
    for one in facts:
        fact = one.fact
        place = home_of(fact.category, fact.subject, KINDS)
        related = tuple(
            name
            for name in fact.related
            if said.get(name) != one.turn_id and name not in taken
        )
        if place is not None:
            said[reference_of(place, fact.value)] = one.turn_id
        if fact.relation != "adds_to" or not related:
            yield one
            continue
        taken |= set(related)
        update = {"relation": "updates", "related": related}
        yield replace(one, fact=fact.model_copy(update=update))


def _batches(person: Mapping[str, Any]) -> Iterator[TurnBatch]:
    user = person["id"]
    before = list[ChatTurn]()
    for place, batch in enumerate(person["batches"]):
        turns = [
            ChatTurn(
                turn_id=f"{user}-{place}-{one['n']}",
                conversation_id=f"{user}-{place}",
                user_id=user,
                speaker=one["speaker"],
                text=one["text"],
                at=datetime.fromisoformat(one["at"]),
            )
            for one in batch["turns"]
        ]
        own = tuple(turn for turn in turns if turn.speaker == "person")
        yield TurnBatch(
            user,
            own,
            (*before[-4:], *(turn for turn in turns if turn.speaker != "person")),
        )
        before = turns


def score(person: Mapping[str, Any], lived: Sequence[Heard], total: Score) -> None:
    """Add to *total* how well what was kept agrees with what is to be known of *person*."""
    total.people += 1
    for place, (batch, heard) in enumerate(zip(person["batches"], lived, strict=True)):
        total.turns += sum(turn["speaker"] == "person" for turn in batch["turns"])
        total.turns_with_facts += len({fact["turn"] for fact in batch["facts"]})
        kept = [
            fact
            for fact, outcome in heard.facts
            if outcome in {"applied", "known", "conflict"}
        ]
        total.set_aside += len(heard.facts) - len(kept)
        total.kept += len(kept)
        wanted = batch["facts"]
        also = batch.get("optional", [])
        by_turn = {fact.fact_id: _turn_of(fact) for fact in kept}
        for one in wanted:
            total.wanted += 1
            if _is_found(one, kept, by_turn, heard.holding):
                total.found += 1
            else:
                total.misses.append(
                    f"{person['id']}/{place}: missed {one['statement']}"
                )
        for fact in kept:
            beside = [
                other
                for other in kept
                if by_turn[other.fact_id] == by_turn[fact.fact_id]
            ]
            if any(
                _fits(fact, one) or _is_part(fact, one, beside)
                for one in (*wanted, *also)
            ):
                total.kept_right += 1
            else:
                total.misses.append(
                    f"{person['id']}/{place}: kept {fact.relation} {fact.category}: {fact.text}"
                )
        for trap in batch.get("traps", ()):
            ids = f"{person['id']}-{place}-{trap['turn']}-"
            caught = [
                f
                for f in kept
                if f.fact_id.startswith(ids) and _mentions(f, trap["must_not_mention"])
            ]
            total.trapped += len(caught)
            total.misses += [
                f"{person['id']}/{place}: trapped ({trap['why']}): {fact.text}"
                for fact in caught
            ]


def _is_found(
    wanted: Mapping[str, Any],
    kept: Sequence[Fact],
    by_turn: Mapping[str, str],
    holding: Sequence[str],
) -> bool:
    """Tell whether a fact says it, or those of one turn together; what was known before may hold as it did."""
    turns = {
        turn: [fact for fact in kept if by_turn[fact.fact_id] == turn]
        for turn in by_turn.values()
    }
    if any(_fits(fact, wanted) for fact in kept) or any(
        _fit_together(facts, wanted) for facts in turns.values()
    ):
        return True
    groups = [words.split("|") for words in wanted["must_mention"]]
    return wanted.get("relation") == "same" and any(
        all(_has(text, words) for words in groups) for text in holding
    )


def _is_part(fact: Fact, wanted: Mapping[str, Any], beside: Sequence[Fact]) -> bool:
    """Tell whether *fact* says a part of *wanted*, the facts *beside* it the rest."""
    return _fit_together(beside, wanted) and any(
        _mentions(fact, words.split("|")) for words in wanted["must_mention"]
    )


def _fit_together(facts: Sequence[Fact], wanted: Mapping[str, Any]) -> bool:
    return all(
        any(_mentions(fact, words.split("|")) for fact in facts)
        for words in wanted["must_mention"]
    )


def _turn_of(fact: Fact) -> str:
    return fact.fact_id.rpartition("-")[0]


def _fits(fact: Fact, wanted: Mapping[str, Any]) -> bool:
    return all(_mentions(fact, words.split("|")) for words in wanted["must_mention"])


def _mentions(fact: Fact, words: Sequence[str]) -> bool:
    return _has(
        f"{fact.text} {fact.value} {fact.subject or ''} {' '.join(fact.related)}", words
    )


def _has(text: str, words: Sequence[str]) -> bool:
    """Return whether one of *words* stands in *text*: digits as a whole number, a short word as a whole one."""
    folded = text.casefold()
    return any(re.search(_pattern(word.strip().casefold()), folded) for word in words)


def _pattern(word: str) -> str:
    """Return what matches *word*: short ASCII words whole, short stems of other languages at the start of a word."""
    if word.isdecimal():
        return rf"(?<!\d){word}(?!\d)"
    if any(
        unicodedata.name(sign, "").startswith(("CJK", "HIRAGANA", "KATAKANA"))
        for sign in word
    ):
        return re.escape(word)
    is_whole = len(word) < 4 or any(map(str.isdigit, word))
    if not is_whole:
        return re.escape(word)
    return rf"(?<!\w){re.escape(word)}" + (r"(?!\w)" if word.isascii() else "")


@contextmanager
def _checks_as_recorded() -> Iterator[None]:
    """Have values of one sign go back to the model, as they did while answers were recorded.

    Later prompts show what was kept of the second answer.
    """
    today = checks._said_stems
    checks._said_stems = checks._stems
    try:
        yield
    finally:
        checks._said_stems = today


async def run(people: Sequence[Mapping[str, Any]], out: Path | None) -> Score:
    """Return the score of *people*; prompts without an answer are written to *out*."""
    total = Score()
    for person in people:
        model = Replay()
        try:
            with _checks_as_recorded():
                lived = await live_through(person, model)
        except Unrecorded as missing:
            if out is None:
                raise
            _write(out / f"{person['id']}-{missing.digest}.txt", missing.prompt)
            total.misses.append(f"{person['id']}: unanswered {missing.digest}")
            continue
        total.calls += model.calls
        total.tokens += model.tokens
        score(person, lived, total)
    return total


def _write(file: Path, prompt: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(prompt, "utf-8")


if __name__ == "__main__":
    reader = argparse.ArgumentParser()
    reader.add_argument("people", type=Path)
    reader.add_argument("--out", type=Path)
    reader.add_argument("--part", choices=("development", "held"))
    reader.add_argument("--only", nargs="*", default=())
    given = reader.parse_args()
    everybody = json.loads(given.people.read_text("utf-8"))["people"]
    chosen = [
        one
        for one in everybody
        if given.part in (None, one["part"])
        and (not given.only or one["id"] in given.only)
    ]
    done = asyncio.run(run(chosen, given.out))
    counts = {name: value for name, value in vars(done).items() if name != "misses"}
    sys.stdout.write("\n".join([json.dumps(counts), *done.misses]) + "\n")
