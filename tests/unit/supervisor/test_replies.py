"""Replies in words to reports, failures and questions."""

from collections.abc import Callable
from typing import Any

import pytest

from tasklore.contracts.errors import NotAccepted, QueueFull
from tasklore.contracts.messages import (
    CompletionReport,
    ErrorNote,
    MemoryNote,
    TaskAssignment,
    TaskCall,
)
from tasklore.contracts.moments import describe_time
from tasklore.supervisor.replies.report_texts import (
    describe_result,
    part_reply,
    report_reply,
)
from tasklore.supervisor.requests.readings import make_reading
from tests.answer_texts import TEXTS
from tests.understanding_cases import AT, BUDGET, understand
from tests.unit.supervisor.reports import report

CALL = TaskCall(
    name="analyze_budget",
    parameters={"budget_limit": 50000, "spent": 42000, "history": [5000, 7000]},
)
ASSIGNMENT = TaskAssignment(
    task_id="t1",
    agent_id="BudgetTrackerAgent",
    supervisor_id="SupervisorAgent",
    task=CALL,
    created_at=AT,
)


def failed(
    status: str, message: str = "spent: is no number; send a number", **changed: Any
) -> CompletionReport:
    error = ErrorNote(
        type="InvalidParameters",
        message=message,
        retryable=changed.pop("retryable", False),
    )
    return report(status=status, result=None, error=error, **changed)


def reply_to(found: CompletionReport | None, problem: NotAccepted | None = None) -> Any:
    return report_reply(
        found,
        BUDGET.tasks[0],
        assignment=ASSIGNMENT,
        request_id="r1",
        conversation_id="c1",
        problem=problem,
    )


@pytest.mark.parametrize(
    ("found", "problem", "named"),
    [
        (
            report(),
            None,
            "(budget limit 50,000 as I remember it; spent 42,000; history [",
        ),
        (failed("failed"), None, " I took budget limit 50,000 as I remember it."),
        (None, NotAccepted("away"), " I took budget limit 50,000 as I remember it."),
    ],
    ids=["answer", "failure", "not accepted"],
)
def test_a_remembered_value_is_named_in_every_reply(
    found: CompletionReport | None, problem: NotAccepted | None, named: str
) -> None:
    reply = report_reply(
        found,
        BUDGET.tasks[0],
        assignment=ASSIGNMENT,
        request_id="r1",
        conversation_id="c1",
        problem=problem,
        remembered={"budget_limit"},
    )
    assert named in reply.text
    assert reply.text.count("remember it") == 1
    assert "remember it" not in reply_to(found, problem).text


def test_a_result_is_described_line_by_line() -> None:
    result = {
        "remaining": 8000,
        "spending_rate": 6500.5,
        "overshoot_risk": True,
        "predicted_spending": {"value": 68000, "unit": "USD"},
        "periods": [5000, 7000],
        "anomalies": [{"value": 25000, "index": 4}],
        "nothing": [],
        "unknown": None,
        "recommendations": [
            "Cut spending by 18,000 to stay within the limit.",
            "Add a history.",
        ],
    }
    assert describe_result(report(result=result), BUDGET.tasks[0], CALL) == "\n".join(
        [
            "Analyze budget (budget limit 50,000; spent 42,000; history [5,000; 7,000]):",
            "  Remaining: 8,000",
            "  Spending rate: 6,500.5",
            "  Overshoot risk: yes",
            "  Predicted spending: 68,000 USD",
            "  Periods: 5,000; 7,000",
            "  Anomalies:",
            "    - value 25,000; index 4",
            "  Nothing: none",
            "  Unknown: none",
            "  Recommendations:",
            "    - Cut spending by 18,000 to stay within the limit.",
            "    - Add a history.",
            "Computed in 3 ms, and cached.",
        ]
    )


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (-1234567.25, "  -1,234,567.25"),
        (False, "  no"),
        ({"a": {"b": {"c": 1}}}, "  A:\n    B:\n      C: 1"),
        (["two\nlines"], "  - two\n    lines"),
        ({"note": "one\n\n  two"}, "  Note:\n    one\n\n      two"),
        (
            [{"of": "Ada", "note": "two\nlines"}],
            "  - Of: Ada\n    Note:\n      two\n      lines",
        ),
    ],
)
def test_a_result_of_any_shape_is_described(result: Any, line: str) -> None:
    assert (
        describe_result(report(result=result), None)
        .split("\n", 1)[1]
        .rsplit("\n", 1)[0]
        == line
    )


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_the_answer_and_the_rest_is_beside_it(text: str) -> None:
    reply = reply_to(report(result=text))
    assert (reply.text, reply.report.result) == (text, text)
    assert reply.heading == (
        "Analyze budget (budget limit 50,000; spent 42,000; history [5,000; 7,000])"
    )
    assert (reply.origin, reply.taken) == ("Computed in 3 ms, and cached.", None)


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ({"year": 2019}, "  Year: 2019"),
        ({"years": [2019, 2020]}, "  Years: 2019, 2020"),
        ({"number_of_guests": 1204}, "  Number of guests: 1,204"),
        ({"order_id": 70551}, "  Order id: 70551"),
        ({"sums": [1200, 3400]}, "  Sums: 1,200; 3,400"),
        (
            [{"sums": [1200, 3400], "of": "March, April"}],
            "  - sums [1,200; 3,400]; of March, April",
        ),
    ],
)
def test_separators_in_numbers_and_lists_cannot_be_confused(
    result: Any, line: str
) -> None:
    assert (
        describe_result(report(result=result), None)
        .split("\n", 1)[1]
        .rsplit("\n", 1)[0]
        == line
    )


@pytest.mark.parametrize(
    "wrap",
    [lambda inner: {"a": inner}, lambda inner: [inner], lambda inner: [{"a": inner}]],
)
def test_a_deep_result_is_cut(wrap: Callable[[Any], Any]) -> None:
    result: Any = 1
    for _ in range(200):
        result = wrap(result)
    assert "..." in describe_result(report(result=result), None)


def test_a_long_result_is_cut_in_the_text_alone() -> None:
    result = {f"line_{place}": "word " * 1000 for place in range(200)}
    found = reply_to(report(result=result))
    assert "140 more lines" in found.text
    assert len(found.text) < 60 * 2_100
    assert found.report.result == result


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ({"outcome": "miss"}, "Computed in 3 ms, and cached."),
        ({"outcome": "hit"}, "From the cache; answered in 3 ms."),
        (
            {"outcome": "joined"},
            "Computed once for several identical requests; answered in 3 ms.",
        ),
        ({"outcome": "refreshed"}, "Recomputed in 3 ms, and cached."),
        ({"outcome": "off"}, "Computed in 3 ms."),
        ({"outcome": "of the future"}, "Computed in 3 ms."),
        (
            {
                "outcome": "near",
                "age_ms": 1000,
                "distance": 10.0,
                "computed_for": {"budget_limit": 50010},
            },
            (
                "From the cache, computed 1.0 s ago, for a similar question "
                "(budget limit 50,010), 10 away; answered in 3 ms."
            ),
        ),
    ],
)
def test_a_reply_says_whether_the_answer_was_remembered(
    note: dict[str, Any], said: str
) -> None:
    assert reply_to(report(memory=MemoryNote(**note))).text.endswith(f"\n{said}")


@pytest.mark.parametrize(
    ("duration_ms", "said"),
    [(0, "under 1 ms"),  (3, "3 ms"), (1500, "1.5 s"), (60_000, "1 minute"), (7.3e6, "2 hours"),
     (3e8, "3 days")],
)  # fmt: skip
def test_times_have_one_unit(duration_ms: float, said: str) -> None:
    assert describe_time(duration_ms) == said


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            failed("failed", "disk full", attempt=3),
            ["failed after 3 attempts", "disk full.", "(InvalidParameters)"],
        ),
        (
            failed("failed", "too busy", retryable=True),
            ["after one attempt", "This error may be temporary; ask again later."],
        ),
        (
            failed("rejected"),
            [
                "It was rejected: ",
                "spent: is no number; send a number.",
                "Correct this and ask again.",
            ],
        ),
        (
            failed("expired", "deadline passed"),
            ["It expired: deadline passed.", "Ask again"],
        ),
        (failed("cancelled", "by ann"), ["cancelled", "by ann.", "Ask again"]),
        (
            failed("completed", "its user was forgotten"),
            ["no longer stored", "its user was forgotten"],
        ),
        (failed("vanished"), ["does not know", "Update the supervisor"]),
        (report(status="failed", result=None), ["no reason was given"]),
    ],
)
def test_a_failure_comes_with_its_cure(
    found: CompletionReport, words: list[str]
) -> None:
    reply = reply_to(found)
    assert reply.kind == "failed"
    assert all(word in reply.text for word in words), reply.text
    assert reply.report is found


def test_a_pending_reply_names_the_request_id() -> None:
    reply = reply_to(None)
    assert (reply.kind, reply.task) == ("pending", CALL)
    assert "r1" in reply.text


def test_a_task_without_a_worker_is_not_called_work() -> None:
    reply = report_reply(
        None,
        BUDGET.tasks[0],
        assignment=ASSIGNMENT,
        request_id="r1",
        conversation_id="c1",
        has_worker=False,
    )
    assert (reply.kind, reply.waits_for) == ("pending", "worker")
    assert reply.text.startswith(
        "No worker of BudgetTrackerAgent is running; the task waits for one."
    )
    assert reply_to(None).waits_for is None


def test_a_full_queue_says_when_to_ask_again() -> None:
    reply = reply_to(
        None,
        QueueFull("tasks.A.x: no room (maximum bytes exceeded); try again in 5 s", 5.0),
    )
    assert reply.kind == "failed"
    assert "queue is full" in reply.text
    assert (
        "nothing was started: tasks.A.x: no room (maximum bytes exceeded); try again in 5 s."
        in reply.text
    )


def test_a_task_that_may_have_arrived_is_not_called_unstarted() -> None:
    reply = reply_to(
        None, NotAccepted("tasks.A.x: not stored: the server did not answer", 2.0)
    )
    assert reply.kind == "failed"
    assert "the server did not answer." in reply.text
    assert "in 2 s with the request id r1" in reply.text
    assert "nothing was started" not in reply.text


def test_an_answer_keeps_its_task_for_later_turns() -> None:
    reply = reply_to(report())
    assert (reply.kind, reply.agent_id, reply.task) == (
        "answer",
        "BudgetTrackerAgent",
        CALL,
    )
    assert (reply.request_id, reply.conversation_id) == ("r1", "c1")


def test_a_question_names_missing_fields_and_keeps_known_ones() -> None:
    [part] = make_reading(understand("budget limit 50k"), "t1").parts
    reply = part_reply(part, request_id="r1", conversation_id="c1")
    assert (reply.kind, reply.missing, reply.text) == (
        "question",
        ("spent",),
        "What is the spent amount?",
    )
    assert reply.task == TaskCall(
        name="analyze_budget", parameters={"budget_limit": 50000}
    )


def test_long_fractions_are_rounded_in_the_text_alone() -> None:
    found = report(
        result={
            "each": "33.33333333333333333333333333333333",
            "tiny": "0.00000000000000000001234",
        }
    )
    reply = reply_to(found)
    assert "Each: 33.3333\n" in reply.text
    assert "Tiny: 0.00000000000000000001234" in reply.text
    assert reply.report.result["each"] == "33.33333333333333333333333333333333"
