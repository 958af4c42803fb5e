"""Which dead letters a command means: said clearly, or refused with what to say."""

from datetime import UTC, datetime, timedelta

import pytest

from contracts.errors import InvalidInput
from supervisor.dead_letters.letters import Selection
from tasklore.__main__ import main
from tasklore.dlq.selection import Filter, parse_since

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2h", NOW - timedelta(hours=2)),
        ("7d", NOW - timedelta(days=7)),
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T12:00:00+02:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T10:00:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        (" 2026-11-20 ", datetime(2026, 11, 20, tzinfo=UTC)),
        ("99999w", NOW - timedelta(weeks=99_999)),
        ("999999w", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_since_is_a_span_or_a_time(text: str, moment: datetime) -> None:
    """So long ago, or then; longer ago than there are years is always."""
    assert parse_since(text, NOW) == moment


@pytest.mark.parametrize("text", ["yesterday", "", "5", "2026-13-01"])
def test_anything_else_is_refused_with_both_spellings(text: str) -> None:
    """As a person would type them."""
    with pytest.raises(InvalidInput, match=r"30d or 2w, or a time such as 2026-11-21T10:00:00Z"):
        parse_since(text, NOW)


def test_sequences_filters_and_all_are_three_ways_of_choosing() -> None:
    """One of them has to be taken."""
    assert Filter((7, 8)).choice() == (7, 8)
    assert Filter(agent="A", reason="gave_up").choice() == Selection("A", None, "gave_up")
    assert Filter(everything=True).choice() == Selection()


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (("redrive",), "say which: SEQUENCE, --agent, --task, --reason, --since, or --all"),
        (("purge",), "say which: SEQUENCE, --agent, --task, --reason, --since, or --all"),
        (("purge", "7", "--all"), "one of the three"),
        (("redrive", "--all", "--agent", "A"), "one of the three"),
        (("redrive", "--agent", "A.>"), "--agent 'A.>' must be 1 to 64 letters"),
        (("redrive", "seven"), "should be a valid integer"),
        (("redrive", "0"), "greater than or equal to 1"),
        (("redrive", "7", "--new-deadline", "1h", "--no-deadline"), "leave one out"),
        (("redrive", "7", "--new-deadline", "soon"), "--new-deadline 'soon' is no span of time"),
        (("purge", "--all"), "say --yes to mean it"),
        (("list", "--since", "yesterday"), "2026-11-21T10:00:00Z"),
        (("list", "--limit", "0"), "--limit"),
        (("show",), "Missing argument 'SEQUENCE'"),
    ],
)
def test_an_unclear_wish_is_one_line_that_names_the_cure(
    arguments: tuple[str, ...], cure: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code 2 before anything is connected."""
    monkeypatch.setattr("sys.argv", ["tasklore", "dlq", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    told = capsys.readouterr()
    assert (end.value.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert cure in told.err
