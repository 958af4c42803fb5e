"""Pages of pipelines: their list, one run with its graph, going on, running a phase again, and cancelling."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import PipelineReply, PipelineRequest
from tasklore.contracts.pipelines import Input
from tasklore.memory.sessions.pipeline_records import NewRun, PhaseState
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.console.graph import BOX_HEIGHT, draw_graph
from tasklore.supervisor.operations.pipelines import PhaseView
from tests.integration.console.browsing import (
    PAYLOADS,
    ConsoleStand,
    console_stand,
)
from tests.servers import PATIENCE_S
from tests.unit.supervisor.pipelines.fake_system import a_chain

DEPENDENCIES = {"read": (), "think": ("read",), "write": ("think",)}


@dataclass
class Taken:
    """Takes every request for a run, and keeps it."""

    asked: list[PipelineRequest] = field(default_factory=list)
    text: str = ""

    async def take_up(
        self, request: PipelineRequest, *, from_door: bool = False
    ) -> PipelineReply:
        assert not from_door
        self.asked.append(request)
        if self.text:
            return PipelineReply(kind="refused", text=self.text)
        return PipelineReply(session_id=request.session_id, kind="accepted")


@pytest.fixture
def taken() -> Taken:
    return Taken()


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path, taken: Taken
) -> AsyncIterator[ConsoleStand]:
    async with console_stand(servers, redis, tmp_path, pipelines=taken) as found:
        yield found


async def keep_run(
    redis: Redis, session_id: str, *, state: Any = "failed", **more: Any
) -> None:
    """Keep a run whose second phase failed."""
    pipeline = a_chain(*DEPENDENCIES, name="papers")
    inputs = {**pipeline.inputs, "token": Input(secret=True, required=False)}
    phases = {
        "read": PhaseState(status="done", run=1, took_ms=1_200, attempts=1),
        "think": PhaseState(
            status="failed", run=1, attempts=3, error_type="Boom", error="no luck"
        ),
    }
    new = {
        "session_id": session_id,
        "pipeline": pipeline.model_copy(update={"inputs": inputs}),
        "supervisor_id": "S",
        "dependencies": DEPENDENCIES,
        "inputs": {"x": 1, "token": "pst-1"},
        "state": state,
        "phases": phases,
        **more,
    }
    assert await PipelineRuns(redis, deadline_s=PATIENCE_S).create(NewRun(**new))


async def test_a_run_shows_its_phases_and_what_each_waits_for(
    console: ConsoleStand, redis: Redis
) -> None:
    """The list leads to it; a box of the graph to the row of its phase; a secret input is not there."""
    await keep_run(redis, "s1")
    async with console.tab("admin") as tab:
        text = await tab.open("/console/pipelines")
        assert 'href="/console/pipelines/s1"' in text
        assert "s1" not in await tab.open("/console/pipelines?state=cancelled")
        text = await tab.open("/console/pipelines/s1")
        assert "<h1>papers</h1>" in text
        assert "Boom</b>: no luck" in text
        assert "think failed" in text
        assert "pst-1" not in text
        for phase, state in (
            ("read", "done"),
            ("think", "failed"),
            ("write", "pending"),
        ):
            assert f'href="#phase-{phase}" aria-label="{phase}: {state}"' in text
            assert f'id="phase-{phase}"' in text
        assert len(re.findall(r'<path class="edge', text)) == 2


async def test_a_run_goes_on_with_the_inputs_that_are_typed(
    console: ConsoleStand, redis: Redis, taken: Taken
) -> None:
    """A refusal is said on the page; nothing else changed."""
    await keep_run(redis, "s1")
    async with console.tab("admin") as tab:
        await tab.open("/console/pipelines/s1")
        assert 'type="password" name="input:token"' in tab.text
        fields = {"session_id": "s1", "input:token": "pst-2", "input:x": ""}
        assert "It continues." in await tab.send("/console/pipelines/resume", **fields)
        [request] = taken.asked
        assert (request.action, request.inputs) == ("resume", {"token": "pst-2"})
        taken.text = "it cannot run: <b>no</b>"
        text = await tab.send("/console/pipelines/resume", session_id="s1")
        assert "It was refused: it cannot run: &lt;b&gt;no&lt;/b&gt;." in text


async def test_a_phase_runs_again_once_it_was_shown_what_depends_on_it(
    console: ConsoleStand, redis: Redis, taken: Taken
) -> None:
    await keep_run(redis, "s1")
    async with console.tab("admin") as tab:
        await tab.open("/console/pipelines/s1")
        fields = {"session_id": "s1", "phase": "think"}
        text = await tab.send("/console/pipelines/rerun", 200, **fields)
        assert "Run think again?" in text
        assert "This concerns 2" in text
        assert "<li>think</li><li>write</li>" in re.sub(r"\s*\n\s*", "", text)
        assert not taken.asked
        await tab.send("/console/pipelines/rerun", sure="yes", **fields)
        assert [(one.action, one.phase) for one in taken.asked] == [("rerun", "think")]
        text = await tab.send(
            "/console/pipelines/rerun", sure="yes", session_id="s1", phase="<none>"
        )
        assert 'class="said bad"' in text
        assert len(taken.asked) == 1


async def test_a_run_is_cancelled_after_a_question(
    console: ConsoleStand, redis: Redis, taken: Taken
) -> None:
    await keep_run(redis, "s1", state="running")
    async with console.tab("admin") as tab:
        text = await tab.open("/console/pipelines/s1")
        assert 'data-hx-get="/console/pipelines/s1"' in text
        assert "Run again" not in text
        text = await tab.send("/console/pipelines/cancel", 200, session_id="s1")
        assert "Cancel papers?" in text
        assert not taken.asked
        await tab.send("/console/pipelines/cancel", session_id="s1", sure="yes")
        assert [one.action for one in taken.asked] == ["cancel"]


async def test_runs_of_others_are_not_there(
    console: ConsoleStand, redis: Redis
) -> None:
    """Nor does any form of another user or tenant reach them."""
    await keep_run(redis, "of-ana", user_id="ana")
    acme = Caller(name="acme", roles=frozenset({"ask"}), tenant="acme")
    await keep_run(redis, "of-acme", caller=acme)
    for name, own, other in (
        ("ana", "of-ana", "of-acme"),
        ("acme", "of-acme", "of-ana"),
    ):
        async with console.tab(name) as tab:
            text = await tab.open("/console/pipelines")
            assert own in text
            assert other not in text
            await tab.open(f"/console/pipelines/{other}", 404)
            await tab.open("/console/pipelines")
            await tab.open(f"/console/pipelines/{own}")
            for action in ("resume", "rerun", "cancel"):
                answer = await tab.client.post(
                    f"/console/pipelines/{action}",
                    data={
                        "form_token": re.findall(
                            r'name="form_token" value="([^"]*)"', tab.text
                        )[0],
                        "session_id": other,
                        "phase": "think",
                    },
                )
                assert answer.status_code == 404


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_what_runs_hold_is_text(
    console: ConsoleStand, redis: Redis, payload: str
) -> None:
    """Errors, reasons, inputs, projects and users of runs."""
    failed = PhaseState(
        status="failed", error_type=payload, error=payload, why=payload, run=1
    )
    await keep_run(
        redis,
        "s1",
        user_id=payload,
        project=payload,
        inputs={"x": payload},
        phases={"read": failed},
    )
    async with console.tab("admin") as tab:
        for path in ("/console/pipelines", "/console/pipelines/s1"):
            text = await tab.open(path)
            assert not re.search(
                r"<script(?! src=\"/console/static)|<img|<svg onload", text
            )
            assert payload not in text or not re.search("[<>\"']", payload)


def test_the_picture_has_each_phase_behind_all_that_it_needs() -> None:
    """Boxes lie on no other, and all within; a line goes past boxes; very many phases are in no picture."""
    needs: dict[str, tuple[str, ...]] = {
        "a": (),
        "b": (),
        "c": ("a",),
        "d": ("a", "b", "gone"),
        "e": ("c", "d", "a"),
        "f": (),
    }
    phases = [
        PhaseView(phase=name, status="pending", run=0, after=after)
        for name, after in needs.items()
    ]
    graph = draw_graph(phases)
    assert graph is not None
    boxes = {one.phase: one for one in graph.boxes}
    assert len({(one.x, one.y) for one in graph.boxes}) == len(needs)
    for name, after in needs.items():
        assert all(boxes[one].x < boxes[name].x for one in after if one in boxes)
        assert boxes[name].y + BOX_HEIGHT <= graph.height
    assert len(graph.lines) == 6
    [past] = [one for one in graph.lines if "H" in one.d]
    way_y = int(past.d.partition("H")[0].rpartition(" ")[2])
    between = [one for one in graph.boxes if one.x == boxes["c"].x]
    assert not any(one.y <= way_y <= one.y + BOX_HEIGHT for one in between)
    assert draw_graph([]) is None
    assert draw_graph(phases * 20) is None
