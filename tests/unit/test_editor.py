"""The editor: what it is asked, and what its paths mean."""

from typing import Any

import pytest
from pydantic import ValidationError

from memory.documents.paths import parse
from tests.memory_bench import FOOD, ROUTINE, context_over, documents, fact, item
from workers.agents.memory_worker.editor import Proposed, propose, question, target_of
from workers.agents.memory_worker.finding import Finding, Place

EGGS = Place(FOOD, parse("food.likes[2]"), item("Scrambled eggs with lox"), "eggs")
BREAKFAST = Place(ROUTINE, parse("routine.daily[0]"), item("Boiled egg at 7"), "eggs")
LIKES = (FOOD, parse("food.likes"))


def test_it_is_shown_the_fact_and_what_was_found() -> None:
    """Each place with its present text, and where a new item could go."""
    asked = question(fact("User likes omelettes").fact, Finding((EGGS,), (LIKES,)))

    assert asked == (
        'fact: "User likes omelettes"\nfound\nfood.likes[2]: Scrambled eggs with lox\ninsert at\nfood.likes'
    )


def test_it_is_told_when_nothing_was_found() -> None:
    """So that it does not look for it."""
    assert question(fact("User likes tea").fact, Finding()) == 'fact: "User likes tea"\nnothing found'


def test_paths_of_several_documents_name_their_document() -> None:
    """Two may have a place of the same name."""
    asked = question(fact("I'm vegan").fact, Finding((EGGS, BREAKFAST)))

    assert f"{FOOD}:food.likes[2]: Scrambled eggs with lox\n{ROUTINE}:routine.daily[0]: Boiled egg at 7" in asked


@pytest.mark.parametrize(
    ("path", "resource_id", "read"),
    [
        (f"{ROUTINE}:routine.daily[0]", ROUTINE, "routine.daily[0]"),
        (f"{ROUTINE}.json:routine.daily[0]", ROUTINE, "routine.daily[0]"),
        (" routine.daily[0] ", ROUTINE, "routine.daily[0]"),
        ("$.food.likes[2]", FOOD, "food.likes[2]"),
        ("food.likes", FOOD, "food.likes"),
        ("food.dislikes", None, "food.dislikes"),
        ("resource_of_somebody_else:food.likes[2]", None, None),
        ("food.likes[*]", None, None),
        ("", None, None),
    ],
)
def test_a_path_is_of_the_document_that_was_shown_with_it(path: str, resource_id: str | None, read: str | None) -> None:
    """Without a document's id it is looked up among what was shown; nobody else's document can be named."""
    target = target_of(path, Finding((EGGS, BREAKFAST), (LIKES,)))

    assert (target.resource_id, target.path) == (resource_id, None if read is None else parse(read))


def test_with_one_document_no_path_is_ambiguous() -> None:
    """Whether it may be edited is for the arbiter."""
    assert target_of("food.dislikes", Finding((EGGS,))).resource_id == FOOD


async def test_who_answered_is_kept_with_model_and_temperature() -> None:
    """Those in force, whatever the files say."""
    answer = {"reasoning": "r", "decision": "reject", "edits": [], "confidence": 1, "new_value": {"a": 1}}
    context = context_over(documents(), lambda _role, _user: answer)

    asked = await propose(context, fact("User likes tea").fact, Finding((EGGS,)))

    assert (asked.value.decision, asked.by) == ("reject", {"model": "gpt-6.1-terra", "temperature": None})
    assert context.model.asked[0][0] == "editor"


def test_nothing_of_an_item_but_its_text_is_taken_from_an_answer() -> None:
    """No source, no date, no value: those are made here."""
    said: Any = {
        "reasoning": "r",
        "decision": "proceed",
        "edits": [
            {"operation": "insert", "path": "food.likes", "display": "Omelettes", "new_value": {"source": "told"}},
            {"operation": "delete", "path": "food.likes[2]", "display": None, "file": "../x"},
        ],
    }

    proposed = Proposed.model_validate(said)

    assert [edit.model_dump() for edit in proposed.edits] == [
        {"operation": "insert", "path": "food.likes", "display": "Omelettes"},
        {"operation": "delete", "path": "food.likes[2]", "display": ""},
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"decision": "proceed", "edits": []},
        {"reasoning": "r", "decision": "maybe", "edits": []},
        {"reasoning": "r", "decision": "proceed", "edits": [{"operation": "drop", "path": "food"}]},
        {"reasoning": "r", "decision": "proceed", "edits": [{"operation": "delete", "path": ["food"]}]},
        {"reasoning": "r", "decision": "proceed", "edits": {"operation": "delete"}},
        {"reasoning": "r", "decision": "proceed", "edits": [{"operation": "insert", "path": "a", "display": {"x": 1}}]},
    ],
)
def test_an_answer_of_another_shape_is_no_answer(wrong: dict[str, Any]) -> None:
    """The boundary asks again, and then gives up."""
    with pytest.raises(ValidationError):
        Proposed.model_validate(wrong)


def test_what_the_history_keeps_of_an_answer_is_bounded() -> None:
    """A model can be talked into answering at any length."""
    huge = Proposed.model_validate(
        {
            "reasoning": "r" * 100_000,
            "decision": "proceed",
            "edits": [{"operation": "insert", "path": "p" * 9_000, "display": "d" * 9_000}] * 1_000,
        }
    )

    assert len(str(huge.dump())) < 40_000
