"""Reports and dead letters as bytes: those put together by hand equal those of the contract's model."""

import base64
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklore import Agent, Amount, Field, Parameters
from tasklore.contracts import subjects
from tasklore.contracts.messages import (
    CompletionReport,
    DeadLetter,
    TaskAssignment,
    TaskCall,
    Usage,
)
from tasklore.runtime.messaging.dead_letter import DEAD_BODY, dead_letter, error_note
from tasklore.runtime.messaging.pull import Delivery
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.job_reader import JobReader
from tasklore.workers.execution.outcome import TaskOutcome, outcome_of

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

agent = Agent("WordAgent")


class Words(Parameters):
    """Text and an amount, in whatever spelling."""

    text: str
    cost: Amount = Field(default=Amount(0), unit="EUR")
    more: tuple[str, ...] = ()


@agent.task(remember="shared")
async def weigh(words: Words) -> dict[str, str]:
    """Weigh words."""
    return {"text": words.text}


class Mute(Exception):
    """An error that cannot be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def delivery(body: bytes = b"{}", headers: dict[str, str] | None = None) -> Delivery:
    """Return a delivery of *body*."""
    return Delivery(
        subject="tasks.WordAgent.weigh",
        body=body,
        headers=headers,
        reply="$JS.ACK.x",
        deliveries=1,
        sequence=42,
        arrived_at=0.0,
    )


def job(text: str, more: list[str] | None = None) -> Job:
    """Return a job about *text*."""
    assignment = {
        "task_id": "t-1_A",
        "agent_id": "WordAgent",
        "supervisor_id": "S",
        "task": {"name": "weigh", "parameters": {"text": text, "more": more or []}},
        "created_at": "2026-01-01T12:00:00Z",
    }
    found = JobReader(agent).read(delivery(json.dumps(assignment).encode()), NOW)
    assert isinstance(found, Job), found
    return found


def buried(taken: Delivery, error: BaseException, **fields: Any) -> DeadLetter:
    """Return the dead letter about *taken*, as whoever reads DEAD finds it."""
    known: dict[str, Any] = {
        "reason": "gave_up",
        "attempts": 3,
        "generation": 2,
        "agent_id": "WordAgent",
    } | fields
    return DeadLetter.model_validate_json(
        dead_letter(taken, error=error, worker_id="w1", **known)
    )


def outcome(**fields: object) -> TaskOutcome:
    """Return an outcome of a plain assignment."""
    assignment = TaskAssignment(
        task_id="t1",
        agent_id="WordAgent",
        supervisor_id="S",
        task=TaskCall(name="weigh"),
        created_at=NOW,
    )
    return TaskOutcome(
        delivery=delivery(),
        assignment=assignment,
        generation=2,
        attempt=3,
        status="completed",
        worker_id="w1",
        memory="hit",
        **fields,
    )  # type: ignore[arg-type]


@given(st.text(max_size=60), st.lists(st.text(max_size=10), max_size=3))
def test_a_report_is_json_whatever_the_question_was(text: str, more: list[str]) -> None:
    """No text of a parameter breaks out of the key that the report names."""
    made = outcome_of(
        job(text, more), "completed", "w1", result_json=b'{"x":1}', run_ms=3
    )
    report = CompletionReport.model_validate_json(made.body("ledger"))
    assert (report.memory.key, report.result, report.memory.outcome) == (
        made.question,
        {"x": 1},
        "miss",
    )


@pytest.mark.parametrize(
    "usage", [None, Usage(input_tokens=3, output_tokens=4, cost_usd=0.25)]
)
@pytest.mark.parametrize(
    "result", [b"null", b"1.5", b'"text"', b'{"a":[1,{"b":null}]}']
)
@pytest.mark.parametrize(("waited_ms", "saved_ms"), [(0, 0), (9, 5)])
def test_what_is_put_together_by_hand_equals_what_the_model_writes(
    result: bytes, usage: Usage | None, waited_ms: int, saved_ms: int
) -> None:
    """The quick way and the model's way give the same report."""
    made = outcome(
        result_json=result,
        question="weigh:x",
        age_ms=7,
        queued_ms=1,
        run_ms=2,
        usage=usage,
    )
    made.waited_ms = waited_ms
    made.saved_ms = saved_ms
    quick = json.loads(made.body("none"))
    slow = json.loads(made._report("none").model_dump_json())
    del quick["finished_at"], slow["finished_at"]
    for name in ("distance", "computed_for"):
        slow["memory"].pop(name)
    assert quick == slow
    assert (
        quick["generation"],
        quick["attempt"],
        quick["fence"],
        quick["memory"]["age_ms"],
    ) == (2, 3, "none", 7)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no good"), "no good"),
        (ValueError(), "ValueError"),
        (ValueError("half \ud800 a pair"), "half ? a pair"),
        (Mute(), "Mute"),
        (ValueError("x" * 10_000), "x" * 4000),
    ],
)
def test_every_error_can_be_told(error: Exception, message: str) -> None:
    """Whatever a task raises becomes a report and a dead letter."""
    assert error_note(error).message == message
    made = outcome(error=error)
    made.status = "failed"
    report = CompletionReport.model_validate_json(made.body("ledger"))
    assert (report.status, report.result) == ("failed", None)
    assert report.error is not None
    assert report.error.type == type(error).__name__
    letter = buried(delivery(), error)
    assert letter.error == report.error


def test_a_dead_letter_keeps_half_a_mebibyte_and_tells_of_the_rest() -> None:
    """Size, digest and the place in the origin stream are of the whole."""
    body = bytes(range(256)) * 3000
    letter = buried(
        delivery(body, {"Nats-Msg-Id": "m", "Tasklore-Generation": "2"}),
        ValueError("x"),
    )
    assert base64.b64decode(letter.body) == body[:DEAD_BODY]
    assert (letter.body_bytes, letter.sequence) == (len(body), 42)
    assert letter.body_digest == hashlib.blake2b(body, digest_size=16).hexdigest()
    assert letter.headers == {"Tasklore-Generation": "2"}


def test_a_dead_letter_has_the_traceback_also_when_it_holds_odd_names() -> None:
    """Half a surrogate pair in the words of an error is replaced, not fatal."""
    with pytest.raises(FileNotFoundError) as raised:
        Path("no \udcff here").read_bytes()
    letter = buried(delivery(), raised.value)
    assert letter.traceback is not None
    assert "test_outcome" in letter.traceback
    assert "udcff here" in letter.traceback


def test_a_dead_letter_fits_into_a_message_whatever_headers_came_along() -> None:
    """The longest body, the longest error, and the headers that are too many to keep."""
    long = {"X-Long": "x" * 300_000} | {
        f"X-{number}": "y" * 1000 for number in range(300)
    }
    taken = delivery(b"\0" * 900_000, long | {"Tasklore-Generation": "2"})
    letter = dead_letter(
        taken,
        reason="gave_up",
        error=ValueError("\0" * 9000),
        attempts=1,
        generation=2,
        agent_id="A",
        worker_id="w",
    )
    assert len(letter) <= subjects.MAX_BODY
    kept = DeadLetter.model_validate_json(letter).headers
    assert kept["Tasklore-Generation"] == "2"
    assert "X-Long" not in kept
