"""Who asked goes along: whatever makes work of a request, a schedule, a run or a parent hands the caller on."""

import ast

import pytest

from tests.architecture.tree import ROOT, tree_of

ROOMS = ("contracts", "memory", "supervisor", "workers")
#: Places where nobody with a key asks, or nothing is made: each with what it is there.
NOBODYS = {
    ("supervisor/program_client.py", "TaskAssignment"): "a program with no key",
    ("supervisor/schedules/book.py", "Schedule"): "it stands in the code of an agent",
    ("supervisor/requests/outcome.py", "PersonRequest"): "only its id is made",
}


def test_what_has_a_caller_is_found() -> None:
    """All that work is made as, and what is kept of it."""
    assert {
        "TaskAssignment",
        "PersonRequest",
        "PipelineRequest",
        "Schedule",
        "NewRun",
    } < carriers()


@pytest.mark.parametrize("room", ["supervisor", "workers"])
def test_whoever_makes_work_hands_the_caller_on(room: str) -> None:
    """Each call that makes what may have a caller names it, but for those listed, of which there is one each."""
    made = carriers()
    without = [
        (file.relative_to(ROOT).as_posix(), name)
        for file in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Call)
        and (name := name_of(node.func)) in made
        and "caller" not in {one.arg for one in node.keywords}
    ]
    assert without == sorted(place for place in NOBODYS if place[0].startswith(room))


def carriers() -> set[str]:
    """Return the classes with a field for who asked, who may be nobody."""
    return {
        node.name
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.ClassDef)
        and any(
            isinstance(part, ast.AnnAssign)
            and ast.unparse(part.target) == "caller"
            and ast.unparse(part.annotation) == "Caller | None"
            for part in node.body
        )
    }


def name_of(called: ast.expr) -> str:
    """Return the name by which a class is called, from its module too."""
    return called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
