"""Operations of pipelines beside a desk that drives them and an agent that works."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput, NotPermitted
from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.memory import keys
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.schedules.store import ScheduleStore
from tasklore.memory.sessions.pipeline_records import NewRun
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.operations import pipelines
from tasklore.supervisor.operations.forms import Lines
from tasklore.supervisor.operations.pipelines import (
    AcceptedRun,
    Cancel,
    DeclaredPipeline,
    Invalidation,
    PipelineServices,
    Rerun,
    Resume,
    Run,
    RunView,
    cancel_run,
    check_pipeline,
    estimate_cost,
    export_evidence,
    invalidate_run,
    list_runs,
    rerun_run,
    restore_run,
    resume_run,
    run_pipeline,
    show_run,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.table import Unfinished
from tasklore.supervisor.pipelines import evidence
from tasklore.supervisor.schedules.book import ScheduleBook
from tests.integration.test_pipeline_driver import Scene, a_gate, a_phase, a_scene
from tests.servers import PATIENCE_S

ANN = Caller(name="ann-key", roles=frozenset({"ask", "read", "operate"}), user="ann")
BOB = Caller(name="bob-key", roles=frozenset({"ask", "read", "operate"}), user="bob")
DESK = Caller(name="desk", roles=frozenset({"ask", "read", "operate"}))
ADMIN = Caller(name="boss", roles=frozenset({"admin"}))


@dataclass
class Place:
    """Operations on real servers; `away` are the agents without a live worker."""

    scene: Scene
    services: PipelineServices
    redis: Redis
    away: set[str] = field(default_factory=set)

    async def until_over(self, session_id: str, caller: Caller = DESK) -> RunView:
        """Return the run once it has ended."""
        await self.scene.outcome(session_id)
        return await show_run(self.services, caller, session_id)

    async def until_completed(self, session_id: str) -> None:
        """Return once a run that went on is through."""
        async with asyncio.timeout(PATIENCE_S):
            run = await show_run(self.services, DESK, session_id)
            while run.state != "completed":
                run = await show_run(self.services, DESK, session_id)

    async def expire_requests(self) -> None:
        """Let all that requests over HTTP left of themselves be over."""
        async for key in self.redis.scan_iter("tl:request:*"):
            await self.redis.delete(key)

    async def run(self, caller: Caller = DESK, **told: Any) -> AcceptedRun:
        """Run the steps and return what was accepted."""
        new = Run(**{"pipeline": declared(), "inputs": {"word": "hi"}, **told})
        accepted = await run_pipeline(self.services, caller, new)
        assert accepted.location == f"/v1/pipelines/{accepted.view.session_id}"
        return accepted.view


def steps() -> Pipeline:
    """Return three phases of which the second and the third are after the first; `secret` is no word for others."""
    return Pipeline(
        name="steps",
        inputs={
            "word": Input(type="text"),
            "count": Input(type="number", required=False),
            "secret": Input(type="text", secret=True, required=False),
        },
        result="third:results",
        phases=(
            a_phase(
                "first",
                "step",
                parameters={"label": "a", "word": "${input.word}"},
            ),
            a_phase(
                "second",
                "step",
                parameters={"label": "b", "told": "${first:results.label}"},
            ),
            a_phase(
                "third",
                "step",
                parameters={"label": "c", "told": "${second:results.label}"},
            ),
        ),
    )


def declared(pipeline: Pipeline | None = None) -> dict[str, Any]:
    """Return the declaration as its file says it."""
    return (pipeline or steps()).model_dump(mode="json", exclude_defaults=True)


@pytest.fixture
async def place(servers: EmbeddedServers, tmp_path: Path) -> AsyncIterator[Place]:
    away: set[str] = set()
    release, wait = a_gate()

    def step(parameters: dict[str, Any]) -> dict[str, Any]:
        return {"label": parameters["label"], "told": parameters.get("told", "")}

    async def absent(agents: Any) -> frozenset[str]:
        return frozenset(agents) & away

    async with a_scene(servers, tmp_path, step=step, hold=wait) as scene:
        redis = scene.redis
        catalogue = Catalogue([card()])
        services = PipelineServices(
            supervisor_id="S",
            requests=scene.requests,
            runs=scene.parts.runs,
            sessions=scene.parts.cache,
            projects=scene.parts.projects,
            schedules=ScheduleBook(
                ScheduleStore(redis, "S", deadline_s=PATIENCE_S), lambda: catalogue
            ),
            budgets=Budgets(redis, deadline_s=PATIENCE_S),
            catalogue=lambda: catalogue,
            absent=absent,
        )
        async with scene.desk("desk", lease_s=0.5):
            yield Place(scene, services, redis, away)
            release.set()


def card() -> AgentCard:
    """Return the card of the agent of the scene."""
    tasks = tuple(
        TaskCard(name=name, parameters={"type": "object"}) for name in ("step", "hold")
    )
    return AgentCard(agent_id="A", tasks=tasks, digest="0")


def holding() -> Pipeline:
    """Return the steps, of which the second waits until the test ends."""
    pipeline = steps()
    held = tuple(
        one.model_copy(update={"task": "hold"}) if one.name == "second" else one
        for one in pipeline.phases
    )
    return pipeline.model_copy(update={"phases": held})


def broken() -> Pipeline:
    """Return the steps, of which the second cannot read what it is told."""
    pipeline = steps()
    second = pipeline.phases[1].model_copy(
        update={"parameters": {"label": "b", "told": "${first:results.nothing}"}}
    )
    return pipeline.model_copy(
        update={"phases": (pipeline.phases[0], second, pipeline.phases[2])}
    )


def statuses(run: RunView) -> dict[str, str]:
    """Return the status of each phase."""
    return {one.phase: one.status for one in run.phases}


async def test_a_run_is_shown_from_its_begin_to_its_result(place: Place) -> None:
    """Secret inputs are masked; the same run again begins nothing, another one under its id is refused."""
    told = {"session_id": "s1", "inputs": {"word": "hi", "secret": "pst"}, "keep": True}
    assert (await place.run(**told)).session_id == "s1"
    run = await place.until_over("s1")
    assert (run.state, run.pipeline, run.keep) == ("completed", "steps", True)
    assert run.inputs == {"word": "hi", "secret": "***", "count": None}
    assert run.outcome is not None
    assert run.outcome["result"] == {"label": "c", "told": "b"}
    assert [(one.phase, one.agents, one.after) for one in run.phases] == [
        ("first", ("A",), ()),
        ("second", ("A",), ("first",)),
        ("third", ("A",), ("second",)),
    ]
    assert all(one.began_at is not None for one in run.phases)
    assert "taken up before" in (await place.run(**told)).text
    assert place.scene.runs == {"first": 1, "second": 1, "third": 1}
    with pytest.raises(Refused, match="taken by another run") as refused:
        await place.run(session_id="s1", inputs={"word": "ho"})
    assert refused.value.problem.status == 409


async def test_a_run_that_cannot_run_is_refused_with_every_problem(
    place: Place,
) -> None:
    pipeline = declared()
    pipeline["phases"][0]["agent"] = "B"
    with pytest.raises(Refused, match="as it is declared") as refused:
        await place.run(pipeline=pipeline)
    assert refused.value.problem.status == 422
    assert any("'B'" in one.message for one in refused.value.problem.problems)
    with pytest.raises(Refused, match="as it is declared") as missing:
        await place.run(inputs={})
    assert "'word' is missing" in missing.value.problem.problems[0].message
    with pytest.raises(Refused, match="valid Unicode"):
        await place.run(inputs={"word": "\ud800"})
    with pytest.raises(Refused, match="is known") as unknown:
        await show_run(place.services, DESK, "s1")
    assert unknown.value.problem.status == 404


async def test_a_check_names_what_is_wrong_and_runs_nothing(place: Place) -> None:
    services = place.services
    sound = await check_pipeline(services, DESK, DeclaredPipeline(pipeline=declared()))
    assert (sound.pipeline, sound.phases, sound.problems) == ("steps", 3, ())
    pipeline = declared()
    pipeline["phases"][1]["task"] = "stp"
    wrong = DeclaredPipeline(pipeline=pipeline, inputs={"count": "no"})
    found = (await check_pipeline(services, DESK, wrong)).problems
    assert any("phase second" in one and "'step'" in one for one in found), found
    assert any("word" in one for one in found)
    unread = await check_pipeline(
        services, DESK, DeclaredPipeline(pipeline={"name": 3, "phases": 4})
    )
    assert unread.phases == 0
    assert unread.problems
    assert place.scene.runs == {}


async def test_a_run_is_estimated_by_its_last_reports(place: Place) -> None:
    """A list that is given counts by its length, rounds by how many there may be, what is not known by nothing."""
    budgets = place.services.budgets
    await budgets.note_costs(
        {
            ("PlanAgent", "plan"): [2_000_000_000],
            ("ReadAgent", "read"): [10**8, 3 * 10**8],
        }
    )
    pipeline = Pipeline(
        name="papers",
        inputs={"files": Input(type="list", required=False)},
        phases=(
            Phase(name="plan", agent="PlanAgent", task="plan"),
            Phase(
                name="read",
                agent="ReadAgent",
                task="read",
                for_each="${input.files}",
            ),
            Phase(
                name="polish",
                agent="ReadAgent",
                task="read",
                after=("read",),
                repeat_until="${last.done}",
                at_most=4,
            ),
            Phase(name="send", agent="SendAgent", task="send", after=("polish",)),
        ),
    )
    body = DeclaredPipeline(pipeline=declared(pipeline))
    found = await estimate_cost(place.services, DESK, body)
    assert [
        (one.phase, one.task, one.runs, one.fewest, one.most) for one in found.phases
    ] == [
        ("plan", "PlanAgent.plan", 1, 1, 1),
        ("read", "ReadAgent.read", 2, 1, None),
        ("polish", "ReadAgent.read", 2, 1, 4),
        ("send", "SendAgent.send", 0, 1, 1),
    ]
    assert (round(found.mean_usd or 0, 9), round(found.largest_usd or 0, 9)) == (
        2.4,
        3.5,
    )
    assert found.phases[3].mean_usd is None
    three = body.model_copy(update={"inputs": {"files": ["a", "b", "c"]}})
    known = await estimate_cost(place.services, DESK, three)
    assert (round(known.mean_usd or 0, 9), round(known.largest_usd or 0, 9)) == (
        2.8,
        4.1,
    )
    asking = Caller(name="asker", roles=frozenset({"ask"}))
    with pytest.raises(NotPermitted, match="operate"):
        await estimate_cost(place.services, asking, body)
    for bound in ({"user": "ann"}, {"tenant": "ours"}):
        with pytest.raises(NotPermitted, match="one user or tenant"):
            await estimate_cost(place.services, DESK.model_copy(update=bound), body)


async def test_after_a_failure_only_what_failed_and_what_waits_for_it_runs_again(
    place: Place,
) -> None:
    """By a corrected declaration where one is given; what it declares wrongly is refused."""
    await place.run(session_id="s1", pipeline=declared(broken()))
    failed = await place.until_over("s1")
    assert (failed.state, statuses(failed)) == (
        "failed",
        {"first": "done", "second": "failed", "third": "pending"},
    )
    unsound = declared()
    unsound["phases"][1]["agent"] = "B"
    with pytest.raises(Refused, match="as it is declared"):
        await resume_run(place.services, DESK, "s1", Resume(pipeline=unsound))
    taken = await resume_run(place.services, DESK, "s1", Resume(pipeline=declared()))
    assert isinstance(taken, Unfinished)
    assert sorted(one.phase for one in taken.view.stale) == ["second", "third"]
    assert [one.phase for one in taken.view.reused] == ["first"]
    await place.until_completed("s1")
    assert place.scene.runs == {"first": 1, "second": 1, "third": 1}


async def test_a_kept_run_is_run_again_from_a_phase_or_by_what_changed(
    place: Place,
) -> None:
    services = place.services
    await place.run(session_id="s1", keep=True)
    await place.until_over("s1")
    for unknown in (
        Invalidation(phase="fourth"),
        Invalidation(keys=("fourth:results",)),
        Invalidation(keys=("first:result",)),
    ):
        with pytest.raises(Refused, match=r"it has first|writes first:results") as no:
            await invalidate_run(services, DESK, "s1", unknown)
        assert no.value.problem.status == 422
    with pytest.raises(Refused, match="not a phase of 'steps'; it has first"):
        await rerun_run(services, DESK, "s1", Rerun(phase="fourth"))
    with pytest.raises(Refused, match="nothing of it is stale"):
        await resume_run(services, DESK, "s1", Resume())
    with pytest.raises(Refused, match="must be a number"):
        await resume_run(services, DESK, "s1", Resume(inputs={"count": "many"}))
    for what, stale in (
        (Invalidation(), []),
        (Invalidation(design=("colours",)), []),
        (Invalidation(keys=("second:results",)), ["second", "third"]),
    ):
        marked = await invalidate_run(services, DESK, "s1", what)
        assert [one.phase for one in marked.stale] == stale
    shown = await show_run(services, DESK, "s1")
    assert statuses(shown) == {"first": "done", "second": "pending", "third": "pending"}
    taken = await rerun_run(services, DESK, "s1", Rerun(phase="third"))
    assert sorted(one.phase for one in taken.view.stale) == ["second", "third"]


async def test_a_running_run_says_what_it_waits_for_and_is_cancelled(
    place: Place,
) -> None:
    services = place.services
    place.away.add("A")
    await place.run(session_id="s1", pipeline=declared(holding()))
    await place.scene.until_run("second")
    run = await show_run(services, DESK, "s1")
    assert (run.state, run.is_driven) == ("running", True)
    assert run.without_worker == ("A",)
    with pytest.raises(Refused, match="is running") as running:
        await resume_run(services, DESK, "s1", Resume())
    assert running.value.problem.status == 409
    await cancel_run(services, DESK, "s1", Cancel(reason="wrong folder"))
    ended = await place.until_over("s1")
    assert ended.state == "cancelled"
    assert ended.outcome is not None
    assert ended.outcome["error"] == "wrong folder"
    assert ended.without_worker == ()
    with pytest.raises(Refused, match="does not run") as late:
        await cancel_run(services, DESK, "s1")
    assert late.value.problem.status == 409


async def test_evidence_is_enough_to_go_on_from(place: Place) -> None:
    """Entries may come in later requests; the run is its maker's where an operator restores it."""
    services = place.services
    told = {"inputs": {"word": "hi", "secret": "pst-pst"}}
    await place.run(BOB, session_id="s1", pipeline=declared(broken()), **told)
    await place.until_over("s1")
    found = await export_evidence(services, DESK, "s1")
    bundle = json.loads(found.model_dump_json())
    assert (bundle["format"], bundle["user_id"]) == ("tasklore-evidence/1", "bob")
    assert bundle["masked"]["inputs"] == ["secret"]
    assert "pst-pst" not in found.model_dump_json()
    entries = bundle["session"].pop("cache")
    assert list(entries) == ["first:results"]
    parts = [{"key": key, "entry": entry} for key, entry in entries.items()]
    assert await services.sessions.drop("s1")
    with pytest.raises(Refused, match="its session is gone; what it left") as gone:
        await resume_run(services, DESK, "s1", Resume())
    assert gone.value.problem.status == 409
    with pytest.raises(Refused, match="session is gone"):
        await restore_run(services, DESK, "s1", Lines(tuple(parts)))
    head = {"evidence": bundle, "inputs": {"secret": "pst-pst"}}
    for wrong, words in (
        ([{"evidence": bundle}], "secret"),
        ([{"nothing": 1}], "line 1"),
        ([{**head, "evidence": {**bundle, "phases": 3}}], "broken"),
        ([{**head, "evidence": {**bundle, "session_id": "s2"}}], "'s2', not of 's1'"),
    ):
        with pytest.raises(Exception, match=words):
            await restore_run(services, DESK, "s1", Lines(tuple(wrong)))
    for _ in range(2):
        made = await restore_run(services, ADMIN, "s1", Lines((head,)))
        assert (made.session_id, made.entries) == ("s1", 0)
        put = await restore_run(services, ADMIN, "s1", Lines(tuple(parts)))
        assert put.entries == 1
    record = await services.runs.read("s1")
    assert record is not None
    assert record.caller == BOB
    await resume_run(services, BOB, "s1", Resume(pipeline=declared()))
    await place.until_completed("s1")
    assert place.scene.runs == {"first": 1, "second": 1, "third": 1}


async def test_who_is_no_operator_restores_a_run_as_their_own(place: Place) -> None:
    """Whoever the evidence names: it may be changed by hand."""
    services = place.services
    await place.run(session_id="s1", pipeline=declared(broken()))
    await place.until_over("s1")
    bundle = json.loads((await export_evidence(services, DESK, "s1")).model_dump_json())
    bundle["caller"] = ADMIN.model_dump(mode="json")
    await services.sessions.drop("s1")
    head = {"evidence": bundle, "inputs": {"secret": None}}
    await restore_run(services, DESK, "s1", Lines((head,)))
    record = await services.runs.read("s1")
    assert record is not None
    assert record.caller == DESK
    with pytest.raises(NotPermitted, match="another user"):
        await restore_run(services, ANN, "s1", Lines(({"evidence": bundle},)))


async def test_evidence_changes_no_run_that_its_caller_may_not_see(
    place: Place,
) -> None:
    """Nor one that is there as another user's; and nobody is listed as the user of a session that was there."""
    services = place.services
    ours = DESK.model_copy(update={"tenant": "ours"})
    theirs = DESK.model_copy(update={"tenant": "theirs"})
    for session_id, user in (("s1", None), ("s2", "ann")):
        await place.run(
            ours, session_id=session_id, pipeline=declared(broken()), user=user
        )
        await place.until_over(session_id)
    for caller, session_id, user_id in (
        (theirs, "s1", None),
        (theirs, "s2", "ann"),
        (ours, "s1", "bob"),
        (ours, "s2", "bob"),
        (ours, "s2", None),
    ):
        told = await export_evidence(services, DESK, session_id)
        bundle = json.loads(told.model_dump_json())
        bundle["user_id"] = user_id
        (entry,) = bundle["session"]["cache"].values()
        entry["value"] = {"label": "forged"}
        lines = Lines(({"evidence": bundle, "inputs": {"secret": None}},))
        with pytest.raises(InvalidInput, match="is there, with another run"):
            await restore_run(services, caller, session_id, lines)
        kept = await services.sessions.get(session_id, "first:results")
        assert kept is not None
        assert kept.value == {"label": "a", "told": ""}
    assert await services.sessions.of_user("bob") == []
    assert await services.sessions.of_user("ann") == ["s2"]


@pytest.mark.parametrize("bound", [{"user": "ann"}, {"tenant": "ours"}])
async def test_a_bound_administrator_restores_a_run_as_their_own(
    place: Place, bound: dict[str, str]
) -> None:
    """One who is not bound restores it for its maker, whom the evidence has to spell."""
    services = place.services
    await place.run(ANN, session_id="s1", pipeline=declared(broken()))
    await place.until_over("s1")
    bundle = json.loads((await export_evidence(services, DESK, "s1")).model_dump_json())
    await services.sessions.drop("s1")
    head: dict[str, Any] = {"evidence": bundle, "inputs": {"secret": None}}
    bundle["caller"] = {"name": 3, "roles": "all"}
    with pytest.raises(Refused, match="caller") as refused:
        await restore_run(services, ADMIN, "s1", Lines((head,)))
    assert refused.value.problem.status == 422
    bundle["caller"] = ADMIN.model_dump(mode="json")
    boss = ADMIN.model_copy(update=bound)
    await restore_run(services, boss, "s1", Lines((head,)))
    record = await services.runs.read("s1")
    assert record is not None
    assert record.caller == boss


async def test_a_key_of_one_user_sees_and_steers_no_run_of_another(
    place: Place,
) -> None:
    services = place.services
    await place.run(ANN, session_id="s1", pipeline=declared(broken()))
    await place.until_over("s1", ANN)
    assert (await show_run(services, ANN, "s1")).user == "ann"
    for ask in (
        show_run(services, BOB, "s1"),
        resume_run(services, BOB, "s1", Resume()),
        rerun_run(services, BOB, "s1", Rerun(phase="first")),
        invalidate_run(services, BOB, "s1", Invalidation(phase="first")),
        cancel_run(services, BOB, "s1"),
        export_evidence(services, BOB, "s1"),
        restore_run(services, BOB, "s1", Lines(({"key": "first:x", "entry": {}},))),
    ):
        with pytest.raises(Refused, match="is known") as refused:
            await ask
        assert refused.value.problem.status == 404
    with pytest.raises(NotPermitted, match="another user"):
        await place.run(BOB, user="ann")
    assert [one.session_id for one in (await list_runs(services, ANN)).runs] == ["s1"]
    assert (await list_runs(services, BOB)).runs == ()


async def test_an_end_is_its_owners_for_as_long_as_it_is_told(place: Place) -> None:
    """Also where nothing but the outcome is left, and what the request left of itself has expired."""
    services = place.services
    ours = Caller(name="ours", roles=frozenset({"ask"}), tenant="acme")
    theirs = Caller(name="theirs", roles=frozenset({"ask"}), tenant="other")
    for session_id, owner, others in (
        ("s1", ANN, (BOB, ours)),
        ("s2", ours, (ANN, theirs)),
    ):
        await place.run(owner, session_id=session_id)
        await place.scene.outcome(session_id)
        assert await services.runs.read(session_id) is None
        await place.expire_requests()
        ended = await show_run(services, owner, session_id)
        assert (ended.state, ended.outcome is not None) == ("completed", True)
        assert ended.outcome is not None
        assert "owner" not in ended.outcome
        for other in others:
            with pytest.raises(Refused, match="is known"):
                await show_run(services, other, session_id)


async def test_the_same_run_of_another_tenant_is_another_run(place: Place) -> None:
    """While it runs and when only its end is left: who repeats it learns neither."""
    ours = Caller(name="ours", roles=frozenset({"ask"}), tenant="acme")
    theirs = Caller(name="theirs", roles=frozenset({"ask"}), tenant="other")
    for session_id, keep in (("s1", True), ("s2", False)):
        await place.run(ours, session_id=session_id, keep=keep)
        await place.scene.outcome(session_id)
        assert (
            "taken up before"
            in (await place.run(ours, session_id=session_id, keep=keep)).text
        )
        for other in (theirs, DESK):
            with pytest.raises(Refused, match="taken by another run") as refused:
                await place.run(other, session_id=session_id, keep=keep)
            assert refused.value.problem.status == 409
        with pytest.raises(Refused, match="is known"):
            await show_run(place.services, theirs, session_id)


async def test_nothing_large_is_read_or_masked_on_the_event_loop(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A declaration may have five hundred phases, and a session megabytes: others would wait for it."""
    calls = set[str]()

    def watch(module: ModuleType, name: str) -> None:
        whole = getattr(module, name)

        def watched(*given: Any, **named: Any) -> Any:
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            calls.add(name)
            return whole(*given, **named)

        monkeypatch.setattr(module, name, watched)

    names = ("pipeline_from", "all_problems", "read_typed", "bundle_of", "view_run")
    for name in names:
        watch(pipelines, name)
    watch(evidence, "pipeline_from")
    services = place.services
    body = DeclaredPipeline(pipeline=declared(), inputs={"word": "hi"})
    assert (await check_pipeline(services, DESK, body)).problems == ()
    await estimate_cost(services, DESK, body)
    inputs = {"word": "hi", "secret": "pst"}
    await place.run(session_id="s1", pipeline=declared(broken()), inputs=inputs)
    await place.until_over("s1")
    bundle = await export_evidence(services, DESK, "s1")
    masked = {"secret": "pst"}
    lines = ({"evidence": bundle.model_dump(mode="json"), "inputs": masked},)
    await restore_run(services, DESK, "s1", Lines(lines))
    again = Resume(pipeline=declared(), inputs={"word": "hi"})
    await resume_run(services, DESK, "s1", again)
    await place.until_completed("s1")
    assert calls == set(names)


async def test_evidence_that_is_too_large_for_an_answer_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.run(session_id="s1", keep=True)
    await place.until_over("s1")
    monkeypatch.setattr(pipelines, "MOST_EXPORTED", 10)
    with pytest.raises(Refused, match="at most 10; read its entries") as refused:
        await export_evidence(place.services, DESK, "s1")
    assert refused.value.problem.status == 413


async def test_runs_are_listed_page_by_page_the_last_updated_first(
    place: Place,
) -> None:
    """Also those of one user; sessions without a run are none."""
    services = place.services
    await services.sessions.create("plain")
    pipeline = steps()
    for number in range(5):
        new = NewRun(
            session_id=f"s{number}",
            pipeline=pipeline,
            supervisor_id="Nobody",
            user_id="ann" if number % 2 else None,
            state="failed" if number else "running",
        )
        assert await services.runs.create(new)
    for caller, names in ((DESK, ["s4", "s3", "s2", "s1", "s0"]), (ANN, ["s3", "s1"])):
        found: list[str] = []
        after = ""
        while True:
            page = await list_runs(services, caller, after=after, limit=1)
            found += [one.session_id for one in page.runs]
            if page.after is None:
                break
            after = page.after
        assert sorted(found) == sorted(names)
        whole = await list_runs(services, caller)
        assert [one.session_id for one in whole.runs] == found
        assert whole.after is None
    running = await list_runs(services, DESK, state="running")
    assert [one.session_id for one in running.runs] == ["s0"]
    with pytest.raises(Refused, match="`after` of a page"):
        await list_runs(services, DESK, after="elsewhere")


async def test_a_run_that_rests_says_why_in_the_list(place: Place) -> None:
    """Until it goes on; one beside it does not."""
    services = place.services
    for name in ("rests", "goes-on"):
        new = NewRun(session_id=name, pipeline=steps(), supervisor_id="Nobody")
        assert await services.runs.create(new)
    await services.runs.hold("rests", "paused: its key was removed")

    async def find_holds() -> dict[str, str]:
        found = (await list_runs(services, DESK)).runs
        return {one.session_id: one.held for one in found}

    assert await find_holds() == {
        "rests": "paused: its key was removed",
        "goes-on": "",
    }
    await services.runs.hold("rests", "")
    assert await find_holds() == {"rests": "", "goes-on": ""}


async def test_the_runs_of_a_tenant_are_chosen_by_pages(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty-five of them in one round trip, however many are of others."""
    services = place.services
    ours = DESK.model_copy(update={"tenant": "ours"})
    for number in range(30):
        new = NewRun(
            session_id=f"s{number:02}",
            pipeline=steps(),
            supervisor_id="Nobody",
            user_id=None,
            state="failed",
            caller=ours if number < 2 else DESK,
        )
        assert await services.runs.create(new)
    # As a newer version keeps it: nobody knows here whose it is.
    await services.runs._batch.run(
        [("HSET", keys.session("s01").root, "pipeline", "{}")]
    )
    trips = 0
    read = services.runs._batch.run

    async def count(commands: Any) -> Any:
        nonlocal trips
        trips += 1
        return await read(commands)

    monkeypatch.setattr(services.runs._batch, "run", count)
    page = await list_runs(services, ours)
    assert [one.session_id for one in page.runs] == ["s00"]
    assert trips == 2


async def test_a_run_may_begin_later_as_a_schedule(place: Place) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    new = Run(pipeline=declared(), inputs={"word": "hi"}, at=at)
    taken = await run_pipeline(place.services, ANN, new)
    assert taken.location.startswith("/v1/schedules/steps-")
    assert "it begins at" in taken.view.text
    named = new.model_copy(update={"session_id": "s1"})
    with pytest.raises(Refused, match="session_id"):
        await run_pipeline(place.services, ANN, named)
