"""A batch of facts at work: in order, by rules where they know, by two models where they do not."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from contracts.errors import LlmCutOff, LlmError, LlmMalformed, LlmRefused, LlmUnavailable
from memory.documents.guard import Limits
from memory.documents.items import CONFLICT, Body
from tests.memory_bench import FOOD, HEALTH, ROUTINE, BenchContext, batch, context_over, documents, fact, item, shown
from workers.agents.memory_worker.runner import edit
from workers.listening.values import Ruling

SEED = ("Pasta (especially carbonara)", "Sushi", "Scrambled eggs with lox")
#: A fact that no pattern reads.
ODD = "User's idea of a good morning is an omelette"


class Script:
    """Two models: what the finder finds, by the words of a fact, and what the editor proposes, one after another."""

    def __init__(
        self, *proposed: Mapping[str, Any] | LlmError, found: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.proposed = list(proposed)
        self.found = found or {}
        self.questions: dict[str, list[str]] = {"finder": [], "editor": []}

    def __call__(self, role: str, user: str) -> Mapping[str, Any] | LlmError:
        """Answer as the model of *role*."""
        self.questions[role].append(user)
        if role == "editor":
            return self.proposed.pop(0)
        told = user.split("\ndocument\n")[0].splitlines()[1:]
        locations = [
            {"fact": number, "path": path, "relevance": word}
            for number, line in enumerate(told, start=1)
            for word, paths in self.found.items()
            if word in line
            for path in paths
        ]
        return {"reasoning": "looked", "locations": locations, "suggested_insert_path": ["food.likes"] * len(told)}


def proposing(*edits: tuple[str, str, str], decision: str = "proceed") -> dict[str, Any]:
    """Return an answer of the editor."""
    told = [{"operation": operation, "path": path, "display": display} for operation, path, display in edits]
    return {"reasoning": "as the fact says", "decision": decision, "edits": told}


async def ruled(
    bodies: Mapping[str, Body], script: Callable[..., Any], *facts: Any
) -> tuple[BenchContext, list[Ruling]]:
    """Return the context after *facts* were ruled on with the help of *script*, and the rulings."""
    context = context_over(bodies, script)
    return context, list(await edit(batch(*facts), context))


async def test_rules_come_first_and_ask_nobody() -> None:
    """What they know costs nothing."""
    script = Script()

    context, (ruling,) = await ruled(documents(food__likes=SEED), script, fact("User likes omelettes"))

    assert ruling.outcome == "applied"
    assert context.model.asked == []


async def test_the_finder_looks_and_the_editor_proposes_where_no_rule_reads() -> None:
    """The item is made here: the model gave its words alone."""
    script = Script(proposing(("insert", "food.likes", "An omelette")), found={"omelette": ["food.likes[2]"]})

    context, (ruling,) = await ruled(documents(food__likes=SEED), script, fact(ODD, confidence=0.8))

    assert ruling.outcome == "applied", ruling.reasoning
    assert shown(context, FOOD, "food.likes")[-1] == "An omelette"
    added = context.draft.body(FOOD)["food"]["likes"][-1]  # type: ignore[index,call-overload]
    assert (added["confidence"], added["source"], added["added"]) == (0.8, "stated:t1", "2026-03-01")
    assert "food.likes[2]: Scrambled eggs with lox" in script.questions["editor"][0]


async def test_the_history_says_what_each_model_said_and_which_it_was() -> None:
    """Apart from each other, with model and temperature."""
    script = Script(
        proposing(("insert", "food.likes", "An omelette")), found={"omelette": ["food.likes[2]", "food.likes[9]"]}
    )

    _, (ruling,) = await ruled(documents(food__likes=SEED), script, fact(ODD))

    assert ruling.plan is not None
    origin = ruling.plan.origin
    assert (origin.by, origin.turn_id, origin.fact_id, origin.evidence) == ("gpt-6.1-terra", "t1", "f1", ODD)
    assert origin.reasoning == "as the fact says"
    assert origin.finder == {
        "model": "gpt-6-luna",
        "temperature": None,
        "locations": [
            {
                "file": FOOD,
                "path": "food.likes[2]",
                "current_value": "Scrambled eggs with lox",
                "relevance": "omelette",
            }
        ],
        "suggested_insert_path": f"{FOOD}:food.likes",
        "reasoning": "looked",
        "refused": 1,
    }
    assert origin.editor == {
        "model": "gpt-6.1-terra",
        "temperature": None,
        "decision": "proceed",
        "edits": [{"operation": "insert", "path": "food.likes", "display": "An omelette"}],
        "reasoning": "as the fact says",
    }


async def test_one_look_into_a_document_serves_all_facts_of_a_batch() -> None:
    """Facts that the rules read between them do not ask for another one."""
    script = Script(
        proposing(("delete", "food.likes[1]", "")),
        proposing(("delete", "food.likes[1]", "")),
        found={"sushi": ["food.likes[1]"], "lox": ["food.likes[2]"]},
    )
    facts = [
        fact("User is through with that sushi, never again", "f1", turn_id="t1"),
        fact("User likes green tea", "f2", turn_id="t2"),
        fact("User is through with anything with lox, never again", "f3", turn_id="t3"),
    ]

    context, rulings = await ruled(documents(food__likes=SEED), script, *facts)

    assert [ruling.outcome for ruling in rulings] == ["applied"] * 3, rulings
    assert len(script.questions["finder"]) == 1
    assert len(script.questions["editor"]) == 2
    assert shown(context, FOOD, "food.likes") == ["Pasta (especially carbonara)", "Green tea"]


async def test_the_editor_sees_what_facts_before_did_meanwhile() -> None:
    """Under the path it has by now, and with what was added since the finder looked."""
    script = Script(
        proposing(("delete", "food.likes[0]", "")),
        proposing(("no_change", "", ""), decision="reject"),
        found={"pasta": ["food.likes[0]"], "lox": ["food.likes[2]"]},
    )
    facts = [
        fact("User is through with pasta, never again", "f1", turn_id="t1"),
        fact("User likes bagels", "f2", turn_id="t2"),
        fact("User's idea of heaven has lox in it", "f3", turn_id="t3"),
    ]

    await ruled(documents(food__likes=SEED), script, *facts)

    found = script.questions["editor"][1].split("\ninsert at")[0].splitlines()[2:]
    assert found == ["food.likes[1]: Scrambled eggs with lox", "food.likes[2]: Bagels"]


async def test_the_newest_statement_wins_whoever_reads_it() -> None:
    """An older fact that needed a model does not come after a newer one that did not."""
    script = Script(proposing(("insert", "food.likes", "Sushi")), found={})
    facts = [
        fact("User would give a fortune for sushi", "f1", turn_id="t1"),
        fact("User hates sushi", "f2", turn_id="t2"),
    ]

    context, rulings = await ruled(documents(), script, *facts)

    assert [ruling.outcome for ruling in rulings] == ["applied", "applied"], rulings
    assert shown(context, FOOD, "food.likes") == []
    assert shown(context, FOOD, "food.dislikes") == ["Sushi"]


async def test_a_diet_that_needs_a_model_is_looked_up_in_every_document() -> None:
    """And done in one plan, over all of them."""
    script = Script(
        proposing(
            ("insert", f"{FOOD}:food.diets", "Vegan"),
            ("delete", f"{FOOD}:food.likes[0]", ""),
            ("delete", f"{ROUTINE}:routine.daily[0]", ""),
        ),
        found={"vegan": ["food.likes[0]", "routine.daily[0]"]},
    )
    bodies = documents(food__likes=["Grandma's special", "Spinach"], routine__daily=["Steak night on Fridays", "Yoga"])

    context, (ruling,) = await ruled(bodies, script, fact("User is vegan"))

    assert ruling.outcome == "applied", ruling.reasoning
    assert len(script.questions["finder"]) == len(bodies)
    assert shown(context, FOOD, "food.likes") == ["Spinach"]
    assert shown(context, FOOD, "food.diets") == ["Vegan"]
    assert shown(context, ROUTINE, "routine.daily") == ["Yoga"]
    assert len(context.draft.applied) == 1


@pytest.mark.parametrize(
    ("decision", "found", "outcome"),
    [("reject", {"omelette": ["food.likes[2]"]}, "known"), ("reject", {}, "rejected"), ("proceed", {}, "known")],
)
async def test_what_the_editor_has_nothing_to_do_for_is_known_or_rejected(
    decision: str, found: dict[str, list[str]], outcome: str
) -> None:
    """Known when something was found that it could be; no plan is made."""
    script = Script(proposing(decision=decision), found=found)

    context, (ruling,) = await ruled(documents(food__likes=SEED), script, fact(ODD))

    assert (ruling.outcome, ruling.plan) == (outcome, None)
    assert context.draft.applied == ()


async def test_what_the_editor_cannot_decide_is_kept_both_and_marked() -> None:
    """The new item, and what it names as the contrary."""
    script = Script(
        proposing(("insert", "food.likes", "An omelette"), ("delete", "food.dislikes[0]", ""), decision="conflict"),
        found={"omelette": ["food.dislikes[0]"]},
    )

    context, (ruling,) = await ruled(documents(food__dislikes=["Eggs in any form"]), script, fact(ODD))

    assert ruling.outcome == "conflict"
    (kept,) = context.draft.body(FOOD)["food"]["dislikes"]  # type: ignore[index,call-overload]
    (new,) = context.draft.body(FOOD)["food"]["likes"]  # type: ignore[index,call-overload]
    assert (kept[CONFLICT], new[CONFLICT]) == ("f1", "f1")


async def test_the_editor_is_told_once_what_was_wrong() -> None:
    """A slip of the pen costs one more question, and not the fact."""
    script = Script(
        proposing(("insert", "food.likes", "Loves omelettes")),
        proposing(("insert", "food.likes", "An omelette")),
    )

    context, (ruling,) = await ruled(documents(), script, fact(ODD))

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.likes") == ["An omelette"]
    assert "refused before\nevidence: 'love' is not in the fact" in script.questions["editor"][1]


async def test_a_fact_is_rejected_when_the_second_proposal_is_no_better() -> None:
    """With the reason, which is counted; the document is as it was."""
    wrong = proposing(("insert", "food.likes", "Caviar"))
    script = Script(wrong, wrong, wrong)
    bodies = documents(food__likes=SEED)

    context, (ruling,) = await ruled(bodies, script, fact(ODD))

    assert (ruling.outcome, ruling.plan) == ("rejected", None)
    assert ruling.reasoning == "evidence: 'caviar' is not in the fact"
    assert context.refusals == ["evidence"]
    assert len(script.questions["editor"]) == 2
    assert context.draft.documents[FOOD].body is bodies[FOOD]


async def test_a_conflict_of_rank_is_not_asked_about_again() -> None:
    """No other proposal makes a guess a statement."""
    script = Script(proposing(("delete", "food.likes[1]", "")), found={"sushi": ["food.likes[1]"]})

    context, (ruling,) = await ruled(
        documents(food__likes=SEED), script, fact("User is never seen with sushi", inferred=True)
    )

    assert (ruling.outcome, context.refusals) == ("conflict", ["rank"])
    assert shown(context, FOOD, "food.likes") == list(SEED)


@pytest.mark.parametrize("error", [LlmRefused("no"), LlmCutOff("cut"), LlmMalformed("odd")])
@pytest.mark.parametrize("role", ["finder", "editor"])
async def test_a_fact_waits_when_a_model_gives_no_usable_answer(error: LlmError, role: str) -> None:
    """Those around it, which the rules read, do not."""

    def respond(asked: str, _user: str) -> Mapping[str, Any] | LlmError:
        return error if asked == role else {"reasoning": "r", "locations": [], "suggested_insert_path": []}

    facts = [fact("User likes green tea", "f1"), fact(ODD, "f2"), fact("User likes bagels", "f3")]

    context, rulings = await ruled(documents(), respond, *facts)

    assert [ruling.outcome for ruling in rulings] == ["applied", "needs_model", "applied"]
    assert rulings[1].reasoning == f"no rule reads it, and no model answered ({type(error).__name__})"
    assert shown(context, FOOD, "food.likes") == ["Green tea", "Bagels"]


@pytest.mark.parametrize("role", ["finder", "editor"])
async def test_a_model_that_is_away_for_now_is_for_the_host_to_wait_for(role: str) -> None:
    """What was said later does not go first."""

    def respond(asked: str, _user: str) -> Mapping[str, Any] | LlmError:
        found = {"reasoning": "r", "locations": [], "suggested_insert_path": []}
        return LlmUnavailable("away") if asked == role else found

    with pytest.raises(LlmUnavailable):
        await ruled(documents(), respond, fact(ODD, "f1"), fact("User likes bagels", "f2"))


@pytest.mark.parametrize("decision", ["proceed", "reject"])
async def test_a_diet_that_the_editor_forgets_to_add_is_added(decision: str) -> None:
    """It was told of; what it leaves out is all that the model was asked for."""
    gone = [("delete", "food.likes[0]", "")] if decision == "proceed" else []
    script = Script(proposing(*gone, decision=decision), found={"vegan": ["food.likes[0]"]})

    context, (ruling,) = await ruled(
        documents(food__likes=["Steak", "Grandma's secret"]), script, fact("User is vegan")
    )

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.diets") == ["Vegan"]
    assert shown(context, FOOD, "food.likes") == [*([] if gone else ["Steak"]), "Grandma's secret"]


async def test_a_diet_that_the_editor_adds_is_added_once() -> None:
    """In its own words."""
    script = Script(proposing(("insert", "food.diets", "Is vegan")), found={"vegan": ["food.likes[0]"]})

    context, _ = await ruled(documents(food__likes=["Grandma's secret"]), script, fact("User is vegan"))

    assert shown(context, FOOD, "food.diets") == ["Is vegan"]


async def test_without_a_model_a_fact_waits() -> None:
    """It says for what."""
    context = context_over(documents())

    (ruling,) = await edit(batch(fact(ODD)), context)

    assert (ruling.outcome, ruling.reasoning) == ("needs_model", "no rule reads it")


async def test_the_guard_of_the_documents_has_the_last_word() -> None:
    """A plan that it refuses is a rejected fact, with the guard's word."""
    context = context_over(documents(food__likes=SEED))
    context.draft._limits = Limits(max_items=3)

    (ruling,) = await edit(batch(fact("User likes green tea")), context)

    assert (ruling.outcome, ruling.plan) == ("rejected", None)
    assert ruling.reasoning.startswith("size: ")
    assert shown(context, FOOD, "food.likes") == list(SEED)


async def test_a_fact_that_was_applied_already_is_applied_once() -> None:
    """Its plan has its id, whoever rules on it again."""
    bodies = documents()

    _, (first,) = await ruled(bodies, Script(), fact("User likes green tea"))
    _, (second,) = await ruled(bodies, Script(), fact("User likes green tea"))

    assert first.plan is not None
    assert second.plan is not None
    assert first.plan.plan_id == second.plan.plan_id == "f1"


async def test_every_fact_gets_one_ruling_in_its_order() -> None:
    """Also those that nothing comes of."""
    facts = [fact(text, f"f{number}") for number, text in enumerate(("...", ODD, "User likes tea"))]

    rulings = await edit(batch(*facts), context_over(documents()))

    assert [ruling.fact_id for ruling in rulings] == ["f0", "f1", "f2"]


async def test_a_health_fact_that_a_model_infers_changes_no_other() -> None:
    """Allergies are not cured by a conclusion."""
    script = Script(proposing(("delete", "health.allergies[0]", "")), found={"nuts": ["health.allergies[0]"]})
    bodies = documents(health__allergies=[item("Nuts", source="inferred:t0")])

    context, (ruling,) = await ruled(
        bodies, script, fact("User never had trouble with nuts", tags=("health",), inferred=True)
    )

    assert (ruling.outcome, context.refusals) == ("conflict", ["guarded"])
    assert shown(context, HEALTH, "health.allergies") == ["Nuts"]
