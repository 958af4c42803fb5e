"""The messages of 0.1.0, kept as it wrote them beside its own schemas: both versions read each other.

`golden/0.1.0` was written by 0.1.0 and is never made anew.
"""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tasklore.contracts.messages import MESSAGES, CompletionReport
from tasklore.runtime.models.prices import Expense

OLD = Path(__file__).parent / "golden" / "0.1.0"
NAMES = sorted(path.stem for path in (OLD / "messages").glob("*.json"))


def old_message(name: str) -> dict[str, Any]:
    """Return the message *name* as 0.1.0 wrote it."""
    return dict(json.loads((OLD / "messages" / f"{name}.json").read_text("utf-8")))


def refusals(name: str, message: object) -> list[str]:
    """Return what 0.1.0 would find wrong with *message*."""
    schema = json.loads((OLD / "schemas" / f"{name}.json").read_text("utf-8"))
    return [
        error.message
        for error in jsonschema_rs.validator_for(schema).iter_errors(message)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_message_of_0_1_is_read_and_written_so_that_0_1_reads_it(name: str) -> None:
    old = old_message(name)
    assert refusals(name, old) == []
    written = json.loads(MESSAGES[name].model_validate(old).model_dump_json())
    assert refusals(name, written) == []
    # Spellings of a time may differ, and what says nothing may be left out.
    assert MESSAGES[name].model_validate(written) == MESSAGES[name].model_validate(old)
    assert old.keys() <= written.keys()


def test_a_report_whose_cost_is_unknown_is_read_by_0_1() -> None:
    """A null would end it there: the cost is left out, and 0.1 takes 0."""
    report = CompletionReport.model_validate(old_message("CompletionReport"))
    unpriced = report.model_copy(
        update={"usage": (Expense(3, 4, Decimal(0), unpriced=True)).as_usage()}
    )
    body = json.loads(unpriced.model_dump_json())
    assert refusals("CompletionReport", body) == []
    assert refusals("CompletionReport", body | {"usage": {"cost_usd": None}})
