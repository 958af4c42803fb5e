"""What can be said in one way only at a time takes the place of the former; what only begins alike does not."""

import pytest

from workers.agents.memory_worker.singles import replaces


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        ("lives in Lisbon", "Lives in Berlin"),
        ("gets up at 7", "Gets up at 6:30"),
        ("gets up at 7:15", "Gets up at 6 am"),
        ("gets up at 9 on weekends", "Gets up at 10 on weekends"),
        ("was born in 1981", "Was born in 1980"),
        ("is 31 years old", "Is 30 years old"),
        ("weighs 70 kg", "Weighs 72.5 kg"),
        ("works as a nurse", "Works as a teacher"),
        ("name is Ana", "Name is Anna"),
    ],
)
def test_the_same_sort_of_thing_for_the_same_days_takes_its_place(new: str, kept: str) -> None:
    """Both cannot hold."""
    assert replaces(new, kept)


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        ("gets up at 7 on weekends", "Gets up at 6:30"),
        ("gets up at 7", "Gets up at 6:30 on weekends"),
        ("has lunch at 1 on Tuesdays", "Has lunch at 12 on Mondays"),
        ("has lunch at noon", "Has lunch at the office"),
        ("was born in 1980", "Was born in Rome"),
        ("is from Rome", "Is from Italy"),
        ("native language is Polish", "Native language is German"),
        ("lives in Rome in winter", "Lives in Milan"),
        ("lives in a small village", "Lives in Tuscany"),
        ("works at Google", "Works at a bakery on Sundays"),
        ("is 31 years old", "Has a 30 years old car"),
        ("gets up at 7", "gets up at 7"),
        ("has a cat", "has a dog"),
    ],
)
def test_what_can_both_hold_is_kept(new: str, kept: str) -> None:
    """Other days, another place, another sort of thing; or the same again."""
    assert not replaces(new, kept)
