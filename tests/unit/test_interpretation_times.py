"""Dates, times and durations that a sentence gives the fields of a task, and what is asked when it has two readings."""

from datetime import UTC, date, datetime, timedelta

import pytest
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.filling import Filled, fill
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import scene_of
from supervisor.interpretation.values.times import dated
from supervisor.interpretation.wishes.routing import Prepared, Router

from contracts.parameters import Field, Parameters
from quantities.amounts import Amount, Duration, Moment
from supervisor.catalogue import Catalogue
from tests.understanding_cases import card_for

#: A Wednesday.
NOW = datetime(2026, 11, 18, 16, 40, tzinfo=UTC)


class Stay(Parameters):
    """Every kind of field that time fills."""

    arrival: date = Field(cues=("arriving", "check in"))
    departure: date | None = Field(None, cues=("leaving", "check out"))
    length: Duration | None = None
    parking: timedelta | None = Field(None, cues=("parking",))
    wake_up: Moment | None = Field(None, cues=("wake me",))
    ordered: datetime | None = Field(None, cues=("ordered",))
    price: Amount | None = Field(None, cues=("price", "spent"))


def task() -> Prepared:
    """Return the task of staying, as a catalogue holds it."""
    found = Router(Catalogue([card_for("hotel", "stay", Stay)])).find("hotel", "stay")
    assert found is not None
    return found


def filled(text: str) -> Filled:
    """Return what *text* says about a stay."""
    return fill(scene_of(text), task())


def said(text: str, name: str = "arrival") -> list[object]:
    """Return the values that *text* gives field *name* when it is said on that Wednesday, or the question."""
    prepared, scene = task(), scene_of(text)
    shape = prepared.shape.field(name)
    assert shape is not None
    found = dated(scene, shape, set(), prepared.cues.find(scene.tokens), NOW)
    return [found.question] if isinstance(found, Doubt) else [one.value for one in found]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("on the 5th of May", "arrival", "2027-05-05"), ("tomorrow", "arrival", "2026-11-19"),
        ("in 3 months", "arrival", "2027-02-18"), ("arriving on sunday at 3 pm", "arrival", "2026-11-22"),
        ("in 2026-12-01", "arrival", "2026-12-01"), ("at 3pm", "arrival", None),
        ("wake me at 7 am", "wake_up", "2026-11-19T07:00:00"), ("wake me tomorrow", "wake_up", "2026-11-19"),
        ("wake me at 7 am UTC", "wake_up", "2026-11-19T07:00:00Z"),
        ("ordered 2026-11-01 10:30", "ordered", "2026-11-01T10:30:00"),
        ("ordered yesterday at 15:30", "ordered", "2026-11-17T15:30:00"),
        ("for two and a half hours", "length", "PT2H30M"), ("for 3 months", "length", "P3M"),
        ("done in 2 hours", "length", "PT2H"), ("3 days ago", "length", None),
        ("say 'see you tomorrow'", "arrival", None), ("say 'tomorrow'", "arrival", "2026-11-19"),
    ],
)  # fmt: skip
def test_words_become_absolute_values(text: str, name: str, value: str | None) -> None:
    """Values are told in ISO 8601, so that what is remembered is remembered of one day."""
    assert said(text, name) == ([] if value is None else [value])


def test_what_has_two_readings_is_asked_about_with_both() -> None:
    """A date in two orders, and a day whose side of now the words leave open."""
    assert said("arriving next sunday at 3 pm") == [
        "Is arrival 2026-11-22 or 2026-11-29? You wrote 'next sunday at 3 pm'."
    ]
    assert said("on 01/03/2027") == ["Is arrival 2027-03-01 or 2027-01-03? You wrote '01/03/2027'."]
    assert said("I spent 300, can I still arrive on friday") == [
        "Is arrival 2026-11-13 or 2026-11-20? You wrote 'friday'."
    ]
    assert said("on friday I spent 300") == ["2026-11-13"]
    assert said("on 5 May I spent 300") == ["2026-05-05"]
    assert filled("arriving 01/03/2027").values == {}


@pytest.mark.parametrize("length", ["3 months", "a year and a half", "2 years", "a month and 3 days", "P3M"])
def test_months_are_asked_about_where_only_fixed_lengths_fit(length: str) -> None:
    """A `timedelta` has no months: nobody decides unasked that three of them are 90 days; a `Duration` keeps them."""
    text = f"parking for {length}"
    assert said(text, "parking") == [
        f"What is parking in weeks or days ('90 days')? A month has no fixed length. You wrote {length!r}."
    ]
    assert filled(text).values.get("parking") is None
    assert said(text.replace("parking ", ""), "length") == [str(Duration(length))]
    assert said(f"parking for {length}, no, 90 days", "parking") == ["P90D"]


@pytest.mark.parametrize("length", ["12 weeks", "90 days", "a fortnight", "36 hours"])
def test_weeks_and_shorter_units_are_fixed_lengths(length: str) -> None:
    """They fill a `timedelta` at once."""
    assert said(f"parking for {length}", "parking") == [str(Duration(length))]


@pytest.mark.parametrize(
    "text",
    [
        "arriving 3 May 2027 and leaving 7 May 2027, price 300",
        "leaving on 7 May 2027, arriving on 3 May 2027, price 300",
        "price 300, from 3 to 7 May 2027",
        "3 May 2027 check in, 7 May 2027 check out, price 300",
    ],
)
def test_each_date_goes_to_the_field_that_announces_it(text: str) -> None:
    """Without cues they are taken in the order of the fields; their digits are never amounts."""
    found = filled(text)
    assert found.values == {"arrival": "2027-05-03", "departure": "2027-05-07", "price": 300}
    assert not found.loose


def test_every_value_points_to_its_characters() -> None:
    """Spans are those of the words of time, and a length that a field took is no amount left over."""
    text = "arriving 3 May 2027 for 3 weeks, parking 2 hours"
    found = filled(text)
    assert found.values == {"arrival": "2027-05-03", "length": "P21D", "parking": "PT2H"}
    assert {span.field: span.text for span in found.spans} == {
        "arrival": "3 May 2027", "length": "3 weeks", "parking": "2 hours",
    }  # fmt: skip
    assert found.is_certain
    assert not found.loose


def test_of_two_lengths_that_nothing_announces_one_is_asked_for() -> None:
    """Nobody guesses which is meant."""
    assert filled("for 2 hours or for 3 hours").doubts[0].question == "Is length 2 hours or 3 hours?"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("not tomorrow but on 3 May 2027", "2027-05-03"),
        ("not on 2 May 2027 but on 3 May 2027", "2027-05-03"),
        ("on 2 May 2027, sorry, 3 May 2027", "2027-05-03"),
        ("change the arrival from 2 May 2027 to 3 May 2027", "2027-05-03"),
    ],
)
def test_a_date_that_is_taken_back_does_not_count(text: str, value: str) -> None:
    """Dates are denied and corrected with the same words as amounts."""
    assert said(text) == [value]


def test_of_two_dates_with_an_or_between_one_is_asked_for() -> None:
    """Both are named."""
    assert said("arriving 2 May 2027 or on 3 May 2027") == [
        "Is arrival 2027-05-02 or 2027-05-03? You wrote '2 May 2027 or on 3 May 2027'."
    ]


def test_a_count_of_time_is_a_date_or_a_length_and_never_both() -> None:
    """What the arrival took is no length of the stay."""
    assert set(filled("arriving in 3 months").values) == {"arrival"}


def test_filled_values_are_parameters_of_the_task() -> None:
    """The class reads back what the rules wrote."""
    values = filled("arriving 3 May 2027 for 3 weeks, wake me on 4 May 2027 at 7:15, price 1,250.50").values
    stay = Stay.read(values)
    assert (stay.arrival, stay.length, stay.price) == (date(2027, 5, 3), Duration("21 days"), Amount("1250.5"))
    assert stay.wake_up == Moment("2027-05-04T07:15")
    assert stay.key("stay") == Stay.read({**values, "length": "3 weeks", "arrival": "2027-05-03"}).key("stay")


def test_a_list_of_dates_takes_them_all() -> None:
    """Each of them once; one with two readings is asked about."""

    class Days(Parameters):
        days: tuple[date, ...]

    found = Router(Catalogue([card_for("agenda", "free", Days)])).find("agenda", "free")
    assert found is not None
    shape = found.shape.fields[0]
    days = dated(scene_of("free on 1 May 2027, 2 May 2027 and tomorrow"), shape, set(), (), NOW)
    assert [one.value for one in days if isinstance(one, Reading)] == ["2027-05-01", "2027-05-02", "2026-11-19"]
    assert isinstance(dated(scene_of("1 May 2027 and 02/03/2027"), shape, set(), (), NOW), Doubt)
