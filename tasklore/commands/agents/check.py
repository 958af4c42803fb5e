"""`tasklore agents check`: whether the example sentences of a card reach their own task."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import structlog

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.render.screen import print_json, print_table, printable, say
from tasklore.contracts.quantities.numerals.locales import mark_of
from tasklore.runtime.models.llm import Llm
from tasklore.runtime.settings import Settings
from tasklore.supervisor.catalogue import Catalogue, Offer
from tasklore.supervisor.understanding import (
    Clarification,
    Interpretation,
    Interpreter,
    RuleInterpreter,
    Several,
    Understood,
    make_interpreter,
)
from tasklore.supervisor.understanding.questions import ask_to_confirm
from tasklore.supervisor.understanding.schema import task_schema
from tasklore.workers.agent import Agent
from tasklore.workers.card import card_of
from tasklore.workers.loading import load_agents

log = structlog.get_logger(__name__)

#: "right" starts the task, or shows one to confirm. The others are not read: "asked" is only a question about it,
#: "wrong" another task of the same agent, "collides" another agent's (or the question which one is meant), "unread"
#: nothing.
Reading = Literal["right", "asked", "wrong", "collides", "unread"]
NOTHING_IN_WORDS = (
    "no task of these agents may be asked for in words, so there is nothing to read"
)


@dataclass(frozen=True, slots=True)
class CheckedExample:
    """How one example is read; *detail* is the question, or the other tasks that took it."""

    offer: Offer
    example: str
    reading: Reading
    detail: str = ""

    @property
    def is_read(self) -> bool:
        """Whether a person who says this gets the task, and is asked for no more than the yes that it wants."""
        return self.reading == "right"


def check_examples(references: Sequence[str], *, as_json: bool) -> int:
    """Print how every example of the agents in *references* is read; return 1 when one is not."""
    catalogue = catalogue_of(
        [agent for reference in references for agent in load_agents(reference)]
    )
    by_rules, by_model = asyncio.run(_read_examples(catalogue))
    models = by_model or itertools.repeat(None, len(by_rules))
    pairs = list(zip(by_rules, models, strict=True))
    silent = [offer for offer in catalogue.tasks() if not offer.task.examples]
    is_read = all(one.is_read for one in (*by_rules, *(by_model or ())))
    if as_json:
        rows = [
            {
                "agent_id": rules.offer.agent.agent_id,
                "task": rules.offer.task.name,
                "example": rules.example,
                "rules": {"outcome": rules.reading, "told": rules.detail},
                "model": None
                if model is None
                else {"outcome": model.reading, "told": model.detail},
            }
            for rules, model in pairs
        ]
        print_json(
            {
                "examples": rows,
                "without_examples": [_name(offer) for offer in silent],
                "without_unit": dict(amounts_without_unit(catalogue)),
                "is_read": is_read,
            }
        )
        return OK if is_read else FAILED
    if pairs:
        readings = ("RESULT",) if by_model is None else ("BY RULES", "BY MODEL")
        table = []
        for rules, model in pairs:
            columns = (
                (rules.reading,) if model is None else (rules.reading, model.reading)
            )
            detail = rules.detail or (model.detail if model else "")
            table.append(
                (
                    _name(rules.offer),
                    printable(rules.example),
                    *columns,
                    printable(detail),
                )
            )
        print_table(("TASK", "EXAMPLE", *readings, "DETAIL"), table)
        for checked, reader in (
            (by_rules, "without a model"),
            (by_model or [], "with the model"),
        ):
            if checked:
                print(f"{len(checked)} examples {reader}: {_sum_up(checked)}.")
    for offer in silent:
        say(
            f"{_name(offer)} has no examples; give it two or three sentences: examples=('...', '...')"
        )
    for name, labels in amounts_without_unit(catalogue):
        say(
            f"{name}: {', '.join(labels)} without a unit, so that an amount in a currency is asked about; declare"
            " Field(unit='EUR'), Money, which keeps it, or Field(any_currency=True) where any currency will do"
        )
    for name, labels in amounts_that_lose_currency(catalogue):
        say(
            f"{name}: {', '.join(labels)} of any currency, which is dropped, so that $50 and 50 EUR are one question;"
            " declare Money where the answer depends on it"
        )
    if not catalogue.tasks():
        say(NOTHING_IN_WORDS)
    return OK if is_read else FAILED


def _sum_up(checked: Sequence[CheckedExample]) -> str:
    """Return how many of *checked* start their task, how many are asked about, and how many come to another end."""
    counts: Counter[str] = Counter(
        one.reading if one.reading in ("right", "asked") else "unread"
        for one in checked
    )
    if counts["right"] == len(checked):
        return "all start their task"
    parts = {
        "right": "start their task",
        "asked": "are not read, only asked about (say what is asked for, or give it a default)",
        "unread": "are not read (reword them, or add cues and keywords)",
    }
    return ", ".join(
        f"{counts[reading]} {words}"
        for reading, words in parts.items()
        if counts[reading]
    )


def amounts_without_unit(catalogue: Catalogue) -> Iterator[tuple[str, list[str]]]:
    """Yield each task that takes an Amount without unit or currency, with the names of such fields."""
    for offer in catalogue.tasks():
        slots = task_schema(offer.task).slots
        names = [
            slot.name
            for slot in slots
            if slot.kind == "amount" and slot.unit is None and not slot.takes_money
        ]
        if names:
            yield _name(offer), names


def amounts_that_lose_currency(
    catalogue: Catalogue,
) -> Iterator[tuple[str, list[str]]]:
    """Yield each task that takes amounts in any currency beside no field for it, with the names of such fields."""
    for offer in catalogue.tasks():
        slots = task_schema(offer.task).slots
        names = [slot.name for slot in slots if slot.takes_money]
        if names and not any(slot.is_currency for slot in slots):
            yield _name(offer), names


def warn_of_unread(agents: Sequence[Agent]) -> None:
    """Log a warning for each example of *agents* that the rules alone do not bring to its task."""
    interpreter = RuleInterpreter()
    catalogue = catalogue_of(agents)
    for offer, example in _examples(catalogue):
        checked = check_reading(
            offer, example, interpreter.understand(example, catalogue=catalogue)
        )
        if not checked.is_read:
            log.warning(
                "example_not_read",
                agent=offer.agent.agent_id,
                task=offer.task.name,
                example=example,
                outcome=checked.reading,
                cure="run `tasklore agents check` and reword it, or add cues",
            )


def catalogue_of(agents: Sequence[Agent]) -> Catalogue:
    """Return the cards of *agents*, as a supervisor that knows no others has them."""
    return Catalogue([card_of(agent) for agent in agents])


def check_reading(offer: Offer, example: str, found: Interpretation) -> CheckedExample:
    """Compare *found*, read from *example*, with the task of *offer* that it is an example of."""
    parts = found.parts if isinstance(found, Several) else (found,)
    own = (offer.agent.agent_id, offer.task.name)
    others = [part for part in parts if _task_of(part) != own]
    if not others:
        questions = [
            part.question
            for part in parts
            if isinstance(part, Clarification) and not _is_shown(offer, part)
        ]
        return CheckedExample(
            offer, example, "asked" if questions else "right", " ".join(questions)
        )
    named = [task for task in map(_task_of, others) if task is not None]
    if not named:
        return CheckedExample(offer, example, "unread")
    is_own = all(agent_id == offer.agent.agent_id for agent_id, _ in named)
    detail = ", ".join(f"{agent_id}.{task}" for agent_id, task in named)
    return CheckedExample(offer, example, "wrong" if is_own else "collides", detail)


def _is_shown(offer: Offer, part: Clarification) -> bool:
    """Return whether *part* asks for nothing but the yes that a task to confirm wants."""
    is_whole = not part.missing and part.question == ask_to_confirm(offer, part.known)
    return offer.task.confirm and is_whole


def _task_of(part: object) -> tuple[str | None, str | None] | None:
    """Return agent and task of *part*, None when it is about no task at all."""
    if isinstance(part, Understood):
        return part.agent_id, part.task.name
    return (part.agent_id, part.task_name) if isinstance(part, Clarification) else None


async def _read_examples(
    catalogue: Catalogue,
) -> tuple[list[CheckedExample], list[CheckedExample] | None]:
    """Return the readings without a model, and with the configured one; None without one."""
    settings = Settings.load()
    mark = mark_of(settings.locale) if settings.locale else None

    async def read(interpreter: Interpreter) -> list[CheckedExample]:
        return [
            check_reading(
                offer,
                example,
                await interpreter.interpret(example, catalogue=catalogue, previous=()),
            )
            for offer, example in _examples(catalogue)
        ]

    by_rules = await read(RuleInterpreter(decimal_mark=mark))
    async with Llm(settings.llm()) as llm:
        return by_rules, await read(
            make_interpreter(llm, decimal_mark=mark)
        ) if llm.configured else None


def _examples(catalogue: Catalogue) -> Iterator[tuple[Offer, str]]:
    for offer in catalogue.tasks():
        for example in offer.task.examples:
            yield offer, example


def _name(offer: Offer) -> str:
    return f"{offer.agent.agent_id}.{offer.task.name}"
