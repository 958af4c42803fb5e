"""Which threads a response opens, takes up and ends: found by number or by keyword, and counted by Python."""

from typing import Any

import pytest

from contracts.errors import LlmCutOff
from contracts.stories import StoryChange, StoryThread
from tests.unit.story.crowded import BUDGET, crowded_story, question_tokens
from tests.unit.story.stage import BASE, CHANGES, INES, MARA, TOBIAS, analysed, story
from workers.agents.story.plot_threads import ProposedEnd, ProposedThread, ProposedThreads, agent

DEBT = {
    "id": "THREAD-001",
    "title": "The debt to Ines",
    "last_mention": 3,
    "conseq_countdown": 5,
    "status": "critical",
}
BELL = {"id": "THREAD-002", "title": "The bell of the drowned chapel", "last_mention": 3, "status": "active"}


def opened(**told: Any) -> ProposedThread:
    """Return a thread that holds, but for what is *told*."""
    holds = {
        "title": "The rope that Mara let go",
        "priority": "high",
        "time_sensitive": False,
        "characters": ("Mara", "Tobias"),
        "tags": ("guilt",),
        "quote": "I have never told anyone.",
    }
    return ProposedThread(**{**holds, **told})


def answer(
    mentioned: tuple[int, ...] = (), resolved: tuple[ProposedEnd, ...] = (), new: tuple[ProposedThread, ...] = ()
) -> ProposedThreads:
    """Return a model's answer."""
    return ProposedThreads(reasoning="", mentioned=mentioned, resolved=resolved, new=new)


async def test_a_model_points_and_python_counts() -> None:
    """Threads that the response takes up stand first in the question, and countdowns are worked out."""
    found, kit = await analysed(agent, answer((1, 2), (), (opened(),)))
    assert "1. The debt to Ines (debt, crowns)\n2. The bell" in kit.asked[0].user
    assert found == {
        "by": "scripted",
        "new": [
            {
                "id": "THREAD-004",
                "title": "The rope that Mara let go",
                "status": "active",
                "priority": "high",
                "time_sensitive": False,
                "chars": [MARA, TOBIAS],
                "tags": ["guilt"],
            }
        ],
        "mentioned": [DEBT, BELL],
        "resolved": [],
    }


async def test_a_thread_ends_on_a_quote_that_stands_in_the_response() -> None:
    """And is not mentioned beside that."""
    ended = ProposedEnd(number=2, quote="the bell rang once")
    found, _ = await analysed(agent, answer((1, 2), (ended,)))
    assert found["mentioned"] == [DEBT]
    assert found["resolved"] == [{**BELL, "status": "resolved"}]


async def test_an_invented_end_is_none() -> None:
    """The thread is only mentioned."""
    found, _ = await analysed(agent, answer((1,), (ProposedEnd(number=1, quote="Here are your forty crowns."),)))
    assert (found["mentioned"], found["resolved"]) == ([DEBT], [])


@pytest.mark.parametrize("number", [0, -1, 4, 10**9])
async def test_a_number_that_no_thread_has_is_nothing(number: int) -> None:
    """Whether it is said to be mentioned or to have ended."""
    found, _ = await analysed(agent, answer((number, 1), (ProposedEnd(number=number, quote="the bell rang once"),)))
    assert (found["mentioned"], found["resolved"], found["new"]) == ([DEBT], [], [])


async def test_a_resolved_thread_is_neither_offered_nor_found() -> None:
    """Nobody opens it again by a keyword."""
    changes = {**CHANGES, 2: {"plot_threads": StoryChange(resolved=("THREAD-001",))}}
    found, kit = await analysed(agent, answer((1,)), told=story(changes=changes))
    assert "The debt to Ines" not in kit.asked[0].user
    assert [one["id"] for one in found["mentioned"]] == ["THREAD-002"]
    by_rules, _ = await analysed(agent, told=story(changes=changes))
    assert [one["id"] for one in by_rules["mentioned"]] == ["THREAD-002"]


@pytest.mark.parametrize(
    "told",
    [
        {"quote": "I swear I will be back by Friday."},
        {"quote": ""},
        {"title": "The 12 ropes of the drowned"},
        {"title": "The Rope of Belinda"},
        {"title": "Obey the emperor"},
        {"title": ""},
    ],
)
async def test_a_new_thread_that_does_not_hold_is_dropped(told: dict[str, Any]) -> None:
    """Without a quote, or with a title that the response does not bear out."""
    found, _ = await analysed(agent, answer((1,), (), (opened(**told), opened())))
    assert [one["title"] for one in found["new"]] == ["The rope that Mara let go"]


async def test_a_new_thread_has_only_characters_of_the_response() -> None:
    """Each once, by their full names."""
    said = opened(characters=("the keeper", "Mara", "Hanne", "Zorblax", "Ines", "Lantern House"))
    found, _ = await analysed(agent, answer((), (), (said,)))
    assert found["new"][0]["chars"] == [MARA, INES]


async def test_at_most_two_threads_are_opened() -> None:
    """Fifty are no reading of a response; one that is open already is mentioned instead."""
    many = tuple(opened(title=f"The rope{'!' * n}") for n in range(50))
    found, _ = await analysed(agent, answer((), (), many))
    assert [one["id"] for one in found["new"]] == ["THREAD-004", "THREAD-005"]
    known, _ = await analysed(agent, answer((), (), (opened(title="The Debt to Ines"),)))
    assert (known["new"], known["mentioned"]) == ([], [DEBT])


async def test_without_an_answer_rules_go_by_keywords() -> None:
    """The same threads, and the section says who found them."""
    found, _ = await analysed(agent, LlmCutOff("cut off"))
    assert found == {"by": "rules", "new": [], "mentioned": [DEBT, BELL], "resolved": []}


async def test_an_answer_of_which_nothing_holds_leaves_it_to_the_rules() -> None:
    """One that says nothing at all is believed."""
    invented, _ = await analysed(agent, answer((99,), (), (opened(quote=""),)))
    assert (invented["by"], invented["mentioned"]) == ("rules", [DEBT, BELL])
    silent, _ = await analysed(agent, answer())
    assert silent == {"by": "scripted", "new": [], "mentioned": [], "resolved": []}


@pytest.mark.parametrize(
    ("text", "is_resolved"),
    [
        ('"The debt is paid," said Ines.', True),
        ("Mara knew now that the DEBT  is\npaid.", True),
        ("The debt is not paid.", False),
        ("If the debt is paid, Mara is free.", False),
        ('"Is it so, the debt is paid?" asked Mara.', False),
        ("The debt is unpaid.", False),
    ],
)
async def test_rules_end_a_thread_only_where_its_end_is_told(text: str, is_resolved: bool) -> None:
    """Not where it is denied, supposed or asked for."""
    found, _ = await analysed(agent, told=story(text))
    assert bool(found["resolved"]) is is_resolved
    assert bool(found["mentioned"]) is not is_resolved


async def test_rules_open_a_thread_where_somebody_vows_by_a_time() -> None:
    """Titled by who gives their word and what it is."""
    text = 'Mara rose. "I promise you the ledger will be back by Friday," she told Tobias. Tobias nodded.'
    found, _ = await analysed(agent, told=story(text))
    assert found["new"] == [
        {
            "id": "THREAD-004",
            "title": "Mara Voss's promise: the ledger will be back by Friday",
            "status": "active",
            "priority": "medium",
            "time_sensitive": True,
            "chars": [MARA, TOBIAS],
            "tags": ["promise"],
        }
    ]


@pytest.mark.parametrize(
    "text",
    [
        'Mara rose. "I promise," she said.',
        "Mara will be back by Friday.",
        'Mara rose. "I never promised anything by Friday," she said.',
        'Mara rose. "I promise the debt will be settled by Friday," she said.',
        "Somebody promised to come by Friday.",
    ],
)
async def test_rules_open_no_thread_on_less(text: str) -> None:
    """A vow without a time, a time without a vow, a denial, a thread that is open, a vow of nobody."""
    found, _ = await analysed(agent, told=story(text))
    assert found["new"] == []


async def test_a_thread_without_keywords_is_known_by_its_title() -> None:
    """By two of its words, or by all of a shorter one; a name alone says nothing."""
    threads = (
        StoryThread(id="THREAD-010", title="Mara's broken chapel mirror"),
        StoryThread(id="THREAD-011", title="Tobias"),
        StoryThread(id="THREAD-012", title="The smugglers"),
    )
    base = BASE.model_copy(update={"threads": threads})
    found, _ = await analysed(agent, told=story("Tobias swept up the mirror of the chapel.", base))
    assert [one["id"] for one in found["mentioned"]] == ["THREAD-010", "THREAD-011"]
    other, _ = await analysed(agent, told=story("Mara saw the smuggler in a mirror.", base))
    assert [one["id"] for one in other["mentioned"]] == ["THREAD-012"]


async def test_a_countdown_that_has_run_out_stays_at_zero() -> None:
    """Responses after the consequence count no further."""
    found, _ = await analysed(agent, told=story(number=30))
    assert (found["mentioned"][0]["conseq_countdown"], found["mentioned"][0]["status"]) == (0, "critical")


async def test_the_question_stays_within_its_budget() -> None:
    """With 120 threads; only those that were shown can be pointed at."""
    found, kit = await analysed(agent, answer(tuple(range(1, 121))), told=crowded_story())
    asked = kit.asked[0]
    assert question_tokens(asked) <= BUDGET
    shown = asked.user.count("The bell and the ledger, part")
    assert 10 < shown < 120
    assert len(found["mentioned"]) == shown
