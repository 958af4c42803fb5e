"""Who asked goes along: whatever makes work of a request, a schedule, a run or a parent hands the caller on."""

import ast

import pytest

from tests.architecture.tree import ROOT, tree_of

#: What work is made as.
MADE = {"TaskAssignment", "PersonRequest", "PipelineRequest", "Schedule", "NewRun"}
#: Places where nobody with a key asks, or nothing is made: each with what it is there.
NOBODYS = {
    ("supervisor/program_client.py", "TaskAssignment"): "a program with no key",
    ("supervisor/schedules/book.py", "Schedule"): "it stands in the code of an agent",
    ("supervisor/http/requests/outcome.py", "PersonRequest"): "only its id is made",
    ("supervisor/http/pipelines.py", "PipelineRequest"): "a run is cancelled",
}


@pytest.mark.parametrize("room", ["supervisor", "workers"])
def test_whoever_makes_work_hands_the_caller_on(room: str) -> None:
    """Each call that makes work names the caller, but for those listed, of which there is one each."""
    without = [
        (file.relative_to(ROOT).as_posix(), node.func.id)
        for file in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in MADE
        and "caller" not in {one.arg for one in node.keywords}
    ]
    assert without == sorted(place for place in NOBODYS if place[0].startswith(room))
