"""Views of memories as people see them."""

from typing import Any

import pytest

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.pictures import (
    memory_audit,
    memory_conflicts,
    memory_difference,
    memory_documents,
    memory_explanation,
    memory_forgotten,
    memory_matches,
    memory_plan,
    memory_plans,
    memory_turn,
)
from tasklore.commands.render.memory_lines import shorten_ids

FOOD = "resource_user_food_prefs"


def _change(mark: str, where: str, what: str) -> dict[str, str]:
    return {"mark": mark, "where": where, "what": what}


def _plan(plan_id: str, *changes: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "plan_id": plan_id,
        "state": "stands",
        "at": "2026-03-01T12:00:00Z",
        "by": "rules",
        "reasoning": "",
        "fact": "",
        "evidence": "",
        "turn_id": None,
        "finder": None,
        "editor": None,
        "undoes": None,
        "lines": {FOOD: list(changes)},
    } | more


def _fact(state: str) -> dict[str, Any]:
    return {
        "text": "f-1",
        "state": state,
        "reason": "because",
        "plan_id": "p-1" if state == "done" else None,
    }


def _turn(state: str | None, *facts: str, settled: bool = True) -> dict[str, Any]:
    return {
        "turn_id": "t-1",
        "state": state,
        "settled": settled,
        "reason": "",
        "facts": [_fact(one) for one in facts],
        "plans": [_plan("p-1", _change("+", "food.likes[0]", "Eggs"))],
    }


def test_documents_are_drawn_entry_by_entry() -> None:
    """With the place that `explain` takes, and its notes."""
    entry = {
        "path": "food.likes[0]",
        "text": "Lox",
        "notes": ["until 2999", "50% sure"],
    }
    empty = {"resource": "b", "revision": 1, "entries": []}
    food = {"resource": FOOD, "revision": 2, "entries": [entry]}
    drawn = memory_documents.draw({"user": "ana", "documents": [food, empty]})
    assert drawn.splitlines() == [
        f"{FOOD}  revision 2",
        "  food.likes[0]: Lox  (until 2999, 50% sure)",
        "b  revision 1, holds nothing",
    ]
    nothing = {**empty, "revision": 0}
    drawn = memory_documents.draw({"user": "ana", "documents": [nothing]})
    assert drawn.startswith("Nothing is stored about ana yet")


def test_a_difference_is_a_line_for_each_entry() -> None:
    """What steers a terminal is left out."""
    line = _change("+", "food.likes[1]", "two\nlines \x1b[2J")
    view = {"resource": FOOD, "since": 1, "until": 2, "lines": [line]}
    assert memory_difference.draw(view).splitlines() == [
        f"{FOOD}, revision 1 to 2",
        "  + food.likes[1]: two lines [2J",
    ]
    assert memory_difference.draw({**view, "lines": []}).endswith("nothing changed")


def test_plans_are_listed_with_ends_of_ids_and_their_first_changes() -> None:
    """As `undo` takes them."""
    many = [_change("+", f"food.likes[{n}]", "x" * 200) for n in range(9)]
    plans = [_plan("p-wide-3", *many), _plan("p-first-1", state="taken back")]
    lines = memory_plans.draw({"plans": plans}).splitlines()
    assert lines[0].startswith("p-wide-3  ")
    assert lines[4] == "  and 6 more"
    assert max(map(len, lines)) < 160
    assert lines[-1].startswith("-first-1  ")
    assert lines[-1].endswith("taken back")
    assert memory_plans.draw({"plans": []}) == "Nothing was ever edited."
    done = _plan("p", _change("+", "a", "b"), undoes="p-undo")
    assert memory_plan.draw(done).splitlines() == [
        "applied again what p-undo took back",
        "  + a: b",
    ]


def test_an_explanation_has_each_plan_with_its_grounds() -> None:
    """The words, the fact, who decided, and which model at which temperature."""
    finder = {"model": "m", "temperature": 0.1, "found": True}
    plan = _plan("p-first-1", evidence="I like eggs", turn_id="t1", finder=finder)
    view = {"resource": FOOD, "path": "food.likes[0]", "plans": [plan]}
    drawn = memory_explanation.draw(view)
    assert drawn.startswith(
        f"{FOOD} food.likes[0]\n\n  p-first-1  2026-03-01 12:00 UTC"
    )
    assert "said        I like eggs" in drawn
    assert 'finder      m at 0.1: {"found": true}' in drawn
    assert "came with the document" in memory_explanation.draw({**view, "plans": []})


def test_matches_have_their_day_and_speaker() -> None:
    """Or say that nothing answers the question."""
    turn = {
        "source": "turn",
        "text": "We moved",
        "reference": "t0",
        "at": "2026-03-01",
        "speaker": "person",
        "subject": None,
        "until": None,
    }
    item = {**turn, "source": "item", "reference": f"{FOOD}:food.likes.eggs"}
    view = {"is_nothing_said": True, "is_complete": False, "memories": [turn, item]}
    assert memory_matches.draw(view).splitlines() == [
        "Nothing answers that; this comes nearest.",
        "2026-03-01 person: We moved",
        "2026-03-01 stored in food.likes: We moved",
        "Turns could not be looked up; only items were searched.",
    ]
    assert "Nothing was said" in memory_matches.draw({**view, "memories": []})


@pytest.mark.parametrize(
    ("turn", "said", "code"),
    [
        (_turn(None, settled=False), "no worker has taken it yet", FAILED),
        (_turn("needs_model"), "TASKLORE_LLM_API_KEY", OK),
        (_turn("done"), "No fact was recognised", OK),
        (_turn("done", "waiting", settled=False), "waiting     f-1", FAILED),
        (_turn("done", "needs_model"), "needs model f-1\n  because", OK),
        (_turn("done", "failed"), "failed      f-1", FAILED),
        (_turn("done", "done"), "done        f-1\n  + food.likes[0]: Eggs", OK),
    ],
)
def test_the_outcome_of_a_turn_is_drawn(
    turn: dict[str, Any], said: str, code: int
) -> None:
    """It ends with 1 where it failed, or was not worked on within the wait."""
    assert said in memory_turn.draw(turn)
    assert memory_turn.code_of(turn) == code


def test_conflicts_and_an_audit_name_the_entries() -> None:
    """What is empty says so."""
    eggs = {"resource": FOOD, "path": "food.likes[0]", "text": "Eggs"}
    conflict = {"why": "opposite", "entries": [eggs, eggs], "against": ["No eggs"]}
    drawn = memory_conflicts.draw({"conflicts": [conflict]})
    assert drawn.splitlines()[:4] == [
        "these contradict each other",
        f"  {FOOD} food.likes[0]: Eggs",
        f"  {FOOD} food.likes[0]: Eggs",
        "  against: No eggs",
    ]
    assert "Nothing contradicts" in memory_conflicts.draw({"conflicts": []})
    audit = {
        "user": "ana",
        "entries": 3,
        "documents": 2,
        "rates": {"never_read": None, "duplicate": 0.25},
        "duplicates": [[eggs]],
        "conflicts": [conflict],
        "stale": [],
        "orphans": [eggs],
        "unreadable": [],
        "changed_protected": [{"plan_id": "p" * 20, "fact": "f", "words": "w"}],
        "alike": [[eggs, eggs]],
    }
    drawn = memory_audit.draw(audit)
    assert "3 entries in 2 documents" in drawn
    assert "25.0%  duplicate" in drawn
    assert "not known  never read" in drawn
    assert (
        f"perhaps the same (proposed by embeddings; nothing is merged)\n  {FOOD}"
        in drawn
    )
    assert f"  {'p' * 12} f (w)" in drawn
    without = memory_audit.draw({**audit, "alike": None})
    assert "perhaps" not in without
    assert "Nothing is stored" in memory_audit.draw({**audit, "entries": 0})


def test_forgetting_shows_its_proof_and_ends_with_1_when_something_is_left() -> None:
    """Counts, remains beside others, and files that could not be rewritten."""
    view: dict[str, Any] = {
        "user": "ana",
        "removed": {"turns": 2, "facts": 0},
        "left": {},
        "beside": {"TASKS": 1234, "append-only file": 1},
    }
    assert memory_forgotten.draw(view).splitlines() == [
        "Forgot ana:",
        "          2  turns",
        "Checked everywhere: nothing is left.",
        (
            "The files of stream TASKS may still contain data of deleted messages (of any user), because "
            "1,234 other undelivered messages are stored beside them."
        ),
        "The append-only file could not be rewritten; ask the administrator of the server to do it.",
    ]
    assert memory_forgotten.code_of(view) == OK
    left = {**view, "left": {"tasks": 1}, "removed": {}}
    assert "Nothing was stored about ana." in memory_forgotten.draw(left)
    assert "1  tasks" in memory_forgotten.draw(left)
    assert memory_forgotten.code_of(left) == FAILED
    part = {**view, "now": True, "beside": {}}
    assert memory_forgotten.draw(part).splitlines() == [
        "Forgot what was hidden about ana:",
        "          2  turns",
        "Looked again: nothing hidden is left. What was said since is there.",
    ]
    nothing = {**part, "removed": {}}
    assert memory_forgotten.draw(nothing).startswith("Nothing was hidden about ana.")


def test_ids_are_shortened_to_distinct_ends() -> None:
    assert shorten_ids(["01a2-aaaabbbb-0", "x"]) == {
        "01a2-aaaabbbb-0": "aabbbb-0",
        "x": "x",
    }
    assert set(shorten_ids(["1-23456789", "2-23456789"]).values()) == {
        "1-23456789",
        "2-23456789",
    }
