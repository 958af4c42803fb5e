"""Steps of a run on a terminal and in a log."""

import io

import pytest
from rich.console import Console

from tasklore.commands.render.board import BoardRow, LiveBoard, board, fit

STEPS = [
    BoardRow("relationship", "ok", 1_200, "Marcus and Lily, now 28, Acquaintance"),
    BoardRow("knowledge", "waiting"),
]


@pytest.mark.parametrize("width", [50, 80])
def test_each_step_is_one_line_on_any_terminal(width: int) -> None:
    live = LiveBoard("Ch5-R120")
    live.show(STEPS)
    out = io.StringIO()
    Console(file=out, width=width).print(live.draw())
    head, *lines = out.getvalue().splitlines()
    assert head.startswith("Ch5-R120: 1 of 2 agents, ")
    assert [line.split()[:2] for line in lines] == [
        ["relationship", "ok"],
        ["knowledge", "waiting"],
    ]
    assert max(map(len, lines)) <= width
    assert ("now 28, Acquaintance" in out.getvalue()) is (width >= 80)


@pytest.mark.parametrize(("is_silent", "has_lines"), [(True, True), (False, False)])
def test_a_silent_board_writes_nothing(
    is_silent: bool, has_lines: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with board(is_silent=is_silent, has_lines=has_lines) as show:
        show(STEPS)
    assert capsys.readouterr() == ("", "")


def test_failed_and_running_steps_are_shown_first() -> None:
    statuses = ["done"] * 20 + ["failed", "running"] + ["pending"] * 29 + ["away"]
    steps = [BoardRow(f"p{number}", status) for number, status in enumerate(statuses)]
    shown, others = fit(steps, 10)
    assert [step.status for step in shown] == [
        "failed",
        "running",
        *["pending"] * 6,
        "away",
    ]
    assert others == "43 more phases: 23 waiting, 20 done"
    assert fit(steps, 100) == (steps, "")
    assert (
        fit(
            [BoardRow("p", one) for one in ("failed", "away", "pending", "pending")], 2
        )[1]
        == "3 more phases: 3 waiting"
    )
