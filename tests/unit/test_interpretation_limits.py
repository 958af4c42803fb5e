"""The interpreter under odd, long and hostile text, and the assignment it rests on."""

import itertools
import random

import pytest
from supervisor.interpretation.values.fields import shape_of
from supervisor.interpretation.values.matching import match_cheapest
from supervisor.interpretation.words import evened, stem

from supervisor.understanding import Missing, Understood
from tests.understanding_cases import BUDGET, EVERYBODY, RIDE, budget_turn, parameters_of, understand


@pytest.mark.parametrize("seed", range(20))
def test_the_assignment_is_the_cheapest_there_is(seed: int) -> None:
    """Compared with all of them."""
    dice = random.Random(seed)
    rows, columns = dice.randint(1, 4), dice.randint(4, 6)
    costs = [[dice.choice([0.0, 0.5, 1.0, 4.0, 1000.0]) for _ in range(columns)] for _ in range(rows)]
    taken = match_cheapest(costs)
    assert len(set(taken)) == rows
    best = min(sum(costs[r][c] for r, c in enumerate(p)) for p in itertools.permutations(range(columns), rows))
    assert sum(costs[row][column] for row, column in enumerate(taken)) == pytest.approx(best)


def test_no_rows_need_no_columns() -> None:
    """A sentence without amounts."""
    assert match_cheapest([]) == []


def test_a_history_of_any_length_is_one_list() -> None:
    """With brackets or without, its end may still belong to something else."""
    values = [str(1000 + place) for place in range(300)]
    expected = [1000 + place for place in range(300)]
    for text in (
        f"limit 50k, spent 42k, history [{', '.join(values)}]",
        f"history {' '.join(values)}, 42k spent, limit 50k",
    ):
        assert parameters_of(understand(text)) == {"budget_limit": 50000, "spent": 42000, "history": expected}


def test_any_text_comes_to_something() -> None:
    """Random pieces of sentences, with and without a conversation, raise nothing and give only fields of the task."""
    dice = random.Random(3)
    pieces = ["limit", "spent", "history", "50k", "42,000", "1.500", "[", "]", "no", "same", "again", ",", ".", "and"]
    pieces += [
        "ride",
        "hotel",
        "greet",
        "12 km",
        "20%",
        "'",
        '"',
        "not",
        "sorry",
        "\n",
        "\u00a0",
        "\u202e",
        "2026-01-01",
    ]
    previous = budget_turn(budget_limit=1, spent=2, history=[3])
    names = {field.name for offer in EVERYBODY.tasks() for field in shape_of(offer.task).fields}
    for _ in range(400):
        text = dice.choice([" ", ""]).join(dice.choices(pieces, k=dice.randint(0, 14)))
        found = understand(text, dice.choice([(), previous]))
        if isinstance(found, Understood):
            assert set(found.task.parameters) <= names
            assert all(text[s.start : s.end] == s.text for s in found.spans)
        elif isinstance(found, Missing):
            assert found.missing
            assert "?" in found.question


@pytest.mark.parametrize("piece", ["limit 5 ", "1 ", "[1] ", "'a 1' ", "same limit ", "not 5 ", "5 no ", "2026-01-01 "])
def test_twenty_thousand_characters_of_one_thing_are_answered(piece: str) -> None:
    """The longest request there may be, with the costliest pieces; nothing grows with the square of them."""
    assert understand((piece * 20_000)[:20_000]) is not None


@pytest.mark.parametrize("space", [" ", "\t", "\u00a0", "\n "])
def test_white_space_without_end_says_no_more_than_a_little_of_it(space: str) -> None:
    """It took a minute of the one interpreter: patterns try each place in it, some again from each."""
    much = space * (9_000 // len(space))
    text = f"limit 50k,{much}spent{much}42k"
    assert parameters_of(understand(text)) == parameters_of(understand("limit 50k, spent 42k"))


def test_only_long_white_space_is_made_even() -> None:
    """Lines stay apart, and what is short stays as it was."""
    assert evened("a  b\n\n  c") == "a  b\n\n  c"
    assert evened("a" + " " * 9 + "b" + " " * 9 + "\n- c" + "\n" * 30 + "d") == "a b\n- c\n\nd"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("spent", "spending", "spends", "spend"), "spend"),
        (("analyze", "analyse", "analysis", "analyzing"), "analyz"),
        (("travellers", "traveller's", "traveller"), "traveller"),
        (("histories", "history"), "history"),
        (("note", "notes"), "note"),
        (("not",), "not"),
    ],
)
def test_inflections_share_a_stem(words: tuple[str, ...], expected: str) -> None:
    """And no word turns into one that means something else."""
    assert {stem(word) for word in words} == {expected}


def test_a_schema_is_read_for_kind_unit_choices_and_need() -> None:
    """As `Parameters.schema_for_cards` writes it."""
    shape = {field.name: field for field in shape_of(RIDE.tasks[0]).fields}
    assert {name: field.kind for name, field in shape.items()} == {
        "distance": "amount", "fare": "amount", "comfort": "choice", "day": "date", "quiet": "boolean", "note": "text",
    }  # fmt: skip
    assert [name for name, field in shape.items() if field.is_required] == ["distance"]
    assert (shape["distance"].unit, shape["comfort"].choices) == ("km", ("economy", "first class"))
    assert [field.is_list for field in shape_of(BUDGET.tasks[0]).fields] == [False, False, True]


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {"x": True}},
        {"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"$ref": "#/$defs/X"}}},
        {"properties": {"x": {"type": "object"}}, "required": ["x"]},
        {"properties": {"x": {"type": ["string", "null"]}}},
        {"properties": {"x": {"type": "array"}}},
    ],
)
def test_a_foreign_schema_breaks_nothing(schema: dict[str, object]) -> None:
    """Cards may be written by programs in any language."""
    card = BUDGET.tasks[0].model_copy(update={"parameters": schema})
    catalogue = EVERYBODY.with_card(BUDGET.model_copy(update={"tasks": (card,), "version": 2}))
    assert understand("Check my budget: x 5, limit 7", catalogue=catalogue) is not None
