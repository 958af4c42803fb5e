"""Two doubles of a model: a right one shows the false alarms of our checks, a hostile one their gaps."""

# ruff: noqa: RUF001 - digits and marks of other scripts are what is tested

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest

from tasklore.contracts.messages import TaskCall
from tasklore.supervisor.understanding.answers import (
    IntentAnswer,
    Reading,
    SlotAnswer,
    check,
)
from tasklore.supervisor.understanding.model import LlmInterpreter
from tasklore.supervisor.understanding.outcome import (
    Interpretation,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.prompt import PersonalMemory, sources_of
from tasklore.supervisor.understanding.routing import Router
from tasklore.supervisor.understanding.rules import RuleInterpreter
from tests.property.examples import scale
from tests.understanding.hostile import (
    ATTACKS,
    COUNT,
    MEMORY,
    hostile,
    strangers,
    unsaid,
)
from tests.understanding.recorded import CATALOGUE, NOW, Case, Model, collapse_space


class NoRules(RuleInterpreter):
    """Rules that understand nothing, so that everything is the model's doing."""

    async def interpret(self, *_: Any, **__: Any) -> Interpretation:
        """Leave it to the model."""
        return Unfitting("I cannot tell what to do with that.")


class Memory:
    """What is remembered of everybody alike."""

    async def of(self, user_id: str | None, text: str) -> Sequence[PersonalMemory]:
        """Return it."""
        return (PersonalMemory("resource_notes facts[0]", MEMORY),)


#: By kind: what is written, and what a model that is right answers.
WORDINGS: dict[str, list[tuple[str, str]]] = {
    "number": [
        ("250", "250"), ("1,250", "1250"), ("50k", "50000"), ("3.5k", "3500"), ("12.5", "12.5"), ("٢٥٠", "250"),
        ("५०", "50"), ("５０", "50"), ("5万", "50000"), ("3千", "3000"), ("20 Tausend", "20000"), ("1 250", "1250"),
        ("1.250,5", "1250.5"), ("forty", "40"), ("forty-two", "42"), ("a dozen", "12"), ("five hundred", "500"),
        ("quarante", "40"), ("fünfzig", "50"), ("三百", "300"), ("خمسون", "50"), ("7 mil", "7000"),
        ("2 millones", "2000000"),
    ],
    "whole": [("3", "3"), ("12", "12"), ("seven", "7"), ("٧", "7"), ("zwölf", "12"), ("五", "5"), ("a dozen", "12")],
    "percent": [("4.5%", "4.5%"), ("4,5 %", "4.5%"), ("four percent", "4%"), ("٤٪", "4%"), ("vier Prozent", "4%")],
    "date": [
        ("5 December", "2026-12-05"), ("tomorrow", "2026-11-24"), ("2026-12-05", "2026-12-05"),
        ("on Friday", "2026-11-27"),
        ("am 5. Dezember", "2026-12-05"), ("le 5 décembre", "2026-12-05"), ("12月5日", "2026-12-05"),
        ("mañana", "2026-11-24"),
        ("05.12.2026", "2026-12-05"), ("05/12/2026", "2026-12-05"), ("٥ ديسمبر", "2026-12-05"),
    ],
    "time": [("18:30", "18:30"), ("7 pm", "19:00"), ("19h30", "19:30"), ("noon", "12:00"), ("abends um acht", "20:00")],
    "duration": [
        ("90 minutes", "PT90M"), ("two and a half hours", "PT2H30M"), ("P3M", "P3M"), ("3 Stunden", "PT3H"),
        ("deux heures", "PT2H"), ("2小时", "PT2H"), ("10 Jahre", "P10Y"), ("48 months", "P48M"),
    ],
    "measure": [("800 kg", "800 kg"), ("2.4 tonnes", "2.4 t"), ("1500公斤", "1500 kg"), ("٧٥٠ كغ", "750 kg")],
    "choice": [("lawn", "lawn"), ("the LAWN", "lawn"), ("Rasen", "lawn"), ("草坪", "lawn")],
    "text": [("Emma", "Emma"), ("„Der Zauberberg“", "Der Zauberberg"), ("《红楼梦》", "红楼梦"),
             ("L'Étranger", "L'Étranger")],
}  # fmt: skip
FIELDS = {
    "number": [("LoanDesk.repay_loan", "principal"), ("TrailGuide.plan_hike", "distance"),
               ("GardenAgent.water_zone", "litres")],
    "whole": [("LibraryDesk.reserve_book", "copies"), ("PrintShop.order_print", "copies")],
    "percent": [("LoanDesk.repay_loan", "rate"), ("SavingsAgent.project_savings", "rate")],
    "date": [("LibraryDesk.renew_loan", "until"), ("StudioDesk.book_studio", "day")],
    "time": [("GardenAgent.water_zone", "start"), ("StudioDesk.book_studio", "start")],
    "duration": [("StudioDesk.book_studio", "length"), ("LoanDesk.repay_loan", "term")],
    "measure": [("FreightDesk.quote_freight", "weight")],
    "choice": [("GardenAgent.soil_report", "zone"), ("GardenAgent.water_zone", "zone")],
    "text": [("LibraryDesk.reserve_book", "title"), ("FreightDesk.quote_freight", "origin")],
}  # fmt: skip
#: Sentences that say a value, with nothing else in them that could be one.
FRAMES = (
    "und bitte {}",
    "{}",
    "please, it should be {}",
    "请 {} 谢谢",
    "que sea {}, por favor",
)


def oracle() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the sentence, the task, the field, the words of its value, and the value."""
    for kind, wordings in WORDINGS.items():
        for task, field in FIELDS[kind]:
            for words, value in wordings:
                for frame in FRAMES:
                    yield frame.format(words), task, field, words, value


def test_what_is_right_by_construction_is_never_vetoed() -> None:
    """Each value is kept exactly; most of them start; in the words of other languages they are shown."""
    router = Router(CATALOGUE)
    vetoed: list[object] = []
    counts: Counter[str] = Counter()
    for text, task, field, words, value in oracle():
        slot = SlotAnswer(field=field, value=value, quotation=words, source="now")
        agent_id, name = task.split(".")
        intent = IntentAnswer(agent_id=agent_id, task_name=name, slots=(slot,))
        reading = Reading(reasoning="right", intents=(intent,), unfit=())
        answer = check(reading, router, sources_of(text, [], (), NOW))
        [checked] = answer.intents
        if answer.faults or collapse_space(
            task, field, checked.values.get(field)
        ) != collapse_space(task, field, value):
            vetoed.append((text, field, value, answer.faults))
        counts["shown" if checked.unsure else "started"] += 1
    assert vetoed == []
    assert counts.total() > 600
    assert counts["started"] >= 0.6 * counts.total()


@pytest.mark.parametrize("rules", [RuleInterpreter, NoRules])
async def test_no_hostile_answer_serves_what_was_not_said(
    rules: type[RuleInterpreter],
) -> None:
    """Invented, moved, completed, broken, in foreign digits, of a stranger or of memory; whenever it is asked."""
    interpreter_rules = rules()
    served: list[object] = []
    kinds: Counter[str] = Counter()
    started = 0
    # All of them in `make long`, every third in `make test`.
    share = 3 // min(3, scale(1))
    for attack, case, answer in islice(hostile(), 0, None, share):
        interpreter = LlmInterpreter(
            Model(answer), rules=interpreter_rules, recalling=Memory()
        )
        found = await interpreter.interpret(
            case.say,
            catalogue=CATALOGUE,
            previous=strangers(case),
            user_id="ann",
            now=NOW,
        )
        kinds[attack] += 1
        started += isinstance(found, Understood)
        if problems := unsaid(case, found):
            served.append((attack, case.id, case.say, problems))
    assert served == []
    assert kinds.total() == -(-COUNT // share)
    assert min(kinds[attack] for attack in ATTACKS) >= 40 // share
    # Not by refusing everything: what an attack left as it was still starts.
    assert started >= 50 // share


def test_the_hostile_bar_can_fail() -> None:
    case = Case(
        "x",
        "en",
        "one",
        "200 l for the lawn",
        [{"task": "GardenAgent.water_zone", "parameters": {"litres": 200}}],
    )
    said = Understood(
        agent_id="GardenAgent",
        task=TaskCall(name="water_zone", parameters={"zone": "lawn", "litres": 200}),
    )
    invented = Understood(
        agent_id="GardenAgent",
        task=TaskCall(
            name="water_zone", parameters={"zone": "orchard", "litres": 2000}
        ),
    )
    assert unsaid(case, said) == []
    assert len(unsaid(case, invented)) == 2
