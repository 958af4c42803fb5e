"""Ask a model about a batch of turns: one question, one for facts that failed their checks, one for those at stake."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasklore.contracts.errors import LlmError
from tasklore.contracts.messages import Fact
from tasklore.workers.agent_files import AgentFiles, load_agent_files
from tasklore.workers.agents.switchboard.answer import Heard, HeardFact
from tasklore.workers.agents.switchboard.checks import Checked, Checker, Veto
from tasklore.workers.agents.switchboard.facts import fact_id, from_model, set_aside
from tasklore.workers.agents.switchboard.prompt import (
    PromptScene,
    categories_of,
    question_of,
)
from tasklore.workers.agents.switchboard.second_look import look_again
from tasklore.workers.context.llm import TaskLlm
from tasklore.workers.listening.context import ListenContext

#: Facts of one answer that are looked at: more is no message of a person about themselves.
MOST_FACTS = 40
#: Faulty facts that go back to the model, and characters of each.
_MOST_MENDED = 12
_LONGEST_MENDED = 800
#: Manners of speaking in which a person states nothing about themselves.
_UNSAID = frozenset(("hearsay", "hypothetical", "joke"))


@dataclass(frozen=True, slots=True)
class _Faulty:
    """A fact that failed its checks, and its faults."""

    number: int
    heard: HeardFact
    faults: tuple[Veto, ...]


async def extract_facts(
    context: ListenContext, model: TaskLlm, scene: PromptScene
) -> dict[str, list[Fact]]:
    """Return the facts of *scene* by turn id, those that were set aside among them.

    Numbers of facts go on behind those that are known already.

    Raises:
        LlmError: there is no usable answer.
    """
    files = load_agent_files(Path(__file__).parent, context.agent_files)
    system = files.render(categories=categories_of(context.kinds))
    question = question_of(scene)
    heard = await model.ask(files.role, Heard, system=system, user=question)
    for _ in heard.facts[MOST_FACTS:]:
        context.refused("too_many")
    facts = {
        number: _drop_unsaid(context, fact)
        for number, fact in enumerate(heard.facts[:MOST_FACTS], start=1)
    }
    checker = Checker(scene, context.kinds, facts)
    good, faulty = _check_all(checker, facts.items())
    if faulty:
        asked = f"{question}\n{_complaint(faulty)}"
        mended, faulty = await _mend(
            context,
            model=model,
            files=files,
            system=system,
            question=asked,
            checker=checker,
            good=good,
            faulty=faulty,
        )
        good = sorted([*good, *mended], key=lambda pair: pair[0])
    doubts = await look_again(context, model, scene, good)
    faulty = [
        *faulty,
        *(_Faulty(one.number, one.checked.heard, (one.veto,)) for one in doubts),
    ]
    doubted = {one.number for one in doubts}
    good = [pair for pair in good if pair[0] not in doubted]
    return _facts_by_turn(
        context,
        checker=checker,
        scene=scene,
        good=good,
        faulty=faulty,
        reasoning=heard.reasoning,
        model=model.role(files.role).model,
    )


def _drop_unsaid(context: ListenContext, heard: HeardFact) -> HeardFact | None:
    """Return *heard*, None when the person does not state it."""
    if heard.said not in _UNSAID:
        return heard
    context.refused("unsaid")
    return None


def _check_all(
    checker: Checker, numbered: Iterable[tuple[int, HeardFact | None]]
) -> tuple[list[tuple[int, Checked]], list[_Faulty]]:
    """Return the facts that may be kept, with their numbers, and those that failed."""
    good: list[tuple[int, Checked]] = []
    faulty: list[_Faulty] = []
    for number, heard in numbered:
        if heard is None:
            continue
        checked = checker.check(heard, number)
        if isinstance(checked, Checked):
            good.append((number, checked))
        else:
            faulty.append(_Faulty(number, heard, tuple(checked)))
    return good, faulty


async def _mend(
    context: ListenContext,
    model: TaskLlm,
    files: AgentFiles,
    system: str,
    question: str,
    checker: Checker,
    good: Sequence[tuple[int, Checked]],
    faulty: Sequence[_Faulty],
) -> tuple[list[tuple[int, Checked]], list[_Faulty]]:
    """Ask the model to mend faulty facts; return the mended ones, and those that are still faulty."""
    try:
        answer = await model.ask(files.role, Heard, system=system, user=question)
    except LlmError:
        # Good facts count; the others are listed.
        return [], list(faulty)
    # Some models say all once more.
    known = {(checked.heard.statement, checked.heard.category) for _, checked in good}
    anew = [
        heard
        for heard in answer.facts
        if (heard.statement, heard.category) not in known
    ]
    kept = [
        _drop_unsaid(context, heard) for heard in anew[: min(len(faulty), _MOST_MENDED)]
    ]
    again = [(one.number, heard) for one, heard in zip(faulty, kept, strict=False)]
    good, still = _check_all(checker, again)
    return good, [*still, *faulty[len(kept) :]]


def _complaint(faulty: Sequence[_Faulty]) -> str:
    lines = [
        "refused before; answer these facts alone, mended, in this order, said: joke for what cannot be mended"
    ]
    for one in faulty[:_MOST_MENDED]:
        lines.append(one.heard.model_dump_json(exclude_defaults=True)[:_LONGEST_MENDED])
        lines += [f"- {fault}" for fault in one.faults]
    return "\n".join(lines)


def _facts_by_turn(
    context: ListenContext,
    checker: Checker,
    scene: PromptScene,
    good: Sequence[tuple[int, Checked]],
    faulty: Sequence[_Faulty],
    reasoning: str,
    model: str,
) -> dict[str, list[Fact]]:
    """Return all facts by turn id, with ids that follow those that are known."""
    found: dict[str, list[Fact]] = {turn.turn_id: [] for turn in scene.turns}

    def new_id(turn_id: str) -> str:
        return fact_id(turn_id, len(scene.known.get(turn_id, ())) + len(found[turn_id]))

    for _, checked in good:
        turn_id = scene.turns[checked.heard.turn - 1].turn_id
        fact = from_model(
            new_id(turn_id), checked, context.kinds, reasoning=reasoning, model=model
        )
        found[turn_id].append(fact)
    for one in faulty:
        context.refused(one.faults[0].word)
        at = (
            one.heard.turn
            if 1 <= one.heard.turn <= len(scene.turns)
            else len(scene.turns)
        )
        turn_id = scene.turns[at - 1].turn_id
        text = "" if checker.says_too_much(one.heard) else one.heard.statement
        found[turn_id].append(set_aside(new_id(turn_id), text, one.faults, model))
    return found
