"""An operation as one or several requests: pages up to a limit, an end that comes later, a file in parts."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tasklore.commands.operations.entries import spell_name
from tasklore.commands.operations.problems import ApiRefused, name_commands, refuse
from tasklore.commands.operations.target import Target
from tasklore.commands.operations.transport import (
    WHOLE_S,
    AnswerCut,
    HttpAnswer,
    Json,
    Request,
    send,
)
from tasklore.commands.render.screen import say
from tasklore.contracts.errors import InvalidInput, TaskloreError, Unreachable
from tasklore.contracts.manifest import LINES, FieldEntry, OperationEntry

#: Bytes of one part of a file.
PART_BYTES = 256 * 1024
#: How often a part is sent while the API is away, and seconds between two tries.
_TRIES = 3
_PAUSE_S = 1.0
#: Seconds between two looks at an end that is not there yet: at least, and at most.
_SHORTEST_LOOK_S = 0.1
_LONGEST_LOOK_S = 10.0
#: Seconds for the answer of an operation that may take minutes.
_LONG_S = 900.0
#: Seconds for one look, while its answer may be on its way.
_LOOK_WITHIN_S = 30.0

Sender = Callable[[Request, float], HttpAnswer]


@dataclass(frozen=True)
class OperationOutcome:
    """The view of an operation; when it is no end yet, *place* is where that will be."""

    view: Any
    place: str | None = None


@dataclass(frozen=True)
class Exchange:
    """Requests of one operation to one target; *heard* is called with each answer, before it is read."""

    target: Target
    entry: OperationEntry
    heard: Callable[[HttpAnswer], object]

    def ask(
        self,
        request: Request,
        *,
        waits_s: float | None = None,
        late_s: float | None = None,
    ) -> HttpAnswer:
        """Return the answer to *request*, which may take *waits_s* seconds on purpose, and *late_s* more.

        None is as long as such an operation may take.

        Raises:
            ApiRefused: it is a refusal.
            Unreachable: no server answers.
            TaskloreError: the answer is none of the API's.
        """
        if waits_s is None:
            waits_s = _LONG_S if self.entry["waits"] else 0.0
        within_s = waits_s + (WHOLE_S if late_s is None else late_s)
        answer = send(self.target, request, within_s=within_s)
        self.heard(answer)
        if answer.status >= 300:
            raise refuse(answer, self.target, self.entry)
        return answer

    def read_view(self, answer: HttpAnswer) -> object:
        """Return the view in *answer*; None when it has none.

        Raises:
            ApiRefused: it is the page of a proxy.
            TaskloreError: it is cut, or no JSON.
        """
        if answer.status == HTTPStatus.NO_CONTENT:
            return None
        if answer.is_text:
            return answer.body.decode(errors="replace")
        if not answer.is_json:
            raise refuse(answer, self.target, self.entry)
        return answer.read_json()

    def pour(self, request: Request, sink: Callable[[bytes], object]) -> int:
        """Give the body of the answer to *sink* as it comes, and return the status.

        Raises:
            ApiRefused, Unreachable, TaskloreError: as `ask`.
        """
        answer = send(self.target, request, sink=sink)
        self.heard(answer)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise refuse(answer, self.target, self.entry)
        return answer.status

    def read_pages(self, request: Request, limit: int | None) -> object:
        """Return the view of a list, of as many pages as *limit* rows need; None is one page.

        Raises:
            ApiRefused, Unreachable, TaskloreError: as `ask`.
        """
        if limit is None:
            return self.read_view(self.ask(request))
        found: list[Any] = []
        seen: set[str] = set()
        name = self.entry["rows"]
        most = self._most_of_page() or limit
        while True:
            wanted = min(most, limit - len(found))
            page = self.read_view(self.ask(_with_query(request, "limit", str(wanted))))
            rows = page.get(name) if isinstance(page, dict) else None
            if not isinstance(page, dict) or not isinstance(rows, list):
                raise TaskloreError(
                    f"{self.target.url} answers with a page without {name!r}; upgrade it or this command"
                )
            found += rows
            after = page.get("after")
            if not isinstance(after, str) or after in seen or len(found) >= limit:
                return page | {name: found}
            seen.add(after)
            request = _with_query(request, "after", after)

    def _most_of_page(self) -> int | None:
        for field in self.entry["fields"]:
            if field["name"] == "limit" and field["most"] is not None:
                return int(field["most"])
        return None

    def follow(self, answer: HttpAnswer, within_s: float) -> OperationOutcome:
        """Return the end to which *answer* leads, or the view that it has after *within_s* seconds.

        Raises:
            ApiRefused, Unreachable, TaskloreError: as `ask`.
        """
        ends_at = time.monotonic() + within_s
        while answer.status == 202:
            place = self._read_place(answer)
            left = ends_at - time.monotonic()
            if place is None or left <= 0:
                return OperationOutcome(self.read_view(answer), place)
            try:
                time.sleep(min(left, _read_pause(answer)))
                answer = self._look(place, answer)
            except KeyboardInterrupt:
                say(f"it may still be running; look by {describe_place(place)}")
                raise
        return OperationOutcome(self.read_view(answer))

    def _look(self, place: str, before: HttpAnswer) -> HttpAnswer:
        """Return the answer of *place*; *before* while the API is away for a moment."""
        parts = urlsplit(place)
        path = parts.path.removeprefix(self.target.path)
        request = Request("GET", path, query=tuple(parse_qsl(parts.query)))
        try:
            answer = send(self.target, request, within_s=_LOOK_WITHIN_S)
        except (Unreachable, AnswerCut):
            return before
        self.heard(answer)
        if answer.status in (502, 503, 504):
            return before
        if answer.status >= 300:
            raise refuse(answer, self.target, self.entry)
        if answer.status == 202 and "location" not in answer.headers:
            headers = {**answer.headers, "location": place}
            return replace(answer, headers=headers)
        return answer

    def _read_place(self, answer: HttpAnswer) -> str | None:
        """Return the place of the end, a path here; None when there is none, or it is at another origin."""
        place = answer.headers.get("location", "")
        parts = urlsplit(place)
        if parts.netloc and f"{parts.scheme}://{parts.netloc}" != _origin(self.target):
            return None
        is_path = parts.path.startswith("/") and place.isascii() and " " not in place
        if not is_path or not place.isprintable():
            return None
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def send_lines(self, request: Request, field: FieldEntry, typed: str) -> Json:
        """Return the views of all parts of the file *typed* as one: numbers are sums.

        Raises:
            InvalidInput: the file cannot be read, or a line is longer than a part; nothing was sent of such a file,
                unless it is a pipe.
            ApiRefused, Unreachable, TaskloreError: as `ask`; the message says how many parts were sent.
        """
        # Stdin and a pipe can be read once only.
        is_kept = typed != "-" and Path(typed).is_file()
        total = sum(1 for _ in _parts_of(field, typed)) if is_kept else None
        whole: Json = {}
        count = 0
        for number, part in enumerate(_parts_of(field, typed)):
            try:
                whole = add_views(whole, self.send_part(request, part))
            except TaskloreError as error:
                of_all = f" of {total}" if total is not None else ""
                told = f"{error} (sent {number}{of_all} parts; again sends the rest)"
                if isinstance(error, ApiRefused):
                    raise ApiRefused(told, error.code, error.body) from error
                raise type(error)(told) from error
            count += 1
        if not count:
            say(f"{spell_name(field)}: {typed!r} has no lines; nothing was sent")
        return whole

    def send_part(self, request: Request, part: bytes) -> object:
        """Return the view of *request* with the lines *part*, sent again while the API is away: nothing is done twice.

        Raises:
            ApiRefused, Unreachable, TaskloreError: as `ask`.
        """
        # The same lines again do no harm, whatever became of the first try.
        sent = replace(request, body=part, media_type=LINES)
        for left in reversed(range(_TRIES)):
            try:
                return self.read_view(self.ask(sent))
            except (Unreachable, ApiRefused) as error:
                is_away = isinstance(error, Unreachable) or (
                    error.body.get("status") in (429, 503)
                )
                if not left or not is_away:
                    raise
            time.sleep(_PAUSE_S)
        raise AssertionError("the last try returns or raises")


def describe_place(place: str) -> str:
    """Return what to type to look at *place*."""
    return name_commands(f"GET {place}")


def _origin(target: Target) -> str:
    return target.url.removesuffix(target.path) if target.path else target.url


def _read_pause(answer: HttpAnswer) -> float:
    try:
        asked = float(answer.headers.get("retry-after", ""))
    except ValueError:
        asked = 1.0
    # A server that asks for no number, or for less than none, is looked at like any other.
    return min(max(asked, _SHORTEST_LOOK_S), _LONGEST_LOOK_S) if asked == asked else 1.0


def _with_query(request: Request, name: str, value: str) -> Request:
    others = tuple(one for one in request.query if one[0] != name)
    return replace(request, query=(*others, (name, value)))


def add_views(whole: Json, view: Any) -> Json:
    """Return *whole* with the *view* of one more part: numbers and lists are added, anything else is the last one."""
    if not isinstance(view, dict):
        return whole
    added = dict(whole)
    for name, value in view.items():
        before = added.get(name)
        is_sum = (
            isinstance(value, int | float)
            and isinstance(before, int | float)
            and not isinstance(value, bool)
        ) or (isinstance(value, list) and isinstance(before, list))
        added[name] = before + value if is_sum else value
    return added


def join_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield *lines* joined to parts of at most `PART_BYTES`; a longer line is a part of its own."""
    part = bytearray()
    for line in lines:
        if part and len(part) + len(line) > PART_BYTES:
            yield bytes(part)
            part.clear()
        part += line
    if part:
        yield bytes(part)


def _parts_of(field: FieldEntry, typed: str) -> Iterator[bytes]:
    """Yield the lines of the file *typed* in parts of at most `PART_BYTES`, none of which is broken.

    Raises:
        InvalidInput: it cannot be read, or a line is too long; names its number.
    """
    return join_lines(_short_lines_of(field, typed))


def _short_lines_of(field: FieldEntry, typed: str) -> Iterator[bytes]:
    for number, line in enumerate(_lines_of(field, typed), start=1):
        if len(line) > PART_BYTES:
            raise InvalidInput(
                f"{spell_name(field)} {typed!r}: line {number} is longer than {PART_BYTES:,} bytes; break it up"
            )
        yield line


def _lines_of(field: FieldEntry, typed: str) -> Iterator[bytes]:
    """Yield each line that is not empty, with its end."""
    try:
        with Path(typed).open("rb") if typed != "-" else sys.stdin.buffer as file:
            # A little more than a part: whether a line is too long shows without reading it whole.
            while line := file.readline(PART_BYTES + 2):
                if line.strip():
                    yield line if line.endswith(b"\n") else line + b"\n"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"{spell_name(field)}: cannot read {typed!r}: {why}; name a file that can be read"
        ) from error
