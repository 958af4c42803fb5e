"""Commands against a server that answers by the byte: what is sent, shown, refused, and never believed."""

import contextlib
import io
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tasklore.commands.operations import entries, exchange, run, target, transport
from tasklore.contracts.errors import Unreachable
from tests.interrupts import hear_interrupts
from tests.raw_server import (
    RawServer,
    Reply,
    answer,
    endless,
    problem,
    raw,
    serving,
    silence,
)

Run = Callable[..., int]
SCHEDULE = {"id": "nightly", "timing": {"cron": "0 3 * * *"}}


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no variable of ours."""
    for variable in [name for name in os.environ if name.startswith("TASKLORE_")]:
        monkeypatch.delenv(variable)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Have a key."""
    monkeypatch.setenv("TASKLORE_API_KEY", "tl-secret")
    return "tl-secret"


def test_a_command_sends_what_was_typed(
    run_command: Run, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer(SCHEDULE, 201)) as server:
        code = run_command(
            "schedules", "add", "A.b", "-p", "n=5", "--yes", "--api", server.url
        )
    [received] = server.received
    assert code == 0
    assert received.line == "POST /v1/schedules HTTP/1.1"
    assert json.loads(received.body) == {"target": "A.b", "parameters": {"n": 5}}
    assert received.headers["authorization"] == f"Bearer {key}"
    assert received.headers["tasklore-version"] == "0.3.0"
    assert capsys.readouterr().out == "id  nightly\ntiming\n  cron  0 3 * * *\n"


def test_json_is_the_view_as_it_came(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer(SCHEDULE)) as server:
        assert run_command("schedules", "show", "x", "--json", "--api", server.url) == 0
    assert json.loads(capsys.readouterr().out) == SCHEDULE


def test_pages_are_followed_up_to_the_limit(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def page(ids: str, after: str | None) -> Reply:
        return answer({"schedules": [{"id": one} for one in ids], "after": after})

    with serving(page("abc", "c"), page("", "c2"), page("de", "e")) as server:
        code = run_command("schedules", "list", "--limit", "5", "--api", server.url)
    told = capsys.readouterr()
    assert code == 0
    assert told.out.split() == ["ID", *"abcde"]
    assert "continue with --after e" in told.err
    assert [one.path for one in server.received] == [
        "/v1/schedules?limit=3",
        "/v1/schedules?after=c&limit=2",
        "/v1/schedules?after=c2&limit=2",
    ]


def test_pages_are_followed_up_to_the_default_limit(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def page(ids: str, after: str | None) -> Reply:
        return answer({"schedules": [{"id": one} for one in ids], "after": after})

    with serving(page("", "c"), page("a", "c2"), page("b", "e")) as server:
        assert run_command("schedules", "list", "--api", server.url) == 0
    assert capsys.readouterr().out.split() == ["ID", "a", "b"]
    assert [one.path for one in server.received] == [
        "/v1/schedules?limit=2",
        "/v1/schedules?after=c&limit=2",
        "/v1/schedules?after=c2&limit=1",
    ]


def test_a_list_that_goes_on_is_not_said_to_be_empty(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer({"schedules": [], "after": "x"})) as server:
        assert run_command("schedules", "list", "--api", server.url) == 0
    told = capsys.readouterr()
    assert "There are no" not in told.out
    assert "continue with --after x" in told.err


def test_a_page_that_leads_to_itself_is_the_last(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer({"schedules": [], "after": "x"})) as server:
        assert (
            run_command("schedules", "list", "--limit", "5", "--api", server.url) == 0
        )
    assert len(server.received) == 2


def test_an_end_that_comes_later_is_followed(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    later = {"Location": "/v1/requests/r1?wait=1", "Retry-After": "0"}
    with serving(
        answer({"state": "running"}, 202, headers=later),
        answer({"state": "running"}, 202, headers={"Retry-After": "0"}),
        problem(503, "the store is away"),
        answer({"state": "done"}),
    ) as server:
        assert run_command("requests", "send", "hi", "--api", server.url) == 0
    assert capsys.readouterr().out == "state  done\n"
    assert [one.path for one in server.received][1:] == ["/v1/requests/r1?wait=1"] * 3


def test_an_end_that_does_not_come_in_time_says_where_it_will_be(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    later = answer({"state": "running"}, 202, headers={"Location": "/v1/requests/r1"})
    with serving(later) as server:
        code = run_command(
            "requests", "send", "hi", "--wait", "0.1s", "--api", server.url
        )
    told = capsys.readouterr()
    assert code == 1
    assert told.out == "state  running\n"
    assert "not finished yet; look by GET /v1/requests/r1" in told.err


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        (
            problem(401, "the key is unknown"),
            2,
            "the key is unknown; correct TASKLORE_API_KEY",
        ),
        (
            problem(403, "the key lacks it", type="urn:tasklore:problem:role"),
            2,
            "this needs a key with the role 'ask'",
        ),
        (
            problem(404, "there is no schedule 'x'; GET /v1/schedules lists them"),
            2,
            "there is no schedule 'x'; `tasklore schedules list` lists them",
        ),
        (
            problem(404, "there is no such path; GET /docs lists them all"),
            2,
            "does not know this operation: it is an older one; upgrade the supervisor",
        ),
        (problem(409, "it is taken"), 2, "it is taken"),
        (
            problem(
                422,
                "x",
                problems=[
                    {"where": "path.schedule_id", "message": "is too long"},
                    {"where": "other.place", "message": "is odd"},
                ],
            ),
            2,
            "ID: is too long; other.place: is odd",
        ),
        (problem(429, "too many"), 1, "too many"),
        (problem(500, "our fault"), 1, "our fault"),
        (problem(503, "the store is away"), 3, "the store is away"),
        (
            answer(b"<html>Bad Gateway</html>", 502, media_type="text/html"),
            3,
            "answers 502 with a page (text/html) that is not an answer of Tasklore's API",
        ),
        (
            answer(b"<html>Welcome</html>", media_type="text/html"),
            1,
            "answers 200 with a page (text/html) that is not an answer",
        ),
        (answer(b'{"id": ', media_type="application/json"), 1, "is not valid JSON"),
        (
            raw(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{}"),
            1,
            "was cut before its end",
        ),
        (raw(b"SSH-2.0-OpenSSH_9\r\n"), 1, "does not speak HTTP"),
        (raw(b""), 1, "closed the connection without an answer"),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200), 1, "does not speak HTTP"),
        (
            raw(b"HTTP/1.1 200 OK\r\na: " + b"b" * 70000 + b"\r\n\r\n"),
            1,
            "does not speak HTTP",
        ),
    ],
)
def test_each_bad_answer_is_one_line_with_its_code(
    run_command: Run,
    key: str,
    reply: Reply,
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(reply) as server:
        assert run_command("schedules", "show", "x", "--api", server.url) == code
    told = capsys.readouterr()
    assert words in told.err
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert told.err.startswith("tasklore: ")
    assert key not in told.err


def test_a_key_that_is_for_another_user_is_not_told_to_lack_a_role(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = problem(
        403, "this key is for another user", type="urn:tasklore:problem:other-user"
    )
    with serving(refusal) as server:
        assert run_command("schedules", "show", "x", "--api", server.url) == 2
    assert capsys.readouterr().err == "tasklore: this key is for another user\n"


def test_a_fault_names_the_option(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = [
        {"where": "parameters.limit", "message": "is not a valid amount"},
        {"where": "header.idempotency-key", "message": "is too short"},
    ]
    with serving(problem(422, "x", problems=faults)) as server:
        words = ("schedules", "add", "A.b", "--yes", "--json", "--api", server.url)
        assert run_command(*words) == 2
    told = capsys.readouterr()
    assert told.err == (
        "tasklore: --parameter limit: is not a valid amount; --idempotency-key: is too "
        "short\n"
    )
    assert json.loads(told.out)["problems"] == faults


@pytest.mark.parametrize("has_length", [True, False])
def test_lines_are_written_as_they_come(
    run_command: Run, has_length: bool, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    lines = b"".join(b'{"n": %d}\n' % number for number in range(20_000))
    told = {"Tasklore-Version": "0.3.0"}
    whole = answer(lines, media_type="application/x-ndjson", headers=told)
    cut = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{}\n")
    if not has_length:
        chunks = b"%x\r\n%s\r\n" % (len(lines), lines)
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        whole = raw(head + chunks + b"0\r\n\r\n")
        cut = raw(head + b"3\r\n{}\n\r\n5\r\n{")
    refused = problem(403, "no", type="urn:tasklore:problem:role")
    with serving(whole, cut, refused) as server:
        words = ("results", "export", "--api", server.url)
        assert run_command(*words) == 0
        assert capfdbinary.readouterr().out == lines
        assert run_command(*words) == 1
        assert b"was cut before its end" in capfdbinary.readouterr().err
        assert run_command(*words) == 2
        assert b"with the role 'ask'" in capfdbinary.readouterr().err


def test_a_reader_that_leaves_ends_the_command_without_a_word() -> None:
    lines = b'{"n": 1}\n' * 200_000
    told = {"Tasklore-Version": "0.3.0"}
    whole = answer(lines, media_type="application/x-ndjson", headers=told)
    with serving(whole) as server:
        started = subprocess.Popen(
            [sys.executable, "-m", "tasklore", "results", "export", "A", "--api", server.url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert started.stdout is not None
        assert started.stdout.readline() == b'{"n": 1}\n'
        started.stdout.close()
        _, told_to_people = started.communicate(timeout=30)
    assert (started.returncode, told_to_people) == (128 + signal.SIGPIPE, b"")


def test_a_text_is_printed_as_it_is(
    run_command: Run, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    told = {"Tasklore-Version": "0.3.0"}
    text = answer(b"# A page\n", media_type="text/markdown", headers=told)
    with serving(text) as server:
        assert run_command("schedules", "show", "x", "--api", server.url) == 0
    assert capfdbinary.readouterr().out == b"# A page\n"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_never_followed(
    run_command: Run, key: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer({})) as thief:
        to_thief = answer({}, status, headers={"Location": f"{thief.url}/v1/x"})
        with serving(to_thief) as server:
            assert run_command("schedules", "show", "x", "--api", server.url) == 2
            assert run_command("api", "GET", "/v1/x", "--api", server.url) == 2
    assert thief.received == []
    assert "which is not followed" in capsys.readouterr().err


def test_an_end_elsewhere_is_not_asked_for(
    run_command: Run, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer({})) as thief:
        place = {"Location": f"{thief.url}/v1/requests/r1"}
        with serving(answer({"state": "running"}, 202, headers=place)) as server:
            assert run_command("requests", "send", "hi", "--api", server.url) == 0
    assert thief.received == []


def test_a_key_goes_to_no_address_from_a_file_that_is_not_this_machine(
    run_command: Run, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / ".tasklore"
    place.mkdir()
    with serving(answer(SCHEDULE)) as server:
        # A name of this machine that does not say so.
        url = server.url.replace("127.0.0.1", "127.0.0.2")
        for api in (url, server.url):
            content = {"nats": "nats://x", "redis": None, "api": api}
            (place / "endpoints.json").write_text(json.dumps(content))
            monkeypatch.setattr(transport, "CONNECT_S", 1.0)
            run_command("schedules", "show", "x")
    assert [one.headers.get("authorization") for one in server.received][-1] == (
        f"Bearer {key}"
    )
    assert all(
        "authorization" not in one.headers
        for one in server.received
        if one.headers["host"].startswith("127.0.0.2")
    )


def test_a_system_that_is_starting_is_waited_for(
    run_command: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = tmp_path / ".tasklore"
    place.mkdir()
    mark = place / "starting"
    with serving(answer(SCHEDULE)) as server:

        def start(_seconds: float) -> None:
            content = {"nats": "nats://x", "redis": None, "api": server.url}
            (place / "endpoints.json").write_text(json.dumps(content))
            mark.unlink()

        mark.write_text(f"{os.getpid()}\n")
        with monkeypatch.context() as patched:
            patched.setattr(target.time, "sleep", start)
            assert run_command("schedules", "show", "x") == 0
    (place / "endpoints.json").unlink()
    mark.write_text(f"{os.getpid()}\n")
    monkeypatch.setattr(target, "STARTS_WITHIN_S", 0.2)
    with pytest.raises(Unreachable, match="is starting; try again"):
        target.find_target("supervisor")


@pytest.mark.parametrize(
    "reply",
    [
        endless(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", b" ", 0.05),
        endless(b"HTTP/1.1 200 OK\r\n", b"a", 0.05),
        silence,
        endless(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 X\r\n\r\n", 0.05),
    ],
    ids=["body", "headers", "silence", "continue"],
)
def test_an_answer_in_drops_ends_with_the_deadline(
    run_command: Run,
    reply: Reply,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(exchange, "WHOLE_S", 0.3)
    began = time.monotonic()
    with serving(reply) as server:
        assert run_command("schedules", "show", "x", "--api", server.url) == 3
    assert time.monotonic() - began < 10
    assert "no complete answer within" in capsys.readouterr().err


def test_an_endless_body_is_given_up(
    run_command: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(transport, "MOST_BYTES", 1024**2)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with serving(endless(head, b"10000\r\n" + b" " * 65536 + b"\r\n")) as server:
        assert run_command("schedules", "show", "x", "--api", server.url) == 1
    assert "is larger than 1 MiB" in capsys.readouterr().err


@pytest.mark.parametrize("depth", [300, 900, 100_000])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_deep_answer_is_refused(
    run_command: Run,
    depth: int,
    options: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = b'{"a": ' * depth + b"1" + b"}" * depth
    with serving(answer(body)) as server:
        words = ("schedules", "show", "x", *options, "--api", server.url)
        assert run_command(*words) == 1
    told = capsys.readouterr()
    assert "is nested deeper" in told.err or "is not valid JSON" in told.err
    assert told.err.count("\n") == 1


def test_a_picture_gets_nothing_that_steers_a_terminal(
    run_command: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = ModuleType("tasklore.commands.pictures.trial")
    module.draw = lambda view: f"<{view['rows'][0]['id']}>"  # type: ignore[attr-defined]
    module.code_of = lambda view: 4  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    [entry] = [
        one
        for one in entries.load_manifest()["operations"]
        if (one["noun"], one["verb"]) == ("schedules", "show")
    ]
    monkeypatch.setitem(entry, "picture", "trial")
    with serving(answer({"rows": [{"id": "a\x1b[2Jb"}]})) as server:
        assert run_command("schedules", "show", "x", "--api", server.url) == 4
    assert capsys.readouterr().out == "<a[2Jb>\n"


def test_escapes_of_a_view_and_of_a_problem_are_harmless(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "a\x1b[2J\x9b\u202eb"
    odd = {"Tasklore-Version": "9.9\x1b"}
    elsewhere = answer({}, 302, headers={"Location": "\x1b[2J"})
    with serving(answer({"id": evil}), problem(422, evil), elsewhere) as server:
        run_command("schedules", "show", "x", "--api", server.url)
        run_command("schedules", "show", "x", "--api", server.url)
        run_command("schedules", "show", "x", "--api", server.url)
    with serving(answer({"id": evil}, headers=odd)) as server:
        run_command("schedules", "show", "x", "--json", "--api", server.url)
    told = capsys.readouterr()
    for text in (told.out, told.err):
        assert all(one.isprintable() or one == "\n" for one in text), repr(text)


@pytest.mark.parametrize(
    ("environ", "code", "words"),
    [
        ({}, 3, "start a system with `tasklore up`, or set TASKLORE_API_URL"),
        ({"TASKLORE_API_URL": "http://127.0.0.1:1"}, 3, "correct TASKLORE_API_URL"),
        ({"TASKLORE_API_URL": "tasklore:8080"}, 2, "is not a valid URL such as"),
        ({"TASKLORE_API_URL": "http://a b/"}, 2, "is not a valid URL such as"),
        ({"TASKLORE_API_URL": "http://h:99999"}, 2, "is not a valid URL such as"),
        ({"TASKLORE_API_URL": "http://me:pw@h"}, 2, "set TASKLORE_API_KEY"),
        ({"TASKLORE_API_URL": "http://no.invalid"}, 3, "correct TASKLORE_API_URL"),
        (
            {"TASKLORE_API_URL": "http://127.0.0.1:1", "TASKLORE_API_KEY": "a\nb"},
            2,
            "TASKLORE_API_KEY holds",
        ),
    ],
)
def test_without_an_api_the_cure_is_named(
    run_command: Run,
    environ: dict[str, str],
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert run_command("schedules", "show", "x") == code
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
    assert "pw" not in err


def test_what_an_operator_does_is_asked_elsewhere(
    run_command: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "results.ndjson"
    file.write_text("{}\n")
    with serving(problem(404, "there is no such path; GET /docs lists")) as server:
        monkeypatch.setenv("TASKLORE_API_URL", server.url)
        assert run_command("results", "import", str(file)) == 3
        assert "set TASKLORE_OPERATIONS_URL" in capsys.readouterr().err
        assert server.received == []
        assert run_command("results", "import", str(file), "--api", server.url) == 2
        assert "a supervisor that runs with --operations" in capsys.readouterr().err
        monkeypatch.setenv("TASKLORE_OPERATIONS_URL", server.url)
        server.replies[:] = [answer({"imported": 1})]
        assert run_command("results", "import", str(file)) == 0


def test_a_file_goes_in_parts_and_again_sends_the_rest(
    run_command: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(exchange, "_PAUSE_S", 0.01)
    lines = [json.dumps({"n": number, "text": "x" * 1000}) for number in range(700)]
    file = tmp_path / "results.ndjson"
    file.write_text("\n".join(lines))
    with serving(answer({"imported": 250, "last": "a"}), problem(422, "line 3")) as server:  # fmt: skip
        assert run_command("results", "import", str(file), "--api", server.url) == 2
    told = capsys.readouterr().err
    assert "line 3 (sent 1 of 3 parts; again sends the rest)" in told
    first = [one.body for one in server.received]
    with serving(answer({"imported": 250, "last": "b"})) as again:
        assert run_command("results", "import", str(file), "--api", again.url) == 0
    assert capsys.readouterr().out == "imported  750\nlast      b\n"
    bodies = [one.body for one in again.received]
    assert bodies[:2] == first
    assert len(bodies) == 3
    assert all(len(one) <= 256 * 1024 for one in bodies)
    assert b"".join(bodies).decode().split("\n")[:-1] == lines
    assert again.received[0].headers["content-type"] == "application/x-ndjson"


def test_a_pipe_is_sent_whole(run_command: Run, tmp_path: Path) -> None:
    """It can be read once only, so that its parts are not counted before."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    line = b'{"n": 1}\n'
    # A writer that stays open lets a reader wait for more: it is another process, which ends.
    words = [sys.executable, "-c", f"open({str(pipe)!r}, 'wb').write({line!r})"]
    with (
        subprocess.Popen(words) as writer,
        serving(answer({"imported": 1})) as server,
    ):
        try:
            assert run_command("results", "import", str(pipe), "--api", server.url) == 0
        finally:
            writer.kill()
    assert [one.body for one in server.received] == [line]


def test_a_file_without_lines_is_said_to_send_nothing(
    run_command: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.ndjson"
    file.write_text("\n")
    with serving(answer({})) as server:
        assert run_command("results", "import", str(file), "--api", server.url) == 0
    assert "has no lines; nothing was sent" in capsys.readouterr().err
    assert server.received == []


def test_a_part_is_sent_again_while_the_api_is_away(
    run_command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_PAUSE_S", 0.01)
    file = tmp_path / "results.ndjson"
    file.write_text("{}\n")
    with serving(problem(503, "away"), answer({"imported": 1})) as server:
        assert run_command("results", "import", str(file), "--api", server.url) == 0
    assert len(server.received) == 2


def test_a_line_that_is_too_long_is_named_before_anything_is_sent(
    run_command: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.ndjson"
    file.write_text("{}\n" + "x" * 300_000)
    with serving(answer({})) as server:
        assert run_command("results", "import", str(file), "--api", server.url) == 2
    assert "line 2 is longer than 262,144 bytes" in capsys.readouterr().err
    assert server.received == []


def test_another_minor_version_is_warned_of_once(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"Tasklore-Version": "0.4.1"}
    page = answer({"schedules": [{"id": "a"}], "after": "a"}, headers=told)
    with serving(page) as server:
        run_command("schedules", "list", "--limit", "2", "--api", server.url)
    assert capsys.readouterr().err.count("this command is of 0.3") == 1
    with serving(answer(SCHEDULE, headers={"Tasklore-Version": "0.3.9"})) as server:
        run_command("schedules", "show", "x", "--api", server.url)
    assert capsys.readouterr().err == ""


def test_what_has_a_trial_run_is_shown_before_it_is_asked_about(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer(SCHEDULE)) as server:
        assert run_command("schedules", "add", "A.b", "--api", server.url) == 2
    told = capsys.readouterr()
    assert told.out.startswith("id  nightly")
    assert told.err == "tasklore: not a terminal: pass --yes to confirm\n"
    [received] = server.received
    assert json.loads(received.body)["dry_run"] is True


def test_what_has_a_trial_run_is_shown_beside_json(
    run_command: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On stderr, before the question: stdout has the view of what was done alone."""
    shown = []
    monkeypatch.setattr(
        run, "confirm", lambda *_, **__: shown.append(capsys.readouterr())
    )
    with serving(answer(SCHEDULE)) as server:
        words = ("schedules", "add", "A.b", "--json", "--api", server.url)
        assert run_command(*words) == 0
    [before] = shown
    assert before.out == ""
    assert before.err.startswith("id  nightly")
    assert json.loads(capsys.readouterr().out) == SCHEDULE


def _part(concerns: int, after: str | None) -> Reply:
    rows = [{"id": one} for one in range(concerns)]
    return answer({"concerns": concerns, "rows": rows, "bound": "b9", "after": after})


def _sent(server: RawServer) -> list[dict[str, object]]:
    return [json.loads(one.body) for one in server.received]


def test_work_of_several_calls_goes_on_by_itself(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(_part(2, "5"), _part(0, "7"), _part(1, None)) as server:
        words = ("results", "forget", "A", "--yes", "--json", "--api", server.url)
        assert run_command(*words) == 0
    assert _sent(server) == [
        {"agent": "A"},
        {"agent": "A", "bound": "b9", "after": "5"},
        {"agent": "A", "bound": "b9", "after": "7"},
    ]
    view = json.loads(capsys.readouterr().out)
    assert (view["concerns"], len(view["rows"])) == (3, 3)


def test_a_person_is_asked_about_all_that_was_tried_and_nothing_else_is_done(
    run_command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = []
    monkeypatch.setattr(run, "confirm", lambda text, **_: questions.append(text))
    with serving(_part(2, "5"), _part(1, None), _part(3, None)) as server:
        assert run_command("results", "forget", "A", "--api", server.url) == 0
    assert questions == ["Forget 3 of A?"]
    assert _sent(server) == [
        {"agent": "A", "dry_run": True},
        {"agent": "A", "dry_run": True, "bound": "b9", "after": "5"},
        {"agent": "A", "bound": "b9"},
    ]


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
@pytest.mark.parametrize("is_file", [True, False])
def test_what_is_sent_is_what_was_tried_and_read_once(
    run_command: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    is_file: bool,
) -> None:
    """Stdin is used up by then, and a file may be edited while the question stands."""
    file = tmp_path / "budget.json"
    file.write_text('{"usd": 1}')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"usd": 1}')))
    monkeypatch.setattr(run, "confirm", lambda *_, **__: file.write_text('{"usd": 99}'))
    words = ("schedules", "add", "A.b", "--budget", f"@{file}" if is_file else "@-")
    with serving(answer(SCHEDULE)) as server:
        assert run_command(*words, *options, "--api", server.url) == 0
    sent = _sent(server)
    assert len(sent) == (1 if options else 2)
    assert [one["budget"] for one in sent] == [{"usd": 1}] * len(sent)


def test_what_was_tried_is_done_over_the_version_that_was_seen(
    run_command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "confirm", lambda *_, **__: None)
    view = answer({"concerns": 1, "version": 3, "after": None})
    with serving(view, view) as server:
        assert run_command("results", "forget", "A", "--api", server.url) == 0
    assert _sent(server) == [
        {"agent": "A", "dry_run": True},
        {"agent": "A", "version": 3},
    ]


@pytest.mark.parametrize(
    ("concerns", "options"), [(0, ()), (2, ("--dry-run",)), (0, ("--dry-run",))]
)
def test_nothing_is_asked_about_nothing(
    run_command: Run,
    concerns: int,
    options: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(_part(concerns, None)) as server:
        words = ("results", "forget", "A", *options, "--api", server.url)
        assert run_command(*words) == 0
    assert capsys.readouterr().out.startswith(f"concerns  {concerns}\n")
    [sent] = _sent(server)
    assert sent["dry_run"] is True


@pytest.mark.parametrize(
    ("words", "reply", "code", "out"),
    [
        (("GET", "/v1/x?a=b", "--query", "c=d e"), answer({"x": 1}), 0, '{"x": 1}\n'),
        (("get", "/v1/x"), answer(b"plain\n", media_type="text/plain"), 0, "plain\n"),
        (("POST", "/v1/x", "--body", '{"a": 1}'), problem(409, "taken"), 1, None),
    ],
)
def test_a_plain_request_prints_the_body(
    run_command: Run,
    words: tuple[str, ...],
    reply: Reply,
    code: int,
    out: str | None,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    with serving(reply) as server:
        assert run_command("api", *words, "--api", server.url) == code
    told = capfdbinary.readouterr()
    if out is not None:
        assert told.out.decode() == out
        return
    assert json.loads(told.out)["detail"] == "taken"
    assert told.err == b"tasklore: taken\n"
    assert server.received[0].body == b'{"a": 1}'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("FETCH", "/v1/x"), "METHOD 'FETCH'"),
        (("GET", "v1/x"), "PATH 'v1/x'"),
        (("GET", "//evil.example/x"), "PATH '//evil.example/x'"),
        (("GET", "/v1/x\r\nHost: evil"), "PATH"),
        (("GET", "/v1/x", "--query", "x"), "--query 'x' is not NAME=VALUE"),
        (("POST", "/v1/x", "--body", "{"), "--body is not valid JSON"),
    ],
)
def test_a_plain_request_that_is_none_is_refused(
    run_command: Run,
    words: tuple[str, ...],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command("api", *words, "--api", "http://127.0.0.1:1") == 2
    assert told in capsys.readouterr().err


def test_a_certificate_of_nobody_is_refused_and_of_a_named_authority_taken(
    run_command: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    certificate = tmp_path / "cert.pem"
    key_file = tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key_file), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key_file)
    with serving(answer(SCHEDULE), tls=context) as server:
        show = ("schedules", "show", "x", "--api", server.url)
        assert run_command(*show) == 3
        told = capsys.readouterr().err
        assert "is refused" in told
        assert "set TASKLORE_API_CA_FILE" in told
        monkeypatch.setenv("TASKLORE_API_CA_FILE", str(certificate))
        assert run_command(*show) == 0
        plain = show[:-1], server.url.replace("https", "http")
        assert run_command(*plain[0], plain[1]) in (1, 3)
        monkeypatch.setenv("TASKLORE_API_CA_FILE", "missing.pem")
        assert run_command(*show) == 2
        assert "TASKLORE_API_CA_FILE 'missing.pem'" in capsys.readouterr().err
    with serving(answer(SCHEDULE)) as server:
        monkeypatch.delenv("TASKLORE_API_CA_FILE")
        url = server.url.replace("http", "https")
        assert run_command(*show[:-1], url) == 3
        assert "no TLS with" in capsys.readouterr().err


def test_ctrl_c_ends_at_once() -> None:
    with serving(silence) as server:
        started = subprocess.Popen(
            [sys.executable, "-m", "tasklore", "api", "GET", "/v1/x", "--api", server.url],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_interrupts,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not server.received and time.monotonic() < deadline:
            time.sleep(0.01)
        for _ in range(5):
            # As a person does: CPython loses one that comes while a destructor runs. Not faster: another one while it
            # ends has a word of its own.
            started.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(timeout=5)
                break
        _, told = started.communicate(timeout=1)
    assert (started.returncode, told) == (130, "")
