"""Requests without sending them: generators that a client drives, awaiting or not.

A flow yields a `Call` and is sent its `Answer`, or a `Pause` and is sent nothing, and returns its result. A call is
repeated only where that does nothing twice: it reads, it sends lines, which do no harm again, or it carries an id. One
that sets or removes is repeated where the first is known to have done nothing: another client may have changed it.
"""

import json
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from tasklore.client.errors import ApiError, ServerUnreachable, UnknownAnswer
from tasklore.contracts.faults import fault_of

T = TypeVar("T")

#: Times that a call is made, and seconds before the second; each further pause is twice as long.
TRIES = 4
PAUSE_S = 0.25
#: Seconds that the server may take on purpose where a call does not say.
_LONG_S = 30.0
#: Seconds that the server may take for what may last minutes.
_PATIENT_S = 900.0
#: Bytes of one part of a file of JSON lines.
_PART_BYTES = 256 * 1024
#: Statuses after which the same call may succeed; 0 is no answer.
LATER = frozenset((0, 429, 502, 503, 504))
#: Those of them that say that nothing was done.
_NOTHING_DONE = frozenset((429, 503))
_SETTING = frozenset(("PUT", "DELETE"))


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request; values that are None are left out. One that *takes_key* carries an id, *key* or a new one.

    One that *waits* may last minutes, whatever it says.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    header: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    key: str | None = None
    takes_key: bool = False
    waits: bool = False

    @property
    def wait_s(self) -> float:
        """Seconds that the server may take on purpose."""
        if self.waits:
            return _PATIENT_S
        if self.method == "GET":
            return 0.0
        given = (self.body or {}).get("wait_seconds")
        return _LONG_S if given is None else float(given)

    def may_repeat(self, answer: "Answer") -> bool:
        """Return whether it may be made again after *answer*."""
        if answer.status not in LATER:
            return False
        if self.method == "GET" or self.key or self.content is not None:
            return True
        is_undone = answer.status in _NOTHING_DONE or not answer.was_sent
        return self.method in _SETTING and is_undone

    def spell_query(self) -> dict[str, str]:
        """Return its query as the wire has it."""
        return {
            name: _spell(value)
            for name, value in self.query.items()
            if value is not None
        }

    def spell_body(self) -> Any:
        """Return its body as JSON has it, None without one."""
        if self.body is None:
            return None
        return {
            name: encode(value)
            for name, value in self.body.items()
            if value is not None
        }

    def spell_headers(self) -> dict[str, str]:
        """Return the headers of its own."""
        given = {
            name: _spell(value)
            for name, value in self.header.items()
            if value is not None
        }
        return given | ({"Idempotency-Key": self.key} if self.key else {})


@dataclass(frozen=True, slots=True)
class Answer:
    """The response; status 0 when there was none, with the reason as `detail` of its body.

    `was_sent` is False where the server was not reached, so that it did nothing.
    """

    status: int
    body: Any = None
    retry_after_s: float | None = None
    was_sent: bool = True


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds in which nothing is asked."""

    seconds: float


Flow = Generator[Call | Pause, Any, T]


@dataclass(frozen=True, slots=True)
class Events(Generic[T]):
    """A stream of server-sent events, each of *shape*; it is taken up again where it was cut."""

    call: Call
    shape: Any


@dataclass(frozen=True, slots=True)
class JsonLines(Generic[T]):
    """A stream of JSON lines, each of *shape*."""

    call: Call
    shape: Any


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list with pages: *page* asks for the one behind a place, None for the first; *rows* is its field of rows."""

    page: Callable[[str | None], Flow[Any]]
    rows: str


def fill_path(template: str, **values: object) -> str:
    """Return *template* with *values* in its braces."""
    return template.format(
        **{name: quote(str(value), safe="") for name, value in values.items()}
    )


def fetch(call: Call, shape: Any) -> Flow[Any]:
    """Return what *call* answers, as *shape*; it is made again while the server is away or busy.

    Raises:
        ApiError: the server refused.
        Unreachable: it did not answer.
        UnknownAnswer: it answered something else.
    """
    answer = yield from _ask(call)
    return read_as(shape, answer.body)


def read_as(shape: Any, body: Any) -> Any:
    """Return *body* as *shape*.

    Raises:
        UnknownAnswer: it is something else.
    """
    try:
        return TypeAdapter(shape).validate_python(body)
    except ValidationError as error:
        raise unread(error) from error


def unread(error: ValidationError) -> UnknownAnswer:
    """Return the error of an answer that is something else, by its problem."""
    return UnknownAnswer(
        f"the answer of the server cannot be read ({fault_of(error.errors()[0])}); "
        "use a client of the server's version"
    )


def fetch_text(call: Call) -> Flow[str]:
    """Return the text that *call* answers, "" for none; see `fetch`."""
    answer = yield from _ask(call)
    return answer.body if isinstance(answer.body, str) else ""


def send_lines(call: Call, lines: Iterable[Mapping[str, Any]], shape: Any) -> Flow[Any]:
    """Send *lines* in parts of at most 256 kB, and return the answer to each part; see `fetch`."""
    answers = []
    for content in _parts_of(lines):
        answer = yield from _ask(replace(call, content=content))
        answers.append(read_as(shape, answer.body))
    return tuple(answers)


def _parts_of(lines: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    part = bytearray()
    for line in lines:
        spelled = json.dumps(encode(line), ensure_ascii=False).encode() + b"\n"
        if part and len(part) + len(spelled) > _PART_BYTES:
            yield bytes(part)
            part.clear()
        part += spelled
    if part:
        yield bytes(part)


def _ask(call: Call) -> Flow[Answer]:
    if call.takes_key and call.key is None:
        call = replace(call, key=new_id())
    answer = Answer(0)
    for attempt in range(TRIES):
        answer = yield call
        if attempt + 1 == TRIES or not call.may_repeat(answer):
            break
        yield Pause(answer.retry_after_s or PAUSE_S * 2**attempt)
    if not 200 <= answer.status < 300:
        raise error_of(answer)
    return answer


def error_of(answer: Answer) -> Exception:
    """Return the error of *answer*, which is no good one."""
    problem = answer.body if isinstance(answer.body, dict) else {}
    detail = str(
        problem.get("detail") or problem.get("title") or f"status {answer.status}"
    )
    if answer.status == 0:
        return ServerUnreachable(detail)
    problems = [
        f"{one['where']}: {one['message']}" for one in problem.get("problems", ())
    ]
    kind = str(problem.get("type", "")).rpartition(":")[2]
    return ApiError(answer.status, kind, detail, problems)


def new_id() -> str:
    """Return an id that no other call has."""
    return uuid.uuid4().hex


def encode(value: Any) -> Any:
    """Return *value* as JSON has it."""
    match value:
        case BaseModel():
            return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(name): encode(one) for name, one in value.items()}
        case str() | bytes():
            return value
        case Sequence() | set() | frozenset():
            return [encode(one) for one in value]
    return value


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(encode(value))
