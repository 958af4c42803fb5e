"""Refusals by pydantic are put in the words of the refusing module."""

import re
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tasklore.contracts.faults import complaint_of, fault_of
from tasklore.contracts.identifiers import Name
from tasklore.contracts.zones import TimeZone

ROOT = Path(__file__).resolve().parents[3]
ROOMS = (
    "contracts",
    "quantities",
    "memory",
    "runtime",
    "supervisor",
    "workers",
    "tasklore",
    "deploy",
    "examples",
)


class _Trip(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: Name = "trip"
    stops: tuple[str, ...] = Field(default=("Rome",), min_length=1)
    zone: TimeZone = "UTC"
    days: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _is_short(self) -> "_Trip":
        if self.days > 99:
            raise AssertionError("a trip may have 99 days")
        return self


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"zone": "Europe/Berln"},
            "zone: there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?",
        ),
        ({"days": 0}, "days: must be greater than or equal to 1"),
        ({"stops": []}, "stops: must have at least 1 item, not 0"),
        ({"zon": "UTC"}, "zon: is not known; remove it, or correct its name"),
        ({"name": "a b"}, "name: must be 1 to 64 letters, digits, '_' or '-'"),
        ({"days": 100}, "the trip: a trip may have 99 days"),
    ],
)
def test_a_fault_is_a_place_and_a_sentence(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        _Trip.model_validate(given)
    [details] = refusal.value.errors(include_url=False)
    assert fault_of(details, "the trip") == told
    assert complaint_of(details) == told.partition(": ")[2]


def test_one_place_words_what_the_library_says() -> None:
    spelled = re.compile(r"\[[\"']msg[\"']\]|Value error")
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    found = {
        str(file.relative_to(ROOT))
        for file in files
        if spelled.search(file.read_text("utf-8"))
    }
    assert found == {"contracts/faults.py"}
