"""How tasks end that do not complete: retried while that may help, then one report that says why."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.acceptance.conftest import Standing
from tests.acceptance.outside import PATIENCE_S, Json, Outside


async def trouble(program: Outside, kind: str, **fields: Any) -> tuple[str, Json]:
    """Ask for trouble of *kind*; return its label and the report."""
    label = uuid.uuid4().hex
    parameters = {name: fields.pop(name) for name in ("times", "after_s") if name in fields}
    report = await program.ask("ProbeAgent", "trouble", {"label": label, "kind": kind, **parameters}, **fields)
    return label, report


async def dead_letters(program: Outside, task_id: str) -> list[Json]:
    """Return what DEAD holds of *task_id*."""
    info = await program.api("STREAM.INFO.DEAD")
    first, last = info["state"]["first_seq"], info["state"]["last_seq"]
    letters = []
    for sequence in range(first, last + 1):
        answer = await program.client.request(
            "$JS.API.DIRECT.GET.DEAD", json.dumps({"seq": sequence}).encode(), timeout=PATIENCE_S
        )
        letter = json.loads(answer.data)
        if letter["task_id"] == task_id:
            letters.append(letter)
    return letters


async def test_a_task_that_raises_is_retried_with_growing_pauses_and_ends_in_one_report(
    program: Outside, standing: Standing
) -> None:
    """Every attempt is used, then the report names the error, and the task lies in DEAD with its traceback."""
    label, report = await trouble(program, "error", max_attempts=4)
    runs = standing.house.runs(label)
    assert len(runs) == 4
    assert all(later > earlier for earlier, later in pairwise(runs))
    assert (report["status"], report["attempt"], report["result"]) == ("failed", 4, None)
    assert report["error"]["type"] == "ConnectionRefusedError"
    assert f"the bank of {label} does not answer" in report["error"]["message"]
    [letter] = await dead_letters(program, report["task_id"])
    assert (letter["reason"], letter["attempts"]) == ("attempts", 4)
    assert "in trouble" in letter["traceback"]
    assert letter["subject"] == "tasks.ProbeAgent.trouble"
    assert list((await program.reports()).values()) == [1]


async def test_a_task_that_recovers_completes(program: Outside, standing: Standing) -> None:
    """Two failures cost two attempts and leave no trace in DEAD."""
    label, report = await trouble(program, "error", times=2)
    assert (report["status"], report["attempt"]) == ("completed", 3)
    assert len(standing.house.runs(label)) == 3
    assert await dead_letters(program, report["task_id"]) == []


async def test_attempts_that_another_stream_counted_are_counted_on(program: Outside, standing: Standing) -> None:
    """The header that travels on every copy says how many runs there were before this delivery."""
    label = uuid.uuid4().hex
    assignment = program.assignment("ProbeAgent", "trouble", {"label": label}, max_attempts=4)
    await program.publish("tasks.ProbeAgent.trouble", json.dumps(assignment).encode(), {"Tasklore-Attempt": "3"})
    report = await program.report_of(assignment["task_id"])
    assert (report["status"], report["attempt"], len(standing.house.runs(label))) == ("failed", 4, 2)


async def test_giving_up_fails_at_once(program: Outside, standing: Standing) -> None:
    """A task that knows better is not run again."""
    label, report = await trouble(program, "give_up")
    assert (report["status"], report["attempt"], report["error"]["type"]) == ("failed", 1, "GiveUp")
    assert len(standing.house.runs(label)) == 1
    assert len(await dead_letters(program, report["task_id"])) == 1


async def test_a_result_that_breaks_its_own_word_fails_at_once(program: Outside) -> None:
    """No further run would return anything else."""
    _, report = await trouble(program, "unfitting")
    assert (report["status"], report["attempt"]) == ("failed", 1)
    assert "does not fit its return annotation" in report["error"]["message"]


async def test_a_task_that_asks_for_later_is_run_then(program: Outside, standing: Standing) -> None:
    """The pause is the one that it asked for, not ours."""
    label, report = await trouble(program, "later", times=1, after_s=1.2)
    first, second = standing.house.runs(label)
    assert report["status"] == "completed"
    assert second - first >= 1.1


@pytest.mark.parametrize("kind", ["cancelled", "exit"])
async def test_no_exception_of_a_task_takes_the_worker_along(program: Outside, standing: Standing, kind: str) -> None:
    """A stray CancelledError and `sys.exit` are failures like any other: retried, then reported."""
    label, report = await trouble(program, kind, max_attempts=3)
    assert (report["status"], report["attempt"]) == ("failed", 3)
    assert len(standing.house.runs(label)) == 3
    assert {"cancelled": "CancelledError", "exit": "SystemExit"}[kind] in report["error"]["message"]
    assert standing.worker.is_running


@pytest.mark.parametrize(("kind", "name"), [("surrogate", "FileNotFoundError"), ("mute", "Mute")])
async def test_an_error_without_proper_words_is_reported_too(program: Outside, kind: str, name: str) -> None:
    """Half a surrogate pair, as odd file names bring it, and a broken `__str__` stop no report."""
    _, report = await trouble(program, kind, max_attempts=1)
    assert (report["status"], report["error"]["type"]) == ("failed", name)
    assert report["error"]["message"]
    assert len(await dead_letters(program, report["task_id"])) == 1


async def test_a_task_past_its_deadline_is_never_started(program: Outside, standing: Standing) -> None:
    """Nobody waits for the answer any more."""
    label = uuid.uuid4().hex
    report = await program.ask("ProbeAgent", "fresh", {"label": label}, deadline="2026-01-01T00:00:00Z")
    assert report["status"] == "expired"
    assert report["error"]["message"]
    assert standing.house.runs(label) == []


async def test_a_deadline_ends_a_running_task(program: Outside, standing: Standing) -> None:
    """The report comes about when the deadline does, and the task is not run again."""
    label = uuid.uuid4().hex
    deadline = (datetime.now(UTC) + timedelta(seconds=4)).isoformat()
    report = await program.ask("ProbeAgent", "fresh", {"label": label, "ms": 60_000}, deadline=deadline)
    assert (report["status"], report["attempt"]) == ("expired", 1)
    assert len(standing.house.runs(label)) == 1


async def test_a_running_task_is_cancelled_on_request(program: Outside, standing: Standing) -> None:
    """The wish is said on core NATS, and its reason is in the one report."""
    label = uuid.uuid4().hex
    task = await program.assign("ProbeAgent", "fresh", {"label": label, "ms": 60_000})
    await program.begun(task)
    wish = {"schema_version": 1, "task_id": task, "reason": "the meeting is over"}
    await program.client.publish(f"cancel.{task}", json.dumps(wish).encode())
    report = await program.report_of(task)
    assert (report["status"], report["result"]) == ("cancelled", None)
    assert "the meeting is over" in report["error"]["message"]
    assert len(standing.house.runs(label)) == 1


async def test_a_wish_to_cancel_what_does_not_run_here_changes_nothing(program: Outside) -> None:
    """Neither an unknown task nor an unreadable wish disturbs the worker."""
    for body in (b"", b"{", b'{"task_id": "a b"}', b'{"schema_version": 1, "task_id": "nobody"}'):
        await program.client.publish("cancel.nobody", body)
    report = await program.ask("ProbeAgent", "fresh", {"label": uuid.uuid4().hex})
    assert report["status"] == "completed"


async def test_failures_are_not_remembered(program: Outside) -> None:
    """A question that failed before is asked anew, and only its answer is kept."""
    question = {"label": uuid.uuid4().hex, "times": 1}
    reports = [await program.ask("ProbeAgent", "sulk", question) for _ in range(3)]
    assert [report["status"] for report in reports] == ["failed", "completed", "completed"]
    assert [report["memory"]["outcome"] for report in reports] == ["miss", "miss", "hit"]
