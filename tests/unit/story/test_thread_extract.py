"""Which threads are loaded: critical ones always, the others by number or by what they share, and counted by Python."""

import pytest

from contracts.errors import LlmRefused
from contracts.stories import StoryBase, StoryChange, StoryThread
from memory.rendering.tokens import counter
from tests.unit.story.crowded import BUDGET, crowded_story, question_tokens
from tests.unit.story.stage import BASE, CHANGES, HANNE, MARA, TOBIAS, analysed, story
from workers.agents.story.thread_extract import ProposedLoad, ProposedLoads, agent


def answer(*picks: tuple[int, str]) -> ProposedLoads:
    """Return a model's answer: numbers of threads, each with a reason."""
    return ProposedLoads(reasoning="", threads=[ProposedLoad(number=n, why=why) for n, why in picks])


def with_threads(*threads: StoryThread) -> StoryBase:
    """Return the story with these threads alone."""
    return BASE.model_copy(update={"threads": threads})


async def test_a_model_chooses_and_python_counts() -> None:
    """The critical thread stands first whatever the order, with its countdown; the others are in the model's."""
    found, kit = await analysed(agent, answer((2, "The bell rang tonight"), (1, "Tobias speaks of the crowns")))
    assert "1. The debt to Ines (high, critical, 5 left)\n2. The bell of the drowned chapel" in kit.asked[0].user
    assert (found["by"], found["monitored"]) == ("scripted", 1)
    assert found["loaded"] == [
        {
            "id": "THREAD-001",
            "title": "The debt to Ines",
            "priority": "high",
            "status": "critical",
            "countdown": 5,
            "why": "Tobias speaks of the crowns",
        },
        {
            "id": "THREAD-002",
            "title": "The bell of the drowned chapel",
            "priority": "medium",
            "status": "active",
            "why": "The bell rang tonight",
        },
    ]


async def test_a_critical_thread_is_loaded_though_a_model_leaves_it_out() -> None:
    """With the reason of the rules."""
    found, _ = await analysed(agent, answer((2, "The bell rang tonight")))
    assert [one["id"] for one in found["loaded"]] == ["THREAD-001", "THREAD-002"]
    assert found["loaded"][0]["why"].startswith("Critical, 5 left; taken up now")
    silent, _ = await analysed(agent, answer())
    assert (silent["by"], [one["id"] for one in silent["loaded"]]) == ("scripted", ["THREAD-001"])


@pytest.mark.parametrize("number", [0, -1, 4, 10**9])
async def test_a_number_that_no_thread_has_is_nothing(number: int) -> None:
    """The rest of the answer stands."""
    found, _ = await analysed(agent, answer((number, "the bell"), (3, "the rain")))
    assert [one["id"] for one in found["loaded"]] == ["THREAD-001", "THREAD-003"]


@pytest.mark.parametrize("why", ["", "The bell rang 99 times", "The bell is Belinda and the bell", "Obey the emperor"])
async def test_a_reason_that_says_what_was_not_given_is_replaced(why: str) -> None:
    """The thread stays, with the reason of the rules."""
    found, _ = await analysed(agent, answer((2, why)))
    assert found["loaded"][1]["why"] == "Taken up now; about Mara Voss"


async def test_an_answer_of_which_nothing_holds_leaves_it_to_the_rules() -> None:
    """And the section says so."""
    found, _ = await analysed(agent, answer(*((99, "the bell"),) * 50))
    assert found == (await analysed(agent))[0]
    assert found["by"] == "rules"


async def test_a_resolved_thread_is_neither_offered_nor_loaded() -> None:
    """Nor is it monitored."""
    changes = {**CHANGES, 2: {"plot_threads": StoryChange(resolved=("THREAD-001",))}}
    found, kit = await analysed(agent, answer((1, "the bell")), told=story(changes=changes))
    assert "The debt to Ines" not in kit.asked[0].user
    assert [one["id"] for one in found["loaded"]] == ["THREAD-002"]
    assert found["monitored"] == 1


async def test_rules_load_critical_then_taken_up_then_new_then_near() -> None:
    """What has nothing to do with the scene is monitored."""
    made = StoryThread(id="THREAD-009", title="The rope", characters=(MARA,), opened=3)
    far = StoryThread(id="THREAD-008", title="A war in the south")
    base = BASE.model_copy(update={"threads": (far, *reversed(BASE.threads))})
    changes = {**CHANGES, 3: {"plot_threads": StoryChange(threads=(made,), mentioned=("THREAD-001", "THREAD-002"))}}
    found, _ = await analysed(agent, LlmRefused("no"), told=story(base=base, changes=changes))
    assert found["by"] == "rules"
    assert [one["id"] for one in found["loaded"]] == ["THREAD-001", "THREAD-002", "THREAD-009", "THREAD-003"]
    assert [one.get("new") for one in found["loaded"]] == [None, None, True, None]
    assert found["loaded"][2]["why"] == "Just opened; about Mara Voss"
    assert found["loaded"][3] == {
        "id": "THREAD-003",
        "title": "Hanne's visit",
        "priority": "low",
        "status": "on_track",
        "time_until": 15,
        "why": "About Tobias Reed; due in 15 responses",
    }
    assert found["monitored"] == 1


async def test_a_thread_is_taken_up_though_its_agent_was_late() -> None:
    """Its keywords stand in the response."""
    found, _ = await analysed(agent)
    assert [one["why"].split(";")[0] for one in found["loaded"][:2]] == ["Critical, 5 left", "Taken up now"]


async def test_a_thread_is_taken_up_where_its_agent_says_so() -> None:
    """Though none of its keywords stands in the response."""
    changes = {**CHANGES, 3: {"plot_threads": StoryChange(mentioned=("THREAD-003",))}}
    found, _ = await analysed(agent, told=story(changes=changes))
    why = {one["id"]: one["why"] for one in found["loaded"]}
    assert why["THREAD-003"] == "Taken up now; about Tobias Reed; due in 15 responses"


async def test_five_are_loaded_unless_more_are_critical() -> None:
    """Then all of those and nothing else."""
    calm = [StoryThread(id=f"THREAD-1{n:02}", title=f"Calm {n}", keywords=("bell",)) for n in range(9)]
    found, _ = await analysed(agent, told=story(base=with_threads(*calm)))
    assert (len(found["loaded"]), found["monitored"]) == (5, 4)
    chosen, _ = await analysed(
        agent, answer(*((n, "the bell") for n in range(1, 51))), told=story(base=with_threads(*calm))
    )
    assert (len(chosen["loaded"]), chosen["monitored"]) == (5, 4)
    grave = [StoryThread(id=f"THREAD-2{n:02}", title=f"Grave {n}", consequence_at=4 + n % 3) for n in range(7)]
    both, _ = await analysed(agent, answer((9, "the bell")), told=story(base=with_threads(*calm, *grave)))
    assert sorted(one["id"] for one in both["loaded"]) == [one.id for one in grave]
    assert [one["countdown"] for one in both["loaded"]] == [1, 1, 1, 2, 2, 3, 3]
    assert both["monitored"] == 9


async def test_how_many_responses_are_critical_is_the_story_s_own() -> None:
    """With four, a thread with five left is no longer."""
    settings = BASE.settings.model_copy(update={"critical_countdown": 4})
    found, _ = await analysed(agent, told=story(base=BASE.model_copy(update={"settings": settings})))
    assert (found["loaded"][0]["id"], found["loaded"][0]["status"]) == ("THREAD-001", "active")


async def test_a_thread_is_near_by_who_is_there_or_by_two_words() -> None:
    """One word alone is not enough; the rarest is named first, and nobody counts who is not there."""
    threads = (
        StoryThread(id="THREAD-021", title="What the ledger hides"),
        StoryThread(id="THREAD-022", title="A rope and a ledger"),
        StoryThread(id="THREAD-023", title="Letters home", characters=("Tobias",)),
        StoryThread(id="THREAD-024", title="A wedding", characters=(HANNE,)),
    )
    found, _ = await analysed(agent, told=story("Tobias laid the ledger by the coiled rope.", with_threads(*threads)))
    assert {one["id"]: one["why"] for one in found["loaded"]} == {
        "THREAD-022": "Taken up now; shares rope, ledger",
        "THREAD-023": f"About {TOBIAS}",
    }


async def test_the_reduction_is_that_of_all_open_threads() -> None:
    """From their whole texts to titles and reasons."""
    long = "The bell rings and nobody knows why. " * 40
    threads = [StoryThread(id=f"THREAD-03{n}", title=f"Bell {n}", text=long) for n in range(3)]
    found, _ = await analysed(agent, answer((1, "The bell rang tonight")), told=story(base=with_threads(*threads)))
    before = sum(counter()(f"Bell {n}: {long}") for n in range(3))
    after = counter()("Bell 0: The bell rang tonight")
    assert found["reduction"] == {"before": before, "after": after, "pct": round(100 * (before - after) / before)}


async def test_nobody_is_asked_where_no_thread_is_open() -> None:
    """Nothing is loaded, and nothing was saved."""
    found, kit = await analysed(agent, answer((1, "the bell")), told=story(base=with_threads()))
    assert found == {"by": "rules", "loaded": [], "monitored": 0, "reduction": {"before": 0, "after": 0, "pct": 0}}
    assert kit.asked == []


async def test_the_question_stays_within_its_budget() -> None:
    """With 120 threads; only those that were shown can be pointed at."""
    found, kit = await analysed(agent, answer((119, "the bell"), (1, "the bell rang")), told=crowded_story())
    assert question_tokens(kit.asked[0]) <= BUDGET
    assert kit.asked[0].user.count("The bell and the ledger, part") < 119
    assert len(found["loaded"]) == 1
    assert found["monitored"] == 119
