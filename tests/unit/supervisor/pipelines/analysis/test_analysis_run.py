"""Analyses in virtual time: when each agent is asked, what becomes of failures, and who asks again."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import SeatSettings, StoryResponse
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import TaskAssignment, Usage
from tasklore.contracts.traces import made_context
from tasklore.runtime import tracing
from tasklore.supervisor.pipelines.analysis.records import read_record
from tests.unit.supervisor.pipelines.analysis.fake_system import (
    STORY,
    TEXT,
    FakeSystem,
    cards,
)
from tests.unit.supervisor.pipelines.fake_system import FullBounds
from tests.unit.supervisor.reports import report_on
from tests.virtual_time import elapsed_s, in_virtual_time

ON = SeatSettings(enabled=True)
MEMORIES = "StoryMemoryCreationAgent"
THREADS = "StoryThreadAgent"
RECALL = "StoryMemoryRecallAgent"
KNOWLEDGE = "StoryKnowledgeAgent"
ENTITIES = "StoryEntityAgent"
FACTS = "StoryFactAgent"
RELATIONS = "StoryRelationshipAgent"


def napping(
    seconds: float, found: Any = None
) -> Callable[[TaskAssignment], Awaitable[Any]]:
    """Return an agent that takes *seconds* for what it finds."""

    async def work(_assignment: TaskAssignment) -> Any:
        await asyncio.sleep(seconds)
        return {"by": "rules"} if found is None else found

    return work


def nested(deep: int) -> Any:
    found: list[Any] = []
    for _ in range(deep - 1):
        found = [found]
    return found


def every(seconds: float) -> dict[str, Any]:
    return {seat.agent_id: napping(seconds) for seat in SECTION_AGENTS}


@in_virtual_time
async def test_ten_agents_take_as_long_as_the_longest_chain() -> None:
    system = FakeSystem(every(0.2), agents={"contradiction": ON})
    async with system.supervisor() as supervisor:
        reply = await supervisor.ask()
        took_s = elapsed_s()
    assert reply.kind == "done"
    assert took_s == pytest.approx(0.4)
    late = {FACTS, RECALL, "StoryThreadRecallAgent", "StoryContradictionAgent"}
    assert {agent for agent, at in system.workers.begun_at.items() if at >= 0.2} == late
    meta = (await system.document()).meta
    assert (
        meta.agents_run,
        meta.agents_ok,
        meta.agents_failed,
        meta.agents_skipped,
    ) == (10, 10, 0, 0)


@in_virtual_time
async def test_findings_of_a_late_agent_are_added_later() -> None:
    system = FakeSystem(
        {KNOWLEDGE: napping(90, {"facts": [{"subj": "Harbour", "fact": "frozen"}]})},
        late_s=60,
    )
    async with system.supervisor() as supervisor:
        reply = await supervisor.ask(wait_ms=600_000)
        at_s = elapsed_s()
        late = await system.document()
        await asyncio.sleep(40)
        found = await system.document()
    assert (reply.kind, at_s) == ("done", pytest.approx(60))
    assert (await system.sections())["knowledge"]["facts"][0]["src"] == "Ch1-R1"
    assert dict(late.sections())["knowledge"] == {"status": "late"}
    assert (late.meta.status, late.meta.agents_failed) == ("partial", 1)
    assert (found.meta.status, found.meta.agents_failed) == ("fresh", 0)
    assert not system.workers.cancelled


@in_virtual_time
@pytest.mark.parametrize(
    ("agent", "section", "given_up_s"),
    [(KNOWLEDGE, "knowledge", 70), (ENTITIES, "entity_analysis", 20)],
)
async def test_an_agent_that_hangs_is_cancelled(
    agent: str, section: str, given_up_s: float
) -> None:
    system = FakeSystem({agent: napping(10_000)}, late_s=10)
    async with system.supervisor() as supervisor:
        await supervisor.ask(wait_ms=600_000)
        while supervisor.desk.driven:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        ended_s = elapsed_s()
    assert ended_s == pytest.approx(given_up_s, abs=0.3)
    assert list(system.workers.cancelled) == system.workers.ids_of(agent)
    assert (await system.sections())[section] == {"status": "late"}
    assert (await system.document()).stats.total_cost_usd == 0.25


@in_virtual_time
async def test_an_agent_that_hangs_is_cancelled_once_the_ledger_is_back() -> None:
    system = FakeSystem({ENTITIES: napping(10_000)})
    cancel = system.workers.cancel
    away = [True] * 3

    async def cancel_unless_away(task_id: str, reason: str = "") -> None:
        if away:
            away.pop()
            raise MemoryUnavailable("away")
        await cancel(task_id, reason)

    system.workers.cancel = cancel_unless_away  # type: ignore[method-assign] # the ledger of one method
    async with system.supervisor() as supervisor:
        await supervisor.ask(wait_ms=600_000)
        while not await supervisor.desk.is_idle():  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
    assert not away
    assert list(system.workers.cancelled) == system.workers.ids_of(ENTITIES)
    assert set(system.workers.ran.values()) == {1}
    assert (await system.document()).stats.total_cost_usd == 0.25


@in_virtual_time
@pytest.mark.parametrize(
    ("found", "error"),
    [
        ([1, 2], "Nonsense: section 'knowledge' has to be a JSON object, this is list"),
        (
            {"facts": "many"},
            "Nonsense: this is not a section 'knowledge': facts: must be a list",
        ),
        ({"facts": [], "x": "y" * 70_000}, "Nonsense: section 'knowledge' has 70,0"),
        (
            {"facts": [], "x": float("nan")},
            "Nonsense: section 'knowledge' cannot be written as JSON",
        ),
        (
            {"facts": [], "x": "\ud800"},
            "Nonsense: section 'knowledge' cannot be written as JSON",
        ),
        (
            {"facts": [], "x": nested(64)},
            "Nonsense: section 'knowledge' is nested deeper than 64",
        ),
        (
            {"facts": [{"subj": "a", "fact": "b"}] * 65},
            "Nonsense: section 'knowledge' has 65 items in 'facts', at most",
        ),
    ],
)
async def test_an_invalid_result_fails_its_own_section_alone(
    found: Any, error: str
) -> None:
    async def nonsense(assignment: TaskAssignment) -> Any:
        return report_on(assignment, "completed", result=found)

    system = FakeSystem({KNOWLEDGE: nonsense})
    async with system.supervisor() as supervisor:
        await supervisor.ask()

    section = (await system.sections())["knowledge"]
    assert section["status"] == "failed"
    assert section["error"].startswith(error)
    assert len(section["error"]) <= 300
    meta = (await system.document()).meta
    assert (
        meta.agents_run,
        meta.agents_ok,
        meta.agents_failed,
        meta.agents_skipped,
    ) == (10, 8, 1, 1)


@in_virtual_time
async def test_status_and_duration_reported_by_an_agent_are_ignored() -> None:
    system = FakeSystem(
        {
            KNOWLEDGE: lambda _: {
                "facts": [],
                "status": "skipped",
                "error": "?",
                "dur": 1,
                "by": "m",
            }
        }
    )
    async with system.supervisor() as supervisor:
        await supervisor.ask()
    assert (await system.sections())["knowledge"] == {
        "dur": 200,
        "facts": [],
        "by": "m",
    }
    assert (await system.document()).meta.agents_ok == 9


@in_virtual_time
async def test_failed_agents_alone_are_asked_again() -> None:
    fails = [True]

    def now_and_then(_assignment: TaskAssignment) -> Any:
        if fails.pop():
            fails.append(False)
            raise ValueError("no entities today")
        return {"tier3": ["Tom"]}

    system = FakeSystem({ENTITIES: now_and_then})
    async with system.supervisor() as supervisor:
        first = await supervisor.ask()
        again = await supervisor.ask()

    assert first.document is not None
    assert (
        first.document["immediate"]["entity_analysis"]["error"]
        == "ValueError: no entities today"
    )  # type: ignore[index,call-overload]
    assert again.served is False
    assert (await system.document()).meta.status == "fresh"
    assert system.workers.ran[ENTITIES] == len(system.workers.ids_of(ENTITIES)) == 2
    assert {
        agent: count for agent, count in system.workers.ran.items() if count > 1
    } == {ENTITIES: 2}


@in_virtual_time
async def test_a_refresh_asks_all_agents_again() -> None:
    system = FakeSystem(
        {
            RELATIONS: lambda _: {
                "interactions": [{"chars": ["Mara", "Tom"], "change": 5}]
            }
        }
    )
    async with system.supervisor() as supervisor:
        await supervisor.ask()
        await supervisor.ask(refresh=True)
    assert set(system.workers.ran.values()) == {2}
    assert (await system.stories.standing(STORY, 2)).scores == {"Mara|Tom": 5}
    assert (await system.document()).meta.agents_ok == 9


@in_virtual_time
async def test_a_request_for_a_replaced_text_is_refused() -> None:
    system = FakeSystem({KNOWLEDGE: napping(5)})
    async with system.supervisor() as supervisor:
        first = asyncio.create_task(supervisor.ask())
        await asyncio.sleep(1)
        second = await supervisor.ask(text="Other words.")
    assert (await first).kind == "refused"
    assert "another text" in (await first).text
    assert second.kind == "done"
    assert list(system.workers.cancelled) == system.workers.ids_of(KNOWLEDGE)[:1]


@in_virtual_time
async def test_two_supervisors_of_one_analysis_ask_each_agent_once() -> None:
    system = FakeSystem(
        {
            **every(1),
            RELATIONS: napping(
                1, {"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]}
            ),
        }
    )
    async with system.supervisor() as one, system.supervisor() as other:
        replies = await asyncio.gather(one.ask(), other.ask(), other.ask(), one.ask())
    assert {reply.kind for reply in replies} == {"done"}
    assert set(system.workers.ran.values()) == {1}
    assert (await system.stories.standing(STORY, 2)).scores == {"Mara|Tom": 5}


@in_virtual_time
async def test_an_analysis_stays_in_the_trace_of_its_request() -> None:
    wished = made_context(7, 8, 1)
    again = made_context(9, 8, 1)
    system = FakeSystem({KNOWLEDGE: napping(5)})
    async with system.supervisor() as first:
        with tracing.within(wished):
            asking = asyncio.create_task(first.ask())
        await asyncio.sleep(2)
        first.die()
        asking.cancel()
        sent = len(system.workers.traces)
        async with system.supervisor() as second:
            await asyncio.sleep(30)
            assert len(system.workers.traces) > sent
            assert set(system.workers.traces) == {str(wished)}
            system.workers.traces.clear()
            with tracing.within(again):
                await second.ask(refresh=True)
    assert set(system.workers.traces) == {str(again)}


@in_virtual_time
async def test_a_renewed_lease_keeps_others_away() -> None:
    system = FakeSystem({KNOWLEDGE: napping(30)})
    async with (
        system.supervisor(lease_s=2) as first,
        system.supervisor(lease_s=2) as second,
    ):
        asking = asyncio.create_task(first.ask(wait_ms=600_000))
        await asyncio.sleep(1)
        seen = set[tuple[tuple[str, int], ...]]()
        while not asking.done():
            seen.add(second.desk.driven)
            await asyncio.sleep(0.5)
    assert seen == {()}


@in_virtual_time
@pytest.mark.parametrize("trouble", ["away", "lost"])
async def test_an_absent_store_loses_nothing(trouble: str) -> None:
    system = FakeSystem(
        {
            RELATIONS: lambda _: {
                "interactions": [{"chars": ["Mara", "Tom"], "change": 5}]
            }
        }
    )
    async with system.supervisor() as supervisor:
        asking = asyncio.create_task(supervisor.ask())
        while not system.analyses.folds:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0)
        setattr(system.analyses, trouble, 3)
        reply = await asking
    assert reply.kind == "done"
    assert (await system.document()).meta.agents_ok == 9
    assert set(system.workers.ran.values()) == {1}
    assert (await system.stories.standing(STORY, 2)).scores == {"Mara|Tom": 5}
    assert (
        'analysis_sections_total{agent="StoryRelationshipAgent",outcome="ok"}'
        in system.metrics.render().decode()
    )


@in_virtual_time
async def test_a_refresh_whose_answer_was_lost_asks_once() -> None:
    system = FakeSystem(every(1))
    async with system.supervisor() as supervisor:
        await supervisor.ask()
        system.analyses.lost = 1
        await supervisor.ask(refresh=True)
    assert set(system.workers.ran.values()) == {2}


@in_virtual_time
async def test_an_absent_store_refuses_a_new_analysis() -> None:
    system = FakeSystem()
    system.analyses.is_gone = True
    async with system.supervisor() as supervisor:
        reply = await supervisor.ask()
    assert (reply.kind, "ask again" in reply.text) == ("refused", True)
    assert not system.workers.assigned


@in_virtual_time
async def test_whether_an_analysis_began_may_not_be_known() -> None:
    """It was listed before it was stored: once the store answers it is made, though nobody waits."""
    system = FakeSystem()
    async with system.supervisor() as supervisor:
        system.analyses.away = 1_000
        reply = await supervisor.ask(wait_ms=0)
        at_s = elapsed_s()
        system.analyses.away = 0
        await asyncio.sleep(20)
    assert (reply.kind, reply.text.partition(";")[0], at_s) == (
        "pending",
        "whether the analysis has begun is not known",
        pytest.approx(5),
    )
    assert (await system.document()).meta.status == "fresh"
    assert set(system.workers.ran.values()) == {1}


@in_virtual_time
async def test_an_analysis_listed_by_nobody_is_listed_again() -> None:
    """Whoever ends one may take it off the list after another process has begun it anew."""
    system = FakeSystem({KNOWLEDGE: napping(30)})
    async with system.supervisor() as first:
        asking = asyncio.create_task(first.ask())
        await asyncio.sleep(1)
        await system.analyses.end("S", STORY, 1)
        await asyncio.sleep(3)
        first.die()
        asking.cancel()
    async with system.supervisor():
        await asyncio.sleep(40)
    assert (await system.document()).meta.status == "fresh"


@in_virtual_time
async def test_a_task_that_was_not_accepted_is_sent_again() -> None:
    system = FakeSystem()
    system.workers.refuses = 12
    async with system.supervisor() as supervisor:
        await supervisor.ask()
    assert (await system.document()).meta.status == "fresh"


@in_virtual_time
async def test_an_unknown_agent_fails_its_section_with_the_cure() -> None:
    system = FakeSystem()
    ten = system.catalogue
    system.catalogue = cards(
        *[
            (seat.agent_id, seat.task)
            for seat in SECTION_AGENTS
            if seat.agent_id != ENTITIES
        ]
    )
    async with system.supervisor() as supervisor:
        await supervisor.ask()
        section = (await system.sections())["entity_analysis"]
        system.catalogue = ten
        await supervisor.ask()
    assert section["error"].startswith(
        "UnknownAgent: no agent 'StoryEntityAgent' is known; start `tasklore worker"
    )
    assert (await system.document()).meta.status == "fresh"
    assert system.workers.ran[ENTITIES] == 1


@in_virtual_time
async def test_an_agent_of_the_storys_own_takes_part() -> None:
    tone = SeatSettings(
        agent="ToneAgent", task="hear", group="immediate", after=("knowledge",)
    )
    system = FakeSystem(
        {"ToneAgent": lambda _: {"tone": {"warm": 0.7}}, KNOWLEDGE: napping(2)},
        agents={"tone": tone},
    )
    system.catalogue = cards(
        *[(seat.agent_id, seat.task) for seat in SECTION_AGENTS], ("ToneAgent", "hear")
    )
    async with system.supervisor() as supervisor:
        reply = await supervisor.ask()
    assert reply.document is not None
    assert reply.document["immediate"]["tone"] == {"dur": 200, "tone": {"warm": 0.7}}  # type: ignore[index,call-overload]
    assert system.workers.begun_at["ToneAgent"] == pytest.approx(2)
    assert (await system.document()).meta.agents_run == 11


@in_virtual_time
async def test_a_disabled_agent_is_not_asked() -> None:
    system = FakeSystem(
        {KNOWLEDGE: lambda _: {"facts": [{"subj": "Lamp", "fact": "lit"}]}}
    )
    off = {"knowledge": SeatSettings(enabled=False), "contradiction": ON}
    async with system.supervisor() as supervisor:
        await supervisor.ask()
        system.load(agents=off)
        await supervisor.ask()
    assert (await system.sections())["knowledge"] == {"dur": 0, "status": "skipped"}
    assert (await system.stories.standing(STORY, 2)).knowledge == ()
    meta = (await system.document()).meta
    assert (meta.agents_run, meta.agents_ok, meta.agents_skipped, meta.status) == (
        10,
        9,
        1,
        "fresh",
    )


@in_virtual_time
async def test_costs_are_summed_exactly() -> None:
    def spend(assignment: TaskAssignment) -> Any:
        usage = Usage(input_tokens=10, output_tokens=1, cost_usd=0.1)
        status = "failed" if assignment.agent_id == KNOWLEDGE else "completed"
        return report_on(assignment, status, result={}, usage=usage)

    system = FakeSystem({seat.agent_id: spend for seat in SECTION_AGENTS})
    async with system.supervisor() as supervisor:
        await supervisor.ask()
        first = (await system.document()).stats
        await supervisor.ask()

    stats = (await system.document()).stats
    assert (
        first.background_cost_usd,
        first.immediate_cost_usd,
        first.total_cost_usd,
    ) == (0.5, 0.4, 0.9)
    assert (stats.background_cost_usd, stats.total_cost_usd) == (0.6, 1.0)
    assert (first.background_tokens, first.immediate_tokens, first.total_tokens) == (
        55,
        44,
        99,
    )
    assert (stats.background_tokens, stats.total_tokens) == (66, 110)


@in_virtual_time
async def test_wall_clock_counts_from_each_runs_first_dispatch() -> None:
    fails = [True]

    async def once(_assignment: TaskAssignment) -> Any:
        await asyncio.sleep(1)
        if fails:
            fails.clear()
            raise ValueError("?")
        return {}

    system = FakeSystem({**every(2), KNOWLEDGE: once})
    async with system.supervisor() as supervisor:
        await supervisor.ask()
        await asyncio.sleep(3600)
        await supervisor.ask()

    assert (await system.document()).stats.background_ms == 3000


@in_virtual_time
async def test_more_analyses_than_are_kept_run_once_each() -> None:
    system = FakeSystem(every(0.2))
    system.keep = 2
    async with system.supervisor() as one, system.supervisor() as other:
        asked = [
            (one, other)[number % 2].ask(number, text=f"{TEXT} {number}")
            for number in range(1, 7)
        ]
        replies = await asyncio.gather(*asked)
        await asyncio.sleep(20)
        assert one.desk.driven == other.desk.driven == ()
    assert {reply.kind for reply in replies} == {"done"}
    assert set(system.workers.ran.values()) == {6}
    assert {
        "TASKLORE_ANALYSES_KEPT" in reply.text
        for reply in replies
        if reply.document is None
    } <= {True}
    assert len(await system.analyses.numbers(STORY)) == 2


@in_virtual_time
async def test_a_deleted_story_ends_its_analyses_although_it_comes_again() -> None:
    system = FakeSystem({KNOWLEDGE: napping(5)})
    async with system.supervisor() as supervisor:
        for has_text in (False, True):
            asking = asyncio.create_task(supervisor.ask())
            await asyncio.sleep(1)
            await system.stories.delete(STORY)
            system.load()
            if has_text:
                system.stories.add_response(STORY, StoryResponse(number=1, text=TEXT))
            reply = await asking
            assert (
                reply.kind,
                "again" in reply.text or "send its text" in reply.text,
            ) == ("refused", True), reply
            await asyncio.sleep(20)
            assert not supervisor.desk.driven

    assert set(system.workers.ran.values()) == {2}
    assert await system.analyses.due("S", 1) == []


@in_virtual_time
async def test_a_document_is_stale_once_an_earlier_response_changed() -> None:
    points = {"1": 10, "2": 5}

    def show(assignment: TaskAssignment) -> Any:
        change = points[str(assignment.response_number)]
        return {"interactions": [{"chars": ["Mara", "Tom"], "change": change}]}

    system = FakeSystem({RELATIONS: show})
    async with system.supervisor() as supervisor:
        await supervisor.ask(1)
        await supervisor.ask(2)
        await supervisor.ask(1, refresh=True)
        unchanged = (await system.document(2)).meta.status
        points["1"] = 50
        await supervisor.ask(1, text="Other words.")
        served = await supervisor.ask(2)
        await supervisor.ask(2, refresh=True)

    assert unchanged == "fresh"
    assert served.served
    assert served.document is not None
    assert served.document["meta"]["status"] == "stale"  # type: ignore[index,call-overload]
    assert (await system.document(2)).meta.status == "fresh"
    assert (await system.sections(2))["relationship"]["interactions"][0]["prev"] == 50


@in_virtual_time
async def test_asking_a_failed_agent_again_keeps_a_document_stale() -> None:
    changes = [{"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]}] * 2
    fails = [True]

    def know(assignment: TaskAssignment) -> Any:
        if assignment.response_number == 2 and fails.pop():
            fails.append(False)
            raise ValueError("nothing today")
        return {"facts": []}

    system = FakeSystem(
        {
            KNOWLEDGE: know,
            RELATIONS: lambda one: changes.pop() if one.response_number == 1 else {},
        }
    )
    async with system.supervisor() as supervisor:
        await supervisor.ask(1)
        await supervisor.ask(2)
        changes[:] = [{"interactions": []}]
        await supervisor.ask(1, refresh=True)
        await supervisor.ask(2)

    assert (await system.document(2)).meta.agents_ok == 9
    assert (await system.document(2)).meta.status == "stale"


@in_virtual_time
async def test_requests_beyond_the_limit_are_not_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tasklore.supervisor.pipelines.analysis.requests.HELD", 3)
    system = FakeSystem({KNOWLEDGE: napping(5)})
    async with system.supervisor() as supervisor:
        held = [asyncio.create_task(supervisor.ask(number)) for number in range(1, 4)]
        await asyncio.sleep(1)
        reply = await supervisor.ask(4)
        at_s = elapsed_s()
        assert {one.kind for one in await asyncio.gather(*held)} == {"done"}
        again = await supervisor.ask(4)
    assert (reply.kind, at_s, again.kind) == ("pending", pytest.approx(1), "done")
    assert set(system.workers.ran.values()) == {4}


@in_virtual_time
async def test_a_number_beyond_the_limit_is_refused() -> None:
    system = FakeSystem()
    async with system.supervisor() as supervisor:
        reply = await supervisor.ask_bytes(
            b'{"story_id":"harbour","response_number":1000000001,"text":"x"}'
        )
    assert reply.kind == "refused"
    assert "response_number: must be less than or equal to 1000000000" in reply.text
    assert await system.stories.numbers(STORY) == ()


@in_virtual_time
async def test_absurd_costs_leave_the_document_json() -> None:
    async def spend(assignment: TaskAssignment) -> Any:
        usage = Usage(input_tokens=10**4000, output_tokens=-3, cost_usd=1e308)
        saved = {"before": 10**12, "after": 0, "pct": 100}
        return report_on(
            assignment, "completed", result={"reduction": saved}, usage=usage
        )

    system = FakeSystem(
        {seat.agent_id: spend for seat in SECTION_AGENTS},
        reader_usd_per_million=1_000_000,
    )
    async with system.supervisor() as supervisor:
        reply = await supervisor.ask()

    assert reply.kind == "done", reply
    assert reply.document is not None
    json.dumps(reply.document, allow_nan=False)
    assert (await system.document()).stats.total_cost_usd == 9e9


@in_virtual_time
async def test_an_internal_error_is_answered() -> None:
    system = FakeSystem()
    system.stories.standing = None  # type: ignore[assignment,method-assign] # a mistake
    with capture_logs():
        async with system.supervisor() as supervisor:
            reply = await supervisor.ask()
            at_once = await system.analyses.due("S", 1)
            await asyncio.sleep(0.1)
    assert reply.kind == "refused"
    assert "the supervisor's log has the cause" in reply.text
    assert at_once == []


@in_virtual_time
async def test_a_request_at_the_end_of_an_analysis_is_answered() -> None:
    system = FakeSystem(every(1))
    async with system.supervisor() as supervisor:
        waits = [asyncio.create_task(supervisor.ask()) for _ in range(1)]
        while not all(wait.done() for wait in waits):
            if supervisor.desk.driven:
                waits.append(asyncio.create_task(supervisor.ask()))
            await asyncio.sleep(0.05)
    assert {wait.result().kind for wait in waits} == {"done"}
    assert set(system.workers.ran.values()) == {1}


@in_virtual_time
async def test_asking_again_is_recorded_once() -> None:
    def never(_assignment: TaskAssignment) -> Any:
        raise ValueError("never")

    system = FakeSystem({KNOWLEDGE: never})
    system.catalogue = cards(
        *[
            (seat.agent_id, seat.task)
            for seat in SECTION_AGENTS
            if seat.agent_id != ENTITIES
        ]
    )
    async with system.supervisor() as supervisor:
        await supervisor.ask()
        system.analyses.lost = 1
        async with system.supervisor():
            await supervisor.ask()
            await asyncio.sleep(10)

    record = read_record((await system.analyses.record(STORY, 1))[2])
    assert record is not None
    assert record.run == 2


@in_virtual_time
async def test_another_text_replaces_what_the_first_changed() -> None:
    texts = {
        TEXT: {"facts": [{"subj": "Lamp", "fact": "lit"}]},
        "Nothing happened.": {"facts": []},
    }

    async def know(assignment: TaskAssignment) -> Any:
        response = await system.stories.response(STORY, assignment.response_number or 0)
        assert response is not None
        return texts[response.text]

    system = FakeSystem({KNOWLEDGE: know})
    async with system.supervisor() as supervisor:
        await supervisor.ask()
        known = (await system.stories.standing(STORY, 2)).knowledge
        await supervisor.ask(text="Nothing happened.")

    assert [fact.fact for fact in known] == ["lit"]
    assert (await system.stories.standing(STORY, 2)).knowledge == ()
    assert system.workers.ran[KNOWLEDGE] == 2


@in_virtual_time
async def test_an_agent_goes_on_without_late_findings_after_its_patience() -> None:
    system = FakeSystem({MEMORIES: napping(50)}, patience_s=3)
    async with system.supervisor() as supervisor:
        reply = await supervisor.ask(until="immediate", wait_ms=600_000)

        assert elapsed_s() == pytest.approx(3)
        assert system.workers.begun_at[RECALL] == pytest.approx(3)
        assert reply.document is not None
        assert "memory_create" not in reply.document["background"]  # type: ignore[operator]
        assert set(reply.document["immediate"]) >= {"memory_extract", "thread_extract"}  # type: ignore[arg-type]


@in_virtual_time
async def test_responses_of_one_story_lose_no_update_of_each_other() -> None:

    def open_thread(assignment: TaskAssignment) -> Any:
        return {
            "new": [{"id": "?", "title": f"Thread of {assignment.response_number}"}]
        }

    points = {"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]}
    system = FakeSystem({THREADS: open_thread, RELATIONS: lambda _: points})
    async with system.supervisor() as one, system.supervisor() as other:
        asked = [
            (one, other)[number % 2].ask(number, text=f"{TEXT} {number}")
            for number in range(1, 9)
        ]
        replies = await asyncio.gather(*asked)

    standing = await system.stories.standing(STORY, 9)
    assert {reply.kind for reply in replies} == {"done"}
    assert sorted(state.thread.id for state in standing.threads) == [
        f"THREAD-{number:03}" for number in range(1, 9)
    ]
    assert standing.scores == {"Mara|Tom": 40}


@in_virtual_time
async def test_a_repeated_request_is_served_and_changes_nothing() -> None:
    system = FakeSystem()
    async with system.supervisor() as supervisor:
        first = await supervisor.ask()
        folds = system.analyses.folds
        asked = len(system.workers.assigned)
        again = await supervisor.ask()

    assert (first.served, again.served) == (False, True)
    assert again.document == first.document
    assert (system.analyses.folds, len(system.workers.assigned)) == (folds, asked)
    assert (
        'tasklore_analyses_total{outcome="served"} 1.0'
        in system.metrics.render().decode()
    )


@in_virtual_time
async def test_without_any_agent_an_analysis_is_refused() -> None:
    system = FakeSystem()
    ten = system.catalogue
    system.catalogue = cards()
    async with system.supervisor() as supervisor:
        refused = await supervisor.ask()
        system.catalogue = ten
        reply = await supervisor.ask()

    assert (
        refused.kind,
        "tasklore worker tasklore.workers.agents.story" in refused.text,
    ) == (
        "refused",
        True,
    )
    assert (reply.kind, reply.served) == ("done", False)


@in_virtual_time
async def test_settings_beyond_the_limits_end_a_running_analysis() -> None:
    system = FakeSystem({KNOWLEDGE: napping(30)})
    async with system.supervisor() as supervisor:
        waiting = asyncio.create_task(supervisor.ask(wait_ms=600_000))
        await asyncio.sleep(1)
        system.load(late_s=1e-9)
        refused = await supervisor.ask(refresh=True)
        system.load()
        served = await supervisor.ask(wait_ms=600_000)
        await waiting
        await asyncio.sleep(1)
        assert not supervisor.desk.driven
    assert (refused.kind, refused.text.partition(" of the story")[0]) == (
        "refused",
        "late_s",
    )
    assert served.kind == "done"


@in_virtual_time
async def test_another_supervisor_goes_on_with_the_same_tasks() -> None:
    system = FakeSystem({KNOWLEDGE: napping(20)}, agents={"contradiction": ON})
    async with system.supervisor() as first:
        asking = asyncio.create_task(first.ask())
        await asyncio.sleep(2)
        first.die()
        asking.cancel()
        async with system.supervisor() as second:
            await asyncio.sleep(30)
            assert not second.desk.driven

    document = await system.document()
    assert (document.meta.agents_ok, document.meta.status) == (10, "fresh")
    assert set(system.workers.ran.values()) == {1}
    assert len(system.workers.ids_of(KNOWLEDGE)) == 1


@in_virtual_time
async def test_a_response_beyond_the_bounds_of_its_owner_is_not_stored() -> None:
    system = FakeSystem(every(0.2))
    system.workers.bounds = FullBounds()
    async with system.supervisor() as supervisor:
        reply = await supervisor.ask()
    assert (reply.kind, reply.text) == ("refused", "you keep too much")
    assert await system.stories.response(STORY, 1) is None
    assert not system.workers.assigned
