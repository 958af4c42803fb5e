"""The messages on the wire: golden schemas, old readers beside new writers, nothing unknown is written."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from tasklore.contracts.messages import (
    MESSAGES,
    CompletionReport,
    PersonRequest,
    TaskAssignment,
)

GOLDEN = Path(__file__).parent / "golden"

#: The example of the wire contract, as another program would write it.
ASSIGNMENT: dict[str, Any] = {
    "schema_version": 1,
    "task_id": "0198f3a2-0000-7000-8000-000000000001",
    "agent_id": "BudgetTrackerAgent",
    "supervisor_id": "SupervisorAgent",
    "task": {
        "name": "analyze_budget",
        "parameters": {"budget_limit": 50000, "spent": 42000, "history": [5000]},
    },
    "created_at": "2026-11-21T10:00:00Z",
    "deadline": None,
    "max_attempts": 5,
    "memory": "use",
    "request_id": None,
    "parent_id": None,
    "user_id": None,
    "conversation_id": None,
    "session_id": None,
    "phase": None,
    "writes": None,
    "keep_ms": None,
    "story_id": None,
    "response_number": None,
}


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_a_wire_schema_is_what_was_shipped(name: str) -> None:
    """A change of a schema is a change of the golden file, seen in review."""
    schema = (
        json.dumps(MESSAGES[name].model_json_schema(), indent=1, sort_keys=True) + "\n"
    )

    assert schema == (GOLDEN / f"{name}.v1.json").read_text("utf-8")


def test_every_golden_file_still_has_its_message() -> None:
    """No schema that was ever shipped disappears."""
    assert {path.name.partition(".")[0] for path in GOLDEN.glob("*.json")} == set(
        MESSAGES
    )


def test_the_example_of_the_contract_is_read_and_written_back() -> None:
    """What another program sends comes back with the same meaning."""
    assignment = TaskAssignment.model_validate_json(json.dumps(ASSIGNMENT))

    assert json.loads(assignment.model_dump_json()) == ASSIGNMENT


def test_fields_of_a_newer_writer_are_ignored() -> None:
    """An old reader lives beside a new writer."""
    newer = ASSIGNMENT | {
        "schema_version": 2,
        "colour": "green",
        "task": ASSIGNMENT["task"] | {"weight": 3},
    }

    assert TaskAssignment.model_validate(newer).task.name == "analyze_budget"


def test_an_unknown_word_is_read_as_other_and_never_written() -> None:
    """A closed list stays closed on the way out."""
    assignment = TaskAssignment.model_validate(ASSIGNMENT | {"memory": "telepathy"})

    assert assignment.memory == "other"
    with pytest.raises(PydanticSerializationError, match="only read"):
        assignment.model_dump_json()


def test_a_report_with_a_status_from_the_future_is_read() -> None:
    """A supervisor does not fall over a newer worker's word."""
    report = CompletionReport.model_validate(
        {
            "task_id": "t",
            "agent_id": "A",
            "supervisor_id": "S",
            "task_name": "x",
            "status": "postponed",
            "memory": {"outcome": "dreamt"},
            "worker_id": "w",
            "finished_at": "2026-11-21T10:00:00Z",
        }
    )

    assert (report.status, report.memory.outcome) == ("other", "other")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_id", "a.b"),
        ("agent_id", "A>"),
        ("supervisor_id", ""),
        ("max_attempts", 0),
        ("task_id", "x" * 65),
    ],
)
def test_what_would_break_a_subject_is_refused(field: str, value: object) -> None:
    """A name that could act as a delimiter never becomes an assignment."""
    with pytest.raises(ValidationError, match=field):
        TaskAssignment.model_validate(ASSIGNMENT | {field: value})


def test_an_empty_question_is_refused() -> None:
    """A person has to say something."""
    with pytest.raises(ValidationError, match="text"):
        PersonRequest(text="")
