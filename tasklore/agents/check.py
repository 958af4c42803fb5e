"""`tasklore agents check`: whether the example sentences of a card reach their own task, and what they come to."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import structlog

from contracts.messages import AgentCard
from quantities.numerals.locales import mark_of
from runtime.models.llm import Llm
from runtime.settings import Settings
from supervisor.catalogue import Catalogue, Offer
from supervisor.understanding import (
    Clarification,
    Interpretation,
    Interpreter,
    RuleInterpreter,
    Several,
    Understood,
    make_interpreter,
)
from tasklore.exits import FAILED, OK
from tasklore.render.screen import print_json, print_table, printable, say
from workers.agent import Agent
from workers.card import card_of
from workers.loading import load_agents

log = structlog.get_logger(__name__)

#: "right" starts the task, "asked" asks for a value of it. The others are not read: "wrong" is another task of the same
#: agent, "collides" another agent's (or the question which one is meant), "unread" nothing.
Outcome = Literal["right", "asked", "wrong", "collides", "unread"]
NOTHING_IN_WORDS = "no task of these agents may be asked for in words, so there is nothing to read"
_READ: frozenset[Outcome] = frozenset({"right", "asked"})


@dataclass(frozen=True, slots=True)
class Checked:
    """What one example came to; *told* is the question, or the other tasks that took it."""

    offer: Offer
    example: str
    outcome: Outcome
    told: str = ""

    @property
    def is_read(self) -> bool:
        """Whether a person who says this gets the task, or a question about it."""
        return self.outcome in _READ


def check_aloud(references: Sequence[str], *, as_json: bool) -> int:
    """Print what every example of the agents in *references* comes to; 1 when one is not read."""
    agents = [agent for reference in references for agent in load_agents(reference)]
    catalogue = catalogue_of(agents)
    by_rules, by_model = asyncio.run(_check(catalogue))
    silent = [offer for offer in catalogue.tasks() if not offer.task.examples]
    if as_json:
        print_json(_as_document(by_rules, by_model, silent))
    else:
        _print_checked(by_rules, by_model)
        for offer in silent:
            say(f"{_called(offer)} has no examples; give it two or three sentences: examples=('...', '...')")
        if not catalogue.tasks():
            say(NOTHING_IN_WORDS)
    return OK if all(one.is_read for one in (*by_rules, *(by_model or ()))) else FAILED


def warn_of_unread(agents: Sequence[Agent]) -> None:
    """Log a warning for each example of *agents* that the rules alone do not bring to its task."""
    interpreter = RuleInterpreter()
    catalogue = catalogue_of(agents)
    for offer, example in _examples(catalogue):
        checked = judge(offer, example, interpreter.understand(example, catalogue=catalogue))
        if not checked.is_read:
            log.warning(
                "example_not_read",
                agent=offer.agent.agent_id,
                task=offer.task.name,
                example=example,
                outcome=checked.outcome,
                cure="run `tasklore agents check` and reword it, or add cues",
            )


def catalogue_of(agents: Sequence[Agent]) -> Catalogue:
    """Return the cards of *agents*, as a supervisor that knows no others has them."""
    cards: list[AgentCard] = [card_of(agent) for agent in agents]
    return Catalogue(cards)


def judge(offer: Offer, example: str, found: Interpretation) -> Checked:
    """Return how *found* stands to the task of *offer*, whose example it was read from."""
    parts = found.parts if isinstance(found, Several) else (found,)
    others = [part for part in parts if not _is_about(part, offer)]
    if not others:
        questions = [part.question for part in parts if isinstance(part, Clarification)]
        return Checked(offer, example, "asked" if questions else "right", " ".join(questions))
    named = [part for part in others if isinstance(part, Understood | Clarification)]
    if named:
        is_own = all(part.agent_id == offer.agent.agent_id for part in named)
        told = ", ".join(f"{part.agent_id}.{_task_name(part)}" for part in named)
        return Checked(offer, example, "wrong" if is_own else "collides", told)
    question = next((part.question for part in others if isinstance(part, Clarification)), None)
    return Checked(offer, example, "collides" if question else "unread", question or "")


def _is_about(part: object, offer: Offer) -> bool:
    if not isinstance(part, Understood | Clarification):
        return False
    return (part.agent_id, _task_name(part)) == (offer.agent.agent_id, offer.task.name)


def _task_name(part: Understood | Clarification) -> str | None:
    return part.task.name if isinstance(part, Understood) else part.task_name


def _examples(catalogue: Catalogue) -> Iterator[tuple[Offer, str]]:
    for offer in catalogue.tasks():
        for example in offer.task.examples:
            yield offer, example


async def _check(catalogue: Catalogue) -> tuple[list[Checked], list[Checked] | None]:
    """Return what the examples come to without a model, and with the one that is configured; None without one."""
    settings = Settings.load()
    mark = mark_of(settings.locale) if settings.locale else None
    by_rules = await _read_all(RuleInterpreter(decimal_mark=mark), catalogue)
    async with Llm(settings.llm()) as llm:
        if not llm.configured:
            return by_rules, None
        return by_rules, await _read_all(make_interpreter(llm, decimal_mark=mark), catalogue)


async def _read_all(interpreter: Interpreter, catalogue: Catalogue) -> list[Checked]:
    return [
        judge(offer, example, await interpreter.interpret(example, catalogue=catalogue, previous=()))
        for offer, example in _examples(catalogue)
    ]


def _print_checked(by_rules: list[Checked], by_model: list[Checked] | None) -> None:
    if not by_rules:
        return
    models = by_model or itertools.repeat(None, len(by_rules))
    rows = []
    for rules, model in zip(by_rules, models, strict=True):
        columns = (rules.outcome,) if model is None else (rules.outcome, model.outcome)
        told = rules.told or (model.told if model else "")
        rows.append((_called(rules.offer), printable(rules.example), *columns, printable(told)))
    outcomes = ("RULES",) if by_model is None else ("RULES", "MODEL")
    print_table(("TASK", "EXAMPLE", *outcomes, "CAME TO"), rows)
    print(_sum(by_rules, "without a model"))
    if by_model is not None:
        print(_sum(by_model, "with the model"))


def _sum(checked: list[Checked], reader: str) -> str:
    unread = sum(not one.is_read for one in checked)
    verdict = "all are read" if not unread else f"{unread} not read; reword them, or add cues and keywords"
    return f"{len(checked)} examples {reader}: {verdict}."


def _called(offer: Offer) -> str:
    return f"{offer.agent.agent_id}.{offer.task.name}"


def _as_document(by_rules: list[Checked], by_model: list[Checked] | None, silent: list[Offer]) -> dict[str, object]:
    models = by_model or itertools.repeat(None, len(by_rules))
    return {
        "examples": [
            {
                "agent_id": rules.offer.agent.agent_id,
                "task": rules.offer.task.name,
                "example": rules.example,
                "rules": {"outcome": rules.outcome, "told": rules.told},
                "model": None if model is None else {"outcome": model.outcome, "told": model.told},
            }
            for rules, model in zip(by_rules, models, strict=True)
        ],
        "without_examples": [_called(offer) for offer in silent],
        "is_read": all(one.is_read for one in (*by_rules, *(by_model or ()))),
    }
