"""The memory worker with models behind real HTTP: a scripted server, the real client, documents before and after."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from contracts.errors import LlmUnavailable
from memory.documents.items import Body
from runtime.llm import Llm
from tests.llm_double import Asked, ScriptedLlm, cut_off, dropped, fault, refusal, saying
from tests.llm_questions import Opener
from tests.memory_bench import FOOD, HEALTH, ROUTINE, BenchContext, batch, documents, draft_of, fact, shown
from workers.agents.memory_worker.runner import edit
from workers.listening.values import PendingFact, Ruling

SEED = ("Pasta (especially carbonara)", "Sushi", "Scrambled eggs with lox")

#: What a fact is about, as a model would know it: words of the fact, and of what it means.
Meanings = Mapping[str, tuple[str, ...]]


def finding(asked: Asked, meanings: Meanings, insert: str) -> dict[str, Any]:
    """Answer as a finder that understands *meanings*: read the lines that were shown, and name those that fit."""
    told, _, shown_lines = asked.user.partition("\ndocument\n")
    facts = told.splitlines()[1:]
    locations, heading = [], ""
    for line in shown_lines.splitlines():
        item = re.match(r"(\d+): (.*)", line)
        heading = heading if item else line
        for number, said in enumerate(facts, start=1) if item else ():
            words = [word for key, meant in meanings.items() if key in said.casefold() for word in meant]
            if item and any(word in item[2].casefold() for word in words):
                locations.append({"fact": number, "path": f"{heading}[{item[1]}]", "relevance": "is about it"})
    return {"reasoning": "read every line", "locations": locations, "suggested_insert_path": [insert] * len(facts)}


def editing(asked: Asked, operation: str, display: str = "", decision: str = "proceed") -> dict[str, Any]:
    """Answer as an editor that inserts *display*, or deletes whatever was found."""
    lines = asked.user.splitlines()
    if operation == "insert":
        edits = [{"operation": "insert", "path": lines[lines.index("insert at") + 1], "display": display}]
    else:
        found = [line.rsplit(": ", 1)[0] for line in lines[2 : lines.index("insert at")]]
        edits = [{"operation": operation, "path": path, "display": ""} for path in found]
    return {"reasoning": "it says so", "decision": decision, "edits": edits if decision == "proceed" else []}


def two_models(meanings: Meanings, edits: Callable[[Asked], dict[str, Any]]) -> Callable[[Asked], dict[str, Any]]:
    """Return a script for both: told apart by the schema that they are asked with."""

    def respond(asked: Asked) -> dict[str, Any]:
        if asked.schema_name == "Found":
            assert asked.model == "gpt-6-luna"
            return finding(asked, meanings, "food.likes")
        assert asked.model == "gpt-6.1-terra"
        return edits(asked)

    return respond


async def ruled(llm: Llm, bodies: Mapping[str, Body], *facts: PendingFact) -> tuple[BenchContext, list[Ruling]]:
    """Return the context after *facts* were ruled on with *llm*, and the rulings."""
    context = BenchContext(llm, draft_of(bodies))
    return context, list(await edit(batch(*facts), context))


async def test_what_is_new_is_inserted(scripted_llm: ScriptedLlm, open_llm: Opener) -> None:
    """Omelettes, told in a sentence that no rule reads."""
    scripted_llm.respond = two_models({"omelette": ("egg",)}, lambda asked: editing(asked, "insert", "Omelettes"))

    context, (ruling,) = await ruled(
        open_llm(), documents(food__likes=SEED), fact("User could have omelettes all day long")
    )

    assert ruling.outcome == "applied", ruling.reasoning
    assert shown(context, FOOD, "food.likes") == [*SEED, "Omelettes"]
    finder, editor = scripted_llm.requests
    assert "2: Scrambled eggs with lox" in finder.user
    assert "food.likes[2]: Scrambled eggs with lox" in editor.user
    assert ruling.plan is not None
    assert ruling.plan.origin.by == "gpt-6.1-terra"


async def test_what_is_to_go_goes_by_what_it_means(scripted_llm: ScriptedLlm, open_llm: Opener) -> None:
    """Eggs are found in a dish that is not called so."""
    scripted_llm.respond = two_models({"egg": ("egg",)}, lambda asked: editing(asked, "delete"))

    context, (ruling,) = await ruled(
        open_llm(),
        documents(food__likes=SEED),
        fact("User cannot look at eggs any more, drop them", polarity="negative"),
    )

    assert ruling.outcome == "applied", ruling.reasoning
    assert shown(context, FOOD, "food.likes") == list(SEED[:2])


async def test_what_is_kept_already_is_refused_as_known(scripted_llm: ScriptedLlm, open_llm: Opener) -> None:
    """Pasta is there, under a name of its own."""
    scripted_llm.respond = two_models({"pasta": ("pasta",)}, lambda asked: editing(asked, "insert", decision="reject"))
    bodies = documents(food__likes=SEED)

    context, (ruling,) = await ruled(open_llm(), bodies, fact("Pasta is what makes the user happy"))

    assert (ruling.outcome, ruling.plan) == ("known", None)
    assert context.draft.documents[FOOD].body is bodies[FOOD]


async def test_a_diet_touches_every_place_it_must(scripted_llm: ScriptedLlm, open_llm: Opener) -> None:
    """Over all documents, in one plan; what a model would throw out too is saved by what the taxonomy knows."""
    meanings = {"vegan": ("special", "steak", "salmon", "chicken")}

    def edits(asked: Asked) -> dict[str, Any]:
        answer = editing(asked, "delete")
        answer["edits"].append({"operation": "insert", "path": f"{FOOD}:food.diets", "display": "Vegan"})
        return answer

    scripted_llm.respond = two_models(meanings, edits)
    bodies = documents(
        food__likes=["Grandma's special", "Grilled salmon", "Spinach"],
        food__dislikes=["Liver"],
        routine__daily=["Steak night on Fridays with friends", "Yoga at 7"],
        general__interests=["Chess"],
        health__allergies=["Peanuts"],
    )

    context, (ruling,) = await ruled(open_llm(), bodies, fact("User is vegan"))

    assert ruling.outcome == "applied", ruling.reasoning
    assert shown(context, FOOD, "food.likes") == ["Spinach"]
    assert shown(context, FOOD, "food.diets") == ["Vegan"]
    assert shown(context, ROUTINE, "routine.daily") == ["Yoga at 7"]
    assert shown(context, HEALTH, "health.allergies") == ["Peanuts"]
    assert len(context.draft.applied) == 1
    assert len(scripted_llm.requests) == len(bodies) + 1


async def test_all_food_preferences_go_when_the_fact_says_so(scripted_llm: ScriptedLlm, open_llm: Opener) -> None:
    """Beside something that no rule reads; every line of that document, and of no other."""
    meanings = {"delete": ("",)}
    scripted_llm.respond = two_models(meanings, lambda asked: editing(asked, "delete"))
    bodies = documents(food__likes=SEED, food__dislikes=["Liver"], routine__daily=["Yoga at 7"])

    told = fact("Delete all my food preferences. Maybe I would keep a new list.")

    context, (ruling,) = await ruled(open_llm(), bodies, told)

    assert ruling.outcome == "applied", ruling.reasoning
    assert len(scripted_llm.requests) > 1
    assert shown(context, FOOD, "food.likes") == shown(context, FOOD, "food.dislikes") == []
    assert shown(context, ROUTINE, "routine.daily") == ["Yoga at 7"]


async def test_both_questions_are_small(scripted_llm: ScriptedLlm, open_llm: Opener) -> None:
    """Prompt and schema as they cross the wire, without what a schema repeats."""
    scripted_llm.respond = two_models({}, lambda asked: editing(asked, "insert", "Omelettes"))

    await ruled(open_llm(), documents(food__likes=SEED), fact("User could have omelettes all day long"))

    for asked in scripted_llm.requests:
        assert len(asked.system) + len(asked.user) + len(json.dumps(asked.schema)) < 2_000
        assert "$defs" not in asked.schema
        assert asked.schema["additionalProperties"] is False
        assert next(iter(asked.schema["properties"])) == "reasoning"


BROKEN = {
    "refusal": refusal(),
    "cut off": cut_off(),
    "no answer": saying(None),
    "another shape": saying('{"reasoning": "r"}'),
    "no JSON": saying("Sure! Here are the edits."),
    "a wrong key": fault(401),
}
AWAY = {"dropped": dropped(), "a server error": fault(500)}


@pytest.mark.parametrize("role", ["Found", "Proposed"])
@pytest.mark.parametrize("name", BROKEN)
async def test_a_fact_waits_when_no_answer_can_be_read(
    name: str, role: str, scripted_llm: ScriptedLlm, open_llm: Opener
) -> None:
    """Nothing of its documents is touched, and the facts around it are ruled on."""
    good = two_models({}, lambda asked: editing(asked, "insert", "Omelettes"))
    scripted_llm.respond = lambda asked: BROKEN[name] if asked.schema_name == role else good(asked)
    facts = [fact("User likes tea", "f1"), fact("User could have omelettes all day long", "f2")]

    context, rulings = await ruled(open_llm(max_attempts=2), documents(food__likes=SEED), *facts)

    assert [ruling.outcome for ruling in rulings] == ["applied", "needs_model"]
    assert shown(context, FOOD, "food.likes") == [*SEED, "Tea"]


@pytest.mark.parametrize("role", ["Found", "Proposed"])
@pytest.mark.parametrize("name", AWAY)
async def test_a_model_that_is_away_ends_the_run(
    name: str, role: str, scripted_llm: ScriptedLlm, open_llm: Opener
) -> None:
    """Nothing is stored, and the facts are tried again in their order."""
    good = two_models({}, lambda asked: editing(asked, "insert", "Omelettes"))
    scripted_llm.respond = lambda asked: AWAY[name] if asked.schema_name == role else good(asked)

    with pytest.raises(LlmUnavailable):
        await ruled(open_llm(max_attempts=2), documents(), fact("User could have omelettes all day long", "f2"))


async def test_what_was_spent_is_accounted(scripted_llm: ScriptedLlm, open_llm: Opener) -> None:
    """Of both questions, to the run that asked them."""
    scripted_llm.respond = two_models({}, lambda asked: editing(asked, "insert", "Omelettes"))

    context, _ = await ruled(open_llm(), documents(), fact("User could have omelettes all day long"))

    assert (context.usage.input_tokens, context.usage.output_tokens) == (200, 40)
