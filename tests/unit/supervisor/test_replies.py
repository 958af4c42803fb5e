"""Answers in words."""

from collections.abc import Callable
from typing import Any

import pytest

from contracts.errors import NotAccepted, QueueFull
from contracts.messages import CompletionReport, ErrorNote, MemoryNote, TaskAssignment, TaskCall
from supervisor.catalogue import Catalogue
from supervisor.replies.descriptions import describe_result, describe_time, part_reply, report_reply
from supervisor.requests.readings import make_reading
from tests.understanding_cases import AT, BUDGET, understand

CALL = TaskCall(name="analyze_budget", parameters={"budget_limit": 50000, "spent": 42000, "history": [5000, 7000]})
ASSIGNMENT = TaskAssignment(
    task_id="t1", agent_id="BudgetTrackerAgent", supervisor_id="SupervisorAgent", task=CALL, created_at=AT
)


def report(**changed: Any) -> CompletionReport:
    """Return a completed report with *changed* in it."""
    plain: dict[str, Any] = {
        "task_id": "t1",
        "agent_id": "BudgetTrackerAgent",
        "supervisor_id": "SupervisorAgent",
        "task_name": "analyze_budget",
        "status": "completed",
        "result": {"remaining": 8000},
        "memory": MemoryNote(outcome="miss"),
        "worker_id": "w1",
        "run_ms": 3,
        "finished_at": AT,
    }
    return CompletionReport(**{**plain, **changed})


def failed(status: str, message: str = "spent: is no number; send a number", **changed: Any) -> CompletionReport:
    """Return a report that ended as *status*."""
    error = ErrorNote(type="InvalidParameters", message=message, retryable=changed.pop("retryable", False))
    return report(status=status, result=None, error=error, **changed)


def reply_to(found: CompletionReport | None, problem: NotAccepted | None = None) -> Any:
    """Return the reply to *found*."""
    return report_reply(
        found, BUDGET.tasks[0], assignment=ASSIGNMENT, request_id="r1", conversation_id="c1", problem=problem
    )


@pytest.mark.parametrize(
    ("found", "problem", "named"),
    [
        (report(), None, "(budget limit 50,000 as I remember it; spent 42,000; history ["),
        (failed("failed"), None, " I took budget limit 50,000 as I remember it."),
        (None, None, " I took budget limit 50,000 as I remember it."),
        (None, NotAccepted("away"), " I took budget limit 50,000 as I remember it."),
    ],
    ids=["answer", "failure", "pending", "not accepted"],
)
def test_what_was_remembered_is_named(found: CompletionReport | None, problem: NotAccepted | None, named: str) -> None:
    """Whatever comes of it, the person learns that a value is not theirs of today."""
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


def test_a_result_is_told_line_by_line() -> None:
    """Labels in words, separators in numbers, yes and no, sentences as bullets, and what was understood on top."""
    result = {
        "remaining": 8000,
        "spending_rate": 6500.5,
        "overshoot_risk": True,
        "predicted_spending": {"value": 68000, "unit": "USD"},
        "periods": [5000, 7000],
        "anomalies": [{"value": 25000, "index": 4}],
        "nothing": [],
        "unknown": None,
        "recommendations": ["Cut spending by 18,000 to stay within the limit.", "Add a history."],
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
            "Computed in 3 ms, and remembered.",
        ]
    )


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("Hello, Ada", "  Hello, Ada"),
        (-1234567.25, "  -1,234,567.25"),
        ("20261121", "  20261121"),
        (False, "  no"),
        ([], "  none"),
        ({"a": {"b": {"c": 1}}}, "  A:\n    B:\n      C: 1"),
        ("two\nlines", "  two lines"),
    ],
)
def test_a_result_of_any_shape_is_told(result: Any, line: str) -> None:
    """Nothing is assumed of an agent."""
    assert describe_result(report(result=result), None).split("\n", 1)[1].rsplit("\n", 1)[0] == line


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ({"year": 2019}, "  Year: 2019"),
        ({"years": [2019, 2020]}, "  Years: 2019, 2020"),
        ({"sales_per_year": 50000}, "  Sales per year: 50,000"),
        ({"number_of_guests": 1204}, "  Number of guests: 1,204"),
        ({"order_id": 70551}, "  Order id: 70551"),
        ({"sums": [1200, 3400]}, "  Sums: 1,200; 3,400"),
        ([{"sums": [1200, 3400], "of": "March, April"}], "  - sums [1,200; 3,400]; of March, April"),
    ],
)
def test_a_number_that_names_has_no_separator_and_a_list_another_than_its_numbers(result: Any, line: str) -> None:
    """A year is read as one, and nobody takes "1,200, 3,400" for four numbers."""
    assert describe_result(report(result=result), None).split("\n", 1)[1].rsplit("\n", 1)[0] == line


@pytest.mark.parametrize("wrap", [lambda inner: {"a": inner}, lambda inner: [inner], lambda inner: [{"a": inner}]])
def test_a_result_however_deep_is_told(wrap: Callable[[Any], Any]) -> None:
    """Its depths are left to the report."""
    result: Any = 1
    for _ in range(200):
        result = wrap(result)
    assert "..." in describe_result(report(result=result), None)


def test_a_long_result_is_cut_for_people_only() -> None:
    """The report holds the whole of it."""
    result = {f"line_{place}": "word " * 1000 for place in range(200)}
    found = reply_to(report(result=result))
    assert "140 lines more" in found.text
    assert len(found.text) < 60 * 2_100
    assert found.report.result == result


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ({"outcome": "miss"}, "Computed in 3 ms, and remembered."),
        ({"outcome": "hit"}, "Remembered; answered in 3 ms."),
        ({"outcome": "joined"}, "Computed once for several who asked the same at once; answered in 3 ms."),
        ({"outcome": "refreshed"}, "Computed afresh in 3 ms, and remembered."),
        ({"outcome": "off"}, "Computed in 3 ms."),
        ({"outcome": "of the future"}, "Computed in 3 ms."),
        (
            {"outcome": "near", "age_ms": 1000, "distance": 10.0, "computed_for": {"budget_limit": 50010}},
            "Remembered from 1.0 s ago, for a neighbouring question (budget limit 50,010), 10 away; answered in 3 ms.",
        ),
    ],
)
def test_a_person_hears_whether_the_answer_was_remembered(note: dict[str, Any], said: str) -> None:
    """And how long it took."""
    assert reply_to(report(memory=MemoryNote(**note))).text.endswith(f"\n{said}")


@pytest.mark.parametrize(
    ("duration_ms", "said"),
    [(0, "under 1 ms"), (0.4, "under 1 ms"), (3, "3 ms"), (1500, "1.5 s"), (60_000, "1 minute"), (7.3e6, "2 hours"),
     (3e8, "3 days")],
)  # fmt: skip
def test_times_are_told_as_people_tell_them(duration_ms: float, said: str) -> None:
    """One unit is enough."""
    assert describe_time(duration_ms) == said


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (failed("failed", "disk full", attempt=3), ["failed after 3 attempts", "disk full.", "(InvalidParameters)"]),
        (failed("failed", "too busy", retryable=True), ["after one attempt", "Asking again may help."]),
        (failed("rejected"), ["could not take that", "spent: is no number; send a number.", "Say it again"]),
        (failed("expired", "deadline passed"), ["time ran out", "deadline passed.", "start more workers"]),
        (failed("cancelled", "by ann"), ["cancelled", "by ann.", "Ask again"]),
        (failed("vanished"), ["does not know", "Update the supervisor"]),
        (report(status="failed", result=None), ["no reason was given"]),
    ],
)
def test_what_went_wrong_comes_with_its_cure(found: CompletionReport, words: list[str]) -> None:
    """As a failed reply that still carries the report."""
    reply = reply_to(found)
    assert reply.kind == "failed"
    assert all(word in reply.text for word in words), reply.text
    assert reply.report is found


def test_what_takes_longer_is_pending_with_the_way_back() -> None:
    """The request id fetches the answer later."""
    reply = reply_to(None)
    assert (reply.kind, reply.task) == ("pending", CALL)
    assert "r1" in reply.text


def test_a_full_queue_is_told_with_when_to_ask_again() -> None:
    """Nothing was started, for certain."""
    reply = reply_to(None, QueueFull("tasks.A.x: no room (maximum bytes exceeded); try again in 5 s", 5.0))
    assert reply.kind == "failed"
    assert "queue is full" in reply.text
    assert "nothing was started: tasks.A.x: no room (maximum bytes exceeded); try again in 5 s." in reply.text


def test_what_may_have_arrived_is_not_called_never_started() -> None:
    """The request id makes asking again safe."""
    reply = reply_to(None, NotAccepted("tasks.A.x: not stored: the server did not answer", 2.0))
    assert reply.kind == "failed"
    assert "the server did not answer." in reply.text
    assert "in 2 s with the request id r1" in reply.text
    assert "nothing was started" not in reply.text


def test_an_answer_keeps_its_task_for_later_references() -> None:
    """A later "same history" is resolved from it."""
    reply = reply_to(report())
    assert (reply.kind, reply.agent_id, reply.task) == ("answer", "BudgetTrackerAgent", CALL)
    assert (reply.request_id, reply.conversation_id) == ("r1", "c1")


def test_a_question_names_what_is_missing_and_keeps_what_is_known() -> None:
    """The next turn completes it."""
    [part] = make_reading(understand("budget limit 50k"), "t1").parts
    reply = part_reply(part, request_id="r1", conversation_id="c1")
    assert (reply.kind, reply.missing, reply.text) == ("question", ("spent",), "What is spent?")
    assert reply.task == TaskCall(name="analyze_budget", parameters={"budget_limit": 50000})


def test_what_fits_nothing_is_answered_with_what_can_be_asked() -> None:
    """Without any task."""
    found = understand("Tell me a joke", catalogue=Catalogue([BUDGET]))
    reply = part_reply(make_reading(found, "t1").parts[0], request_id="r1", conversation_id="c1")
    assert (reply.kind, reply.task) == ("unable", None)
    assert "analyze a budget" in reply.text


def test_a_number_without_end_is_rounded_for_people_only() -> None:
    """The report keeps every digit."""
    found = report(result={"each": "33.33333333333333333333333333333333", "tiny": "0.00000000000000000001234"})
    reply = reply_to(found)
    assert "Each: 33.3333\n" in reply.text
    assert "Tiny: 0.00000000000000000001234" in reply.text
    assert reply.report.result["each"] == "33.33333333333333333333333333333333"
