"""`tasklore ask` against a server that answers by the byte: what is sent, and sent again, and how it ends."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasklore.__main__ import main
from tasklore.commands.ask import asked_request
from tasklore.commands.operations.events import EventReader, StreamedEvent
from tests.raw_server import Reply, answer, problem, raw, serving, silence

Run = Callable[..., int]


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Return a function that runs a command where no system is, and returns its exit code."""
    for variable in [name for name in os.environ if name.startswith("TASKLORE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["tasklore", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return end.value.code

    return run


def replied(kind: str, text: str = "Done.", status: int = 200, **more: Any) -> Reply:
    """Return the reply of a supervisor to a request."""
    reply = {"conversation_id": "talk", "kind": kind, "text": text, "report": None}
    state = "running" if status == 202 else "done"
    body = {"request_id": "r1", "state": state, "reply": reply | more}
    return answer(body, status, headers={"Location": "/v1/requests/r1"})


NOT_YET = answer({"state": "running"}, 202, headers={"Location": "/v1/requests/r1"})


@pytest.mark.parametrize(
    ("reply", "words", "code", "told"),
    [
        (replied("answer"), (), 0, ""),
        (replied("failed"), (), 1, ""),
        (replied("unable"), (), 5, ""),
        (
            replied("question"),
            ("--user", "ana b"),
            4,
            "answer with: tasklore ask --conversation talk --user 'ana b' \"...\"",
        ),
        (
            replied("pending", status=202),
            ("--request-id", "r1", "--no-memory"),
            1,
            "for the answer: tasklore ask --request-id r1 --memory bypass 'how much'",
        ),
        (
            replied("pending", status=202, approval_id="a.0"),
            ("--request-id", "r1"),
            0,
            "for the answer: tasklore ask --request-id r1 'how much'",
        ),
        (
            replied("pending", status=202, waits_for="time"),
            ("--request-id", "r1", "--at", "2099-01-01T00:00"),
            0,
            "tasklore ask --request-id r1 --at 2099-01-01T00:00 'how much'",
        ),
        (
            replied("answer", read_by_rules="the budget is spent"),
            (),
            0,
            "No model read that, rules did: the budget is spent",
        ),
    ],
)
def test_each_kind_of_reply_has_its_code_and_its_hint(
    run_command: Run,
    capsys: pytest.CaptureFixture[str],
    reply: Reply,
    words: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    with serving(reply) as server:
        assert run_command("ask", "how", "much", *words, "--api", server.url) == code
    printed = capsys.readouterr()
    assert printed.out == "Done.\n"
    assert told in printed.err
    assert bool(printed.err) is bool(told)
    [received] = server.received
    body = json.loads(received.body)
    assert (body["text"], body["pending_reply"]) == ("how much", True)


def test_verbose_says_what_stands_beside_the_text(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"heading": "Tale (words 3)", "origin": "Computed.", "taken": "words 3"}
    with serving(replied("answer", **about)) as server:
        run_command("ask", "hi", "--api", server.url)
        assert capsys.readouterr().err == "tasklore: I took words 3.\n"
        run_command("ask", "hi", "-v", "--api", server.url)
    assert capsys.readouterr().err == "tasklore: Tale (words 3). Computed.\n"


def test_json_is_the_view_as_it_came_and_nothing_else(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(replied("question")) as server:
        assert run_command("ask", "hi", "--json", "--api", server.url) == 4
    printed = capsys.readouterr()
    assert json.loads(printed.out)["reply"]["kind"] == "question"
    assert printed.err == ""


def later(content: bytes, after_s: float) -> Reply:
    """Return a reply of *content* that comes *after_s* seconds."""

    def reply(connection: Any, received: Any) -> None:
        threading.Event().wait(after_s)
        raw(content)(connection, received)

    return reply


def test_a_request_whose_supervisor_left_is_sent_again_under_its_id(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that was killed, one that is not there yet, and one that leaves politely."""
    cut = later(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", after_s=0.6)
    away = problem(503, "it is starting")
    with serving(cut, away, NOT_YET, replied("answer")) as server:
        assert run_command("ask", "hi", "--api", server.url) == 0
    assert capsys.readouterr().out == "Done.\n"
    assert len(server.received) == 4
    assert len({one.headers["idempotency-key"] for one in server.received}) == 1
    waits = [json.loads(one.body).get("wait_seconds", 30) for one in server.received]
    assert waits == sorted(waits, reverse=True)


def test_what_was_never_taken_is_refused_at_once(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(raw(b"")) as server:
        assert run_command("ask", "hi", "--api", server.url) == 1
    assert len(server.received) == 1
    assert "closed the connection without an answer" in capsys.readouterr().err


def test_a_supervisor_that_stays_away_is_said_with_the_way_to_the_answer(
    run_command: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(asked_request, "RESTARTED_S", 0.3)
    cut = later(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", after_s=0.6)
    with serving(cut, problem(503, "it is away")) as server:
        code = run_command("ask", "hi", "--request-id", "r1", "--api", server.url)
    assert code == 3
    told = capsys.readouterr().err
    assert "for the answer: tasklore ask --request-id r1 hi\n" in told
    assert "it is away" in told


def test_an_answer_that_is_late_is_said_with_the_way_to_it(
    run_command: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of what never left this machine there is none to wait for."""
    monkeypatch.setattr(asked_request, "LATE_S", 0.7)
    words = ("ask", "hi", "--wait", "0", "--request-id", "r1")
    with serving(silence) as server:
        assert run_command(*words, "--api", server.url) == 3
    assert (
        "for the answer: tasklore ask --request-id r1 hi\n" in capsys.readouterr().err
    )
    assert run_command(*words, "--api", "http://127.0.0.1:1") == 3
    assert "for the answer" not in capsys.readouterr().err


def test_a_request_that_is_not_done_in_time_shows_how_it_stands(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(NOT_YET) as server:
        words = ("ask", "hi", "--wait", "0", "--request-id", "r1")
        assert run_command(*words, "--api", server.url) == 1
    printed = capsys.readouterr()
    assert printed.out == "It is not finished yet: running.\n"
    assert "tasklore ask --request-id r1 hi" in printed.err


def test_where_it_failed_is_looked_up_for_who_may_see_it(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody else hears that there is such a place."""
    report = {"task_id": "t1", "status": "failed"}
    letter = answer({"place": "bugs.py, line 3,\n in fail"})
    for second, told in (
        (letter, "tasklore: it failed at bugs.py, line 3, in fail\n"),
        (problem(404, "there is no such path"), ""),
    ):
        with serving(replied("failed", report=report), second) as server:
            assert run_command("ask", "hi", "--api", server.url) == 1
        assert capsys.readouterr().err == told
        assert server.received[1].path == "/v1/dead-letters/t1"


def test_events_are_read_wherever_they_are_cut() -> None:
    text = (
        b"retry: 500\n\n: still here\n\nid: 1.1.2\nevent: text\n"
        b'data: {"text": "\xc3\xa9: 1"}\n\nevent: done\r\ndata: {}\r\n\r\n'
    )
    expected = [
        StreamedEvent("1.1.2", "text", {"text": "é: 1"}),
        StreamedEvent("", "done", {}),
    ]
    for size in range(1, len(text) + 1):
        reader = EventReader()
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert [one for piece in pieces for one in reader.read(piece)] == expected
