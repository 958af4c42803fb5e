"""What the supervisor's service does to a reply before it goes out."""

from datetime import UTC, datetime
from typing import Any

from contracts.messages import CompletionReport, MemoryNote, PersonReply
from contracts.subjects import MAX_BODY
from supervisor.service import fitting


def reply_with(result: Any, text: str = "Found.") -> PersonReply:
    """Return a reply that carries *result*."""
    report = CompletionReport(
        task_id="t1",
        agent_id="A",
        supervisor_id="S",
        task_name="x",
        status="completed",
        result=result,
        memory=MemoryNote(outcome="miss"),
        worker_id="w",
        finished_at=datetime.now(UTC),
    )
    return PersonReply(request_id="r", conversation_id="c", kind="answer", text=text, report=report)


def test_a_reply_that_fits_is_left_alone() -> None:
    """Nothing is taken out of it."""
    reply = reply_with({"remaining": 8000})

    assert fitting(reply) is reply


def test_a_reply_too_large_for_a_message_says_where_the_result_lies() -> None:
    """Words and result together pass the limit that the result alone keeps."""
    result = "x" * (MAX_BODY - 1000)

    reply = fitting(reply_with(result, text=result))

    assert len(reply.model_dump_json()) < MAX_BODY
    assert "reports.S.t1.1" in reply.text
    assert reply.report is not None
    assert reply.report.result is None
