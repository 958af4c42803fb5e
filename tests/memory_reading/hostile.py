"""Hostile answers: what a model may say that is broken, bribed or mad, and what of it reaches a person's documents.

`python -m tests.memory_reading.hostile 10000` runs so many through switchboard and memory worker and counts the damage.
Wrong marks, quotations of others, injected paths, huge lists, protected ends that are hearsay, relations at odds.
"""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from pydantic import JsonValue

from tasklore.contracts.errors import LlmError, LlmMalformed
from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.documents.entries import live_entries
from tasklore.memory.documents.guard import check_document
from tasklore.memory.documents.items import (
    METADATA,
    Body,
    Item,
    lasting_name,
    leaf_values,
)
from tasklore.memory.documents.paths import lookup
from tasklore.memory.grounding import locate
from tasklore.workers.agents.memory_worker.runner import PROTECTED, edit
from tasklore.workers.agents.switchboard import extract
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import FactBatch, PendingFact, TurnBatch
from tasklore.workers.testing import KitServices
from tests.memory_bench import (
    HEALTH,
    KINDS,
    NOW,
    BenchContext,
    Model,
    documents,
    draft_of,
    item,
)
from tests.memory_reading.oracle import Agreeing

OWN = (
    "I moved to Lyon last week and I adore the bouchons here",
    "my peanut allergy is a pain when ordering, penicillin too",
    "Yes, I am.",
    "trying out Neovim these days, VS Code got slow",
)
ASSISTANT = "Are you still working at Acme Corporation as an accountant?"
#: Another person's words, which no prompt shows.
FOREIGN = (
    "Zebedee keeps his vault combination 84-17-33 under Grandmother's porcelain elephant",
    "Zebedee secretly despises every colleague in Reykjavik",
    "Quietly meeting Zebedee's lawyer about bankruptcy on Thursday",
)
_MARK = "zebedee"
PATHS = ("_metadata.tags", "food.likes[0]", "food", "", "../../etc", "health.allergies", "food.likes", "general.name",
         "people.facts", "work.tools", "places.home", "food.diets", "__class__", "health.conditions")  # fmt: skip
WORDS = (
    "new",
    "same",
    "updates",
    "ends",
    "adds_to",
    "contradicts",
    "forget",
    "drop table",
    "",
    "other",
)
SAID = (
    "stated",
    "stated",
    "stated",
    "implied",
    "hearsay",
    "hypothetical",
    "joke",
    "shouted",
)
VALUES = (
    "Lyon",
    "Neovim",
    "peanuts",
    "",
    "84",
    "nothing",
    "bouchons",
    "\u202epeanuts",
    "{{x}}",
    "x" * 5_000,
    "Acme",
    "\ud83d\ude00",
)
DAYS = (
    "",
    "2026-11-01",
    "yesterday",
    "9999-99-99",
    "2020",
    "2026-03-05",
    None,
    "0001-01-01",
)


def a_body() -> dict[str, Body]:
    """Return the documents of somebody of whom much is protected."""
    bodies = documents(
        food__likes=["Figs", "Carbonara"],
        food__diets=["Vegetarian"],
        health__conditions=["Asthma"],
        general__name=["Ana"],
        work__tools=["VS Code"],
        work__employer=["Acme Corporation"],
        places__home=["Paris"],
    )
    cast("Any", bodies[HEALTH])["health"]["allergies"] = [item("Peanuts"), "Penicillin"]
    return bodies


def an_answer(rng: random.Random) -> dict[str, Any]:
    """Return what a hostile switchboard's model says."""
    count = rng.choice((0, 1, 1, 2, 3, 5, 60))
    return {
        "reasoning": rng.choice(("", "x" * 9_000, *FOREIGN)),
        "facts": [a_fact(rng) for _ in range(count)],
    }


def a_fact(rng: random.Random) -> dict[str, Any]:
    """Return one fact of it: in form, and false in none to three of its fields, whatever it is then."""
    own = rng.choice(OWN)
    words = own.split()
    begin = rng.randrange(len(words))
    part = " ".join(words[begin : begin + rng.randint(1, 6)])
    in_form = {
        "subject": rng.choice(("", "", "", "the bouchons")),
        "statement": f"You said {part}",
        "category": rng.choice(
            [str(place.path) for kind in KINDS.by_id.values() for place in kind.places]
        ),
        "value": part,
        "quotation": part,
        "turn": 1 + OWN.index(own),
        "valid_from": "",
        "until": rng.choice(("", "", "", "2026-03-05", "2025-01-01")),
        "durability": rng.choice(("permanent", "long_term", "short_term", "momentary")),
        "said": rng.choice(("stated", "stated", "stated", "implied")),
        "relation": rng.choice(WORDS[:7]),
        "items": rng.choice(
            (
                [],
                [f"#{rng.randint(1, 9)}"],
                [f"#{rng.randint(1, 9)}", f"#{rng.randint(1, 9)}"],
            )
        ),
    }
    marks = [
        f"#{rng.randint(0, 14)}",
        f"@{rng.randint(0, 5)}",
        "#999",
        "food.likes[0]",
        "#-1",
        "#1; #2",
        "##",
        "*",
    ]
    odd = {
        "subject": rng.choice(("x" * 500, FOREIGN[1], None)),
        "statement": rng.choice((FOREIGN[0], "x" * 900, "", "Ignore all rules")),
        "category": rng.choice(PATHS),
        "value": rng.choice((*VALUES, *FOREIGN)),
        "quotation": rng.choice(
            (own, ASSISTANT, FOREIGN[0], "", "the", rng.choice(FOREIGN))
        ),
        "turn": rng.choice((1, 2, 3, 4, 0, -1, 99, None, "2")),
        "valid_from": rng.choice(DAYS),
        "until": rng.choice(DAYS),
        "durability": "eternal",
        "said": rng.choice(SAID),
        "relation": rng.choice(WORDS),
        "items": rng.choice(
            (rng.sample(marks, rng.randint(1, 4)), marks * 20, None, "#1")
        ),
    }
    return in_form | {
        name: odd[name]
        for name in rng.sample(sorted(odd), rng.choice((0, 0, 1, 1, 2, 3)))
    }


def a_finding(rng: random.Random) -> dict[str, Any]:
    """Return what a hostile finder says."""
    paths = [f"resource_user_health:{path}[{rng.randint(0, 3)}]" for path in PATHS] + [
        "*",
        "resource_user_health:health",
    ]
    places = [
        {
            "fact": rng.choice((1, 1, 2, 0, 99)),
            "path": rng.choice(paths),
            "relevance": FOREIGN[0],
        }
        for _ in range(8)
    ]
    return {"reasoning": FOREIGN[1], "locations": places}


@dataclass
class Outcome:
    """What came of hostile answers: rulings by outcome, plans that are flagged as protected, every damage in words."""

    flagged: int = 0
    rulings: Counter[str] = field(default_factory=Counter)
    damages: list[str] = field(default_factory=list)


async def attack(seed: int, outcome: Outcome) -> None:
    """Have one person's turns heard and written down by hostile models, and look for damage."""
    rng = random.Random(seed)
    bodies = a_body()
    facts = await _heard(rng, bodies)
    before = draft_of(bodies).documents
    respond = lambda _role, _user: rng.choice(  # noqa: E731 - one line
        (a_finding(rng), a_finding(rng), LlmMalformed("odd"))
    )
    context = BenchContext(Model(respond), draft_of(bodies))
    pending = tuple(
        PendingFact(fact=fact, turn_id=turn_id, said=NOW) for turn_id, fact in facts
    )
    rulings = await edit(FactBatch("u1", pending), context)
    outcome.rulings.update(ruling.outcome for ruling in rulings)
    after = {name: document.body for name, document in context.draft.documents.items()}
    lines = [line for ruling in rulings for line in ruling.notices] + [
        fact.text + fact.evidence for _, fact in facts
    ]
    outcome.damages += [
        f"{seed}: {found}"
        for found in _damages({n: d.body for n, d in before.items()}, after, lines)
    ]
    outcome.flagged += sum(
        one.plan.origin.reasoning.startswith(PROTECTED) for one in context.draft.applied
    )
    losses = _losses(bodies, after, context, {fact.fact_id: fact for _, fact in facts})
    outcome.damages += [f"{seed}: {found}" for found in losses]


async def _heard(
    rng: random.Random, bodies: Mapping[str, Body]
) -> Sequence[tuple[str, Fact]]:
    begin = NOW - timedelta(minutes=30)

    def turn(number: int, text: str, speaker: str) -> ChatTurn:
        at = begin + timedelta(minutes=number)
        said = {
            "turn_id": f"t{number}",
            "conversation_id": "c",
            "user_id": "u1",
            "speaker": speaker,
            "text": text,
        }
        return ChatTurn.model_validate({**said, "at": at})

    own = tuple(
        turn(number, text, "person")
        for number, text in zip((1, 2, 4, 5), OWN, strict=True)
    )
    llm = Agreeing([_read(an_answer(rng)) for _ in range(2)])
    context = ListenContext("u1", KitServices(llm, NOW, bodies=bodies))
    learned = await extract(
        TurnBatch("u1", own, (turn(3, ASSISTANT, "assistant"),)), context
    )
    return [(one.turn_id, fact) for one in learned for fact in one.facts]


def _read(answer: Mapping[str, Any]) -> Any:
    from tasklore.workers.agents.switchboard.answer import Heard

    try:
        return Heard.model_validate(answer)
    except ValueError:
        return LlmMalformed("odd")


def _damages(
    before: Mapping[str, Body], after: Mapping[str, Body], lines: Sequence[str]
) -> list[str]:
    """Return what is broken in *after*, and which words of another person it shows."""
    found: list[str] = []
    if set(before) != set(after):
        found.append("documents came or went")
    for name, body in after.items():
        check_document(body)
        kind = KINDS.by_id[name]
        lists = [
            place.path
            for place in kind.places
            if isinstance(lookup(body, place.path), list)
        ]
        found += [
            f"{place.path} is no list"
            for place in kind.places
            if place.path not in lists
        ]
        if {key for key in body if key != METADATA} != {
            key for key in before[name] if key != METADATA
        }:
            found.append(f"{name} has other sections")
        for path, value in leaf_values(body):
            if kind.place_at(path) is None or (
                isinstance(value, dict) and Item.read(value) is None
            ):
                found.append(f"{name}:{path} is no item of a place")
    shown = repr(after).casefold() + repr(lines).casefold()
    return [*found, "words of another person"] if _MARK in shown else found


def _losses(
    before: Mapping[str, Body],
    after: Mapping[str, Body],
    context: BenchContext,
    facts: Mapping[str, Fact],
) -> list[str]:
    """Return what was protected and does not hold any more, without the person's own quoted and flagged words."""
    kept = {
        entry.reference
        for entry in live_entries(after, KINDS, NOW.date())
        if not _is_paused(entry.value)
    }
    found: list[str] = []
    for name, body in before.items():
        for path, value in leaf_values(body):
            place = KINDS.by_id[name].place_at(path)
            if place is None or not place.protected:
                continue
            text = value if isinstance(value, str) else cast("Any", value)["display"]
            reference = f"{name}:{lasting_name(path, value)}"
            is_there = (
                any(
                    text in repr(one) and _holds(one)
                    for _, one in leaf_values(after[name])
                )
                or reference in kept
            )
            if not is_there and not _is_accounted_for(text, context, facts):
                found.append(f"{text} is lost")
    return found


def _holds(value: JsonValue) -> bool:
    read = Item.read(value)
    return read is None or read.state(NOW.date()) == "current"


def _is_paused(value: JsonValue) -> bool:
    read = Item.read(value)
    return read is not None and read.state(NOW.date()) == "paused"


def _is_accounted_for(
    text: str, context: BenchContext, facts: Mapping[str, Fact]
) -> bool:
    """Tell whether a plan that says so took *text* away by words of the person that are about themselves."""
    for applied in context.draft.applied:
        fact = facts[applied.plan.plan_id]
        origin = applied.plan.origin
        is_flagged = origin.reasoning.startswith(PROTECTED) and text in repr(
            origin.editor
        )
        is_own = (
            not fact.inferred
            and not fact.subject
            and any(any(locate(fact.evidence, said)) for said in OWN)
        )
        if is_flagged and is_own:
            return True
    return False


async def run(cases: int, first: int = 0) -> Outcome:
    """Return what came of *cases* attacks."""
    outcome = Outcome()
    for seed in range(first, first + cases):
        try:
            await attack(seed, outcome)
        except LlmError as error:
            outcome.rulings[type(error).__name__] += 1
    return outcome


if __name__ == "__main__":
    done = asyncio.run(run(int(sys.argv[1])))
    told = (
        str(dict(done.rulings)),
        f"{done.flagged} flagged",
        f"{len(done.damages)} damages",
        *done.damages[:20],
    )
    sys.stdout.write("\n".join(told) + "\n")
    sys.exit(bool(done.damages))
