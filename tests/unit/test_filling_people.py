"""Parties of people counted from how a person names them, for a field that declares `counts="people"`."""

import pytest

from contracts.messages import TaskCall
from contracts.parameters import Field, Parameters
from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, Missing, Understood
from tests.understanding_cases import card_for, said, understand


class Outing(Parameters):
    """A boat for so many."""

    crew: int = Field(counts="people", ge=1, le=500, cues=("boat for {}", "seats"))
    hours: int | None = Field(None, cues=("hours",))


BOATS = Catalogue([card_for("BoatAgent", "rent_boat", Outing, "Rent a boat.", ("boat", "rent"))])


def crew_in(text: str) -> object:
    """Return the number of people in *text*, or the question that it comes to."""
    found = understand(f"Rent a boat: {text}", catalogue=BOATS)
    if isinstance(found, Understood):
        return found.task.parameters["crew"]
    assert isinstance(found, Ambiguous | Missing), found
    return found.question


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("my husband and me", 2),
        ("me, my aunt and her three boys", 5),
        ("for my grandparents, two cousins and myself", 5),
        ("6 ladies and one baby", 7),
        ("two couples and a toddler", 5),
        ("our four kids, their nanny and I", 6),
        ("a party of nine", 9),
        ("the five of us", 5),
        ("both of us", 2),
        ("us three", 3),
        ("I will come with 4 others", 5),
        ("I'm bringing two colleagues", 3),
        ("three of my friends and me", 4),
        ("my mother-in-law and my brother", 2),
        ("just me", 1),
        ("just myself", 1),
        ("we're a couple", 2),
        ("a dozen students and 2 teachers", 14),
        ("8 in my group", 8),
        ("2 adults 3 kids", 5),
        ("my two girls aged 4 and 7 and me", 3),
        ("a total of 4 adults and a child", 5),
        ("with my parents, so three", 3),
        ("my aunt, my uncle and I, so three of us", 3),
        ("me and my cousins, so six", 6),
        ("my sister and her kids, that's 4", 4),
        ("me and my three boys, that makes 4 of us", 4),
        ("we'll be five", 5),
        ("the name is Ten Broek and we are 4", 4),
        ("it says 3 people but we are 4 now", 4),
        ("my crew of 6 and I", 7),
        ("4 vegetarians and 2 vegans", 6),
        ("3 grown-ups and a toddler", 4),
        ("I'll come with my sister", 2),
        ("with my wife and our two daughters", 4),
        ("me and my wife, and we're bringing our 3 kids", 5),
        ("me and my better half", 2),
        ("me, myself and I", 1),
        ("just the one", 1),
        ("couple with a baby", 3),
        ("4 adults, including two guides", 4),
        ("2 boats for 5 people each", 10),
        ("two boats of four", 8),
        ("a boat for 2 or maybe 3, let's say 3", 3),
        ("2pax", 2),
        ("4 ladies and 3 gents", 7),
        ("boat for 4, well, 5 with my nephew", 5),
        ("an even dozen", 12),
        ("me and two guests, three in total", 3),
        ("20 people, 6 of them children", 20),
        ("4 of us, 2 adults and 2 kids", 4),
        ("the two of us and a couple", 4),
        ("me plus 3", 4),
        ("me with 3 friends", 4),
        ("me and both my parents", 3),
        ("boat for 7", 7),
        ("14", 14),
        ("Ida and I", 2),
        ("for Ida, me and Tom", 3),
        ("tonight with my friend Ida, Tom and me", 3),
        ("me, Ida, Tom and two kids", 5),
        ("myself, my wife and our 4 year old son", 3),
        ("me and my twin sisters", 3),
        ("myself plus guest", 2),
        ("12 covers", 12),
        ("nobody but me", 1),
        ("bringing 2 more people with me? So it would be 6", 6),
        ("boat for 5 and 2 life jackets", 5),
        ("6 people at 7", 6),
        ("10 people at 25 pounds a head", 10),
        ("change it from 2 people to 4", 4),
    ],
)
def test_people_are_added_up_as_they_are_named(text: str, people: int) -> None:
    """Pronouns, kin, numbers with a noun, couples and totals."""
    assert crew_in(text) == people


@pytest.mark.parametrize(
    "text",
    [
        "me and my friends",
        "my cousins",
        "the kids, my wife and I",
        "we are bringing 3 friends",
        "me, my wife and family",
        "4 chaperones and 3 kids under 10",
        "my in-laws and me",
        "two families of 4",
        "6 people, 4 kids",
        "3 families with 2 kids each",
        "my wife's parents and the two of us",
        "Terrace, Ida and me",
        "change the time from 7 to 8",
        "my room number is 214",
        "call me on 555 0142",
    ],
)
def test_a_party_with_members_that_nobody_counted_is_asked_about(text: str) -> None:
    """The members that were counted are not taken for all."""
    assert crew_in(text) == "What is crew?"


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("5 or 6 people", ("5", "6 people")),
        ("between 8 and 10 people", ("8", "10 people")),
        ("boat for 4 and a boat for 6 people", ("4", "6 people")),
        ("6 people, 7 if my aunt comes", ("6 people", "7")),
    ],
)
def test_two_numbers_of_people_are_asked_about(text: str, both: tuple[str, str]) -> None:
    """Neither is taken."""
    assert crew_in(text) == f"Is crew {both[0]} or {both[1]}?"


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("4 people, sorry, 5", 5),
        ("4 adults - no, 5 adults", 5),
        ("not 3 people but 4 people", 4),
        ("2 men, could you make that 3?", 3),
        ("boat for 6 but we're only 4 now", 4),
        ("I had it for 4 people, can 6 people come instead?", 6),
    ],
)
def test_a_corrected_number_of_people_counts(text: str, people: int) -> None:
    """What was said first is gone."""
    assert crew_in(text) == people


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("boat for 6 at 3 pm on 12 May", 6),
        ("boat for 3 May, 6 people", 6),
        ("my wife and I would like a boat for 9", 9),
        ("it is my wife's birthday, 8 people", 8),
        ("4 people and I need a life jacket", 4),
        ("4 men and 2 dogs", 4),
        ("one boat for 5", 5),
        ("3 hours, 6 people", 6),
        ("7 people and no kids", 7),
    ],
)
def test_who_only_speaks_and_what_is_no_person_is_not_counted(text: str, people: int) -> None:
    """Times, boats, dogs and the one who asks."""
    assert crew_in(text) == people


def test_the_sum_points_to_all_who_were_named() -> None:
    """One span holds them, and other fields keep their numbers."""
    text = "Rent a boat for 3 hours, me, my wife and 2 kids"
    found = understand(text, catalogue=BOATS)
    assert isinstance(found, Understood)
    assert found.task.parameters == {"crew": 4, "hours": 3}
    assert [(span.field, span.text) for span in found.spans] == [
        ("hours", "3 hours"),
        ("crew", "me, my wife and 2 kids"),
    ]


@pytest.mark.parametrize(("text", "people"), [("seven", 7), ("3 of us", 3), ("me and my mum", 2), ("I said 2", 2)])
def test_an_answer_to_the_question_for_people_is_counted_too(text: str, people: int) -> None:
    """Where a bare number is enough."""
    call = TaskCall(name="rent_boat", parameters={})
    asked = [said("person", "Rent a boat"), said("assistant", "What is crew?", call, "BoatAgent")]
    found = understand(text, asked, BOATS)
    assert isinstance(found, Understood)
    assert found.task.parameters == {"crew": people}


def test_a_field_that_counts_nobody_adds_nothing_up() -> None:
    """Without the declaration a number of people is a number like any other."""

    class Bare(Parameters):
        crew: int = Field(cues=("people",))

    catalogue = Catalogue([card_for("BoatAgent", "rent_boat", Bare, "Rent a boat.", ("boat", "rent"))])
    found = understand("Rent a boat for me and 4 people", catalogue=catalogue)
    assert isinstance(found, Understood)
    assert found.task.parameters == {"crew": 4}


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("mum, dad and three kids", 5),
        ("gran and us two", 3),
        ("us two and our baby", 3),
        ("2 grown ups and 3 little ones", 5),
        ("two brothers-in-law and me", 3),
        ("4 colleagues, so 5 seats", 5),
        ("boat for 4, we have a 2 for 1 voucher", 4),
        ("boat for 7, my boss cannot make it, please cancel", 7),
        ("we are 6 now, 2 cancelled", 6),
        ("add 2 people, so we are 6 in total", 6),
        ("boat for 9. Two of us are kids", 9),
        ("boat for 3 people, it should be 4", 4),
    ],
)
def test_families_offers_and_totals_are_told_apart(text: str, people: int) -> None:
    """Whoever needs no "my", what a voucher gives, and what a change comes to."""
    assert crew_in(text) == people


@pytest.mark.parametrize(
    "text",
    [
        "boat for 8 but two can't make it",
        "boat for 6, and 2 more are coming",
        "add 2 people to my boat for 4",
        "my in-laws, my wife and me",
        "my brothers-in-law and me",
        "2 for 1 vouchers",
    ],
)
def test_a_party_that_changes_or_was_not_counted_is_asked_about(text: str) -> None:
    """Rather than the number before the change, or the half that was counted."""
    assert crew_in(text) == "What is crew?"


@pytest.mark.parametrize(("text", "people"), [("nine, yes 9", 9), ("at six", None), ("Mum, I said 4", 4)])
def test_an_answer_said_twice_counts_and_a_time_of_day_does_not(text: str, people: int | None) -> None:
    """To the question for people."""
    call = TaskCall(name="rent_boat", parameters={})
    asked = [said("person", "Rent a boat"), said("assistant", "What is crew?", call, "BoatAgent")]
    found = understand(text, asked, BOATS)
    assert (found.task.parameters["crew"] if isinstance(found, Understood) else None) == people
