"""One question in many wordings: which sentences share a key of long-term memory, and which must not."""

import json
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from time import perf_counter_ns

from benchmarks.tables.scores import Score
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import RuleInterpreter, Understood
from tasklore.workers.agents.budget import Budget, agent
from tasklore.workers.card import card_of

SOURCE = "own"
_TASK = "analyze_budget"


@dataclass(frozen=True)
class Questions:
    """*alike* are pairs that must share a key, *apart* pairs that must not; *keys_ns* times making each key."""

    alike: Score
    apart: Score
    keys_ns: tuple[int, ...]


def measured(folder: Path) -> Questions:
    """Read every sentence with the budget agent's card, and compare the keys of all pairs."""
    rows = json.loads((folder / "budget_wordings.json").read_text("utf-8"))
    catalogue = Catalogue([card_of(agent)])
    interpreter = RuleInterpreter()
    keys: list[str | None] = []
    reading_ns = []
    keys_ns = []
    interpreter.understand(rows[0]["input"], catalogue=catalogue)
    for row in rows:
        started = perf_counter_ns()
        found = interpreter.understand(row["input"], catalogue=catalogue)
        reading_ns.append(perf_counter_ns() - started)
        if not isinstance(found, Understood):
            keys.append(None)
            continue
        parameters = Budget.read(found.task.parameters)
        started = perf_counter_ns()
        keys.append(parameters.key(_TASK))
        keys_ns.append(perf_counter_ns() - started)
    alike, apart = _compared(rows, keys)
    times = tuple(reading_ns)
    return Questions(
        Score(alike[0], alike[1], times),
        Score(apart[0], apart[1], times),
        tuple(keys_ns),
    )


_Count = tuple[int, tuple[str, ...]]


def _compared(
    rows: list[dict[str, object]], keys: list[str | None]
) -> tuple[_Count, _Count]:
    """Return how many pairs are right and which are wrong: of those that are one question, and of the others."""
    right = {True: 0, False: 0}
    wrong: dict[bool, list[str]] = {True: [], False: []}
    for first, second in combinations(range(len(rows)), 2):
        is_one = _meant(rows[first]) == _meant(rows[second])
        shares = keys[first] is not None and keys[first] == keys[second]
        if shares is is_one:
            right[is_one] += 1
        else:
            wrong[is_one].append(
                f"{rows[first]['input']!r} and {rows[second]['input']!r}"
            )
    return (right[True], tuple(wrong[True])), (right[False], tuple(wrong[False]))


def _meant(row: dict[str, object]) -> tuple[object, object]:
    return row["budget_limit"], row["spent"]
