"""An analysis while it goes, as a terminal, a log and a program see it."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from contracts.analysis.document import AnalysisDocument, read_document
from contracts.analysis.roster import ROSTER
from tasklore.analysis.board import _LiveBoard, board

EXAMPLE = read_document((Path(__file__).parent / "example.json").read_bytes())
SECTIONS = [seat.section for seat in ROSTER]


def _part(*sections: str) -> AnalysisDocument:
    body = EXAMPLE.body()
    kept = {name: one for name, one in EXAMPLE.sections() if name in sections}
    return read_document({**body, "background": kept, "immediate": {}})


@pytest.mark.parametrize("width", [50, 80, 200])
def test_a_terminal_sees_one_line_a_section_however_narrow_it_is(width: int) -> None:
    """Those that have not come wait; what does not fit is cut, and nothing jumps."""
    live = _LiveBoard("Ch5-R120", SECTIONS)
    live.show(_part("relationship", "memory_create"))
    out = io.StringIO()
    Console(file=out, width=width).print(live._drawing())
    head, *lines = out.getvalue().splitlines()

    assert head.startswith("Ch5-R120: 2 of 10 agents, ")
    assert [line.split()[:2] for line in lines] == [
        [section, "ok" if section in ("relationship", "memory_create") else "waiting"] for section in SECTIONS
    ]
    assert max(map(len, lines)) <= width
    assert ("(now 28, Acquaintance)" in out.getvalue()) is (width >= 80)


@pytest.mark.parametrize("is_silent", [True, False])
def test_programs_and_logs_see_nothing_meanwhile(is_silent: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither on stdout nor on stderr: what is printed in the end says it once."""
    with board("Ch5-R120", ROSTER, is_silent=is_silent) as silent:
        silent.show(EXAMPLE)
    assert capsys.readouterr() == ("", "")
