"""Choosing an agent by example sentences alone, and abstaining from what no agent is for."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tables.scores import Score, timed
from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.parameters.model import Parameters
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import (
    Clarification,
    RuleInterpreter,
    Several,
    Unfitting,
)

SOURCE = "clinc/oos-eval (CC-BY-3.0)"
OUT_OF_SCOPE = "out_of_scope"


class _Nothing(Parameters):
    """A task that needs no values, so that only the choice is measured."""


@dataclass(frozen=True)
class Routes:
    """*chosen* are sentences of the declared intents, *abstained* those of none: right when nothing was chosen."""

    chosen: Score
    abstained: Score


def measured(folder: Path) -> Routes:
    """Declare each intent as an agent by its ten sentences, and nothing else, and ask it every sentence."""
    examples: dict[str, list[str]] = json.loads(
        (folder / "clinc150_choice.json").read_text("utf-8")
    )
    rows = json.loads((folder / "clinc150.json").read_text("utf-8"))
    catalogue = Catalogue(_cards(examples))
    interpreter = RuleInterpreter()

    def choose(text: str) -> frozenset[str]:
        found = interpreter.understand(text, catalogue=catalogue)
        if isinstance(found, Unfitting):
            return frozenset()
        if isinstance(found, Several):
            return frozenset(
                str(getattr(part, "agent_id", None)) for part in found.parts
            )
        asks_which = isinstance(found, Clarification) and found.agent_id is None
        return frozenset() if asks_which else frozenset({str(found.agent_id)})

    def score(intents: set[str]) -> Score:
        wanted = [row for row in rows if row["intent"] in intents]
        answers, times = timed(choose, [row["input"] for row in wanted])
        misses = tuple(
            f"{row['input']!r}: expected {row['intent']}, chose {''.join(answer) or 'none'}"
            for row, answer in zip(wanted, answers, strict=True)
            if answer != ({row["intent"]} - {OUT_OF_SCOPE})
        )
        return Score(len(wanted) - len(misses), misses, tuple(times))

    return Routes(score(set(examples)), score({OUT_OF_SCOPE}))


def _cards(examples: dict[str, list[str]]) -> Iterator[AgentCard]:
    for intent, sentences in examples.items():
        task = TaskCard(
            name="answer",
            parameters=_Nothing.schema_for_cards(),
            examples=tuple(sentences),
        )
        yield AgentCard(agent_id=intent, tasks=(task,), digest="0")
