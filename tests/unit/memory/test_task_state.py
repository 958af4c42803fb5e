"""How a task stands, and why it waits, in the words that everybody has."""

from datetime import UTC, datetime, timedelta

import pytest

from tasklore.contracts.admission.waits import Escalation, RunWait, Wait, to_run_wait
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.memory.ledger.ledger import Generation
from tasklore.memory.ledger.runs import CancelRequest
from tasklore.memory.ledger.task_state import describe_state, explain_state

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
LIMIT = RunWait(kind="limit", name="day", text="the budget", since=NOW, until=LATER)


def standing(state: str = "accepted", **fields: object) -> Generation:
    sent = TaskAssignment(
        task_id="t1",
        agent_id="ShopAgent",
        supervisor_id="S",
        task=TaskCall(name="buy"),
        created_at=NOW - timedelta(minutes=1),
        not_before=fields.pop("not_before", None),  # type: ignore[arg-type]
    )
    known = {
        "attempts": 0,
        "worker_id": None,
        "started_at_ms": None,
        "assignment": sent.model_dump_json().encode(),
        "report": None,
        "refused": 0,
        **fields,
    }
    return Generation(state=state, **known)  # type: ignore[arg-type]


def sentence(task: Generation) -> str | None:
    wait = explain_state(task, NOW)
    return None if wait is None else wait.sentence


def test_a_task_waits_for_its_turn_its_time_or_what_was_noted_of_it() -> None:
    turn = "waits for a free worker: no worker of ShopAgent has picked it up yet"
    later = standing(not_before=LATER)
    assert sentence(standing()) == turn
    assert sentence(later) == (
        "waits for the time set by its sender, until 2026-01-01 13:00:00 UTC"
    )
    budget = "waits for the budget, until 2026-01-01 13:00:00 UTC"
    assert sentence(standing(waits_for=LIMIT)) == budget
    assert sentence(standing("waiting", waits_for=LIMIT)) == budget


def test_of_what_runs_or_has_ended_or_is_no_assignment_nothing_is_made_up() -> None:
    assert sentence(standing("running", waits_for=LIMIT)) is None
    assert sentence(standing("expired", report=b"{}", waits_for=LIMIT)) is None
    assert sentence(standing("waiting")) is None
    assert sentence(standing(assignment=None)) is None
    assert sentence(standing(assignment=b"{}")) is None


def test_the_word_for_a_task_is_that_of_its_state_unless_it_is_to_be_cancelled() -> (
    None
):
    wish = CancelRequest("enough")
    assert describe_state(standing("waiting")) == "waiting"
    assert describe_state(standing("running", cancel_request=wish)) == "cancelling"
    assert (
        describe_state(standing("cancelled", cancel_request=wish, report=b"{}"))
        == "cancelled"
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"kind": "ask", "slot": "3", "who": "role:finance", "text": "Pay Ana?"},
            "the answer of role:finance (question t1.3)",
        ),
        ({"kind": "ask", "slot": "0"}, "the answer of anybody (question t1.0)"),
        (
            {
                "kind": "ask",
                "slot": "start",
                "who": "user:ana",
                "escalation": Escalation(who="role:cfo", at=LATER),
            },
            "the answer of user:ana, later role:cfo (question t1.start)",
        ),
        ({"kind": "signal", "slot": "signal.paid", "text": "paid"}, "signal 'paid'"),
        ({"kind": "sleep", "slot": "1"}, "the time set by its code"),
    ],
)
def test_a_wait_of_its_code_says_for_whom_and_until_when(
    fields: dict[str, object], said: str
) -> None:
    """And not what was asked, which may be a person's words."""
    known = {
        "digest": "d",
        "agent_id": "ShopAgent",
        "task_name": "buy",
        "generation": 1,
        "asked_at": NOW,
        "until": LATER,
    }
    wait = to_run_wait("t1", Wait(**known, **fields))  # type: ignore[arg-type]
    assert wait.sentence == f"waits for {said}, until 2026-01-01 13:00:00 UTC"
