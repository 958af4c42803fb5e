"""The analysis of one response of a story: what ten agents found, in one compact document.

Python speaks long names, the document short keys; `docs/reference/analysis.md` lists both. Sections of other agents are
kept as they are, and so is the order in which keys were written: a document that is read and written again has the same
bytes, minified.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NoReturn

from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator

from tasklore.contracts.analysis.background import Background
from tasklore.contracts.analysis.immediate import Immediate
from tasklore.contracts.analysis.pieces import Number, Piece, Reduction, Whole
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import complaint_of

#: The version of documents that we write; `1.0` is the form without `agents_skip`.
VERSION = "1.1"
#: What a section says as its status when its agent was not asked.
SKIPPED = "skipped"
#: Problems that the message of an error names.
_NAMED = 5

_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")
_PLAIN = re.compile(r"[A-Za-z_][\w-]*")


class Meta(Piece):
    """The response, the time of the last analysis, and how many agents succeeded.

    `status` is `fresh`, `partial` (an agent failed or is late) or `stale` (the story went on since). With
    `agents_skipped` the three counts sum to `agents_run`; the older form without it counts what was skipped as ok.
    """

    response_number: Whole = Field(alias="resp_num", ge=0)
    updated: str
    status: Literal["fresh", "partial", "stale"]
    agents_run: Whole = Field(ge=0)
    agents_ok: Whole = Field(ge=0)
    agents_failed: Whole = Field(alias="agents_fail", ge=0)
    agents_skipped: Whole | None = Field(default=None, alias="agents_skip", ge=0)

    @field_validator("updated")
    @classmethod
    def _is_a_time(cls, text: str) -> str:
        datetime.fromisoformat(text)
        return text

    @model_validator(mode="after")
    def _adds_up(self) -> "Meta":
        parts = self.agents_ok + self.agents_failed + (self.agents_skipped or 0)
        if parts != self.agents_run:
            msg = f"agents_ok, agents_fail and agents_skip sum to {parts}, not to agents_run {self.agents_run}"
            raise ValueError(msg)
        return self


class Stats(Piece):
    """What the analysis took and saved: milliseconds of wall clock, US dollars, tokens; `roi` None at no cost.

    Tokens are those that models read and wrote, as their providers counted them.
    """

    background_ms: Whole | None = Field(default=None, alias="bg_dur")
    background_tokens: Whole | None = Field(default=None, alias="bg_tokens")
    background_cost_usd: Number | None = Field(default=None, alias="bg_cost")
    immediate_ms: Whole | None = Field(default=None, alias="im_dur")
    immediate_tokens: Whole | None = Field(default=None, alias="im_tokens")
    immediate_cost_usd: Number | None = Field(default=None, alias="im_cost")
    total_ms: Whole | None = Field(default=None, alias="total_dur")
    total_tokens: Whole | None = None
    total_cost_usd: Number | None = Field(default=None, alias="total_cost")
    total_reduction: Reduction | None = None
    roi: Number | None = None


class AnalysisDocument(Piece):
    """The whole analysis of one response."""

    version: str = VERSION
    meta: Meta
    background: Background = Field(default_factory=Background)
    immediate: Immediate = Field(default_factory=Immediate)
    stats: Stats = Field(default_factory=Stats)

    @model_validator(mode="after")
    def _is_of_a_known_form(self) -> "AnalysisDocument":
        major, minor = _numbers(self.version)
        if major > _numbers(VERSION)[0]:
            msg = f"version {self.version!r} is newer than {VERSION!r}; read it with a newer Tasklore"
            raise ValueError(msg)
        if (major, minor) >= (1, 1) and self.meta.agents_skipped is None:
            msg = f"meta has no agents_skip, which version {self.version!r} needs"
            raise ValueError(msg)
        return self

    def body(self) -> dict[str, JsonValue]:
        """Return the document as JSON values, by its short keys and in its order."""
        written = self.model_dump(mode="json")
        # Also a document that was made without naming its version says which it is.
        return written if "version" in written else {"version": self.version, **written}

    def minified(self) -> bytes:
        """Return the document as JSON without a needless space, in UTF-8."""
        return json.dumps(
            self.body(), ensure_ascii=False, separators=(",", ":")
        ).encode()

    def sections(self) -> Iterator[tuple[str, JsonValue]]:
        """Yield what each agent left, ours and others, by its key."""
        for group in (self.background, self.immediate):
            yield from group.model_dump(mode="json").items()


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    """A fault of a document; `place` is a path into it, `$` for all of it."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def read_document(raw: bytes | str | Mapping[str, JsonValue]) -> AnalysisDocument:
    """Parse *raw* as a document, in this form or an older one, which it keeps.

    Raises:
        InvalidInput: it is none; the message names the places and what is wrong there.
    """
    body = _json(raw)
    try:
        return AnalysisDocument.model_validate(body)
    except ValidationError as error:
        found = list(_problems(error, body))
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        listed = "; ".join(map(str, found[:_NAMED]))
        raise InvalidInput(
            f"this is not an analysis document: {listed}{more}"
        ) from error


def problems_in(
    raw: bytes | str | Mapping[str, JsonValue],
) -> tuple[DocumentProblem, ...]:
    """Return everything because of which *raw* is no analysis document; none when it is one.

    Raises:
        InvalidInput: it is no JSON.
    """
    body = _json(raw)
    try:
        AnalysisDocument.model_validate(body)
    except ValidationError as error:
        return tuple(_problems(error, body))
    return ()


def upcast(document: AnalysisDocument) -> AnalysisDocument:
    """Return *document* in the form that we write; one that is in it already, or in a later one, as it is."""
    if _numbers(document.version) >= _numbers(VERSION):
        return document
    skipped = sum(
        isinstance(one, dict) and one.get("status") == SKIPPED
        for _, one in document.sections()
    )
    skipped = min(skipped, document.meta.agents_ok)
    counts = {"agents_ok": document.meta.agents_ok - skipped, "agents_skipped": skipped}
    return document.model_copy(
        update={"version": VERSION, "meta": document.meta.model_copy(update=counts)}
    )


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document, by its short keys."""
    return AnalysisDocument.model_json_schema()


def _numbers(version: str) -> tuple[int, int]:
    found = _VERSION.fullmatch(version)
    if not found:
        msg = f"version {version!r} is not two numbers with a dot between them, as in {VERSION!r}"
        raise ValueError(msg)
    return int(found[1]), int(found[2])


def _json(raw: bytes | str | Mapping[str, JsonValue]) -> JsonValue:
    """Return the value that *raw* spells; every text in it can be written as UTF-8."""
    try:
        body: JsonValue = (
            json.loads(raw, parse_constant=_refuse)
            if isinstance(raw, bytes | str)
            else dict(raw)
        )
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        msg = f"this is not valid JSON: {error}; for the Markdown form there is `python -m examples.migrate_analyses`"
        raise InvalidInput(msg) from error
    return body


def _refuse(word: str) -> NoReturn:
    msg = f"{word} is not a JSON number"
    raise ValueError(msg)


def _problems(error: ValidationError, body: JsonValue) -> Iterator[DocumentProblem]:
    """Yield one problem for each place that pydantic complains of."""
    told: set[str] = set()
    for one in error.errors(
        include_url=False, include_input=False, include_context=False
    ):
        place = _spelled(_steps(one["loc"], body, is_missing=one["type"] == "missing"))
        if place not in told:
            told.add(place)
            yield DocumentProblem(place, complaint_of(one))


def _steps(
    loc: tuple[int | str, ...], body: JsonValue, *, is_missing: bool
) -> list[int | str]:
    """Return *loc* without what names no place in *body*: the kinds of a union."""
    steps: list[int | str] = []
    for step in loc:
        holds = isinstance(body, dict) and step in body
        if isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
            holds = True
        elif isinstance(body, dict) and isinstance(step, str) and holds:
            body = body[step]
        if not holds and not (is_missing and isinstance(body, dict)):
            break
        steps.append(step)
    return steps


def _spelled(steps: list[int | str]) -> str:
    parts = (
        f"[{step}]"
        if isinstance(step, int)
        else f".{step}"
        if _PLAIN.fullmatch(step)
        else f"[{json.dumps(step)}]"
        for step in steps
    )
    return "".join(parts).removeprefix(".") or "$"
