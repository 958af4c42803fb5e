"""One reply about several tasks: its text, its kind, and the parts that fit into a message."""

import json

import pytest

from tasklore.contracts.messages import PersonReply, ReplyKind, ReplyPart
from tasklore.contracts.subjects import MAX_BODY
from tasklore.supervisor.replies.combined import combine, fit
from tasklore.supervisor.requests.request import (
    part_task_id,
    whole_task_id,
)
from tasklore.supervisor.requests.work import is_unstarted
from tests.unit.supervisor.reports import report


def part(kind: ReplyKind, text: str = "Said.", result: str | None = None) -> ReplyPart:
    """Return a part, with a report when there is a *result*."""
    told = report(result=result) if result is not None else None
    return ReplyPart(
        kind=kind,
        text=text,
        task_id="r-1-1",
        missing=("spent",) if kind == "question" else (),
        report=told,
    )


def whole(*parts: ReplyPart) -> PersonReply:
    return combine(parts, request_id="r", conversation_id="c")


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        (("answer", "unable"), "answer"),
        (("answer", "failed"), "failed"),
        (("failed", "question", "answer"), "question"),
        (("question", "pending"), "pending"),
    ],
)
def test_a_reply_has_the_kind_of_its_most_open_part(
    kinds: tuple[ReplyKind, ...], kind: str
) -> None:
    assert whole(*map(part, kinds)).kind == kind


def test_parts_are_numbered_and_the_first_question_names_its_fields() -> None:
    reply = whole(part("answer", "Left: 5"), part("question", "What is spent?"))
    assert (reply.text, reply.missing) == (
        "1. Left: 5\n\n2. What is spent?",
        ("spent",),
    )
    assert (reply.agent_id, reply.task, reply.report) == (None, None, None)


def test_a_reply_about_one_task_has_no_new_field() -> None:
    reply = PersonReply(request_id="r", conversation_id="c", kind="answer", text="x")
    assert list(json.loads(reply.model_dump_json())) == [
        "schema_version", "request_id", "conversation_id", "kind", "text", "agent_id", "task", "missing", "report",
        "elapsed_ms",
    ]  # fmt: skip
    assert PersonReply.model_validate_json(
        whole(part("answer")).model_dump_json()
    ).parts == (part("answer"),)


def test_only_results_that_do_not_fit_are_left_out() -> None:
    large = "x" * (MAX_BODY - 2000)
    reply = fit(
        whole(part("answer", "Small.", "8000"), part("answer", large[:4000], large))
    )
    assert len(reply.model_dump_json()) < MAX_BODY
    small, cut = (one.report for one in reply.parts)
    assert small is not None
    assert cut is not None
    assert (small.result, cut.result) == ("8000", None)
    assert "its report is kept at" in reply.text


def test_a_reply_with_a_report_counts_as_started() -> None:
    assert is_unstarted(whole(part("failed"), part("question")))
    assert not is_unstarted(whole(part("failed"), part("answer", result="1")))
    assert not is_unstarted(whole(part("unable"), part("question")))


def test_ids_of_parts_and_of_the_whole_follow_from_each_other() -> None:
    base = "r-" + "0af1" * 8
    assert whole_task_id(part_task_id(base, 8)) == base
    assert whole_task_id(base) is None
    assert whole_task_id("t-1-1") is None


def test_a_text_that_is_the_result_is_kept_once_where_two_do_not_fit() -> None:
    long = "x" * (MAX_BODY // 2)
    reply = fit(
        PersonReply(
            request_id="r",
            conversation_id="c",
            kind="answer",
            text=long,
            report=report(result=long),
        )
    )
    assert reply.report is not None
    assert (reply.text, reply.report.result) == (long, None)
