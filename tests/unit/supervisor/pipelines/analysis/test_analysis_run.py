"""Analyses in virtual time: who is asked when, what becomes of whoever does not come through, and who asks again."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import pytest

from contracts.analysis.roster import ROSTER
from contracts.analysis.stories import SeatSettings, StoryResponse
from contracts.errors import MemoryUnavailable
from contracts.messages import TaskAssignment, Usage
from contracts.traces import made_context
from memory.stories.view import CHANGING
from runtime import tracing
from supervisor.pipelines.analysis.records import read_record
from supervisor.pipelines.analysis.requests import HELD
from supervisor.pipelines.analysis.run import PendingRequest
from tests.unit.supervisor.pipelines.analysis.house import STORY, TEXT, House, cards, now, report_on, virtually

ON = SeatSettings(enabled=True)
MEMORIES, THREADS, RECALL = "StoryMemoryCreationAgent", "StoryThreadAgent", "StoryMemoryRecallAgent"
KNOWLEDGE, ENTITIES, FACTS = "StoryKnowledgeAgent", "StoryEntityAgent", "StoryFactAgent"
RELATIONS = "StoryRelationshipAgent"


def in_virtual_time(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Let the seconds of *test* take none."""

    @wraps(test)
    def run(*words: Any, **named: Any) -> None:
        async def timed() -> None:
            async with asyncio.timeout(10_000):
                await test(*words, **named)

        virtually(timed())

    return run


def napping(seconds: float, found: Any = None) -> Callable[[TaskAssignment], Awaitable[Any]]:
    """Return an agent that takes *seconds* for what it finds."""

    async def work(_assignment: TaskAssignment) -> Any:
        await asyncio.sleep(seconds)
        return {"by": "rules"} if found is None else found

    return work


def elapsed_s() -> float:
    """Return the virtual seconds since the test began."""
    return asyncio.get_running_loop().time()


def nested(deep: int) -> Any:
    """Return *deep* lists within each other."""
    found: list[Any] = []
    for _ in range(deep - 1):
        found = [found]
    return found


def every(seconds: float) -> dict[str, Any]:
    """Return ten agents that each take *seconds*."""
    return {seat.agent_id: napping(seconds) for seat in ROSTER}


@in_virtual_time
async def test_ten_agents_take_as_long_as_the_longest_chain() -> None:
    """Whoever waits for nobody begins at once; whoever waits begins when those have ended, and not before."""
    house = House(every(0.2), agents={"contradiction": ON})
    async with house.supervisor() as supervisor:
        reply = await supervisor.ask()
        took_s = elapsed_s()

    assert reply.kind == "done"
    assert took_s == pytest.approx(0.4)
    late = {FACTS, RECALL, "StoryThreadRecallAgent", "StoryContradictionAgent"}
    assert {agent for agent, at in house.office.begun_at.items() if at >= 0.2} == late
    meta = (await house.document()).meta
    assert (meta.agents_run, meta.agents_ok, meta.agents_failed, meta.agents_skipped) == (10, 10, 0, 0)


@in_virtual_time
async def test_whoever_waits_for_findings_does_without_them_when_patience_is_over() -> None:
    """An agent of the background that takes a minute does not hold up the next response."""
    house = House({MEMORIES: napping(50)}, patience_s=3)
    async with house.supervisor() as supervisor:
        reply = await supervisor.ask(until="immediate", wait_ms=600_000)

        assert elapsed_s() == pytest.approx(3)
        assert house.office.begun_at[RECALL] == pytest.approx(3)
        assert reply.document is not None
        assert "memory_create" not in reply.document["background"]  # type: ignore[operator]
        assert set(reply.document["immediate"]) >= {"memory_extract", "thread_extract"}  # type: ignore[arg-type]


@in_virtual_time
async def test_a_late_agent_is_marked_and_its_findings_come_in_all_the_same() -> None:
    """In the background only: the answer does not wait past the deadline, the document changes when it comes."""
    house = House({KNOWLEDGE: napping(90, {"facts": [{"subj": "Harbour", "fact": "frozen"}]})}, late_s=60)
    async with house.supervisor() as supervisor:
        reply = await supervisor.ask(wait_ms=600_000)
        at_s, late = elapsed_s(), await house.document()
        await asyncio.sleep(40)
        found = await house.document()

    assert (reply.kind, at_s) == ("done", pytest.approx(60))
    assert (await house.sections())["knowledge"]["facts"][0]["src"] == "Ch1-R1"
    assert dict(late.sections())["knowledge"] == {"status": "late"}
    assert (late.meta.status, late.meta.agents_failed) == ("partial", 1)
    assert (found.meta.status, found.meta.agents_failed) == ("fresh", 0)
    assert not house.office.cancelled


@in_virtual_time
@pytest.mark.parametrize(
    ("agent", "section", "given_up_s"), [(KNOWLEDGE, "knowledge", 70), (ENTITIES, "entity_analysis", 20)]
)
async def test_an_agent_that_hangs_is_given_up_in_the_end(agent: str, section: str, given_up_s: float) -> None:
    """An immediate one at its deadline, one of the background after its time to be late; what it cost counts."""
    house = House({agent: napping(10_000)}, late_s=10)
    async with house.supervisor() as supervisor:
        await supervisor.ask(wait_ms=600_000)
        while supervisor.desk.driven:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        ended_s = elapsed_s()

    assert ended_s == pytest.approx(given_up_s, abs=0.3)
    assert house.office.cancelled == house.office.ids_of(agent)
    assert (await house.sections())[section] == {"status": "late"}
    assert (await house.document()).stats.total_cost_usd == 0.25


@in_virtual_time
@pytest.mark.parametrize(
    ("found", "error"),
    [
        ([1, 2], "Nonsense: section 'knowledge' has to be a JSON object, this is list"),
        ({"facts": "many"}, "Nonsense: this is no section 'knowledge': facts: Input should be a valid tuple"),
        ({"facts": [], "x": "y" * 70_000}, "Nonsense: section 'knowledge' has 70,0"),
        ({"facts": [], "x": float("nan")}, "Nonsense: section 'knowledge' cannot be written as JSON"),
        ({"facts": [], "x": "\ud800"}, "Nonsense: section 'knowledge' cannot be written as JSON"),
        ({"facts": [], "x": nested(64)}, "Nonsense: section 'knowledge' is nested deeper than 64"),
        (
            {"facts": [{"subj": "a", "fact": "b"}] * 65},
            "Nonsense: section 'knowledge' has 65 items in 'facts', at most",
        ),
        (None, "Nonsense: section 'knowledge' has to be a JSON object, this is NoneType"),
    ],
)
async def test_nonsense_fails_its_own_section_alone(found: Any, error: str) -> None:
    """Whatever an agent returns."""

    async def nonsense(assignment: TaskAssignment) -> Any:
        return report_on(assignment, "completed", result=found)

    house = House({KNOWLEDGE: nonsense})
    async with house.supervisor() as supervisor:
        await supervisor.ask()

    section = (await house.sections())["knowledge"]
    assert section["status"] == "failed"
    assert section["error"].startswith(error)
    assert len(section["error"]) <= 300
    meta = (await house.document()).meta
    assert (meta.agents_run, meta.agents_ok, meta.agents_failed, meta.agents_skipped) == (10, 8, 1, 1)


@in_virtual_time
async def test_what_an_agent_says_of_its_own_fate_is_not_believed() -> None:
    """How long it took, and whether it failed, is the coordinator's to say."""
    house = House({KNOWLEDGE: lambda _: {"facts": [], "status": "skipped", "error": "?", "dur": 1, "by": "m"}})
    async with house.supervisor() as supervisor:
        await supervisor.ask()

    assert (await house.sections())["knowledge"] == {"dur": 200, "facts": [], "by": "m"}
    assert (await house.document()).meta.agents_ok == 9


@in_virtual_time
async def test_the_same_response_is_served_and_changes_nothing() -> None:
    """No agent is asked, nothing is written, and the document is the same."""
    house = House()
    async with house.supervisor() as supervisor:
        first = await supervisor.ask()
        folds, asked = house.analyses.folds, len(house.office.assigned)
        again = await supervisor.ask()

    assert (first.served, again.served) == (False, True)
    assert again.document == first.document
    assert (house.analyses.folds, len(house.office.assigned)) == (folds, asked)
    assert 'tasklore_analyses_total{outcome="served"} 1.0' in house.metrics.render().decode()


@in_virtual_time
async def test_only_who_failed_is_asked_again() -> None:
    """Under another task, and not those who waited for it."""
    fails = [True]

    def now_and_then(_assignment: TaskAssignment) -> Any:
        if fails.pop():
            fails.append(False)
            raise ValueError("no entities today")
        return {"tier3": ["Tom"]}

    house = House({ENTITIES: now_and_then})
    async with house.supervisor() as supervisor:
        first = await supervisor.ask()
        again = await supervisor.ask()

    assert first.document is not None
    assert first.document["immediate"]["entity_analysis"]["error"] == "ValueError: no entities today"  # type: ignore[index,call-overload]
    assert again.served is False
    assert (await house.document()).meta.status == "fresh"
    assert house.office.ran[ENTITIES] == len(house.office.ids_of(ENTITIES)) == 2
    assert {agent: count for agent, count in house.office.ran.items() if count > 1} == {ENTITIES: 2}


@in_virtual_time
async def test_whoever_wishes_it_has_everybody_asked_again() -> None:
    """Each once, under another task; changes are replaced, not added to."""
    house = House({RELATIONS: lambda _: {"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]}})
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        await supervisor.ask(refresh=True)

    assert set(house.office.ran.values()) == {2}
    assert (await house.stories.standing(STORY, 2)).scores == {"Mara|Tom": 5}
    assert (await house.document()).meta.agents_ok == 9


@in_virtual_time
async def test_another_text_is_analysed_anew_and_what_the_first_changed_is_replaced() -> None:
    """A finding that is not made again is not there any more."""
    texts = {
        TEXT: {"facts": [{"subj": "Lamp", "fact": "lit"}]},
        "Nothing happened.": {"facts": []},
    }

    async def know(assignment: TaskAssignment) -> Any:
        response = await house.stories.response(STORY, assignment.response_number or 0)
        assert response is not None
        return texts[response.text]

    house = House({KNOWLEDGE: know})
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        known = (await house.stories.standing(STORY, 2)).knowledge
        await supervisor.ask(text="Nothing happened.")

    assert [fact.fact for fact in known] == ["lit"]
    assert (await house.stories.standing(STORY, 2)).knowledge == ()
    assert house.office.ran[KNOWLEDGE] == 2


@in_virtual_time
async def test_whoever_meant_the_text_before_is_told_so() -> None:
    """And the tasks that looked at it are given up."""
    house = House({KNOWLEDGE: napping(5)})
    async with house.supervisor() as supervisor:
        first = asyncio.create_task(supervisor.ask())
        await asyncio.sleep(1)
        second = await supervisor.ask(text="Other words.")

    assert (await first).kind == "refused"
    assert "another text" in (await first).text
    assert second.kind == "done"
    assert house.office.cancelled == house.office.ids_of(KNOWLEDGE)[:1]


@in_virtual_time
async def test_a_new_beginning_of_the_story_is_another_analysis() -> None:
    """What is analysed rests on the story's folder, too."""
    house = House()
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        house.load(title="The frozen harbour")
        reply = await supervisor.ask()

    assert not reply.served
    assert set(house.office.ran.values()) == {2}


@in_virtual_time
async def test_wishes_for_one_response_share_its_tasks() -> None:
    """Ten who ask at once have nobody asked twice."""
    house = House(every(0.2))
    async with house.supervisor() as supervisor:
        replies = await asyncio.gather(*(supervisor.ask() for _ in range(10)))

    assert {reply.kind for reply in replies} == {"done"}
    assert set(house.office.ran.values()) == {1}


@in_virtual_time
async def test_responses_of_one_story_lose_no_update_of_each_other() -> None:
    """Two supervisors fold eight of them at once: every number of a thread is given once, every point counted once."""

    def open_thread(assignment: TaskAssignment) -> Any:
        return {"new": [{"id": "?", "title": f"Thread of {assignment.response_number}"}]}

    points = {"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]}
    house = House({THREADS: open_thread, RELATIONS: lambda _: points})
    async with house.supervisor() as one, house.supervisor() as other:
        asked = [(one, other)[number % 2].ask(number, text=f"{TEXT} {number}") for number in range(1, 9)]
        replies = await asyncio.gather(*asked)

    standing = await house.stories.standing(STORY, 9)
    assert {reply.kind for reply in replies} == {"done"}
    assert sorted(state.thread.id for state in standing.threads) == [f"THREAD-{number:03}" for number in range(1, 9)]
    assert standing.scores == {"Mara|Tom": 40}


@in_virtual_time
async def test_two_supervisors_of_one_analysis_do_no_harm() -> None:
    """Each task runs once, each change is there once, and both answer."""
    house = House({**every(1), RELATIONS: napping(1, {"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]})})
    async with house.supervisor() as one, house.supervisor() as other:
        replies = await asyncio.gather(one.ask(), other.ask(), other.ask(), one.ask())

    assert {reply.kind for reply in replies} == {"done"}
    assert set(house.office.ran.values()) == {1}
    assert (await house.stories.standing(STORY, 2)).scores == {"Mara|Tom": 5}


@in_virtual_time
async def test_another_supervisor_goes_on_where_one_died() -> None:
    """With the same tasks: what was under way is not asked twice, and what had ended stays."""
    house = House({KNOWLEDGE: napping(20)}, agents={"contradiction": ON})
    async with house.supervisor() as first:
        asking = asyncio.create_task(first.ask())
        await asyncio.sleep(2)
        first.die()
        asking.cancel()
        async with house.supervisor() as second:
            await asyncio.sleep(30)
            assert not second.desk.driven

    document = await house.document()
    assert (document.meta.agents_ok, document.meta.status) == (10, "fresh")
    assert set(house.office.ran.values()) == {1}
    assert len(house.office.ids_of(KNOWLEDGE)) == 1


@in_virtual_time
async def test_an_analysis_stays_in_the_trace_of_its_wish_whoever_goes_on_with_it() -> None:
    """Nobody tells the next supervisor but what is written; a wish to do it again has a trace of its own."""
    wished, again = made_context(7, 8, 1), made_context(9, 8, 1)
    house = House({KNOWLEDGE: napping(5)})
    async with house.supervisor() as first:
        with tracing.within(wished):
            asking = asyncio.create_task(first.ask())
        await asyncio.sleep(2)
        first.die()
        asking.cancel()
        sent = len(house.office.traces)
        async with house.supervisor() as second:
            await asyncio.sleep(30)
            assert len(house.office.traces) > sent
            assert set(house.office.traces) == {str(wished)}
            house.office.traces.clear()
            with tracing.within(again):
                await second.ask(refresh=True)
    assert set(house.office.traces) == {str(again)}


@in_virtual_time
async def test_whoever_leaves_in_good_order_lets_others_go_on_at_once() -> None:
    """The lease does not have to lapse; whoever waits is told to ask again."""
    house = House({KNOWLEDGE: napping(5)})
    async with house.supervisor(lease_s=600) as first:
        asking = asyncio.create_task(first.ask())
        await asyncio.sleep(1)
        async with house.supervisor(lease_s=600) as second:
            await first.desk.drain()
            reply = await asking
            await asyncio.sleep(1)
            assert second.desk.driven == ((STORY, 1),)
            await asyncio.sleep(5)

    assert (reply.kind, "ask again" in reply.text) == ("pending", True)
    assert (await house.document()).meta.status == "fresh"


@in_virtual_time
async def test_who_drives_an_analysis_keeps_it() -> None:
    """As long as it renews its lease nobody else looks after it."""
    house = House({KNOWLEDGE: napping(30)})
    async with house.supervisor(lease_s=2) as first, house.supervisor(lease_s=2) as second:
        asking = asyncio.create_task(first.ask(wait_ms=600_000))
        await asyncio.sleep(1)
        seen = set[tuple[tuple[str, int], ...]]()
        while not asking.done():
            seen.add(second.desk.driven)
            await asyncio.sleep(0.5)

    assert seen == {()}


@in_virtual_time
@pytest.mark.parametrize("trouble", ["away", "lost"])
async def test_a_store_that_is_away_for_a_moment_loses_nothing(trouble: str) -> None:
    """Whether it did not write, or wrote and was not heard."""
    house = House({RELATIONS: lambda _: {"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]}})
    async with house.supervisor() as supervisor:
        asking = asyncio.create_task(supervisor.ask())
        while not house.analyses.folds:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0)
        setattr(house.analyses, trouble, 3)
        reply = await asking

    assert reply.kind == "done"
    assert (await house.document()).meta.agents_ok == 9
    assert set(house.office.ran.values()) == {1}
    assert (await house.stories.standing(STORY, 2)).scores == {"Mara|Tom": 5}
    assert 'analysis_sections_total{agent="StoryRelationshipAgent",outcome="ok"}' in house.metrics.render().decode()


@in_virtual_time
async def test_a_refresh_whose_answer_was_lost_asks_once_more_and_not_twice() -> None:
    """The turn is taken again to the same effect."""
    house = House(every(1))
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        house.analyses.lost = 1
        await supervisor.ask(refresh=True)

    assert set(house.office.ran.values()) == {2}


@in_virtual_time
async def test_a_store_that_is_away_at_the_beginning_refuses() -> None:
    """Nothing is begun that nobody could find again."""
    house = House()
    house.analyses.is_gone = True
    async with house.supervisor() as supervisor:
        reply = await supervisor.ask()

    assert (reply.kind, "ask again" in reply.text) == ("refused", True)
    assert not house.office.assigned


@in_virtual_time
async def test_a_task_that_is_not_accepted_is_sent_again() -> None:
    """The way to the workers was blocked for a moment."""
    house = House()
    house.office.refuses = 12
    async with house.supervisor() as supervisor:
        await supervisor.ask()

    assert (await house.document()).meta.status == "fresh"


@in_virtual_time
async def test_an_agent_that_nobody_knows_fails_at_once_and_says_how_to_start_it() -> None:
    """The others stand; once it is there it is asked."""
    house = House()
    ten = house.catalogue
    house.catalogue = cards(*[(seat.agent_id, seat.task) for seat in ROSTER if seat.agent_id != ENTITIES])
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        section = (await house.sections())["entity_analysis"]
        house.catalogue = ten
        await supervisor.ask()

    assert section["error"].startswith("UnknownAgent: no agent 'StoryEntityAgent' is known; start `tasklore worker")
    assert (await house.document()).meta.status == "fresh"
    assert house.office.ran[ENTITIES] == 1


@in_virtual_time
async def test_without_a_single_agent_nothing_is_begun() -> None:
    """It is refused with the cure, and works the next time."""
    house = House()
    ten, house.catalogue = house.catalogue, cards()
    async with house.supervisor() as supervisor:
        refused = await supervisor.ask()
        house.catalogue = ten
        reply = await supervisor.ask()

    assert (refused.kind, "tasklore worker workers.agents.story" in refused.text) == ("refused", True)
    assert (reply.kind, reply.served) == ("done", False)


@in_virtual_time
async def test_an_analysis_under_way_ends_when_its_settings_come_to_lie_beyond_the_limits() -> None:
    """The request is refused with the setting's name; nothing drives it any more, and it works once that is mended."""
    house = House({KNOWLEDGE: napping(30)})
    async with house.supervisor() as supervisor:
        waiting = asyncio.create_task(supervisor.ask(wait_ms=600_000))
        await asyncio.sleep(1)
        house.load(late_s=1e-9)
        refused = await supervisor.ask(refresh=True)
        house.load()
        served = await supervisor.ask(wait_ms=600_000)
        await waiting
        await asyncio.sleep(1)
        assert not supervisor.desk.driven
    assert (refused.kind, refused.text.partition(" of the story")[0]) == ("refused", "late_s")
    assert served.kind == "done"


@in_virtual_time
async def test_a_storys_own_agent_takes_part_and_its_section_is_kept() -> None:
    """Whatever it finds, in the group and after those that the story says."""
    tone = SeatSettings(agent="ToneAgent", task="hear", group="immediate", after=("knowledge",))
    house = House({"ToneAgent": lambda _: {"tone": {"warm": 0.7}}, KNOWLEDGE: napping(2)}, agents={"tone": tone})
    house.catalogue = cards(*[(seat.agent_id, seat.task) for seat in ROSTER], ("ToneAgent", "hear"))
    async with house.supervisor() as supervisor:
        reply = await supervisor.ask()

    assert reply.document is not None
    assert reply.document["immediate"]["tone"] == {"dur": 200, "tone": {"warm": 0.7}}  # type: ignore[index,call-overload]
    assert house.office.begun_at["ToneAgent"] == pytest.approx(2)
    assert (await house.document()).meta.agents_run == 11


@in_virtual_time
async def test_an_agent_that_is_switched_off_is_not_asked() -> None:
    """Its section says so, its change is taken back, and those who would wait for it do not."""
    house = House({KNOWLEDGE: lambda _: {"facts": [{"subj": "Lamp", "fact": "lit"}]}})
    off = {"knowledge": SeatSettings(enabled=False), "contradiction": ON}
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        house.load(agents=off)
        await supervisor.ask()

    assert (await house.sections())["knowledge"] == {"dur": 0, "status": "skipped"}
    assert (await house.stories.standing(STORY, 2)).knowledge == ()
    meta = (await house.document()).meta
    assert (meta.agents_run, meta.agents_ok, meta.agents_skipped, meta.status) == (10, 9, 1, "fresh")


@in_virtual_time
async def test_what_is_spent_is_summed_exactly() -> None:
    """By group, over all runs, failed ones too; in tenths that binary fractions cannot hold."""

    def spend(assignment: TaskAssignment) -> Any:
        usage = Usage(input_tokens=10, output_tokens=1, cost_usd=0.1)
        status = "failed" if assignment.agent_id == KNOWLEDGE else "completed"
        return report_on(assignment, status, result={}, usage=usage)  # type: ignore[arg-type] # a status

    house = House({seat.agent_id: spend for seat in ROSTER})
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        first = (await house.document()).stats
        await supervisor.ask()

    stats = (await house.document()).stats
    assert (first.background_cost_usd, first.immediate_cost_usd, first.total_cost_usd) == (0.5, 0.4, 0.9)
    assert (stats.background_cost_usd, stats.total_cost_usd) == (0.6, 1.0)
    assert (first.background_tokens, first.immediate_tokens, first.total_tokens) == (55, 44, 99)
    assert (stats.background_tokens, stats.total_tokens) == (66, 110)


@in_virtual_time
async def test_wall_clock_is_told_by_group() -> None:
    """From the first dispatch to the last report, and the sum of both."""
    house = House({**every(1), KNOWLEDGE: napping(4), FACTS: napping(2)})
    async with house.supervisor() as supervisor:
        await supervisor.ask()

    stats = (await house.document()).stats
    assert (stats.background_ms, stats.immediate_ms, stats.total_ms) == (4000, 3000, 7000)


@in_virtual_time
async def test_who_asks_again_much_later_does_not_make_it_long() -> None:
    """Each run of the analysis counts from its own first dispatch."""
    fails = [True]

    async def once(_assignment: TaskAssignment) -> Any:
        await asyncio.sleep(1)
        if fails:
            fails.clear()
            raise ValueError("?")
        return {}

    house = House({**every(2), KNOWLEDGE: once})
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        await asyncio.sleep(3600)
        await supervisor.ask()

    assert (await house.document()).stats.background_ms == 3000


@in_virtual_time
async def test_what_was_not_done_in_time_is_told_as_far_as_it_is() -> None:
    """And is done all the same."""
    house = House({KNOWLEDGE: napping(5)})
    async with house.supervisor() as supervisor:
        reply = await supervisor.ask(wait_ms=1000)
        await asyncio.sleep(5)

    assert (reply.kind, "ask again" in reply.text) == ("pending", True)
    assert reply.document is not None
    assert reply.document["meta"]["agents_ok"] == 8  # type: ignore[index,call-overload]
    assert (await house.document()).meta.status == "fresh"


@in_virtual_time
async def test_a_document_that_is_gone_is_made_anew_though_its_record_stands() -> None:
    """What is written of an end counts only with what was found."""
    house = House()
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        revision, _, record = await house.analyses.record(STORY, 1)
        await house.analyses.fold(STORY, 1, revision, b"{}", record or b"", {}, 100)
        reply = await supervisor.ask()

    assert not reply.served
    assert (await house.document()).meta.agents_ok == 9
    assert set(house.office.ran.values()) == {2}


@in_virtual_time
async def test_a_story_that_is_deleted_meanwhile_ends_its_analyses() -> None:
    """Whoever waits is told, and nobody looks after them any more."""
    house = House({KNOWLEDGE: napping(5)})
    async with house.supervisor() as supervisor:
        asking = asyncio.create_task(supervisor.ask())
        await asyncio.sleep(1)
        await house.stories.delete(STORY)
        reply = await asking
        await asyncio.sleep(10)
        assert not supervisor.desk.driven

    assert reply.kind == "refused"
    assert "no story" in reply.text
    assert await house.analyses.due("S", 1) == []


@in_virtual_time
async def test_more_at_once_than_are_kept_are_analysed_once_each() -> None:
    """And each is answered; what is not kept says so."""
    house = House(every(0.2))
    house.keep = 2
    async with house.supervisor() as one, house.supervisor() as other:
        asked = [(one, other)[number % 2].ask(number, text=f"{TEXT} {number}") for number in range(1, 7)]
        replies = await asyncio.gather(*asked)
        await asyncio.sleep(20)
        assert one.desk.driven == other.desk.driven == ()

    assert {reply.kind for reply in replies} == {"done"}
    assert set(house.office.ran.values()) == {6}
    assert {"TASKLORE_ANALYSES_KEPT" in reply.text for reply in replies if reply.document is None} <= {True}
    assert len(await house.analyses.numbers(STORY)) == 2


@in_virtual_time
async def test_a_story_that_is_deleted_and_comes_again_meanwhile_ends_its_analyses() -> None:
    """With or without its text: nobody is asked again until somebody wishes it."""
    house = House({KNOWLEDGE: napping(5)})
    async with house.supervisor() as supervisor:
        for has_text in (False, True):
            asking = asyncio.create_task(supervisor.ask())
            await asyncio.sleep(1)
            await house.stories.delete(STORY)
            house.load()
            if has_text:
                house.stories.add_response(STORY, StoryResponse(number=1, text=TEXT))
            reply = await asking
            assert (reply.kind, "again" in reply.text or "send its text" in reply.text) == ("refused", True), reply
            await asyncio.sleep(20)
            assert not supervisor.desk.driven

    assert set(house.office.ran.values()) == {2}
    assert await house.analyses.due("S", 1) == []


@in_virtual_time
async def test_what_rests_on_an_earlier_response_is_stale_when_that_is_analysed_otherwise() -> None:
    """It is served as it is, and says so; asked of everybody anew it is fresh."""
    points = {"1": 10, "2": 5}

    def show(assignment: TaskAssignment) -> Any:
        change = points[str(assignment.response_number)]
        return {"interactions": [{"chars": ["Mara", "Tom"], "change": change}]}

    house = House({RELATIONS: show})
    async with house.supervisor() as supervisor:
        await supervisor.ask(1)
        await supervisor.ask(2)
        await supervisor.ask(1, refresh=True)
        unchanged = (await house.document(2)).meta.status
        points["1"] = 50
        await supervisor.ask(1, text="Other words.")
        served = await supervisor.ask(2)
        await supervisor.ask(2, refresh=True)

    assert unchanged == "fresh"
    assert served.served
    assert served.document is not None
    assert served.document["meta"]["status"] == "stale"  # type: ignore[index,call-overload]
    assert (await house.document(2)).meta.status == "fresh"
    assert (await house.sections(2))["relationship"]["interactions"][0]["prev"] == 50


@in_virtual_time
async def test_who_failed_and_is_asked_again_does_not_make_the_others_fresh() -> None:
    """They were told what the story was before."""
    changes = [{"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]}] * 2
    fails = [True]

    def know(assignment: TaskAssignment) -> Any:
        if assignment.response_number == 2 and fails.pop():
            fails.append(False)
            raise ValueError("nothing today")
        return {"facts": []}

    house = House({KNOWLEDGE: know, RELATIONS: lambda one: changes.pop() if one.response_number == 1 else {}})
    async with house.supervisor() as supervisor:
        await supervisor.ask(1)
        await supervisor.ask(2)
        changes[:] = [{"interactions": []}]
        await supervisor.ask(1, refresh=True)
        await supervisor.ask(2)

    assert (await house.document(2)).meta.agents_ok == 9
    assert (await house.document(2)).meta.status == "stale"


@in_virtual_time
async def test_beyond_some_nobody_is_held() -> None:
    """Their analysis begins all the same, and those that are served do not wait for the others."""
    house = House({KNOWLEDGE: napping(5)})
    async with house.supervisor() as supervisor:
        held = [asyncio.create_task(supervisor.ask(number)) for number in range(1, HELD + 1)]
        await asyncio.sleep(1)
        reply = await supervisor.ask(HELD + 1)
        at_s = elapsed_s()
        assert {one.kind for one in await asyncio.gather(*held)} == {"done"}
        again = await supervisor.ask(HELD + 1)

    assert (reply.kind, at_s, again.kind) == ("pending", pytest.approx(1), "done")
    assert set(house.office.ran.values()) == {HELD + 1}


@in_virtual_time
@pytest.mark.parametrize("number", [1_000_000_001, 10**25])
async def test_a_number_that_no_story_reaches_is_refused(number: int) -> None:
    """It would make every other response an old one."""
    house = House()
    async with house.supervisor() as supervisor:
        reply = await supervisor.ask_bytes(f'{{"story_id":"{STORY}","response_number":{number},"text":"x"}}'.encode())

    assert reply.kind == "refused"
    assert "response_number: Input should be less than or equal to 1000000000" in reply.text
    assert await house.stories.numbers(STORY) == ()


@in_virtual_time
async def test_whatever_is_said_of_costs_the_document_is_json() -> None:
    """No infinity, and nothing that fails on the way."""

    async def spend(assignment: TaskAssignment) -> Any:
        usage = Usage(input_tokens=10**4000, output_tokens=-3, cost_usd=1e308)
        saved = {"before": 10**12, "after": 0, "pct": 100}
        return report_on(assignment, "completed", result={"reduction": saved}, usage=usage)

    house = House({seat.agent_id: spend for seat in ROSTER}, reader_usd_per_million=1_000_000)
    async with house.supervisor() as supervisor:
        reply = await supervisor.ask()

    assert reply.kind == "done", reply
    assert reply.document is not None
    json.dumps(reply.document, allow_nan=False)
    assert (await house.document()).stats.total_cost_usd == 9e9


@in_virtual_time
async def test_changes_are_noted_for_every_section_that_makes_some() -> None:
    """And for no other."""
    found: dict[str, Any] = {
        "StoryResponseAgent": {"scene": {"type": "quiet"}},
        MEMORIES: {"memories": [{"id": "lamp", "char": "Mara", "sum": "Lit it", "sig": 5}]},
        RELATIONS: {"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]},
        THREADS: {"new": [{"id": "?", "title": "The door"}]},
        KNOWLEDGE: {"facts": [{"subj": "Lamp", "fact": "lit"}]},
    }
    house = House({agent: lambda assignment: found[assignment.agent_id] for agent in found})
    async with house.supervisor() as supervisor:
        await supervisor.ask()

    assert sorted((await house.stories.changes(STORY, CHANGING))[1]) == sorted(CHANGING)


@in_virtual_time
async def test_a_mistake_of_ours_is_told_and_leaves_the_analysis_to_others() -> None:
    """Whoever waits gets an apology, and it is looked at again later."""
    house = House()
    house.stories.standing = None  # type: ignore[assignment,method-assign] # a mistake
    async with house.supervisor() as supervisor:
        reply = await supervisor.ask()
        at_once = await house.analyses.due("S", 1)
        await asyncio.sleep(0.1)

    assert reply.kind == "refused"
    assert "the supervisor's log says why" in reply.text
    assert at_once == []


@in_virtual_time
async def test_a_wish_that_comes_as_an_analysis_ends_is_not_lost() -> None:
    """Asked at any moment, it is answered."""
    house = House(every(1))
    async with house.supervisor() as supervisor:
        waits = [asyncio.create_task(supervisor.ask()) for _ in range(1)]
        while not all(wait.done() for wait in waits):
            if supervisor.desk.driven:
                waits.append(asyncio.create_task(supervisor.ask()))
            await asyncio.sleep(0.05)

    assert {wait.result().kind for wait in waits} == {"done"}
    assert set(house.office.ran.values()) == {1}


@in_virtual_time
async def test_a_desk_that_does_not_work_takes_nothing_up() -> None:
    """Whoever asks it is told to ask again."""
    house = House()
    async with house.supervisor() as supervisor:
        await supervisor.desk.drain()
        reply = await supervisor.ask()

    assert (reply.kind, "ask again" in reply.text) == ("pending", True)


@in_virtual_time
async def test_the_first_word_on_a_wish_counts() -> None:
    """Whoever waits hears one outcome."""
    request = PendingRequest()
    request.settle(MemoryUnavailable("away"))
    request.settle(MemoryUnavailable("later"))

    with pytest.raises(MemoryUnavailable, match="away"):
        await request.wait(1)


@in_virtual_time
async def test_the_times_of_the_house_are_those_of_its_loop() -> None:
    """The fake clock is what the tests rest on."""
    before = now()
    await asyncio.sleep(90)

    assert (now() - before).total_seconds() == pytest.approx(90)
    assert StoryResponse(number=1, text=TEXT).source == "Ch1-R1"


@in_virtual_time
async def test_asking_again_is_written_once_though_its_answer_was_lost() -> None:
    """Whoever nobody knows fails in one more run beside whoever is asked again, not in two."""

    def never(_assignment: TaskAssignment) -> Any:
        raise ValueError("never")

    house = House({KNOWLEDGE: never})
    house.catalogue = cards(*[(seat.agent_id, seat.task) for seat in ROSTER if seat.agent_id != ENTITIES])
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        house.analyses.lost = 1
        async with house.supervisor():
            await supervisor.ask()
            await asyncio.sleep(10)

    record = read_record((await house.analyses.record(STORY, 1))[2])
    assert record is not None
    assert record.run == 2


@in_virtual_time
async def test_a_wish_is_taken_up_while_the_analysis_before_is_still_tidying_up() -> None:
    """Tasks that nobody needs any more are being cancelled meanwhile."""
    house = House({KNOWLEDGE: napping(5)})
    cancel = house.office.cancel

    async def slowly(task_id: str, reason: str, *, grace_s: float = 2.0) -> Any:
        await asyncio.sleep(600)
        return await cancel(task_id, reason, grace_s=grace_s)

    house.office.cancel = slowly  # type: ignore[method-assign] # slower than its own
    async with house.supervisor() as supervisor:
        first = asyncio.create_task(supervisor.ask())
        await asyncio.sleep(1)
        await supervisor.ask(text="Other words.")
        reply = await supervisor.ask(text="Other words.", refresh=True)
        took_s = elapsed_s()

    assert (await first).kind == "refused"
    assert reply.kind == "done"
    assert took_s < 60
