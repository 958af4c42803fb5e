"""How tasks end that do not complete: retried while that may help, then one report that says why."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.acceptance.conftest import Standing
from tests.acceptance.external_program import PATIENCE_S, Json, Outside


async def trouble(program: Outside, kind: str, **fields: Any) -> tuple[str, Json]:
    """Ask for trouble of *kind*; return its label and the report."""
    label = uuid.uuid4().hex
    parameters = {
        name: fields.pop(name) for name in ("times", "after_s") if name in fields
    }
    report = await program.ask(
        "ProbeAgent", "trouble", {"label": label, "kind": kind, **parameters}, **fields
    )
    return label, report


async def dead_letters(program: Outside, task_id: str) -> list[Json]:
    """Return what DEAD holds of *task_id*."""
    info = await program.api("STREAM.INFO.DEAD")
    first = info["state"]["first_seq"]
    last = info["state"]["last_seq"]
    letters = []
    for sequence in range(first, last + 1):
        answer = await program.client.request(
            "$JS.API.DIRECT.GET.DEAD",
            json.dumps({"seq": sequence}).encode(),
            timeout=PATIENCE_S,
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
    runs = standing.system.runs(label)
    assert len(runs) == 4
    assert all(later > earlier for earlier, later in pairwise(runs))
    assert (report["status"], report["attempt"], report["result"]) == (
        "failed",
        4,
        None,
    )
    assert report["error"]["type"] == "ConnectionRefusedError"
    assert f"the bank of {label} does not answer" in report["error"]["message"]
    [letter] = await dead_letters(program, report["task_id"])
    assert (letter["reason"], letter["attempts"]) == ("attempts", 4)
    assert "in trouble" in letter["traceback"]
    assert letter["subject"] == "tasks.ProbeAgent.trouble"
    assert list((await program.reports()).values()) == [1]


async def test_giving_up_fails_at_once(program: Outside, standing: Standing) -> None:
    label, report = await trouble(program, "give_up")
    assert (report["status"], report["attempt"], report["error"]["type"]) == (
        "failed",
        1,
        "GiveUp",
    )
    assert len(standing.system.runs(label)) == 1
    assert len(await dead_letters(program, report["task_id"])) == 1


@pytest.mark.parametrize("kind", ["cancelled", "exit"])
async def test_no_exception_of_a_task_takes_the_worker_along(
    program: Outside, standing: Standing, kind: str
) -> None:
    """A stray CancelledError and `sys.exit` are failures like any other: retried, then reported."""
    label, report = await trouble(program, kind, max_attempts=3)
    assert (report["status"], report["attempt"]) == ("failed", 3)
    assert len(standing.system.runs(label)) == 3
    assert {"cancelled": "CancelledError", "exit": "SystemExit"}[kind] in report[
        "error"
    ]["message"]
    assert standing.worker.is_running


@pytest.mark.parametrize(
    ("kind", "name"), [("surrogate", "FileNotFoundError"), ("mute", "Mute")]
)
async def test_an_error_without_proper_words_is_reported_too(
    program: Outside, kind: str, name: str
) -> None:
    """Half a surrogate pair, as odd file names bring it, and a broken `__str__` stop no report."""
    _, report = await trouble(program, kind, max_attempts=1)
    assert (report["status"], report["error"]["type"]) == ("failed", name)
    assert report["error"]["message"]
    assert len(await dead_letters(program, report["task_id"])) == 1


async def test_a_task_past_its_deadline_is_never_started(
    program: Outside, standing: Standing
) -> None:
    label = uuid.uuid4().hex
    report = await program.ask(
        "ProbeAgent", "fresh", {"label": label}, deadline="2026-01-01T00:00:00Z"
    )
    assert report["status"] == "expired"
    assert report["error"]["message"]
    assert standing.system.runs(label) == []


async def test_a_deadline_ends_a_running_task(
    program: Outside, standing: Standing
) -> None:
    """The report comes about when the deadline does, and the task is not run again."""
    label = uuid.uuid4().hex
    deadline = (datetime.now(UTC) + timedelta(seconds=4)).isoformat()
    report = await program.ask(
        "ProbeAgent", "fresh", {"label": label, "ms": 60_000}, deadline=deadline
    )
    assert (report["status"], report["attempt"]) == ("expired", 1)
    assert len(standing.system.runs(label)) == 1


async def test_failures_are_not_remembered(program: Outside) -> None:
    """A question that failed before is asked anew, and only its answer is kept."""
    question = {"label": uuid.uuid4().hex, "times": 1}
    reports = [await program.ask("ProbeAgent", "sulk", question) for _ in range(3)]
    assert [report["status"] for report in reports] == [
        "failed",
        "completed",
        "completed",
    ]
    assert [report["memory"]["outcome"] for report in reports] == [
        "miss",
        "miss",
        "hit",
    ]
