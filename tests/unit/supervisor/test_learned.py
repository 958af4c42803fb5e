"""What was learned is said in the next reply, and the words that taught it are answered by it."""

import asyncio

import pytest

from contracts.errors import MemoryUnavailable
from supervisor.replies.notices import Learned, with_notes


class Waiting:
    """Notices that come after some looks, or never."""

    def __init__(self, *looks: list[tuple[str, tuple[str, ...]]], ends_after: int = 100, is_away: bool = False) -> None:
        self.looks = list(looks)
        self.ends_after = ends_after
        self.is_away = is_away
        self.hurried: list[str] = []

    async def take_awaited(self, owner: str) -> tuple[list[tuple[str, tuple[str, ...]]], bool]:
        """Return the next of what comes."""
        if self.is_away:
            raise MemoryUnavailable("away")
        self.ends_after -= 1
        return (self.looks.pop(0) if self.looks else []), self.ends_after > 0

    async def hurry(self, owner: str, for_s: float) -> None:
        """Note it."""
        self.hurried.append(owner)


@pytest.mark.parametrize(
    ("text", "lines", "said"),
    [
        ("Done.", [], "Done."),
        ("", ["User loves sushi"], "Noted: you love sushi."),
        ("Done.", ["User likes tea"], "Done.\n\nNoted: you like tea."),
        (
            "",
            ["User is allergic to peanuts", "no longer: vegan"],
            "Noted: you are allergic to peanuts; no longer: vegan.",
        ),
        ("", ["User's name is Ana", "you have a dog"], "Noted: your name is Ana; you have a dog."),
        ("", ["a", "b", "c", "d", "e", "f", "g"], "Noted: a; b; c; d; e; and 2 more."),
    ],
)
def test_a_reply_ends_with_what_was_learned(text: str, lines: list[str], said: str) -> None:
    """Said to the person, five lines at most."""
    assert with_notes(text, lines) == said


async def test_the_words_that_taught_something_wait_for_it() -> None:
    """Until it comes, with what earlier turns taught."""
    notices = Waiting([("t0", ("User likes tea",))], [], [("t1", ("User loves sushi",))])
    learned = Learned(notices, lambda: True, wait_s=5.0)

    assert await learned.of_turn("ana", "t1") == ("User likes tea", "User loves sushi")
    assert notices.hurried == ["ana"]


async def test_no_reply_waits_for_what_teaches_nothing() -> None:
    """Once that is known, when it takes too long, without a memory worker, or without a store."""
    async with asyncio.timeout(2.0):
        assert await Learned(Waiting(ends_after=2), lambda: True, wait_s=60.0).of_turn("ana", "t1") == ()
        assert await Learned(Waiting(), lambda: True, wait_s=0.2).of_turn("ana", "t1") == ()
        assert await Learned(Waiting(), lambda: False, wait_s=60.0).of_turn("ana", "t1") == ()
        assert await Learned(Waiting(is_away=True), lambda: True, wait_s=60.0).of_turn("ana", "t1") == ()
        assert await Learned(Waiting(is_away=True), lambda: True).lines("ana") == ()
