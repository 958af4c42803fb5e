"""What no fact takes back goes on holding, whatever a model says of it: for random facts over random documents."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tasklore.contracts.messages import Fact
from tasklore.memory.documents.entries import DocumentEntry, entries_of, reference_of
from tasklore.memory.documents.items import Body, slug
from tasklore.memory.documents.kinds import Place
from tasklore.memory.episodes.words import words_of
from tasklore.workers.agents.memory_worker.runner import edit
from tasklore.workers.listening.values import PendingFact
from tests.memory_bench import (
    KINDS,
    NOW,
    batch,
    context_over,
    documents,
    draft_of,
    fact,
    item,
)

TODAY = NOW.date()
DAYS = [TODAY + timedelta(days=days) for days in range(45)]
CHANGING = ("updates", "ends", "contradicts", "forget")
#: Places of every sort: protected, with one item, with a contrary, with events, and none of these.
PLACES = (
    "food.likes",
    "food.dislikes",
    "food.diets",
    "health.allergies",
    "general.name",
    "general.other",
    "places.home",
    "plans.upcoming",
    "work.tools",
)
TEXTS = ("Fish", "Nuts", "Tree nuts", "Tea and fish", "Lyon", "Ana")
BY_PATH = {
    str(place.path): place for kind in KINDS.by_id.values() for place in kind.places
}

days = st.none() | st.sampled_from(
    [TODAY - timedelta(days=90), TODAY, *DAYS[3:40:9], date(2027, 1, 1)]
)
places = st.sampled_from(PLACES)
texts = st.sampled_from(TEXTS)


@st.composite
def bodies(draw: st.DrawFn) -> Mapping[str, Body]:
    """Return documents in which each place has up to two items, events among them on their days."""
    held: dict[str, list[Any]] = {}
    for path in PLACES:
        names = draw(st.lists(texts, max_size=2, unique=True))
        ends = draw(st.sampled_from(DAYS[3:40:9])) if path == "plans.upcoming" else None
        held[path.replace(".", "__")] = [
            item(name, expiry=None if ends is None else ends.isoformat())
            for name in names
        ]
    return documents(**held)


@st.composite
def facts(draw: st.DrawFn) -> Sequence[PendingFact]:
    """Return up to four facts of any relation to any items."""
    made = []
    for number in range(draw(st.integers(1, 4))):
        named = draw(st.lists(st.tuples(places, texts), max_size=3, unique=True))
        value = draw(texts)
        told = {
            "category": draw(places),
            "value": value,
            "relation": draw(st.sampled_from(("new", "same", "adds_to", *CHANGING))),
            "related": tuple(reference_of(BY_PATH[path], name) for path, name in named),
            "expiry": draw(days),
            "valid_from": draw(days),
            "inferred": draw(st.booleans()),
            "subject": draw(st.sampled_from((None, None, "Mia"))),
            "durability": draw(
                st.sampled_from(("permanent", "long_term", "short_term", "momentary"))
            ),
        }
        turn_id = f"t{draw(st.integers(1, 3))}"
        made.append(
            fact(f"You: {value}", f"f{number}", tags=(), turn_id=turn_id, **told)
        )
    return made


@given(bodies(), facts())
@settings(max_examples=150, deadline=None)
def test_what_no_fact_takes_back_goes_on_holding(
    before: Mapping[str, Body], said: Sequence[PendingFact]
) -> None:
    """On each day on which it held."""
    context = context_over(before)
    old = list(_entries(draft_of(before).documents))
    asyncio.run(edit(batch(*said), context))
    new = list(_entries(context.draft.documents))
    for entry in old:
        if any(_takes_back(one.fact, entry) for one in said):
            continue
        lost = [day for day in DAYS if _holds(entry, day)]
        for other in new:
            if other.reference == entry.reference:
                lost = [day for day in lost if not _holds(other, day)]
        assert not lost, f"{entry.reference} is gone on {lost[0]}"


def _entries(stored: Mapping[str, Any]) -> Sequence[DocumentEntry]:
    return [
        entry
        for name, document in stored.items()
        for entry in entries_of(name, document.body, KINDS)
    ]


def _holds(entry: DocumentEntry, day: date) -> bool:
    assert entry.item is not None
    return entry.item.state(day) == "current"


def _takes_back(said: Fact, entry: DocumentEntry) -> bool:
    """Return whether *said* is against *entry*: by name, by all its words, or at the one place or a contrary one."""
    assert entry.place is not None
    if said.relation not in CHANGING:
        return False
    is_named = said.relation in CHANGING and entry.reference in said.related
    if said.subject:
        return is_named and not (entry.place.single or entry.place.protected)
    if is_named:
        return True
    if said.relation in ("ends", "forget"):
        return set(words_of(said.value)) <= set(words_of(entry.text))
    home = BY_PATH[said.category]
    if entry.place == home:
        return home.single
    return _are_contrary(home, entry.place) and slug(entry.text) == slug(said.value)


def _are_contrary(one: Place, other: Place) -> bool:
    return one.opposite == other.relation or other.opposite == one.relation
