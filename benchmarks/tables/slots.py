"""Numbers for slots: marks and tables in SNIPS, who comes in restaurant8k. The task is given, its slots are not."""

import json
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from benchmarks.tables.people import NUMBERS, people_meant
from benchmarks.tables.scores import Score
from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.conclusion import Filled, conclude
from tasklore.supervisor.understanding.outcome import Understood
from tasklore.supervisor.understanding.routing import Router, RoutingTask
from tasklore.supervisor.understanding.slots import fill
from tasklore.supervisor.understanding.utterance import ReadUtterance, collapse_space

_SNIPS = "SNIPS numeric slots"
_PEOPLE = "restaurant8k people"
#: Of all sentences: those that start no task with another number than was said.
_SERVED = f"{_PEOPLE}, none wrong and served"
SOURCES = {
    _SNIPS: "sonos/nlu-benchmark (CC0)",
    _PEOPLE: "PolyAI task-specific-datasets (CC-BY-4.0)",
    _SERVED: "PolyAI task-specific-datasets (CC-BY-4.0)",
}


class RateBook(Parameters):
    """A mark for a book, and the best mark there is."""

    rating_value: int = Field(
        ge=0,
        le=10,
        cues=(
            *("{} stars", "{} star", "{} points", "{} point", "{} rating"),
            *("rating of {}", "score of {}", "{} out of", "{} of"),
        ),
    )
    best_rating: int | None = Field(None, ge=1, le=100, cues=("out of {}", "of {}"))


class BookRestaurant(Parameters):
    """A table for so many."""

    party_size_number: int = Field(
        ge=1,
        cues=(
            *(
                "people",
                "persons",
                "guests",
                "party of {}",
                "group of {}",
                "table for {}",
                "spot for {}",
            ),
            *("reservation for {}", "restaurant for {}", "seats for {}"),
        ),
    )


class BookTable(Parameters):
    """The same where it may also be told who comes."""

    people: int = Field(
        ge=1,
        cues=(
            *(
                "party of {}",
                "group of {}",
                "table for {}",
                "table of {}",
                "booking for {}",
                "booking of {}",
            ),
            *(
                "reservation for {}",
                "lunch for {}",
                "dinner for {}",
                "seat {}",
                "seats {}",
                "fit {}",
                "party size",
            ),
            *(
                "people",
                "persons",
                "guests",
                "adults",
                "{} of us",
                "head count",
                "number of people",
                "number of guests",
                "{} seater",
                "{} seats",
            ),
        ),
    )


def measured(folder: Path) -> Iterator[tuple[str, float | None, Score]]:
    """Yield each table's title, what is asked of it, and the score."""
    yield _SNIPS, 0.85, _snips(json.loads((folder / "snips.json").read_text("utf-8")))
    values, served = _people(
        json.loads((folder / "restaurant8k_people.json").read_text("utf-8"))
    )
    yield _PEOPLE, 0.75, values
    yield _SERVED, 0.98, served


def _prepared(name: str, parameters: type[Parameters]) -> RoutingTask:
    card = TaskCard(name=name, parameters=parameters.schema_for_cards())
    found = Router(
        Catalogue([AgentCard(agent_id="Booking", tasks=(card,), digest="0")])
    ).find("Booking", name)
    if found is None:
        raise LookupError(f"{name} should be offered")
    return found


def _snips(rows: list[dict[str, Any]]) -> Score:
    """Compare every numeric slot that a sentence could have, also with there being none."""
    tasks = {
        "RateBook": _prepared("rate_book", RateBook),
        "BookRestaurant": _prepared("book_restaurant", BookRestaurant),
    }
    right = 0
    misses = []
    times = []
    for row in rows:
        task = tasks.get(row["intent"])
        if task is None:
            continue
        meant = {slot["slot"]: _written(slot["text"]) for slot in row["slots"]}
        filled, _, spent = _read(row["input"], task)
        times.append(spent)
        for slot in task.schema.slots:
            found = filled.values.get(slot.name)
            if found == meant.get(slot.name):
                right += 1
            else:
                misses.append(
                    f"{row['input']!r}: {slot.name} is {meant.get(slot.name)}, found {found}"
                )
    return Score(right, tuple(misses), tuple(times))


def _written(text: str) -> int | None:
    return int(text) if text.isdigit() else NUMBERS.get(text.lower())


def _people(rows: list[dict[str, Any]]) -> tuple[Score, Score]:
    """Return the scores of the number, and of no task being started with another one."""
    task = _prepared("book_table", BookTable)
    wrong = []
    served = []
    times = []
    for row in rows:
        filled, is_served, spent = _read(
            row["input"], task, is_asked="people" in row["requested"]
        )
        times.append(spent)
        found = filled.values.get("people")
        meant = people_meant(row["people"])
        if found is None or found != meant:
            miss = f"{row['input']!r}: {row['people']!r} are {meant}, found {found}"
            wrong.append(miss)
            if is_served:
                served.append(miss)
    first, second = (
        Score(len(rows) - len(bad), tuple(bad), tuple(times)) for bad in (wrong, served)
    )
    return first, second


def _read(
    text: str, task: RoutingTask, *, is_asked: bool = False
) -> tuple[Filled, bool, int]:
    """Return what fills the slots of *task*, whether it would be started, and the nanoseconds that this took."""
    started = perf_counter_ns()
    utterance = ReadUtterance(collapse_space(text))
    filled = fill(utterance, task, task.schema.slots if is_asked else ())
    is_served = isinstance(conclude(filled, utterance.text), Understood)
    return filled, is_served, perf_counter_ns() - started
