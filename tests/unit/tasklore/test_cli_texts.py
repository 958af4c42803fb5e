"""Spans of time, tables and what a terminal is spared."""

import sys
from datetime import timedelta

import pytest
import structlog

from contracts.errors import InvalidInput, LlmError, Unreachable
from tasklore import exits
from tasklore.render import screen
from tasklore.render.durations import parse_span, read_aloud
from tasklore.running import run


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        (" 1H ", timedelta(hours=1)),
        ("1.5 h", timedelta(minutes=90)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_span_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    """Every unit, in either case, with or without a space."""
    assert parse_span(text, "--since") == span


@pytest.mark.parametrize("text", ["", "5", "-1h", "1h30m", "999999999w"])
def test_anything_else_is_no_span(text: str) -> None:
    """The error names the option and shows how to write one."""
    with pytest.raises(InvalidInput, match=r"--since .*30d"):
        parse_span(text, "--since")


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1500, "2 s"),
        (90_000, "2 min"),
        (3_600_000, "1 h"),
        (2_592_000_000, "30 d"),
        (None, "for ever"),
    ],
)
def test_spans_are_read_aloud_in_the_largest_unit(milliseconds: int | None, said: str) -> None:
    """Rounded: a person wants the size of it."""
    assert read_aloud(milliseconds) == said


def test_a_table_is_plain_aligned_text_when_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """No colours, no tabs, no folding, numbers to the right."""
    screen.print_table(("NAME", "HITS"), [("a", "1"), ("much longer" * 20, "1,000")], right=("HITS",))
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


def test_prose_is_folded_between_words_and_commands_stay_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both can be copied, however narrow the terminal is."""
    _narrow(monkeypatch)
    session = "repository-health-3f9a2c71d0"
    screen.say(f"correct the file? `tasklore pipeline resume {session} --file FILE`")
    screen.complain(f"the run is kept; go on with: tasklore pipeline resume {session}")
    screen.print_paragraph("one " * 20, "  ")
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "tasklore: correct the file?",
        f"`tasklore pipeline resume {session} --file FILE`",
        "tasklore: the run is kept; go on with:",
        f"tasklore pipeline resume {session}",
    ]
    assert out.splitlines() == ["  " + " ".join(["one"] * 14), "  " + " ".join(["one"] * 6)]


@pytest.mark.parametrize("state", ["failed", "failed after a while"])
def test_an_id_is_never_folded(state: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Other cells are, or stand below it where there is no room left for them."""
    _narrow(monkeypatch)
    session = "repository-health-3f9a2c71d0"
    columns = ("SESSION", "STATE", "LEFT")
    screen.print_table(columns, [(session, state, "59 min")], right=("LEFT",), whole=("SESSION",))
    assert any(line.split()[0] == session for line in capsys.readouterr().out.splitlines())
    long = f"{session}-and-more-of-it"
    screen.print_table((*columns, "UPDATED"), [(long, state, "59 min", "2 min")], right=("LEFT",), whole=("SESSION",))
    assert capsys.readouterr().out.splitlines() == [long, f"  state: {state}, left: 59 min, updated: 2 min"]


class Terminal:
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        """Say yes."""
        return True


@pytest.mark.parametrize(
    ("environment", "is_colourful"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_appear_only_where_they_are_wanted(
    environment: dict[str, str], is_colourful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, unless NO_COLOR or the terminal itself says no."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert screen.is_colourful(Terminal()) is is_colourful  # type: ignore[arg-type]  # all that is asked of it
    assert not screen.is_colourful(sys.stdout)


def test_an_answer_cannot_steer_the_terminal() -> None:
    """Escape sequences, carriage returns and bells of an agent or a model are left out."""
    assert screen.printable("fine\x1b[2J\r\a\n\tstill ünïcode") == "fine[2J\n\tstill ünïcode"


def test_an_error_is_one_line_however_it_was_written(capsys: pytest.CaptureFixture[str]) -> None:
    """The log of a server that did not start has many."""
    screen.complain("no\n  luck\n")
    assert capsys.readouterr().err == "tasklore: no luck\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [(Unreachable("away"), 3), (InvalidInput("bad"), 2), (exits.Aborted("no", 1), 1), (LlmError("failed"), 1)],
)
def test_exit_codes_say_whose_fault_it_was(error: Exception, code: int) -> None:
    """3 a server, 2 the input, 1 the work."""
    assert exits.code_of(error) == code  # type: ignore[arg-type]  # all of them are ours


def test_an_expected_error_is_found_in_the_group_that_a_failed_start_raises() -> None:
    """Whatever TaskGroups it passed on its way; a group with a surprise in it stays a surprise."""
    away = Unreachable("away")
    assert exits.find_expected(BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [away])])) is away
    assert exits.find_expected(BaseExceptionGroup("outer", [away, ValueError("a bug")])) is None


def test_whoever_asks_reads_no_log(capsys: pytest.CaptureFixture[str]) -> None:
    """A connection that came back is none of their concern; an error is, beside what they asked for."""

    async def asked() -> None:
        structlog.get_logger().info("nats_reconnected")
        structlog.get_logger().error("broken")
        screen.print_json("answer")

    run(asked())
    told = capsys.readouterr()
    assert told.out == '"answer"\n'
    assert "broken" in told.err
    assert "reconnected" not in told.err
