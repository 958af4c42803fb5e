"""A record as a line of a file: JSON with its times in ISO 8601, in UTC, to the millisecond."""

import json
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


def write_line(record: Record) -> bytes:
    """Return the line of *record*, its end included; half of a surrogate pair in its data is escaped."""
    document = as_document(record)
    try:
        text = json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        text = json.dumps(document).encode()
    return text + b"\n"


def read_line(line: bytes) -> Record:
    """Return the record of a line.

    Raises:
        InvalidInput: it is none; the message says why.
    """
    try:
        # Through the standard library, as JSON that it wrote: pydantic's reader refuses half of a surrogate pair.
        read = json.loads(line)
        if not isinstance(read, Mapping):
            raise InvalidInput(
                "must be a JSON object, as `tasklore project export` writes them"
            )
        found = _Line.model_validate(dict(read))
    except ValidationError as error:
        raise InvalidInput(fault_of(error.errors()[0])) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is no JSON: {error}; each line is an object") from error
    return Record(
        record_id=found.record_id,
        kind=found.kind,
        text=found.text,
        tags=tuple(found.tags),
        at_ms=milliseconds(found.at),
        by=found.by,
        supersedes=found.supersedes,
        superseded_by=found.superseded_by,
        session_id=found.session_id,
        data=found.data,
        redacted_ms=None
        if found.redacted_at is None
        else milliseconds(found.redacted_at),
    )
