"""A record as a line of a file: JSON with its times in ISO 8601, in UTC, to the millisecond."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.memory.projects.records import Kind, Record
from tasklore.memory.times import milliseconds, spell_time


class _Line(BaseModel):
    """The fields of a line; one that is not known is an error, lest it be lost."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    record_id: str
    kind: Kind
    text: str
    tags: list[str] = Field(default_factory=list)
    at: Annotated[AwareDatetime, Field(strict=False)]
    by: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    session_id: str | None = None
    data: dict[str, JsonValue] = Field(default_factory=dict)
    redacted_at: Annotated[AwareDatetime | None, Field(strict=False)] = None


def as_document(record: Record) -> dict[str, Any]:
    """Return *record* as a JSON object."""
    return {
        "record_id": record.record_id,
        "kind": record.kind,
        "text": record.text,
        "tags": list(record.tags),
        "at": spell_time(record.at_ms),
        "by": record.by,
        "supersedes": record.supersedes,
        "superseded_by": record.superseded_by,
        "session_id": record.session_id,
        "data": dict(record.data),
        "redacted_at": None
        if record.redacted_ms is None
        else spell_time(record.redacted_ms),
    }


def read_record(found: object) -> Record:
    """Return the record in the JSON of a line.

    Raises:
        InvalidInput: there is none; the message says why.
    """
    if not isinstance(found, Mapping):
        raise InvalidInput(
            "must be a JSON object, as `tasklore projects export` writes them"
        )
    try:
        line = _Line.model_validate(dict(found))
    except ValidationError as error:
        raise InvalidInput(fault_of(error.errors()[0])) from error
    return Record(
        record_id=line.record_id,
        kind=line.kind,
        text=line.text,
        tags=tuple(line.tags),
        at_ms=milliseconds(line.at),
        by=line.by,
        supersedes=line.supersedes,
        superseded_by=line.superseded_by,
        session_id=line.session_id,
        data=line.data,
        redacted_ms=None
        if line.redacted_at is None
        else milliseconds(line.redacted_at),
    )
