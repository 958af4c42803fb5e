"""A second look at facts at stake: does the person say this of themselves, and mean it?

A quotation stands in "I am not vegan" and in "my brother is allergic to kiwis" as well. The model is asked once, in one
short question, about those facts alone; a fact that it does not call the person's own word is set aside, and listed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from tasklore.contracts.errors import LlmCutOff, LlmMalformed, LlmRefused
from tasklore.memory.documents.entries import home_of
from tasklore.memory.documents.kinds import Kinds
from tasklore.workers.agent_files import load_agent_files
from tasklore.workers.agents.switchboard.checks import RETIRING, Checked, Veto
from tasklore.workers.agents.switchboard.prompt import PromptScene
from tasklore.workers.answers import AnswerSchema
from tasklore.workers.context.llm import TaskLlm
from tasklore.workers.listening.context import ListenContext

FOLDER = Path(__file__).with_name("second_look")

#: Characters of the turn that are shown on either side of the quotation, and of the turn before.
_AROUND = 300

#: How a turn says a fact: "own" alone lets it pass.
Verdict = Literal["own", "other", "denied", "unreal", "unsure"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

_WHY: Mapping[str, str] = {
    "other": "is so of somebody else, by a second look",
    "denied": "is denied by the turn, by a second look",
    "unreal": "is no statement (an if, a wish, a question, others' words), by a second look",
}
_UNSURE = "may not say that of the person: a second look was not sure"


class LookedAt(AnswerSchema):
    """The verdict on the fact of this number, from 1."""

    fact: int = 1
    verdict: str = Field(default="unsure", json_schema_extra={"enum": list(VERDICTS)})


class SecondLook(AnswerSchema):
    """What the model answers at the second look."""

    reasoning: str
    verdicts: tuple[LookedAt, ...] = ()


@dataclass(frozen=True, slots=True)
class Doubt:
    """A fact that did not pass, by its number in the answer, and why."""

    number: int
    checked: Checked
    veto: Veto


async def look_again(
    context: ListenContext,
    model: TaskLlm,
    scene: PromptScene,
    facts: Sequence[tuple[int, Checked]],
) -> list[Doubt]:
    """Return those of *facts*, by number, that are at stake and that the model does not call the person's own word.

    Raises:
        LlmError: the model is away; nothing at stake is kept without it.
    """
    asked = [
        (number, checked)
        for number, checked in facts
        if _is_at_stake(checked, scene, context.kinds)
    ]
    if not asked:
        return []
    files = load_agent_files(FOLDER, context.agent_files)
    question = question_of(scene, [checked for _, checked in asked])
    try:
        answer = await model.ask(
            files.role, SecondLook, system=files.render(), user=question
        )
    except (LlmCutOff, LlmMalformed, LlmRefused):
        answer = SecondLook(reasoning="")
    verdicts: dict[int, str] = {}
    for one in answer.verdicts:
        # Of two verdicts the doubt counts.
        if verdicts.get(one.fact, "own") == "own":
            verdicts[one.fact] = one.verdict
    return [
        Doubt(number, checked, _veto(verdicts.get(place, "unsure")))
        for place, (number, checked) in enumerate(asked, start=1)
        if verdicts.get(place) != "own"
    ]


def question_of(scene: PromptScene, facts: Sequence[Checked]) -> str:
    """Return the question: for each fact its quotation with the text around it, the turn before, and the statement."""
    lines: list[str] = []
    for number, checked in enumerate(facts, start=1):
        heard = checked.heard
        turn = scene.turns[heard.turn - 1]
        at = turn.text.find(checked.quotation)
        end = at + len(checked.quotation) + _AROUND
        place = next(
            (
                index
                for index, one in enumerate(scene.around)
                if one.turn_id == turn.turn_id
            ),
            0,
        )
        before = scene.around[place - 1].text[-_AROUND:] if place else ""
        shown = {
            "before": before,
            "turn": turn.text[max(0, at - _AROUND) : end],
            "quotation": checked.quotation,
            "fact": checked.text,
            "category": heard.category,
            "relation": heard.relation,
        }
        lines.append(f"{number}: {json.dumps(shown, ensure_ascii=False)}")
    return "\n".join(lines)


def _is_at_stake(checked: Checked, scene: PromptScene, kinds: Kinds) -> bool:
    """Return whether the fact is for a place that is protected or has one item, or takes something protected away.

    One that takes away what it does not name may mean anything.
    """
    heard = checked.heard
    place = home_of(heard.category, heard.subject.strip() or None, kinds)
    if place is not None and (place.protected or place.single):
        return True
    if heard.relation in ("ends", "forget") and not checked.related:
        return True
    return heard.relation in RETIRING and any(
        entry.is_protected and entry.reference in checked.related
        for entry in scene.shown.entries
    )


def _veto(verdict: str) -> Veto:
    return Veto("quotation", _WHY.get(verdict, _UNSURE), "evidence")
