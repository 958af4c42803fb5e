"""Dead letters and what is sent again of them: also old, broken and hostile ones."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.pipelines import PIPELINE_AGENT
from tasklore.supervisor.dead_letters.known_agents import KnownAgents
from tasklore.supervisor.dead_letters.letters import (
    FOREIGN,
    Letter,
    LetterSelection,
    digest_of,
    read_letter,
)
from tasklore.supervisor.dead_letters.redrive import Redrive, Renewal, redrive_of
from tasklore.supervisor.dead_letters.summaries import (
    MOST_GROUPS,
    LetterCounts,
    summary_of,
)

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

#: What is not ASCII, what is no float, and a field that this version does not know.
ASSIGNMENT: dict[str, Any] = {
    "task_id": "t1",
    "agent_id": "TripAgent",
    "supervisor_id": "S",
    "task": {
        "name": "share_trip",
        "parameters": {"hotel": "900 €", "travellers": 12345678901234567890},
    },
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
    return json.dumps(
        {name: value for name, value in whole.items() if value is not ...}
    ).encode()


def letter(carried: bytes | None = None, **fields: Any) -> Letter:
    """Return the dead letter 42, about *carried*, as it is read in DEAD."""
    content = written(
        json.dumps(ASSIGNMENT).encode() if carried is None else carried, **fields
    )
    return read_letter(
        42, f"dead.{fields.get('subject', 'tasks.TripAgent.share_trip')}", NOW, content
    )


def redriven(made: Letter, renewal: Renewal | None = None, **options: Any) -> Redrive:
    return redrive_of(made, made.body, NOW, renewal or Renewal(), **options)


def assigned(**fields: Any) -> bytes:
    return json.dumps(ASSIGNMENT | fields).encode()


def test_a_letter_names_its_agent_task_and_trace() -> None:
    made = letter(task_name="b")
    assert (made.agent_id, made.task_name, made.generation) == ("TripAgent", "b", 3)
    assert made.trace_id == "0af7651916cd43dd8448eb211c80319c"


def test_an_older_letter_is_read_by_subject_and_headers() -> None:
    made = letter(agent_id=..., task_name=..., generation=...)
    assert (made.agent_id, made.task_name, made.generation) == (
        "TripAgent",
        "share_trip",
        3,
    )
    assert letter(generation=..., headers={}).generation == 1
    assert letter(generation=..., headers={"Tasklore-Generation": "x"}).generation == 1
    odd = letter(agent_id=..., task_name=..., subject="tasks.a.b.c")
    assert (odd.agent_id, odd.task_name) == ("a", None)
    assert letter(agent_id=..., task_name=..., subject="turns.3.x").agent_id is None


@pytest.mark.parametrize(
    "trace",
    [
        "",
        "00-1-2-01",
        "rubbish",
    ],
)
def test_an_invalid_trace_is_not_shown(trace: str) -> None:
    assert letter(headers={"traceparent": trace}).trace_id is None


@pytest.mark.parametrize(
    ("body", "subject", "word"),
    [
        (b"hello", "dead.tasks.A.b", "body: Invalid JSON"),
        (b"{}", "dead.tasks.A.b", "reason: is needed"),
        (
            written(b"{}"),
            "dead.tasks.OtherAgent.share_trip",
            "names the subject 'tasks.TripAgent.share_trip'",
        ),
        (
            written(b"{}", agent_id="OtherAgent"),
            "dead.tasks.TripAgent.share_trip",
            "names the agent 'OtherAgent'",
        ),
    ],
)
def test_an_invalid_letter_is_shown_and_never_sent(
    body: bytes, subject: str, word: str
) -> None:
    made = read_letter(42, subject, NOW, body)
    assert (made.content.reason, made.body, made.sequence) == (FOREIGN, body, 42)
    assert word in made.content.error.message
    with pytest.raises(InvalidInput, match="purge it"):
        redriven(made)


def test_a_selection_filters_by_subject_where_it_can() -> None:
    assert (LetterSelection().subject, LetterSelection("TripAgent").subject) == (
        "dead.>",
        "dead.tasks.TripAgent.>",
    )
    assert LetterSelection("A", since=NOW).is_by_subject
    assert not LetterSelection(reason="attempts").is_by_subject
    assert LetterSelection(task_name="share_trip", reason="attempts").fits(letter())
    assert not LetterSelection(task_name="share_trip", reason="gave_up").fits(letter())
    assert not LetterSelection(task_name="other").fits(letter())
    assert LetterSelection(error_type="OSError").fits(letter())
    assert not LetterSelection(error_type="KeyError").fits(letter())
    with pytest.raises(InvalidInput):
        _ = LetterSelection("A.>").subject


def test_a_selection_filters_by_whom_it_was_for_and_by_age() -> None:
    """Also where the body was cut, as long as the beginning says it."""
    body = json.dumps({"tenant": "acme", "user_id": "ann"} | ASSIGNMENT).encode()
    cut = letter(body, body=base64.b64encode(body[:-40]).decode())
    for made in (letter(body), cut):
        assert LetterSelection(tenant="acme", user_id="ann").fits(made)
        assert not LetterSelection(tenant="acme", user_id="bob").fits(made)
        assert not LetterSelection(tenant="other").fits(made)
    for unknown in (letter(), letter(b"\xff"), letter(b"[1]"), letter(body="$$$")):
        assert not LetterSelection(user_id="ann").fits(unknown)
    assert not LetterSelection(until=NOW).fits(letter())
    assert LetterSelection(until=NOW + timedelta(seconds=1)).fits(letter())
    assert (
        LetterSelection(up_to=41).fits(letter()),
        LetterSelection(up_to=42).fits(letter()),
    ) == (
        False,
        True,
    )


def test_a_redrive_is_the_same_task_in_the_next_generation() -> None:
    made = redriven(letter())
    assert (made.subject, made.message_id) == ("tasks.TripAgent.share_trip", "t1:4")
    assert (made.task_id, made.generation) == ("t1", 4)
    assert made.headers == {
        "Tasklore-Generation": "4",
        "Tasklore-Attempt": "1",
        "traceparent": TRACE,
    }
    assert json.loads(made.body) == ASSIGNMENT | {"created_at": "2026-11-21T10:00:00Z"}
    later = redrive_of(
        letter(),
        letter().body,
        NOW + timedelta(minutes=1),
        Renewal(drops_deadline=True),
    )
    assert later.message_id == made.message_id


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\x00",
        b'{"task_id": "t1"}',
    ],
)
def test_an_unreadable_body_stays_or_is_sent_again_unchanged(body: bytes) -> None:
    unreadable = letter(body, reason="unreadable", task_id=...)
    with pytest.raises(InvalidInput, match=r"carries no task .*`force` .*purge it"):
        redriven(unreadable)
    made = redriven(unreadable, takes_unreadable=True)
    assert (made.body, made.task_id, made.generation) == (body, None, 4)
    assert made.message_id == f"redrive:42:{digest_of(body)[:16]}"


def test_a_passed_deadline_is_an_error_with_both_cures() -> None:
    for deadline in (
        "2026-11-21T10:00:00Z",
        "2026-11-21T10:00:00",
        "2026-11-21T11:00:00+02:00",
    ):
        with pytest.raises(
            InvalidInput,
            match=r"letter 42 passed at .*`new_deadline`, such as 10m.*`no_deadline`",
        ):
            redriven(letter(assigned(deadline=deadline)))


@pytest.mark.parametrize(
    ("renewal", "before", "after"),
    [
        (Renewal(), "2026-11-21T10:00:01Z", "2026-11-21T10:00:01Z"),
        (
            Renewal(timedelta(seconds=90)),
            "2026-11-01T10:00:00Z",
            "2026-11-21T10:01:30Z",
        ),
        (Renewal(timedelta(seconds=90)), None, "2026-11-21T10:01:30Z"),
        (Renewal(drops_deadline=True), "2026-11-01T10:00:00Z", None),
    ],
)
def test_a_deadline_is_kept_moved_or_dropped(
    renewal: Renewal, before: str | None, after: str | None
) -> None:
    assert (
        json.loads(redriven(letter(assigned(deadline=before)), renewal).body).get(
            "deadline"
        )
        == after
    )


def test_a_declared_deadline_begins_anew_also_while_cards_cannot_be_read() -> None:
    """One that an operator chose is theirs: it is kept by the next redrive."""
    late = assigned(deadline="2026-11-20T10:01:30Z", has_own_deadline=True)
    assert json.loads(redriven(letter(late)).body) == ASSIGNMENT | {
        "created_at": "2026-11-21T10:00:00Z",
        "deadline": "2026-11-21T10:01:30Z",
        "has_own_deadline": True,
    }
    chosen = redriven(letter(late), Renewal(timedelta(hours=1)))
    assert json.loads(redriven(letter(chosen.body)).body)["deadline"] == (
        "2026-11-21T11:00:00Z"
    )
    assert json.loads(chosen.body)["has_own_deadline"] is False
    dropped = redriven(letter(late), Renewal(drops_deadline=True))
    assert json.loads(dropped.body).keys() == ASSIGNMENT.keys()


def test_headers_that_inject_or_override_others_are_left_out() -> None:
    headers = {
        "X-Good": "fine",
        "X-Bad": "a\r\nNats-Msg-Id: other",
        "X: y\r\nZ": "z",
        "Nats-Rollup": "all",
        "Tasklore-Generation": "9",
        "Tasklore-Attempt": "5",
    }
    made = redriven(letter(headers=headers))
    assert made.headers == {
        "X-Good": "fine",
        "Tasklore-Generation": "4",
        "Tasklore-Attempt": "1",
    }


@pytest.mark.parametrize(
    "subject",
    [
        "tasks.*.x",
        "tasks.A.>",
        "requests.S",
        "$JS.API.x",
    ],
)
def test_a_letter_is_sent_to_task_subjects_alone(subject: str) -> None:
    with pytest.raises(InvalidInput, match="purge it"):
        redriven(letter(subject=subject))


def test_a_letter_of_an_agent_that_is_gone_stays() -> None:
    """While cards cannot be read nobody is known to be gone; supervisors serve pipelines without a card."""
    gone = KnownAgents(frozenset({"OtherAgent"}))
    with pytest.raises(InvalidInput, match=r"'TripAgent', which was retired .*purge"):
        redriven(letter(), agents=gone)
    for agents in (KnownAgents(), KnownAgents(frozenset({"TripAgent"}))):
        assert redriven(letter(), agents=agents).task_id == "t1"
    assert gone.has(PIPELINE_AGENT)


@pytest.mark.parametrize("other", [{"task_id": "t2"}, {"agent_id": "OtherAgent"}])
def test_a_letter_that_carries_another_task_than_it_says_stays(
    other: dict[str, str],
) -> None:
    """Its worker wrote it: the task of another agent would be accepted in its name."""
    with pytest.raises(InvalidInput, match=r"letter 42 .*and carries task .*purge it"):
        redriven(letter(assigned(**other)), takes_unreadable=True)


def test_the_authors_own_lines_are_told_apart() -> None:
    """The innermost first, bounded in number and length; there are none in older letters."""
    lines = [f'/a/b.py, line {n}, in f: "x > y > {n}"' for n in range(3)]
    assert letter(place=" > ".join(lines)).frames == lines[::-1]
    assert letter().frames == []
    long = letter(
        place=" > ".join([*lines, f'/c.py, line 1, in f: "{"x" * 5000}"'] * 9)
    )
    assert 1 < len(long.frames) <= 16
    assert max(map(len, long.frames)) == 1000
    for hostile in (" > " * 300_000, " > a, line 1, in " * 60_000):
        assert sum(map(len, letter(place=hostile).frames)) <= 16_000


def test_a_summary_is_bounded_whatever_the_letter_says() -> None:
    error = {"type": "E" * 100_000, "message": "m" * 100_000}
    made = summary_of(
        letter(
            assigned(tenant="t" * 100_000, user_id=["no", "text"]),
            error=error,
            reason="r" * 100_000,
            worker_id="w" * 100_000,
        )
    )
    assert (len(made.error.type), len(made.error.message)) == (4000, 4000)
    assert (len(made.reason), len(made.worker_id or "")) == (4000, 4000)
    assert (len(made.tenant or ""), made.user_id) == (4000, None)


def test_groups_are_bounded_and_tell_the_newest_as_their_example() -> None:
    counts = LetterCounts()
    for number in range(MOST_GROUPS + 50):
        error = {"type": f"Made{number}", "message": ""}
        counts.add([summary_of(letter(error=error))])
    assert (len(counts.groups), counts.others, counts.total) == (500, 50, 550)
    counts = LetterCounts()
    for hours in (2, 5, 3):
        at = NOW + timedelta(hours=hours)
        counts.add([replace(summary_of(letter()), stored_at=at, sequence=hours)])
    [group] = counts.groups
    assert (group.agent_id, group.error_type, group.count) == (
        "TripAgent",
        "OSError",
        3,
    )
    assert (group.newest - group.oldest, group.example.sequence) == (
        timedelta(hours=3),
        5,
    )


@pytest.mark.parametrize("generation", [1_000_000, 10**4000])
def test_a_letter_that_was_never_sent_so_often_stays(generation: int) -> None:
    with pytest.raises(InvalidInput, match="more than 1,000,000 times; purge it"):
        redriven(letter(generation=generation))


def test_an_invalid_task_id_is_refused() -> None:
    with pytest.raises(InvalidInput, match="task_id"):
        redriven(letter(task_id="t1\r\nX: y"))


def test_a_cut_body_is_known_by_length_and_digest() -> None:
    made = letter(b"abc", body=base64.b64encode(b"ab").decode())
    assert (made.is_whole, letter(b"abc").is_whole) == (False, True)
    assert made.is_body(b"abc")
    assert not made.is_body(b"abd")
    assert not letter(body="$$$").is_whole
    with pytest.raises(InvalidInput, match="not valid base64"):
        _ = letter(body="$$$").body
