"""Options that select dead letters."""

from datetime import UTC, datetime, timedelta

import pytest

from tasklore.__main__ import main
from tasklore.commands.dlq.selection import Filter
from tasklore.commands.render.durations import parse_when
from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.dead_letters.letters import Selection

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2h", NOW - timedelta(hours=2)),
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T12:00:00+02:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        (" 2026-11-20 ", datetime(2026, 11, 20, tzinfo=UTC)),
        ("99999w", NOW - timedelta(weeks=99_999)),
        ("999999w", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_since_is_a_span_or_a_time(text: str, moment: datetime) -> None:
    assert parse_when(text, NOW, "--since") == moment


@pytest.mark.parametrize("text", ["yesterday", "5", "2026-13-01"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"30d or 2w, or a time such as 2026-11-21T10:00:00Z"
    ):
        parse_when(text, NOW, "--since")


def test_letters_are_chosen_by_sequence_filter_or_all() -> None:
    assert Filter(sequences=(7, 8)).choice() == (7, 8)
    assert Filter(agent="A", reason="gave_up").choice() == Selection(
        "A", None, "gave_up"
    )
    assert Filter(everything=True).choice() == Selection()


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (
            ("redrive",),
            "say which: SEQUENCE, --agent, --error, --task, --reason, --tenant, --user, --since, --until, or --all",
        ),
        (("purge", "7", "--all"), "one of the three"),
        (("redrive", "--agent", "A.>"), "--agent 'A.>' must be 1 to 64 letters"),
        (("redrive", "seven"), "should be a valid integer"),
        (("redrive", "7", "--new-deadline", "1h", "--no-deadline"), "leave one out"),
        (
            ("redrive", "7", "--new-deadline", "soon"),
            "--new-deadline 'soon' is no span of time",
        ),
        (("purge", "--all"), "say --yes to mean it"),
        (("list", "--limit", "0"), "--limit"),
        (("list", "--after", "7"), "--after with --oldest"),
        (("list", "--before", "7", "--oldest"), "--after with --oldest"),
        (("groups", "--until", "soon"), "--until 'soon' is no span of time"),
    ],
)
def test_an_invalid_command_is_one_line_with_the_cure(
    arguments: tuple[str, ...],
    cure: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["tasklore", "dlq", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    told = capsys.readouterr()
    assert (end.value.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert cure in told.err
