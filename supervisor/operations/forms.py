"""Bodies of operations: forms that they take, and views that they return."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import (
    AliasChoices,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from tasklore.contracts.spans import read_span
from tasklore.contracts.zones import read_zone
from tasklore.supervisor.operations.refusals import Fault, unusable

_V = TypeVar("_V")

#: A minute: clocks differ, and a request takes its time.
_CLOCKS_DIFFER = timedelta(minutes=1)


#: A number of seconds; one below zero is refused by its bounds, as in JSON.
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?|-?\.[0-9]+")


def read_seconds(given: object) -> object:
    """Return the seconds of a text such as "2h" or, in a query, "7200"; any other value stays."""
    if not isinstance(given, str):
        return given
    if _NUMBER.fullmatch(given):
        return float(given)
    span = read_span(given)
    if span is None:
        raise ValueError(
            "must be a span of time, such as '90s', '15m' or '2h', or a number of seconds"
        )
    return span.total_seconds()


class _Span:
    """Lets a number of seconds be a text such as "2h", too; its bounds are those that stand before this."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            read_seconds, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        text = {"type": "string", "examples": ["15m", "2h"]}
        return {"anyOf": [handler(schema), text]}


#: What makes a span of time of a number with its bounds: `Annotated[float, Field(ge=0, le=600), SPAN]`.
SPAN = _Span()
#: A hundred years: longer than anybody means, and now and that is still a time.
_LONGEST_S = 36_525 * 86_400
#: A span of time: a number of seconds, or a text such as "2h".
Seconds = Annotated[float, Field(le=_LONGEST_S), SPAN]


def _read_when(given: object) -> object:
    """Return the time that a text such as "2026-11-21T10:00:00Z" means, or the span that "2h" means."""
    if not isinstance(given, str):
        return given
    span = read_span(given)
    if span is not None:
        return span
    try:
        moment = datetime.fromisoformat(given.strip())
    except ValueError as error:
        raise ValueError(
            "must be a span before now, such as 2h or 7d, or a time such as 2026-11-21T10:00:00Z"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


#: A time that has passed: RFC 3339, in UTC without a zone, or a span before now, such as "2h".
When = Annotated[
    datetime | timedelta,
    BeforeValidator(_read_when),
    WithJsonSchema({"type": "string", "examples": ["2h", "2026-11-21T10:00:00Z"]}),
]


def moment_of(when: datetime | timedelta | None, now: datetime) -> datetime | None:
    """Return the time that *when* means; a span that began before all time is 1970, None is none."""
    if not isinstance(when, timedelta):
        return when
    try:
        return now - when
    except OverflowError:
        return datetime.fromtimestamp(0, UTC)


class View(BaseModel):
    """A body that an operation returns.

    One that `is_without_defaults` is written without the fields that have their default, at any depth.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, from_attributes=True)
    is_without_defaults: ClassVar[bool] = False


class Form(BaseModel):
    """A body that an operation takes; unknown fields are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


def _demand_time(given: object) -> object:
    """Return *given* unless it is a number: nobody means seconds since 1970."""
    if given is not None and not isinstance(given, str | datetime):
        raise ValueError("must be a time as text, such as 2026-11-24T09:00:00Z")
    if (
        isinstance(given, str)
        and given.strip().lstrip("+-").replace(".", "", 1).isdigit()
    ):
        raise ValueError("must be a time such as 2026-11-24T09:00:00Z, not a number")
    return given


#: A time with its zone, as text of RFC 3339 alone.
SpelledTime = Annotated[AwareDatetime, BeforeValidator(_demand_time)]


def begin_at(description: str) -> FieldInfo:
    """Return the field of the time at which work begins."""
    found: FieldInfo = Field(
        strict=False,
        validation_alias=AliasChoices("at", "not_before"),
        description=description,
        json_schema_extra={"x-cli": {"metavar": "TIME"}},
    )
    return found


class Later(Form):
    """A body that may say when its work begins: at a time, or so long from now."""

    at: Annotated[
        datetime | None,
        begin_at("When it begins, such as 2026-12-24T18:00:00+01:00."),
    ] = None
    after: Annotated[
        Annotated[Seconds, Field(ge=0)] | None,
        Field(
            description="How long from now it begins, such as 2h.",
            json_schema_extra={"x-cli": {"metavar": "SPAN"}},
        ),
    ] = None

    def find_start(
        self,
        now: datetime,
        time_zone: str | None = None,
        *,
        may_have_passed: bool = False,
    ) -> datetime | None:
        """Return when the work begins, in UTC; None is at once.

        A time without its zone is by the clocks of *time_zone*, where that is known. It *may_have_passed* in a repeat.

        Raises:
            InvalidInput: there is no such zone.
            Refused: 422, both were given, the time has passed, or its zone is not known.
        """
        if self.at is not None and self.after is not None:
            raise unusable(
                [Fault(where="after", message="say either `at` or `after`, not both")]
            )
        if self.after is not None:
            return now + timedelta(seconds=self.after)
        if self.at is None:
            return None
        at = _in_zone(self.at, time_zone)
        if at < now - _CLOCKS_DIFFER and not may_have_passed:
            raise unusable(
                [Fault(where="at", message="has passed; leave it out to start at once")]
            )
        return at.astimezone(UTC)


def _in_zone(at: datetime, time_zone: str | None) -> datetime:
    if at.tzinfo is not None:
        return at
    if time_zone is None:
        raise unusable(
            [
                Fault(
                    where="at",
                    message="must have its zone, such as 2026-12-24T18:00:00+01:00",
                )
            ]
        )
    return at.replace(tzinfo=read_zone(time_zone))


class Cancelled(View):
    """The result of a cancellation: `too_late` when it had ended, as `status`; `noted` when it is no task yet."""

    outcome: Literal["cancelled", "too_late", "noted"]
    status: str | None = None


def digest_of(body: Mapping[str, Any]) -> str:
    """Return a digest of *body*, the same in whatever order its keys are."""
    return hashlib.blake2b(
        json.dumps(body, sort_keys=True).encode(), digest_size=16
    ).hexdigest()


@dataclass(frozen=True)
class Lines:
    """A part of a file of JSON lines that was sent, in its order.

    Clients send a part again whose answer was lost: to whatever operation takes it, the same lines again do no harm.
    """

    values: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Text:
    """An answer that is no JSON, such as Markdown."""

    text: str
    media_type: str


@dataclass(frozen=True, kw_only=True)
class Tagged(Generic[_V]):
    """A view that its reader may keep: while its `etag` is still that one, it is not sent again."""

    view: _V
    etag: str
