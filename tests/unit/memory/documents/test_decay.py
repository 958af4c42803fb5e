"""Confidence fades with time, by what sort of thing was said."""

from datetime import date, timedelta

import pytest

from memory.documents.decay import HALF_LIVES, STALE_BELOW, confidence_now, is_stale
from memory.documents.items import Durability, Item, make_item

TODAY = date(2026, 1, 1)


@pytest.mark.parametrize("durability", [name for name, half_life in HALF_LIVES.items() if half_life is not None])
def test_half_of_the_confidence_is_left_after_a_half_life(durability: Durability) -> None:
    """And a quarter after two."""
    half_life = HALF_LIVES[durability] or timedelta()
    ages = [confidence_now(Item("x", "x", TODAY - half_life * n, None, 0.8, durability), TODAY) for n in range(3)]

    assert ages == pytest.approx([0.8, 0.4, 0.2])


def test_what_is_permanent_never_fades() -> None:
    """A birthday of a hundred years ago."""
    assert confidence_now(Item("x", "x", date(1926, 1, 1), None, 0.9, "permanent"), TODAY) == 0.9


def test_an_unknown_or_future_day_takes_nothing_away() -> None:
    """Nobody knows how old it is, or a clock was wrong; a plain value is as sure as ever."""
    assert confidence_now(Item("x", "x", None, None, 0.7, "momentary"), TODAY) == 0.7
    assert confidence_now(Item("x", "x", date(2027, 1, 1), None, 0.7, "momentary"), TODAY) == 0.7
    assert confidence_now("tea", TODAY) == 1.0


def test_an_item_is_stale_after_two_half_lives() -> None:
    """Then somebody should ask again."""
    item = make_item("diet", added=TODAY, durability="short_term", source="told")

    assert not is_stale(item, TODAY + timedelta(days=60))
    assert is_stale(item, TODAY + timedelta(days=61))
    assert STALE_BELOW == 0.25
