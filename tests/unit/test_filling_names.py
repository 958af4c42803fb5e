"""Numbers that name rather than count, marks out of so many, and texts that are known by their looks."""

from typing import Any

import pytest
from supervisor.interpretation.values.examples import patterned
from supervisor.interpretation.values.fields import shape_of
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import scene_of

from contracts.parameters import Field, Parameters
from quantities.amounts import Amount
from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, Missing
from tests.understanding_cases import card_for, parameters_of, understand


class Verdict(Parameters):
    """What somebody thinks of a film."""

    mark: int = Field(ge=0, le=20, cues=("{} points", "{} out of", "{} of"))
    best: int | None = Field(None, ge=1, cues=("out of {}", "of {}"))


class Seats(Parameters):
    """How many seats."""

    seats: int = Field(ge=1, le=500, cues=("seats", "seats for {}", "persons"))


class Stay(Parameters):
    """Nights, at most ten."""

    grade: int = Field(ge=1, le=10, cues=("grade",))


class Refund(Parameters):
    """Which invoice, and how much."""

    invoice: int = Field(cues=("invoice {}",))
    amount: Amount = Field(cues=("amount",))


class Tracking(Parameters):
    """A parcel known by its code."""

    parcel_code: str = Field(examples=["PX-4410", "PX-0032"])
    copies: int | None = None


class Flight(Parameters):
    """A flight, whose letters are those of any company."""

    flight: str = Field(examples=["KL 1023", "AF990"])
    seat_code: str | None = Field(None, examples=["A12-X", "B7-Y"])
    bags: int = Field(cues=("bags",))


FLIGHT = card_for("FlightAgent", "check_in", Flight, "Check in.", ("check", "flight"))
HOUSE = Catalogue([
    card_for("VerdictAgent", "judge_film", Verdict, "Judge a film.", ("judge", "film")),
    card_for("SeatAgent", "take_seats", Seats, "Take seats.", ("take", "seats")),
    card_for("StayAgent", "grade_hotel", Stay, "Grade a hotel.", ("hotel",)),
    card_for("RefundAgent", "refund_invoice", Refund, "Refund an invoice.", ("refund",)),
    card_for("TrackAgent", "track_parcel", Tracking, "Track a parcel.", ("track", "parcel")),
    FLIGHT,
])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("judge the film 7/10", {"mark": 7, "best": 10}),
        ("judge this film: 7 / 10 points", {"mark": 7, "best": 10}),
        ("judge the film seven out of ten", {"mark": 7, "best": 10}),
        ("judge volume 2 of the film, seven points", {"mark": 7}),
        ("judge chapter 3 of this film 8 out of 10", {"mark": 8, "best": 10}),
        ("judge this chapter of the film 8 points", {"mark": 8}),
        ("judge the film The Seven Hills of Wisdom zero points", {"mark": 0}),
        ("judge the film The Seven Hills of Wisdom zero", {"mark": 0}),
        ("judge the film The 39 Steps 4 of 10", {"mark": 4, "best": 10}),
        ("judge the film 1984 five points", {"mark": 5}),
        ("judge the film 1984 4/10", {"mark": 4, "best": 10}),
        ("give 5 out of 6 points to the film The Sign of Four", {"mark": 5, "best": 6}),
        ("grade the hotel: grade 4/10", {"grade": 4}),
        ("take three seats at Two Sisters", {"seats": 3}),
        ("take seats for ten persons in 47906", {"seats": 10}),
        ("take seats for 4 on route 66", {"seats": 4}),
        ("take seats for 4 on 4/5", {"seats": 4}),
        ("take seats for ten, 555 0142", {"seats": 10}),
        ("take 3 seats, my number is 555 0142", {"seats": 3}),
        ("take seats for two, my booking reference is 4471", {"seats": 2}),
        ("take seats for six persons from 7 to 9", {"seats": 6}),
        ("judge the film Six of Crows 5 points", {"mark": 5}),
        ("judge the film Alien four points of 6", {"mark": 4, "best": 6}),
        ("please judge this film 7", {"mark": 7}),
    ],
)
def test_a_number_in_a_name_is_no_value(text: str, expected: dict[str, Any]) -> None:
    """Parts of a work, titles, roads and postal codes give nothing; "7/10" is a mark and the best one there is."""
    assert parameters_of(understand(text, catalogue=HOUSE)) == expected


@pytest.mark.parametrize("text", ["judge the film 12/10", "judge the film 3/10 or 4/10", "judge the film on 3/10/2026"])
def test_what_is_no_single_mark_is_asked_about(text: str) -> None:
    """More than the best one, two of them, or a date."""
    found = understand(text, catalogue=HOUSE)
    assert isinstance(found, Missing | Ambiguous)
    assert "mark" in found.missing


@pytest.mark.parametrize(
    "text",
    [
        "refund invoice #4711, amount 30",
        "refund invoice no. 4711, amount 30",
        "refund invoice number: 4711 with an amount of 30",
        "refund invoice 4711, amount 30",
    ],
)
def test_the_number_of_a_thing_goes_to_the_field_called_so(text: str) -> None:
    """However it is written; the amount stays with its own field."""
    assert parameters_of(understand(text, catalogue=HOUSE)) == {"invoice": 4711, "amount": 30}


@pytest.mark.parametrize("text", ["refund invoice 4711 (e.g. 50)", "refund invoice 4711 (for example amount 50)"])
def test_an_example_is_no_value(text: str) -> None:
    """It is asked for."""
    found = understand(text, catalogue=HOUSE)
    assert isinstance(found, Missing)
    assert found.missing == ("amount",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("where is the parcel PX-5567?", {"parcel_code": "PX-5567"}),
        ("track px-5567 please", {"parcel_code": "px-5567"}),
        ("check in on KL 441, 3 bags", {"flight": "KL 441", "bags": 3}),
        ("check in with 2 bags for LH2020", {"flight": "LH2020", "bags": 2}),
        ("check in on KL98, seat C14-Z, 1 bag", {"flight": "KL98", "seat_code": "C14-Z", "bags": 1}),
    ],
)
def test_a_text_is_known_by_the_looks_of_its_examples(text: str, expected: dict[str, Any]) -> None:
    """Its digits are no amount of another field."""
    assert parameters_of(understand(text, catalogue=HOUSE)) == expected


def test_two_texts_that_look_alike_are_asked_about() -> None:
    """Neither is taken."""
    found = understand("track PX-5567 or PX-5568", catalogue=HOUSE)
    assert isinstance(found, Ambiguous)
    assert found.question == "Is parcel code PX-5567 or PX-5568?"


@pytest.mark.parametrize(
    ("text", "looks"), [("my sister leaves at 1200", []), ("my sister leaves with LH 1200", ["LH 1200"])]
)
def test_words_before_a_number_do_not_look_like_a_code(text: str, looks: list[str]) -> None:
    """The "at 1200" of a time is no flight."""
    found = patterned(scene_of(text), shape_of(FLIGHT.tasks[0]).fields)
    assert [one.value for one in found if isinstance(one, Reading)] == looks
