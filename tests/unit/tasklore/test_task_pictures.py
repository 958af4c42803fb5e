"""Pictures of tasks and answers: the words of a view, and the exit code that it means."""

import time
from typing import Any

import pytest

from tasklore.commands.pictures import ask, cancelled, task_counts, tasks


@pytest.mark.parametrize(
    ("view", "words", "code"),
    [
        ({"outcome": "cancelled", "status": "cancelled"}, "is cancelled", 0),
        ({"outcome": "too_late", "status": "completed"}, "already ended: completed", 1),
        ({"outcome": "noted", "status": None}, "before it starts", 0),
    ],
)
def test_a_cancellation_that_came_too_late_is_no_success(
    view: dict[str, Any], words: str, code: int
) -> None:
    assert words in cancelled.draw(view)
    assert cancelled.code_of(view) == code


def test_a_list_says_why_a_task_waits_or_failed() -> None:
    """The columns that no task fills are left out."""
    began = int(time.time() * 1000) - 7_200_000
    task = {
        "task_id": "t-1",
        "agent_id": "EchoAgent",
        "task": "echo",
        "state": "failed",
        "generation": 1,
        "began_ms": began,
        "run_ms": 1_500,
        "error": "OSError",
    }
    head, line = tasks.draw({"tasks": [task], "after": None}).splitlines()
    assert head.split() == ["ID", "TASK", "STATE", "AGE", "RAN", "WHY"]
    assert line.split() == [
        *("t-1", "EchoAgent.echo", "failed", "2", "h", "1.5", "s", "OSError")
    ]
    wait = {
        "kind": "limit",
        "name": "acme",
        "text": "the budget of tenant acme",
        "since": "2026-01-01T12:00:00Z",
        "until": "2026-01-02T00:00:00Z",
    }
    waiting = {**task, "state": "accepted", "waits_for": wait, "tenant": "acme"}
    drawn = tasks.draw({"tasks": [waiting], "after": None})
    assert "waits for the budget of tenant acme, until 2026-01-02 00:00:00 UTC" in drawn
    assert drawn.splitlines()[0].split()[-1] == "TENANT"
    assert tasks.draw({"tasks": [], "after": None}) == "There are no such tasks."


def counted(**values: Any) -> str:
    """Return the picture of a count of tasks, of which there are none but *values*."""
    view = {
        "open": 0,
        "oldest_ms": None,
        "looked_at": 0,
        "states": {},
        "waits": [],
        "failed": 0,
        "failures": [],
        "is_cut": False,
    }
    return task_counts.draw(view | values)


def test_a_count_of_tasks_is_said_in_sentences() -> None:
    """No name of a field is among the words."""
    assert counted() == "No task is open.\nNone failed in the last hour."
    wait = {"kind": "limit", "name": "acme", "text": "the budget of acme", "said": ""}
    text = counted(
        open=1_200,
        oldest_ms=int(time.time() * 1000) - 7_200_000,
        looked_at=200,
        states={"running": 2, "waiting": 198},
        waits=[wait | {"tasks": 5}, wait | {"tasks": 1}],
        failed=200,
        is_cut=True,
    )
    assert text.splitlines() == [
        "1,200 tasks are open, the oldest for 2 h. Of the newest 200: 2 running, 198 waiting.",
        "  5 wait for the budget of acme",
        "  1 waits for the budget of acme",
        "200 or more failed in the last hour.",
    ]
    task = {
        "task_id": "t-1",
        "agent_id": "EchoAgent",
        "task": "echo",
        "state": "failed",
    }
    text = counted(failed=1, failures=[task | {"began_ms": 0, "error": "OSError"}])
    assert text.splitlines()[1:3] == ["1 failed in the last hour.", ""]
    assert "EchoAgent.echo" in text.splitlines()[-1]


def reply(kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "text": f"({kind})", **fields}


@pytest.mark.parametrize(
    ("view", "code"),
    [
        ({"reply": reply("answer")}, 0),
        ({"reply": reply("failed")}, 1),
        ({"reply": reply("pending")}, 1),
        ({"reply": reply("pending", approval_id="t.start")}, 0),
        ({"reply": reply("question")}, 4),
        ({"reply": reply("unable")}, 5),
        ({"reply": reply("question", parts=[reply("question"), reply("failed")])}, 1),
        ({"reply": reply("answer", parts=[reply("answer"), reply("unable")])}, 5),
        ({"reply": None, "state": "running"}, 1),
        ({"reply": None, "approvals": [{"id": "t.start", "who": "ana"}]}, 0),
    ],
)
def test_an_answer_has_the_code_of_its_worst_part(
    view: dict[str, Any], code: int
) -> None:
    assert ask.code_of(view) == code
    told = view["reply"]["text"] if view["reply"] else "It "
    assert ask.draw(view).startswith(told)
