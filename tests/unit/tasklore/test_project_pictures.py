"""The pictures of a record of a project and of an import, by views as the API sends them."""

from typing import Any

import pytest

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.pictures import project_import, project_record


def record(record_id: str, **more: Any) -> dict[str, Any]:
    """Return a record as a view has it."""
    return {
        "record_id": record_id,
        "kind": "decision",
        "text": f"text of {record_id}",
        "tags": [],
        "at": "2026-11-21T10:00:00Z",
        "by": None,
        "supersedes": None,
        "superseded_by": None,
        "session_id": None,
        "data": {},
        "redacted_at": None,
    } | more


def test_a_record_is_drawn_with_what_it_has_and_its_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    own = record(
        "d2",
        text="spaces\nalways",
        tags=["style"],
        by="ana",
        supersedes="d1",
        superseded_by="d3",
        session_id="run-1",
        data={"why": "diffs"},
    )
    chain = [record("d1"), own, record("d3")]
    drawn = project_record.draw({**own, "project_id": "shop", "chain": chain})
    lines = drawn.splitlines()
    assert lines[0] == "d2, a decision of project shop, superseded by d3"
    assert [line.split()[0] for line in lines[1:6]] == [
        "noted",
        "by",
        "tags",
        "supersedes",
        "session",
    ]
    assert "\n  spaces\n  always\n" in drawn
    assert '\n  "why": "diffs"\n' in drawn
    told = drawn.partition("oldest first:\n")[2].splitlines()
    assert [line.split()[:2] for line in told] == [
        ["ID", "AT"],
        ["d1", lines[1].split()[1]],
        ["d2", "*"],
        ["d3", lines[1].split()[1]],
    ]


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("standard", "a standard of project shop, in force"),
        ("history", "a note in the history of project shop"),
    ],
)
def test_a_record_alone_has_no_chain(kind: str, state: str) -> None:
    own = record("x1", kind=kind, redacted_at="2026-11-22T10:00:00Z")
    drawn = project_record.draw({**own, "project_id": "shop", "chain": [own]})
    assert drawn.splitlines()[0] == f"x1, {state}"
    assert "redacted, as its author was forgotten" in drawn
    assert "oldest first" not in drawn


def test_an_import_names_the_first_refused_records_and_ends_as_unusable_input() -> None:
    refused = [
        {"record_id": f"line {one}", "why": "kind: is needed"} for one in range(15)
    ]
    view = {"project_id": "copy", "added": 1, "known": 0, "refused": refused}
    lines = project_import.draw(view).splitlines()
    assert lines[0] == "1 record added to project copy"
    assert lines[1] == "  line 0: kind: is needed"
    assert lines[-1] == "  and 5 more were refused; --json names them all"
    assert (len(lines), project_import.code_of(view)) == (12, USAGE)
    again = {"project_id": "copy", "added": 0, "known": 3, "refused": []}
    told = "0 records added to project copy; 3 were there already"
    assert (project_import.draw(again), project_import.code_of(again)) == (told, OK)
