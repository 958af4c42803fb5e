"""Replies that tell what was learned, and that words were kept."""

from typing import Any

import pytest

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import PersonReply, ReplyPart
from tasklore.supervisor.replies.notices import KEPT, Learned, say_kept, with_notes
from tests.virtual_time import elapsed_s, in_virtual_time


class Waiting:
    """Notices that come after some looks, or never."""

    def __init__(
        self,
        *looks: list[tuple[str, tuple[str, ...]]],
        ends_after: int = 100,
        is_away: bool = False,
    ) -> None:
        self.looks = list(looks)
        self.ends_after = ends_after
        self.is_away = is_away
        self.hurried: list[str] = []

    async def take_awaited(
        self, owner: str
    ) -> tuple[list[tuple[str, tuple[str, ...]]], bool]:
        if self.is_away:
            raise MemoryUnavailable("away")
        self.ends_after -= 1
        return (self.looks.pop(0) if self.looks else []), self.ends_after > 0

    async def hurry(self, owner: str, for_s: float) -> None:
        self.hurried.append(owner)


@pytest.mark.parametrize(
    ("text", "lines", "said"),
    [
        ("Done.", [], "Done."),
        ("Done.", ["User likes tea"], "Done.\n\nNoted: you like tea."),
        (
            "",
            ["User is allergic to peanuts", "no longer: vegan"],
            "Noted: you are allergic to peanuts; no longer: vegan.",
        ),
        (
            "",
            ["User's name is Ana", "you have a dog"],
            "Noted: your name is Ana; you have a dog.",
        ),
        ("", ["a", "b", "c", "d", "e", "f", "g"], "Noted: a; b; c; d; e; and 2 more."),
    ],
)
def test_a_reply_ends_with_five_learned_lines_at_most(
    text: str, lines: list[str], said: str
) -> None:
    assert with_notes(text, lines) == said


async def test_a_reply_waits_for_the_facts_of_its_own_turn() -> None:
    notices = Waiting(
        [("t0", ("User likes tea",))], [], [("t1", ("User loves sushi",))]
    )
    learned = Learned(notices, lambda: True, wait_s=5.0)
    assert await learned.of_turn("ana", "t1") == ("User likes tea", "User loves sushi")
    assert notices.hurried == ["ana"]


@pytest.mark.parametrize(
    ("notices", "is_served", "wait_s", "waited_s"),
    [
        ({"ends_after": 2}, True, 60.0, 0.05),
        ({}, True, 0.2, 0.2),
        ({}, False, 60.0, 0.0),
        ({"is_away": True}, True, 60.0, 0.0),
    ],
    ids=["no more come", "none come", "no worker", "no store"],
)
@in_virtual_time
async def test_a_reply_waits_no_longer_than_facts_can_come(
    notices: dict[str, Any], *, is_served: bool, wait_s: float, waited_s: float
) -> None:
    learned = Learned(Waiting(**notices), lambda: is_served, wait_s=wait_s)
    assert await learned.of_turn("ana", "t1") == ()
    assert elapsed_s() == pytest.approx(waited_s)


async def test_lines_of_a_store_that_is_away_are_none() -> None:
    assert await Learned(Waiting(is_away=True), lambda: True).lines("ana") == ()


class Kept:
    """Episodes with one turn, or a store that is away."""

    def __init__(self, turn_id: str, *, is_away: bool = False) -> None:
        self.turn_id = turn_id
        self.is_away = is_away

    async def recent(self, owner: str, count: int) -> tuple["Kept", ...]:
        if self.is_away:
            raise MemoryUnavailable("away")
        return (self,)


async def test_words_count_as_kept_once_memory_has_their_turn() -> None:
    learned = Learned(Waiting(), lambda: True, episodes=Kept("t1"))
    assert [await learned.is_kept("ana", turn_id) for turn_id in ("t1", "t2")] == [
        True,
        False,
    ]
    assert not await Learned(Waiting(), lambda: False, episodes=Kept("t1")).is_kept(
        "ana", "t1"
    )
    assert not await Learned(
        Waiting(), lambda: True, episodes=Kept("t1", is_away=True)
    ).is_kept("ana", "t1")
    assert not await Learned(Waiting(), lambda: True).is_kept("ana", "t1")


def test_a_reply_to_kept_words_says_that_they_are_kept() -> None:
    unknown = "I cannot tell what to do with that. I can: greet."
    other = "That is JSON and no sentence."
    parts = (
        ReplyPart(kind="unable", text=unknown),
        ReplyPart(kind="unable", text=other),
    )
    reply = PersonReply(
        request_id="r", conversation_id="c", kind="unable", text=unknown, parts=parts
    )
    said = say_kept(reply)
    assert said.text == f"{KEPT} I can: greet."
    assert [part.text for part in said.parts] == [said.text, other]
    quoted = reply.model_copy(
        update={"text": 'I cannot tell what to do with "my sister. Ida". I can: greet.'}
    )
    assert say_kept(quoted).text == said.text


def test_what_keeping_means_is_said_once_and_a_question_is_not_said_to_be_kept() -> (
    None
):
    reply = PersonReply(
        request_id="r",
        conversation_id="c",
        kind="unable",
        text="I cannot tell what to do with that. I can: greet.",
    )
    assert say_kept(reply, was_said=True).text == "I have kept that, too."
    assert say_kept(reply, is_question=True).text == (
        "I do not know: nothing that you told me answers that. I can: greet."
    )
