"""A dead letter and what it becomes when it is sent again: also an old one, a broken one and a hostile one."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.errors import InvalidInput
from supervisor.dead_letters.letters import FOREIGN, Letter, Selection, digest_of, read_letter
from supervisor.dead_letters.redrive import Redrive, Renewal, redrive_of

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

#: What is not ASCII, what is no float, and a field that this version does not know.
ASSIGNMENT: dict[str, Any] = {
    "task_id": "t1",
    "agent_id": "TripAgent",
    "supervisor_id": "S",
    "task": {"name": "share_trip", "parameters": {"hotel": "900 €", "travellers": 12345678901234567890}},
    "created_at": "2026-11-20T10:00:00Z",
    "colour": "green",
}


def written(carried: bytes, **fields: Any) -> bytes:
    """Return a dead letter about *carried* as a worker writes it; a field that is ... is left out."""
    whole = {
        "reason": "attempts",
        "error": {"type": "OSError", "message": "disk full"},
        "subject": "tasks.TripAgent.share_trip",
        "sequence": 7,
        "attempts": 5,
        "headers": {"Tasklore-Generation": "3", "traceparent": TRACE},
        "body": base64.b64encode(carried).decode(),
        "body_bytes": len(carried),
        "body_digest": digest_of(carried),
        "task_id": "t1",
        "generation": 3,
        "agent_id": "TripAgent",
        "task_name": "share_trip",
        "died_at": "2026-11-21T09:00:00Z",
    } | fields
    return json.dumps({name: value for name, value in whole.items() if value is not ...}).encode()


def letter(carried: bytes | None = None, **fields: Any) -> Letter:
    """Return the dead letter 42, about *carried*, as it is read in DEAD."""
    content = written(json.dumps(ASSIGNMENT).encode() if carried is None else carried, **fields)
    return read_letter(42, f"dead.{fields.get('subject', 'tasks.TripAgent.share_trip')}", NOW, content)


def redriven(made: Letter, renewal: Renewal | None = None) -> Redrive:
    """Return what *made* is sent again as."""
    return redrive_of(made, made.body, NOW, renewal or Renewal())


def assigned(**fields: Any) -> bytes:
    """Return the body of an assignment with *fields*."""
    return json.dumps(ASSIGNMENT | fields).encode()


def test_a_letter_says_itself_what_it_is_about() -> None:
    """Whatever the subject was."""
    made = letter(agent_id="A", task_name="b")
    assert (made.agent_id, made.task_name, made.generation) == ("A", "b", 3)
    assert made.trace_id == "0af7651916cd43dd8448eb211c80319c"


def test_a_letter_of_an_older_worker_is_read_from_subject_and_headers() -> None:
    """It had neither agent nor task nor generation."""
    made = letter(agent_id=..., task_name=..., generation=...)
    assert (made.agent_id, made.task_name, made.generation) == ("TripAgent", "share_trip", 3)
    assert letter(generation=..., headers={}).generation == 1
    assert letter(generation=..., headers={"Tasklore-Generation": "x"}).generation == 1
    assert letter(agent_id=..., task_name=..., subject="tasks.a.b.c").task_name is None
    assert letter(agent_id=..., task_name=..., subject="turns.3.x").agent_id is None


@pytest.mark.parametrize("trace", ["", "00-1-2-01", "rubbish", "a-b-c"])
def test_a_trace_that_is_none_is_not_shown(trace: str) -> None:
    """Senders write into headers what they like."""
    assert letter(headers={"traceparent": trace}).trace_id is None


@pytest.mark.parametrize(
    ("body", "subject", "word"),
    [
        (b"hello", "dead.tasks.A.b", "body: Invalid JSON"),
        (b"{}", "dead.tasks.A.b", "reason: is needed"),
        (written(b"{}"), "dead.tasks.OtherAgent.share_trip", "names the subject 'tasks.TripAgent.share_trip'"),
    ],
)
def test_what_is_no_dead_letter_is_shown_and_never_sent(body: bytes, subject: str, word: str) -> None:
    """Anybody may publish there; one that names another subject than it lies under could reach another agent."""
    made = read_letter(42, subject, NOW, body)
    assert (made.content.reason, made.body, made.sequence) == (FOREIGN, body, 42)
    assert word in made.content.error.message
    with pytest.raises(InvalidInput, match="purge it"):
        redriven(made)


def test_a_selection_knows_what_the_server_filters_and_what_it_does_not() -> None:
    """Agent and time are the server's; task and reason stand in the letter."""
    assert (Selection().subject, Selection("TripAgent").subject) == ("dead.>", "dead.tasks.TripAgent.>")
    assert Selection("A", since=NOW).is_by_subject
    assert not Selection(reason="attempts").is_by_subject
    assert Selection(task_name="share_trip", reason="attempts").fits(letter())
    assert not Selection(task_name="share_trip", reason="gave_up").fits(letter())
    assert not Selection(task_name="other").fits(letter())
    with pytest.raises(InvalidInput):
        _ = Selection("A.>").subject


def test_a_redrive_is_the_same_task_as_the_next_generation() -> None:
    """On the old subject, in its trace, with its attempts counted anew."""
    made = redriven(letter())
    assert (made.subject, made.message_id) == ("tasks.TripAgent.share_trip", "t1:4")
    assert (made.task_id, made.generation) == ("t1", 4)
    assert made.headers == {"Tasklore-Generation": "4", "Tasklore-Attempt": "1", "traceparent": TRACE}


def test_repeating_a_redrive_repeats_its_message_id() -> None:
    """So that the stream swallows the second one."""
    later = redrive_of(letter(), letter().body, NOW + timedelta(minutes=1), Renewal(drops_deadline=True))
    assert later.message_id == redriven(letter()).message_id


def test_a_redriven_task_counts_its_time_from_now_and_is_else_what_it_was() -> None:
    """Unknown fields and long numbers too; the time it had waited before is nobody's queue."""
    assert json.loads(redriven(letter()).body) == ASSIGNMENT | {"created_at": "2026-11-21T10:00:00Z"}


@pytest.mark.parametrize("body", [b"\xff\x00", b"{", b"[]", b'{"task_id": "t1"}', b'"text"'])
def test_what_could_not_be_read_is_sent_again_as_it_was(body: bytes) -> None:
    """A newer version of the agent may read it; two of them never share an id."""
    made = redriven(letter(body, reason="unreadable", task_id=...))
    assert (made.body, made.task_id, made.generation) == (body, None, 4)
    assert made.message_id == f"redrive:42:{digest_of(body)[:16]}"


def test_a_deadline_that_has_passed_is_an_error_that_names_both_cures() -> None:
    """The task would only be reported as expired."""
    for deadline in ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00", "2026-11-21T11:00:00+02:00"):
        with pytest.raises(InvalidInput, match=r"letter 42 passed at .*--new-deadline 10m.*--no-deadline"):
            redriven(letter(assigned(deadline=deadline)))


@pytest.mark.parametrize(
    ("renewal", "before", "after"),
    [
        (Renewal(), "2026-11-21T10:00:01Z", "2026-11-21T10:00:01Z"),
        (Renewal(timedelta(seconds=90)), "2026-11-01T10:00:00Z", "2026-11-21T10:01:30Z"),
        (Renewal(timedelta(seconds=90)), None, "2026-11-21T10:01:30Z"),
        (Renewal(drops_deadline=True), "2026-11-01T10:00:00Z", None),
        (Renewal(drops_deadline=True), None, None),
    ],
)
def test_a_deadline_is_kept_moved_or_dropped(renewal: Renewal, before: str | None, after: str | None) -> None:
    """Kept when nothing is said and it is still to come."""
    assert json.loads(redriven(letter(assigned(deadline=before)), renewal).body).get("deadline") == after


def test_a_header_that_would_break_out_of_its_line_is_left_behind() -> None:
    """Nor can a letter bring a message id, or a generation, of its own."""
    headers = {
        "X-Good": "fine",
        "X-Bad": "a\r\nNats-Msg-Id: other",
        "X: y\r\nZ": "z",
        "Nats-Rollup": "all",
        "Tasklore-Generation": "9",
        "Tasklore-Attempt": "5",
    }
    made = redriven(letter(headers=headers))
    assert made.headers == {"X-Good": "fine", "Tasklore-Generation": "4", "Tasklore-Attempt": "1"}


@pytest.mark.parametrize("subject", ["tasks.*.x", "tasks.A.>", "tasks.A b", "requests.S", "$JS.API.x", "tasks."])
def test_a_letter_is_only_sent_to_where_tasks_are(subject: str) -> None:
    """Whatever somebody wrote into it."""
    with pytest.raises(InvalidInput, match="purge it"):
        redriven(letter(subject=subject))


def test_a_task_id_that_is_no_name_is_refused() -> None:
    """It would become part of a header and of a key."""
    with pytest.raises(InvalidInput, match="task_id"):
        redriven(letter(task_id="t1\r\nX: y"))


def test_a_body_that_was_cut_is_known_by_its_length_and_the_whole_by_its_digest() -> None:
    """The rest is found elsewhere, or not at all."""
    made = letter(b"abc", body=base64.b64encode(b"ab").decode())
    assert (made.is_whole, letter(b"abc").is_whole) == (False, True)
    assert made.is_body(b"abc")
    assert not made.is_body(b"abd")


def test_a_body_that_is_no_base64_is_an_error() -> None:
    """And not half a body."""
    with pytest.raises(InvalidInput, match="no base64"):
        _ = letter(body="$$$").body
