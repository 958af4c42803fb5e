"""Texts that must look like the examples, format or pattern of their field, and those that may be anything."""

from typing import Any

import pytest
from supervisor.interpretation.values.fields import shape_of
from supervisor.interpretation.values.looks import resembles, simple_pattern

from contracts.messages import TaskCard
from contracts.parameters import Field, Parameters
from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, Missing, Understood
from tests.understanding_cases import card_for, said, understand


def house_of(name: str, cue: str, examples: tuple[str, ...] = (), **constraints: Any) -> Catalogue:
    """Return an agent with one text, called *name* and announced by *cue*."""
    field = Field(cues=(cue,), examples=examples, **constraints)
    shape = type("Wanted", (Parameters,), {"__annotations__": {name: str}, name: field, "__doc__": "What is wanted."})
    return Catalogue([card_for("LookAgent", "look_up", shape, "Look something up.", ("look",))])


def taken(text: str, house: Catalogue) -> object:
    """Return the one value that was read, None when it is asked for."""
    found = understand(text, catalogue=house)
    if isinstance(found, Understood):
        [value] = found.task.parameters.values()
        return value
    assert isinstance(found, Missing | Ambiguous), found
    return None


TRAIN = house_of("train", "train", ("RE 4512", "IC77"))
LOCKER = house_of("locker", "locker", ("QX-1234", "ZB-0001"))
ACCOUNT = house_of("account", "account", ("12345678",))
SEAT = house_of("seat", "seat", ("12C", "7A"))
MAIL = house_of("recipient", "to {}", ("ana@example.org",))
FILE = house_of("file", "file", ("report.pdf", "notes.txt"))
CURRENCY = house_of("currency", "in {}", ("EUR", "USD"))
POST = house_of("postcode", "postcode", ("SW1A 1AA", "M1 1AE"))


@pytest.mark.parametrize(
    ("house", "text", "value"),
    [
        (TRAIN, "look up train EC 9", "EC 9"),
        (TRAIN, "look up train number ec 9 for my sister", "ec 9"),
        (TRAIN, "look up train ICE599 please", "ICE599"),
        (LOCKER, "look in locker ab-77", "ab-77"),
        (ACCOUNT, "look at account 8765-4321", "8765-4321"),
        (SEAT, "look for seat 22f", "22f"),
        (MAIL, "look up what went to bob.b@mail.example.com", "bob.b@mail.example.com"),
        (FILE, "look at file budget.xlsx please", "budget.xlsx"),
        (CURRENCY, "look the rate up in chf", "chf"),
        (POST, "look up postcode EC1A 1BB", "EC1A 1BB"),
    ],
)
def test_what_looks_like_the_examples_is_taken(house: Catalogue, text: str, value: str) -> None:
    """In small letters, with or without a space, and with words around it."""
    assert taken(text, house) == value


@pytest.mark.parametrize(
    ("house", "text"),
    [
        (TRAIN, "look up the train of my sister at 1200"),
        (TRAIN, "look up the train to Rome"),
        (TRAIN, "look up the train at 5pm"),
        (TRAIN, "look up train 1200"),
        (TRAIN, "look up train EC 9 or EC 10"),
        (LOCKER, "look in the locker on floor 3"),
        (ACCOUNT, "look at the account my wife opened in 2019"),
        (ACCOUNT, "look at account 5"),
        (SEAT, "look for a seat by the window"),
        (SEAT, "look for a seat at 5pm"),
        (MAIL, "look up what went to my boss"),
        (MAIL, "look up what went to bob at example dot org"),
        (FILE, "look at the file of my sister"),
        (CURRENCY, "look the rate up in May"),
        (POST, "look up the postcode of Leeds"),
    ],
)
def test_what_looks_unlike_them_is_asked_for(house: Catalogue, text: str) -> None:
    """However plainly the field is named before it."""
    assert taken(text, house) is None


@pytest.mark.parametrize(
    ("name", "examples", "text", "value"),
    [
        ("title", ("1984", "2001"), "look up title Emma", "Emma"),
        ("film", ("Apollo 11", "Alien 3"), "look up the film Casablanca", "Casablanca"),
        ("mission", ("Apollo 11", "Voyager 2"), "look up mission Rosetta", "Rosetta"),
        ("city", ("Paris", "Lima"), "look up city Frankfurt am Main", "Frankfurt am Main"),
        ("place", ("NYC", "LA"), "look up place Oslo", "Oslo"),
        ("department", ("HR", "IT"), "look up department Sales", "Sales"),
        ("band", ("U2", "UB40"), "look up band Queen", "Queen"),
        ("weight", ("2 kg", "500 g"), "look up weight 3 pounds", "3 pounds"),
        ("device", ("iPhone 15", "Pixel 8"), "look up device Galaxy Fold", "Galaxy Fold"),
        ("train", ("RE 4512", "the night train"), "look up train to Rome", "Rome"),
        ("address", ("10 Downing Street",), "look up address Abbey Road", "Abbey Road"),
        ("name", ("Ana", "Bob"), "look up name R2D2", "R2D2"),
    ],
)
def test_examples_of_what_may_be_anything_keep_nothing_out(
    name: str, examples: tuple[str, ...], text: str, value: str
) -> None:
    """Titles, names, places and quantities have no looks, and examples that differ have none in common."""
    assert taken(text, house_of(name, name, examples)) == value


def test_quotation_marks_let_anything_pass() -> None:
    """Who writes them means just that."""
    assert taken('look up train "the night mail"', TRAIN) == "the night mail"


def test_an_answer_may_be_a_number_alone() -> None:
    """Whoever was shown an example and says 1200 means it; words are asked about again."""
    asked = [said("person", "look up a train"), said("assistant", "What is train? For example: RE 4512.")]
    found = understand("look up a train", catalogue=TRAIN)
    assert isinstance(found, Missing)
    turn = asked[1].model_copy(update={"agent_id": "LookAgent", "task": found.call})
    answered = understand("1200", [asked[0], turn], catalogue=TRAIN)
    assert isinstance(answered, Understood)
    assert answered.task.parameters == {"train": "1200"}
    assert isinstance(understand("the one of my sister", [asked[0], turn], catalogue=TRAIN), Missing)


TAG = house_of("tag", "tag", pattern=r"^[A-Z]{2}-\d{1,4}$")


@pytest.mark.parametrize(
    ("text", "value"),
    [("look at tag PX-1", "PX-1"), ("look at tag PX-1 with care", "PX-1"), ("look at the tag of Bob", None)],
)
def test_a_pattern_tells_the_looks_too(text: str, value: str | None) -> None:
    """Without any example."""
    assert taken(text, TAG) == value


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "(x|x)*y", "^[a-z]*[a-z]*[a-z]*[a-z]*$", "a" * 200, "[", r"^(?=a).*$", r"^(\w+\s?)*$"]
)
def test_a_pattern_that_may_take_for_ever_is_left_aside(pattern: str) -> None:
    """Cards come from anybody."""
    assert simple_pattern(pattern) is None


@pytest.mark.parametrize("form", ["email", "uri", "uuid"])
def test_a_format_of_json_schema_tells_the_looks(form: str) -> None:
    """As examples would."""
    schema = {"type": "object", "properties": {"wanted": {"type": "string", "format": form}}}
    [field] = shape_of(TaskCard(name="look_up", parameters=schema)).fields
    likely = {"email": "a@b.org", "uri": "https://b.org/c", "uuid": "0b8f7ad6-7a0e-4a3e-9d3a-3d0f3b0c8f11"}[form]
    assert (resembles(field, likely), resembles(field, "my sister")) == (True, False)
