"""Pictures of tasks and answers: the words of a view, and the exit code that it means."""

import time
from typing import Any

import pytest

from tasklore.commands.pictures import ask, cancelled, tasks


@pytest.mark.parametrize(
    ("view", "words", "code"),
    [
        ({"outcome": "cancelled", "status": "cancelled"}, "is cancelled", 0),
        ({"outcome": "too_late", "status": "completed"}, "already: completed", 1),
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
