"""Update pairs: something is said, and two or three turns later something that ends or replaces it.

`python -m tests.memory_reading.updating` runs every pair with an oracle for a model and prints what our own checks and
edits made of right answers. The pairs in `updates.json` are ours; a file of the same form may be named instead.
"""

import asyncio
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.documents.entries import live_entries
from tasklore.memory.documents.items import Body, Item, leaf_values, make_item
from tasklore.memory.documents.kinds import Place
from tasklore.workers.agents.memory_worker.case import is_same
from tasklore.workers.agents.memory_worker.runner import edit
from tasklore.workers.agents.switchboard import extract
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import FactBatch, PendingFact, TurnBatch
from tasklore.workers.testing import KitServices
from tests.memory_bench import KINDS, NOW, BenchContext, Model, draft_of
from tests.memory_reading.oracle import Prompt, agreed, found, heard

PAIRS = Path(__file__).with_name("updates.json")
#: What is said between the two, of no use to anybody.
FILLERS = (
    "ok thanks",
    "what's the weather like tomorrow?",
    "lol",
    "can you set a timer for ten minutes",
)
USER = "u1"


@dataclass(frozen=True)
class Pair:
    """One update: what is said first and what is said later, and what each comes to."""

    domain: str
    older: Mapping[str, str]
    newer: Mapping[str, str]

    def key_of_older(self) -> dict[str, Any]:
        """Return the right answer to the first of its turns."""
        return _key(self.older)

    def key_of_newer(self, named: str) -> dict[str, Any]:
        """Return the right answer to the last of its turns, which names the older item by *named*."""
        return {**_key(self.newer), "relation": self.newer["relation"], "of": [named]}


@dataclass
class Outcome:
    """What came of pairs: counts of what was asked for, and each failure in words."""

    pairs: int = 0
    newer_current: int = 0
    older_gone: int = 0
    undone: int = 0
    facts_right: int = 0
    facts_accepted: int = 0
    bystanders: int = 0
    bystanders_retired: int = 0
    turns: int = 0
    turns_shown: int = 0
    calls: int = 0
    failures: list[str] = field(default_factory=list)


@cache
def pairs(file: Path = PAIRS) -> tuple[Pair, ...]:
    """Return the pairs in *file*."""
    return tuple(Pair(**one) for one in json.loads(file.read_text("utf-8")))


async def run_pair(
    pair: Pair, outcome: Outcome, *, at_once: bool, bystanders: Sequence[Pair] = ()
) -> None:
    """Say both turns of *pair* beside what *bystanders* left, in one batch or in two, and count what came of it."""
    bodies = _with(bystanders)
    turns = [
        _turn(1, pair.older["say"]),
        _turn(2, FILLERS[0]),
        _turn(3, FILLERS[1]),
        _turn(4, pair.newer["say"]),
    ]
    name = f"{pair.domain}: {pair.newer['say']!r}, {'at once' if at_once else 'in two'}"
    if at_once:
        keys = [pair.key_of_older(), pair.key_of_newer("@1")]
        bodies, _, before = await _learn(turns, (), keys, bodies, pair, outcome, name)
    else:
        bodies, _, _ = await _learn(
            turns[:2], (), [pair.key_of_older()], bodies, pair, outcome, name
        )
        named = _entry_text(bodies, pair) or "?"
        bodies, _, before = await _learn(
            turns[2:],
            turns[:2],
            [pair.key_of_newer(named)],
            bodies,
            pair,
            outcome,
            name,
        )
    outcome.pairs += 1
    today = NOW.date()
    live = live_entries(bodies, KINDS, today)
    wanted = pair.newer["value"]
    is_newer_there = not wanted or any(_is(entry, pair.newer) for entry in live)
    is_older_gone = not any(_is(entry, pair.older) for entry in live)
    outcome.newer_current += is_newer_there
    outcome.older_gone += is_older_gone
    if not is_newer_there:
        outcome.failures.append(f"{name}: newer is not current")
    if not is_older_gone:
        outcome.failures.append(f"{name}: older is current")
    is_older_kept = any(
        (item := Item.read(value)) is not None
        and is_same(item.display, pair.older["value"])
        for body in bodies.values()
        for _, value in leaf_values(body)
    )
    is_back = any(
        _is(entry, pair.older) for entry in live_entries(before, KINDS, today)
    )
    outcome.undone += is_older_kept and is_back
    for one in bystanders:
        outcome.bystanders += 1
        if not any(_is(entry, one.older) for entry in live):
            outcome.bystanders_retired += 1
            outcome.failures.append(f"{name}: retired {one.older['value']!r}")


async def _learn(
    turns: Sequence[ChatTurn],
    before: Sequence[ChatTurn],
    keys: Sequence[Mapping[str, Any]],
    bodies: Mapping[str, Body],
    pair: Pair,
    outcome: Outcome,
    name: str,
) -> tuple[dict[str, Body], Sequence[Fact], dict[str, Body]]:
    """Return the documents after *turns*, the facts, and the documents with the last plan undone."""
    oracle: Any = Model(
        lambda role, user: agreed(user) if role == "second_look" else heard(user, *keys)
    )
    context = ListenContext(USER, KitServices(oracle, NOW, bodies=bodies))
    learned = await extract(TurnBatch(USER, tuple(turns), tuple(before)), context)
    outcome.turns += len(turns)
    outcome.turns_shown += len(Prompt.read(oracle.asked[0][2]).turns)
    outcome.calls += len(oracle.asked)
    facts = [(one.turn_id, fact) for one in learned for fact in one.facts]
    outcome.facts_right += len(keys)
    outcome.facts_accepted += sum(fact.confidence > 0 for _, fact in facts)
    outcome.failures += [
        f"{name}: {fact.reasoning}" for _, fact in facts if fact.confidence == 0
    ]
    finder = Model(lambda _role, user: found(user, [pair.older["value"]]))
    editing = BenchContext(finder, draft_of(bodies))
    said = {turn.turn_id: turn.at for turn in turns}
    pending = tuple(
        PendingFact(fact=fact, turn_id=turn_id, said=said[turn_id])
        for turn_id, fact in facts
    )
    rulings = await edit(FactBatch(USER, pending), editing)
    outcome.failures += [
        f"{name}: {one.outcome}: {one.reasoning}"
        for one in rulings
        if one.outcome != "applied"
    ]
    after = {
        resource: document.body
        for resource, document in editing.draft.documents.items()
    }
    undone = dict(after)
    if editing.draft.applied:
        for resource, step in editing.draft.applied[-1].steps.items():
            undone[resource] = step.before.body
    return after, [fact for _, fact in facts], undone


def _key(said: Mapping[str, str]) -> dict[str, Any]:
    words = said["say"].strip(" .!?")
    return {
        "statement": f"You: {words}",
        "category": said["category"],
        "value": said["value"],
        "quotation": words,
    }


def _turn(number: int, text: str) -> ChatTurn:
    at: datetime = NOW - timedelta(minutes=30 - number)
    told = {
        "turn_id": f"t{number}",
        "conversation_id": "c",
        "user_id": USER,
        "speaker": "person",
        "text": text,
    }
    return ChatTurn.model_validate({**told, "at": at})


def _with(bystanders: Sequence[Pair]) -> dict[str, Body]:
    """Return documents that keep what *bystanders* said first."""
    bodies: dict[str, Body] = {
        name: kind.complete({}) for name, kind in KINDS.by_id.items()
    }
    for one in bystanders:
        place = _place(one.older["category"])
        value: Any = bodies[place.resource_id]
        for step in place.path.steps[:-1]:
            value = value[step]
        item = make_item(
            one.older["value"],
            added=NOW.date() - timedelta(days=30),
            source="stated:t0",
        )
        value[place.path.last] = [*value[place.path.last], item]
    return bodies


def _place(category: str) -> Place:
    return next(
        place
        for kind in KINDS.by_id.values()
        for place in kind.places
        if str(place.path) == category
    )


def _is(entry: Any, said: Mapping[str, str]) -> bool:
    return entry.category == said["category"] and is_same(
        entry.item.display, said["value"]
    )


def _entry_text(bodies: Mapping[str, Body], pair: Pair) -> str | None:
    return next(
        (
            entry.text
            for entry in live_entries(bodies, KINDS, NOW.date())
            if _is(entry, pair.older)
        ),
        None,
    )


async def run(file: Path = PAIRS, combinations: int = 1_000) -> Outcome:
    """Return what came of every pair, alone in one batch and in two, and of *combinations* among bystanders."""
    outcome = Outcome()
    rng = random.Random(20261123)
    known = pairs(file)
    for pair in known:
        await run_pair(pair, outcome, at_once=True)
        await run_pair(pair, outcome, at_once=False)
    for number in range(combinations // 20):
        pair = known[number % len(known)]
        await run_pair(
            pair, outcome, at_once=False, bystanders=_bystanders(rng, pair, known)
        )
    return outcome


def _bystanders(rng: random.Random, pair: Pair, known: Sequence[Pair]) -> list[Pair]:
    """Return twenty others of which none is about the same; of a single place one at most."""
    chosen: dict[str, Pair] = {}
    for other in rng.sample(list(known), len(known)):
        place = _place(other.older["category"])
        slot = (
            str(place.path) if place.single else f"{place.path} {other.older['value']}"
        )
        is_apart = (
            other.older["category"]
            not in (pair.older["category"], pair.newer["category"])
            or not place.single
        )
        is_other = not is_same(other.older["value"], pair.older["value"])
        if (
            is_apart
            and is_other
            and not is_same(other.older["value"], pair.newer["value"])
        ):
            chosen.setdefault(slot, other)
    return list(chosen.values())[:20]


if __name__ == "__main__":
    done = asyncio.run(run(*map(Path, sys.argv[1:2])))
    counts = {name: value for name, value in vars(done).items() if name != "failures"}
    sys.stdout.write("\n".join([json.dumps(counts), *done.failures[:60]]) + "\n")
