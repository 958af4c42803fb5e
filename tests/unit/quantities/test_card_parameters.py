"""A card carries the exact types: its class keys and places every value as the agent's own class does."""

import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount, Duration, Moment, Percent
from tasklore.memory.long_term import result_files
from tasklore.memory.long_term.card_parameters import form_of, parameters_of
from tests.acceptance.agents.exact import Parcel, Trip

PARCEL = {
    "price": "50k",
    "discount": "twenty per cent",
    "way": "5 ft 2 in",
    "within": "3 months",
    "since": "1 May 2026",
}
TRIP = {
    "price": 50_000,
    "discount": 20,
    "way": 12,
    "within": 90,
    "since": "2026-05-01T10:00+02:00",
}


def by_card(cls: type[Parameters]) -> type[Parameters]:
    """Return what the card of a task with the parameters *cls* gives, as it travels."""
    return parameters_of("task", json.loads(json.dumps(cls.schema_for_cards())))


@pytest.mark.parametrize(
    "raw",
    [
        PARCEL,
        PARCEL
        | {
            "within": "P1Y35D",
            "fixed": "P1Y35D",
            "since": "2026-05-01T10:00",
            "discount": 7.5,
        },
        PARCEL
        | {
            "within": "PT36H",
            "since": "2026-05-01T10:00+02:00",
            "way": 4,
            "tax": "7 percent",
        },
        PARCEL
        | {
            "least": "EUR 5",
            "rebate": "5%",
            "weight": "2 lb",
            "pause": 90,
            "until": "2026-06-01",
        },
        PARCEL
        | {
            "prices": ["1k", "$2"],
            "shares": ["1%", None, 2],
            "ways": ["1 mile", "3 km"],
            "pauses": ["P1M"],
        },
        PARCEL
        | {
            "ways": [],
            "days": ["2026-06-02", "1 June 2026", "2026-06-01"],
            "shares": [None],
        },
    ],
)
def test_every_exact_type_is_keyed_alike_also_after_a_file(raw: dict[str, Any]) -> None:
    """In every wording, alone, None and in lists; and as a file spells what the agent stored."""
    asked = Parcel.read(raw)
    form = form_of(Parcel.schema_for_cards())
    assert by_card(Parcel).read(raw).key("send") == asked.key("send")

    entry = result_files.entry_of(
        "send", form, json.loads(asked.model_dump_json()), None
    )
    _, carried = result_files.parse_key(entry.key, {"send": form})
    assert by_card(Parcel).read(carried).key("send") == asked.key("send")
    assert Parcel.read(carried).key("send") == asked.key("send")


@pytest.mark.parametrize(
    "raw",
    [
        TRIP,
        TRIP | {"warmth": "20 °C", "lease": "2 years"},
        TRIP | {"within": "1 month", "since": "2026-05-01"},
    ],
)
def test_every_tolerance_gives_the_place_that_the_agent_looks_at(
    raw: dict[str, Any],
) -> None:
    """The frame, the place in it, and how far its neighbours may be."""
    there = Parameters.neighbourhood(by_card(Trip).read(raw), "travel")
    here = Parameters.neighbourhood(Trip.read(raw), "travel")
    assert there is not None
    assert here is not None
    assert (there.frame, there.place, there.tolerances) == (
        here.frame,
        here.place,
        here.tolerances,
    )


class NumberOrText(Parameters):
    """What "20" is there, its mark tells: a text."""

    size: float | str
    sizes: list[Decimal | str] | None = None


@pytest.mark.parametrize(
    "size", [5, 5.0, "5", "five", "50k", "large", 0.1, 10**20, -0.0]
)
def test_a_text_beside_a_number_is_keyed_as_it_was_sent(size: float | str) -> None:
    """A Decimal would take "five" for 5, and its card looks alike but for the mark."""
    raw = {"size": size, "sizes": [size, 1]}
    assert by_card(NumberOrText).read(raw).key("make") == NumberOrText.read(raw).key(
        "make"
    )


class NumbersOnly(Parameters):
    """Numbers near texts, none of which may be one."""

    size: Decimal
    sizes: dict[str, float] | None = None
    name: str | None = None


def test_only_what_may_be_a_text_is_marked_so() -> None:
    """A key of a mapping is no value of it."""
    marked = {cls: [n for n, field in cls.schema_for_cards()["properties"].items() if "keeps_text" in field]
              for cls in (NumberOrText, NumbersOnly)}  # fmt: skip
    assert marked == {NumberOrText: ["size", "sizes"], NumbersOnly: []}


class NumberOrPercent(Parameters):
    """What "20" is there, a card cannot tell."""

    share: float | Percent


class AmountOrPercent(Parameters):
    """As above."""

    share: Amount | Percent


class LengthOrDay(Parameters):
    """Two texts of different formats."""

    until: Duration | Moment


@pytest.mark.parametrize("cls", [NumberOrPercent, AmountOrPercent, LengthOrDay])
def test_what_may_be_one_of_several_types_is_left_to_the_code(
    cls: type[Parameters],
) -> None:
    """A wrong key would answer another question."""
    with pytest.raises(InvalidInput, match=r"examples\.migrate_results"):
        by_card(cls)


class Late(Parameters):
    """A default that is made anew each time."""

    price: Decimal
    until: datetime | None = Field(default_factory=lambda: None)


def test_a_default_that_no_card_tells_has_to_be_in_the_file() -> None:
    """It is not taken for None."""
    assert by_card(Late).read({"price": 1, "until": None}).key("buy") == Late.read(
        {"price": 1}
    ).key("buy")
    with pytest.raises(InvalidInput, match="until is missing"):
        by_card(Late).read({"price": 1})


def _of_weight(field: dict[str, Any]) -> None:
    field["unit"] = "kg"


def _of_two_names(field: dict[str, Any]) -> None:
    field["aliases"] = ["price"]


@pytest.mark.parametrize("spoil", [_of_weight, _of_two_names])
def test_a_card_that_contradicts_itself_is_refused(
    spoil: Callable[[dict[str, Any]], None],
) -> None:
    """Other programs write cards too: a percentage in kilograms, one name for two fields."""
    schema = Parcel.schema_for_cards()
    spoil(schema["properties"]["discount"])
    with pytest.raises(InvalidInput, match="contradicts itself"):
        parameters_of("send", schema)
