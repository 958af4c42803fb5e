"""Answers of a model: started, shown for a yes, asked for, or replaced by the rules' answer."""

from collections.abc import Sequence
from typing import Any

import pytest

from tasklore.contracts.errors import LlmTimeout, LlmUnavailable
from tasklore.contracts.messages import AgentCard, ChatTurn, TaskCard
from tasklore.memory.rendering.tokens import estimate
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.model import LlmInterpreter, make_interpreter
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    Interpretation,
    Several,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.prompt import PersonalMemory
from tasklore.supervisor.understanding.routing import Router
from tasklore.supervisor.understanding.rules import RuleInterpreter
from tests.understanding.recorded import CATALOGUE, NOW, Given, Model, cases


def slot(
    field: str, value: str, quotation: str | None = None, source: str = "now"
) -> dict[str, str]:
    return {
        "field": field,
        "value": value,
        "quotation": value if quotation is None else quotation,
        "source": source,
    }


def intent(task: str, *slots: dict[str, str]) -> dict[str, Any]:
    agent_id, task_name = task.split(".")
    return {"agent_id": agent_id, "task_name": task_name, "slots": list(slots)}


def reading(*intents: dict[str, Any], unfit: Sequence[str] = ()) -> dict[str, Any]:
    return {"reasoning": "because", "intents": list(intents), "unfit": list(unfit)}


class Answers(Model):
    """A model that gives several answers, one after the other."""

    def __init__(self, *several: Any) -> None:
        super().__init__(several[0])
        self._several = list(several)

    async def ask(self, *args: Any, **options: Any) -> Given[Any]:
        self.answer = (
            self._several.pop(0) if len(self._several) > 1 else self._several[0]
        )
        return await super().ask(*args, **options)


class Memory:
    """One thing that is remembered of Ann."""

    def __init__(self, text: str) -> None:
        self._line = PersonalMemory("resource_user_home home.facts[0]", text)

    async def of(self, user_id: str | None, text: str) -> Sequence[PersonalMemory]:
        return (self._line,) if user_id == "ann" else ()


async def interpret(
    text: str,
    answer: Any,
    previous: Sequence[ChatTurn] = (),
    memory: Memory | None = None,
    user_id: str = "ann",
) -> Interpretation:
    model = answer if isinstance(answer, Model) else Model(answer)
    interpreter = LlmInterpreter(model, recalling=memory)
    return await interpreter.interpret(
        text, catalogue=CATALOGUE, previous=previous, user_id=user_id, now=NOW
    )


def case(case_id: str) -> Sequence[ChatTurn]:
    return next(one for one in cases() if one.id == case_id).previous


RESERVE = "LibraryDesk.reserve_book"
WATER = "GardenAgent.water_zone"
SOIL = "GardenAgent.soil_report"
HIKE = "TrailGuide.plan_hike"
EMMA = "could somebody hold on to Emma by Jane Austen, 3 of them"


async def test_a_grounded_reading_starts_without_a_question() -> None:
    answer = reading(
        intent(
            RESERVE,
            slot("title", "Emma"),
            slot("author", "jane  austen"),
            slot("copies", "3"),
        )
    )
    found = await interpret(EMMA, answer)
    assert isinstance(found, Understood)
    assert found.task.parameters == {
        "title": "Emma",
        "author": "Jane Austen",
        "copies": 3,
    }
    assert [(span.field, EMMA[span.start : span.end]) for span in found.spans] == [
        ("title", "Emma"),
        ("author", "Jane Austen"),
        ("copies", "3"),
    ]
    assert found.by_model


@pytest.mark.parametrize(
    ("text", "said", "value"),
    [
        (
            "Gib dem lawn 1.250,5 Liter",
            slot("litres", "1250.5", "1.250,5 Liter"),
            1250.5,
        ),
        ("lawn 5万升", slot("litres", "50000", "5万升"), 50000),
        ("lawn 80 litros", slot("litres", "80 litros"), 80),
        ("lawn 3.5k litres", slot("litres", "3500", "3.5k litres"), 3500),
    ],
)
async def test_a_number_is_grounded_in_any_script(
    text: str, said: dict[str, str], value: Any
) -> None:
    if value is None:
        said["quotation"] = "５０升"
        value = 50
    found = await interpret(text, reading(intent(WATER, slot("zone", "lawn"), said)))
    assert isinstance(found, Understood), found
    assert found.task.parameters == {"zone": "lawn", "litres": value}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Gib dem lawn fünfzig Liter", slot("litres", "50", "fünfzig Liter")),
        ("lawn 1.500 Liter", slot("litres", "1500", "1.500 Liter")),
        ("lawn 50 l um sieben", slot("start", "07:00", "um sieben")),
        ("lawn 50 l om 7", slot("start", "19:00", "om 7")),
    ],
)
async def test_an_unreadable_quotation_is_shown_for_a_yes(
    text: str, said: dict[str, str]
) -> None:
    others = [slot("zone", "lawn"), slot("litres", "50", "50 l")]
    slots = [
        said,
        *(
            one
            for one in others
            if one["field"] != said["field"] and one["quotation"][:4] in text
        ),
    ]
    if not any(one["field"] == "litres" for one in slots):
        slots.append(slot("litres", "50", "50 Liter"))
    found = await interpret(text, reading(intent(WATER, *slots)))
    assert isinstance(found, Clarification), found
    assert found.question.startswith("Shall I water one zone of the garden (")
    assert "as I understand your words" in found.question
    assert found.call is not None
    assert {"zone", "litres"} <= found.call.parameters.keys()


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (
            slot("copies", "4", "3"),
            "intents.0.slots.1.value: the quotation is worth 3, not 4",
        ),
        (
            slot("copies", "99", "3"),
            "intents.0.slots.1.value: How many copies, from 1 to 40?",
        ),
        (
            slot("shelf", "3"),
            "intents.0.slots.1.field: 'shelf' is no field of reserve_book",
        ),
        (slot("pickup", "2026-13-01", "3"), "write it as 2026-12-05"),
    ],
)
async def test_a_fault_goes_back_to_the_model_once(
    said: dict[str, str], fault: str
) -> None:
    good = reading(
        intent(
            RESERVE,
            slot("title", "Emma"),
            slot("author", "Jane Austen"),
            slot("copies", "3"),
        )
    )
    model = Answers(reading(intent(RESERVE, slot("title", "Emma"), said)), good)
    found = await interpret(EMMA, model)
    assert isinstance(found, Understood)
    first, second = model.users
    assert second.startswith(first)
    assert fault in second[len(first) :]


async def test_an_ungrounded_value_is_asked_for() -> None:
    answer = reading(
        intent(
            RESERVE,
            slot("title", "Emma"),
            slot("author", "Jane Austen"),
            slot("copies", "4", "3"),
        )
    )
    model = Model(answer)
    found = await interpret(EMMA, model)
    assert isinstance(found, Clarification)
    assert dict(found.known) == {"title": "Emma", "author": "Jane Austen"}
    assert found.missing == ("copies",)
    assert len(model.users) == 2


async def test_a_number_is_the_value_of_one_field() -> None:
    text = "a walk in the Harz of 12"
    answer = reading(
        intent(
            HIKE, slot("region", "Harz"), slot("distance", "12"), slot("hikers", "12")
        )
    )
    found = await interpret(text, answer)
    assert isinstance(found, Clarification)
    assert found.missing == ("hikers",)


@pytest.mark.parametrize(
    "left",
    ["12", "seven", '"Persuasion"', "„Persuasion“", "on 5 December", "for two hours"],
)
async def test_an_unused_number_or_quotation_is_asked_about(left: str) -> None:
    answer = reading(intent(RESERVE, slot("title", "Emma")))
    found = await interpret(f"could somebody hold on to Emma, {left}", answer)
    assert isinstance(found, Clarification)
    assert left.strip('"„“').removeprefix("on ").removeprefix("for ") in found.question
    assert found.question.startswith(
        "Shall I put a book aside for a reader (title: Emma)? I cannot take"
    )


async def test_intents_are_judged_one_by_one() -> None:
    text = "hold Emma for me, recommend a restaurant, and is the lawn dry? and the vineyard?"
    soil = intent(SOIL, slot("zone", "lawn"))
    answer = reading(
        intent(RESERVE, slot("title", "Emma")),
        soil,
        soil,
        intent(SOIL, slot("zone", "vineyard")),
        unfit=["recommend a restaurant"],
    )
    found = await interpret(text, answer)
    assert isinstance(found, Several)
    assert [type(part) for part in found.parts] == [
        Understood,
        Unfitting,
        Understood,
        Understood,
    ]
    assert isinstance(found.parts[1], Unfitting)
    assert "recommend a restaurant" in found.parts[1].text


async def test_a_task_with_effects_is_shown_for_a_yes_first() -> None:
    text = "they may collect Q-415 on 1 December"
    answer = reading(
        intent(
            "FreightDesk.book_freight",
            slot("quote_number", "Q-415"),
            slot("pickup", "2026-12-01", "1 December"),
        )
    )
    found = await interpret(text, answer)
    assert isinstance(found, Clarification)
    assert (
        found.question
        == "Shall I book a quoted transport (quote number: Q-415; pickup: 2026-12-01)?"
    )
    assert found.call is not None
    assert found.call.parameters == {"quote_number": "Q-415", "pickup": "2026-12-01"}


async def test_a_remembered_value_is_shown_for_a_yes_first() -> None:
    answer = reading(
        intent(
            HIKE, slot("region", "Harz", source="m1"), slot("distance", "12", "12 km")
        )
    )
    memory = Memory("hikes / facts: Ben walks in the Harz")
    found = await interpret("plan us 12 km as ever", answer, memory=memory)
    assert isinstance(found, Clarification)
    assert 'I remember "hikes / facts: Ben walks in the Harz".' in found.question
    assert [span.memory for span in found.spans] == [
        "resource_user_home home.facts[0]",
        None,
    ]
    of_another = await interpret(
        "plan us 12 km as ever", answer, memory=memory, user_id="ben"
    )
    assert isinstance(of_another, Clarification)
    assert of_another.missing == ("region",)


async def test_a_proposal_without_a_yes_is_shown_again() -> None:
    answer = reading(
        intent(
            HIKE, slot("region", "Harz", source="m1"), slot("distance", "12", "12 km")
        )
    )
    proposed = await interpret(
        "plan us 12 km as ever", answer, memory=Memory("walks in the Harz")
    )
    assert isinstance(proposed, Clarification)
    turn = case("fo01")[1].model_copy(
        update={
            "text": proposed.question,
            "agent_id": "TrailGuide",
            "task": proposed.call,
            "user_id": "ann",
        }
    )
    carried = slot("region", "Harz", "region=Harz", "t1")
    found = await interpret(
        "eher 15 km",
        reading(intent(HIKE, carried, slot("distance", "15", "15 km"))),
        [turn],
    )
    assert isinstance(found, Clarification), found
    assert "region: as I proposed" in found.question


async def test_values_of_the_referred_turn_are_carried() -> None:
    carried = [
        slot("litres", "200", "litres=200", "t2"),
        slot("start", "21:00", "start=21:00:00", "t2"),
    ]
    found = await interpret(
        "the same for the orchard",
        reading(intent(WATER, slot("zone", "orchard"), *carried)),
        case("fo01"),
    )
    assert isinstance(found, Understood)
    assert found.task.parameters == {
        "zone": "orchard",
        "litres": 200,
        "start": "21:00:00",
    }
    reported = slot("quote_number", "Q-906", source="t2")
    answer = reading(
        intent(
            "FreightDesk.book_freight",
            reported,
            slot("pickup", "2026-12-02", "2 December"),
        )
    )
    found = await interpret("fine, 2 December", answer, case("fo06"))
    assert isinstance(found, Clarification)
    assert "quote number: from what was reported" in found.question


async def test_values_of_several_earlier_turns_are_shown_for_a_yes_first() -> None:
    turns = case("fo31")
    answer = reading(
        intent(
            RESERVE,
            slot("title", "Bremen", source="t1"),
            slot("author", "lawn", source="t3"),
            slot("copies", "7"),
        )
    )
    found = await interpret("and put 7 aside", answer, turns)
    assert isinstance(found, Clarification)
    assert "title, author: from several earlier turns" in found.question


async def test_turns_of_another_person_are_not_shown() -> None:
    turns = [turn.model_copy(update={"user_id": "ben"}) for turn in case("fo01")]
    model = Model(
        reading(
            intent(
                WATER,
                slot("zone", "orchard"),
                slot("litres", "200", "litres=200", "t2"),
            )
        )
    )
    found = await interpret("the same for the orchard", model, turns)
    assert isinstance(found, Clarification)
    assert (
        "200" not in model.users[0].partition("tasks:")[2].partition("conversation:")[2]
    )


@pytest.mark.parametrize("error", [LlmTimeout("late"), LlmUnavailable("away")])
async def test_without_an_answer_the_rules_count(error: Exception) -> None:
    text = "is the vineyard's soil dry?"
    alone = RuleInterpreter().understand(text, catalogue=CATALOGUE, now=NOW)
    assert await interpret(text, error) == alone


async def test_a_model_is_not_asked_what_the_rules_settle() -> None:
    model = Model(LlmTimeout("asked"))
    found = await interpret("soil report for the zone vineyard", model)
    assert isinstance(found, Understood)
    assert model.users == []


async def test_an_unknown_task_starts_nothing() -> None:
    assert isinstance(await interpret("lovely weather", reading()), Unfitting)
    assert isinstance(
        await interpret("lovely weather", reading(intent("BankAgent.pay"))), Unfitting
    )
    many = reading(
        *(
            intent(RESERVE, slot("title", word))
            for word in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]
        )
    )
    assert isinstance(await interpret("a b c d e f g h i j k l", many), Unfitting)


def test_without_a_model_the_rules_interpret() -> None:
    model = Model(reading())
    model.configured = False
    assert isinstance(make_interpreter(model), RuleInterpreter)
    assert isinstance(make_interpreter(None), RuleInterpreter)


# -- many tasks -------------------------------------------------------------------------------------------------------


def _many(count: int) -> Catalogue:
    schema = {
        "properties": {
            "place": {"type": "string", "description": "where it is"},
            "amount": {"type": "number", "unit": "USD"},
            "day": {"type": "string", "format": "date"},
        },
        "required": ["place", "amount"],
    }
    words = [
        "water",
        "print",
        "book",
        "quote",
        "swap",
        "repay",
        "plan",
        "renew",
        "feed",
        "paint",
        "clean",
        "move",
    ]
    tasks = [
        TaskCard(
            name=f"{words[n % 12]}_thing_{n}",
            description=f"{words[n % 12].title()} number {n}.",
            parameters=schema,
            examples=(f"{words[n % 12]} the {n}",),
        )
        for n in range(count)
    ]
    return Catalogue(
        AgentCard(agent_id=f"Agent{n}", tasks=(task,), digest="0")
        for n, task in enumerate(tasks)
    )


async def test_two_hundred_cards_fit_into_the_prompt() -> None:
    catalogue = _many(200)
    router = Router(catalogue)
    model = Model(reading(intent("Agent190.clean_thing_190"), unfit=[]))
    interpreter = LlmInterpreter(model)
    await interpreter.interpret(
        "have paint_thing_9 done for me", catalogue=catalogue, previous=[], now=NOW
    )
    first = model.users[0]
    assert estimate(first) <= 3_000
    shown = [task for task in router.tasks if f"{task.key[0]}.{task.key[1]}:" in first]
    assert "Agent9.paint_thing_9" in [".".join(task.key) for task in shown]
    assert len(shown) >= 4
    named = [
        task for task in router.tasks if f"\n{task.key[0]}: {task.key[1]}\n" in first
    ]
    assert len(named) + len(shown) == 200
    again = model.users[1][len(first) :]
    asked = router.find("Agent190", "clean_thing_190")
    assert asked is not None
    assert asked in named
    assert "that task was listed by name" in again
    assert "amount: number in USD, needed" in again


async def test_a_model_reads_words_for_a_chosen_agent_by_its_tasks_alone() -> None:
    """Rules find no value that words announce; a task of another agent cannot be started."""
    garden = CATALOGUE.narrow("GardenAgent")
    chosen = CATALOGUE.narrow("LibraryDesk", "reserve_book")
    assert garden is not None
    assert chosen is not None
    model = Model(
        reading(
            intent(
                RESERVE,
                slot("title", "Emma"),
                slot("author", "Jane Austen"),
                slot("copies", "3"),
            )
        )
    )
    interpreter = LlmInterpreter(model)
    found = await interpreter.interpret(EMMA, catalogue=chosen, previous=(), now=NOW)
    assert isinstance(found, Understood)
    assert found.task.parameters["copies"] == 3
    assert "LibraryDesk" in model.users[0]
    assert "GardenAgent" not in model.users[0]
    other = await interpreter.interpret(EMMA, catalogue=garden, previous=(), now=NOW)
    assert not isinstance(other, Understood)
    assert "LibraryDesk" not in model.users[1]
