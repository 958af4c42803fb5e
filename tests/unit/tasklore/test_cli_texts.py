"""Spans of time, tables, folding, colours and exit codes of commands."""

import sys
from datetime import timedelta

import pytest
import structlog

from tasklore.commands import exits
from tasklore.commands.render import screen
from tasklore.commands.render.durations import parse_span, read_aloud
from tasklore.commands.running import run
from tasklore.contracts.errors import InvalidInput, LlmError, Unreachable


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("1.5 h", timedelta(minutes=90)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_span_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    assert parse_span(text, "--since") == span


@pytest.mark.parametrize("text", ["", "-1h", "999999999w"])
def test_an_invalid_span_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--since .*30d"):
        parse_span(text, "--since")


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (0, "0 ms"),
        (1500, "2 s"),
        (90_000, "2 min"),
        (2_592_000_000, "30 d"),
        (None, "for ever"),
    ],
)
def test_spans_are_shown_in_the_largest_unit(
    milliseconds: int | None, said: str
) -> None:
    assert read_aloud(milliseconds) == said


def test_a_table_in_a_pipe_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    screen.print_table(
        ("NAME", "HITS"), [("a", "1"), ("much longer" * 20, "1,000")], right=("HITS",)
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "NAME".ljust(220) + "   HITS"
    assert lines[1] == "a".ljust(220) + "      1"
    assert lines[2].endswith("  1,000")
    assert not any("\t" in line or "\x1b" in line for line in lines)


def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let both streams be a terminal of 60 characters without colours."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)


def test_prose_is_folded_and_commands_stay_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _narrow(monkeypatch)
    session = "repository-health-3f9a2c71d0"
    screen.say(f"correct the file? `tasklore pipelines resume {session} --file FILE`")
    screen.print_error(
        f"the run is kept; resume with: tasklore pipelines resume {session}"
    )
    screen.print_paragraph("one " * 20, "  ")
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "tasklore: correct the file?",
        f"`tasklore pipelines resume {session} --file FILE`",
        "tasklore: the run is kept; resume with:",
        f"tasklore pipelines resume {session}",
    ]
    assert out.splitlines() == [
        "  " + " ".join(["one"] * 14),
        "  " + " ".join(["one"] * 6),
    ]


@pytest.mark.parametrize("state", ["failed", "failed after a while"])
def test_an_id_is_never_folded(
    state: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _narrow(monkeypatch)
    session = "repository-health-3f9a2c71d0"
    columns = ("SESSION", "STATE", "LEFT")
    screen.print_table(
        columns, [(session, state, "59 min")], right=("LEFT",), whole=("SESSION",)
    )
    assert any(
        line.split()[0] == session for line in capsys.readouterr().out.splitlines()
    )
    long = f"{session}-and-more-of-it"
    screen.print_table(
        (*columns, "UPDATED"),
        [(long, state, "59 min", "2 min")],
        right=("LEFT",),
        whole=("SESSION",),
    )
    assert capsys.readouterr().out.splitlines() == [
        long,
        f"  state: {state}, left: 59 min, updated: 2 min",
    ]


class Terminal:
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "is_colourful"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_appear_on_terminals_alone(
    environment: dict[str, str], is_colourful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert screen.is_colourful(Terminal()) is is_colourful  # type: ignore[arg-type]  # all that is asked of it
    assert not screen.is_colourful(sys.stdout)


def test_control_characters_of_answers_are_removed() -> None:
    assert (
        screen.printable("fine\x1b[2J\r\a\n\tstill ünïcode")
        == "fine[2J\n\tstill ünïcode"
    )


def test_spaces_and_marks_of_writing_stay_but_what_reverses_a_line() -> None:
    family = "👩‍👩‍👧 \u00a0 \u2067\u0645\u0631\u062d\u2069\u200f"
    assert screen.printable(f"{family}\u202erm") == f"{family}rm"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unreachable("away"), 3),
        (InvalidInput("bad"), 2),
        (exits.Aborted("no", 1), 1),
        (LlmError("failed"), 1),
    ],
)
def test_exit_codes(error: Exception, code: int) -> None:
    assert exits.code_of(error) == code  # type: ignore[arg-type]  # all of them are ours


def test_an_expected_error_is_found_in_exception_groups() -> None:
    away = Unreachable("away")
    assert (
        exits.find_expected(
            BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [away])])
        )
        is away
    )
    assert (
        exits.find_expected(BaseExceptionGroup("outer", [away, ValueError("a bug")]))
        is None
    )


def test_commands_print_errors_and_no_other_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def asked() -> None:
        structlog.get_logger().info("nats_reconnected")
        structlog.get_logger().error("broken")
        screen.print_json("answer")

    run(asked())
    told = capsys.readouterr()
    assert told.out == '"answer"\n'
    assert "broken" in told.err
    assert "reconnected" not in told.err
