"""Records of a project: decisions, standards and runs, the limits of their fields, and their stored form."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.memory.projects.words import tag_name

Kind = Literal["decision", "standard", "history"]

#: What stands for the text of somebody who was forgotten.
REDACTED = "[redacted]"
#: Characters of a text: two pages; what is longer belongs into a file that the record names.
MAX_TEXT = 8_000
#: Bytes of the data beside a text, as compact JSON.
MAX_DATA_BYTES = 64 * 1024
#: Tags of one record, and characters of each.
MAX_TAGS = 20
MAX_TAG = 64
#: Characters of a user id, as on the wire, and of a token.
MAX_NAME = 256
#: The first millisecond that is no time any more, in the year 2248: a place in the order is a time in 1,024ths of a ms.
END_OF_TIME_MS = 2**53 // 1024

#: How the ids of each kind begin.
LETTERS: Mapping[Kind, str] = {"decision": "d", "standard": "s", "history": "h"}

_KINDS: tuple[Kind, ...] = get_args(Kind)
_BY_LETTER: Mapping[str, Kind] = {letter: kind for kind, letter in LETTERS.items()}
_RECORD_ID = re.compile(r"[dsh][1-9][0-9]{0,14}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a project; only being superseded, and the redaction of its author, ever change it.

    `record_id` is `d17`, `s3` or `h42`, growing per project and kind. Times are ms since 1970 by the server's clock.
    `by` is a user id, None without an author. `redacted_ms` is when its author was forgotten, None when not.
    """

    record_id: str
    kind: Kind
    text: str
    tags: tuple[str, ...] = ()
    at_ms: int = 0
    by: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    session_id: str | None = None
    data: Mapping[str, JsonValue] = field(default_factory=dict)
    redacted_ms: int | None = None

    @property
    def is_in_force(self) -> bool:
        """Whether no later record supersedes it."""
        return self.superseded_by is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectInfo:
    """How much a project remembers, and the time of its newest record, ms since 1970."""

    project_id: str
    decisions: int
    standards: int
    history: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that was not loaded, and why."""

    record_id: str
    why: str


@dataclass(frozen=True, slots=True)
class ProjectLoadReport:
    """The outcome of loading records: how many were added, how many were there already, and which were refused."""

    added: int = 0
    known: int = 0
    refused: tuple[RefusedRecord, ...] = ()


def check(record: Record) -> Record:
    """Return *record* as it is kept, tags stripped and each once; its id and time are not looked at.

    Raises:
        InvalidInput: a field is invalid; the message names the field and the cure.
    """
    kind_of(record.kind)
    if not isinstance(record.text, str) or not record.text.strip():
        raise InvalidInput(
            "text must not be empty; say what was decided, agreed or done"
        )
    if len(record.text) > MAX_TEXT:
        raise InvalidInput(
            f"text has {len(record.text):,} characters, at most {MAX_TEXT:,} are taken; "
            "say the gist and name the file that has the rest"
        )
    _demand_unicode(record.text, "text")
    if record.by is not None:
        check_user(record.by, "by")
    if record.session_id is not None:
        checked_name(record.session_id, "session_id")
    if record.supersedes is not None and kind_of_id(record.supersedes) != record.kind:
        raise InvalidInput(
            f"supersedes {record.supersedes!r} is not a {record.kind}; a {record.kind} "
            f"supersedes one of its kind, such as '{LETTERS[record.kind]}1'"
        )
    tags = check_tags(record.tags)
    if len(tags) > MAX_TAGS:
        raise InvalidInput(
            f"tags are {len(tags)}, at most {MAX_TAGS} are taken; keep those that are searched for"
        )
    data = json_of(record.data)
    if len(data) > MAX_DATA_BYTES:
        raise InvalidInput(
            f"data has {len(data):,} bytes as JSON, at most {MAX_DATA_BYTES:,}; keep a reference instead"
        )
    return replace(record, tags=tags, data=json.loads(data))


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return *tags* stripped, each once however it is capitalised, in their order.

    Raises:
        InvalidInput: one is empty, too long or not printable.
    """
    if isinstance(tags, str):
        raise InvalidInput(f"tags {tags!r} must be a list of texts; write [{tags!r}]")
    found: dict[str, str] = {}
    for tag in tags:
        if (
            not isinstance(tag, str)
            or not 1 <= len(tag.strip()) <= MAX_TAG
            or not tag.strip().isprintable()
        ):
            shown = (
                f"{tag[:MAX_TAG]!r}..."
                if isinstance(tag, str) and len(tag) > MAX_TAG
                else repr(tag)
            )
            raise InvalidInput(
                f"tag {shown} must be 1 to {MAX_TAG} printable characters"
            )
        found.setdefault(tag_name(tag), tag.strip())
    return tuple(found.values())


def check_user(user_id: str, what: str = "user_id") -> str:
    """Return *user_id* when it can be one; *what* names the field in the error.

    Raises:
        InvalidInput: it does not.
    """
    if not isinstance(user_id, str) or not user_id.strip() or len(user_id) > MAX_NAME:
        raise InvalidInput(
            f"{what} must name a user in 1 to {MAX_NAME} characters; leave it out for no user"
        )
    _demand_unicode(user_id, what)
    return user_id


def check_token(token: str) -> str:
    """Return *token* when it can be one.

    Raises:
        InvalidInput: it is empty or too long.
    """
    if not isinstance(token, str) or not 1 <= len(token) <= MAX_NAME:
        raise InvalidInput(
            f"token must be a text of 1 to {MAX_NAME} characters, the same for each try"
        )
    _demand_unicode(token, "token")
    return token


def check_loaded(record: Record) -> Record:
    """Return *record* as it is kept, id and time included.

    Raises:
        InvalidInput: a field is invalid; the message names the field and the cure.
    """
    if kind_of_id(record.record_id) != kind_of(record.kind):
        raise InvalidInput(
            f"kind {record.kind!r} is not that of record {record.record_id!r}; correct one of them"
        )
    for name, time_ms in (("at", record.at_ms), ("redacted", record.redacted_ms or 0)):
        if not 0 <= time_ms < END_OF_TIME_MS:
            raise InvalidInput(
                f"{name} of record {record.record_id!r} must be a time from 1970 to 2247"
            )
    if record.supersedes == record.record_id:
        raise InvalidInput(
            f"record {record.record_id!r} supersedes itself; name the one before it"
        )
    return check(record)


def author_of(user_id: str) -> str:
    """Return the name of the index of records by *user_id*: a digest, as an id may be longer than a key takes.

    Raises:
        InvalidInput: *user_id* can be none.
    """
    return hashlib.blake2b(check_user(user_id).encode(), digest_size=16).hexdigest()


def kind_of(kind: str) -> Kind:
    """Return *kind* when it is one.

    Raises:
        InvalidInput: it is none.
    """
    if kind not in _KINDS:
        raise InvalidInput(f"kind {kind!r} must be one of {', '.join(_KINDS)}")
    return kind


def kind_of_id(record_id: str) -> Kind:
    """Return the kind of the record of this id.

    Raises:
        InvalidInput: it is no id of a record.
    """
    if not isinstance(record_id, str) or not _RECORD_ID.fullmatch(record_id):
        raise InvalidInput(
            f"record id {record_id!r} must be a letter and a number: "
            "d17 for a decision, s3 for a standard, h42 for the history"
        )
    return _BY_LETTER[record_id[0]]


def json_of(value: object) -> bytes:
    """Return an object as compact JSON in UTF-8.

    Raises:
        InvalidInput: it is no object with text keys, or not all of it is JSON.
    """
    if not isinstance(value, Mapping) or not all(
        isinstance(name, str) for name in value
    ):
        raise InvalidInput("data must be a JSON object, such as {'passes': 3}")
    try:
        # Escaped, half of a surrogate pair is text like any other.
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        return (
            json.dumps(value, separators=(",", ":"))
            if _SURROGATE.search(text)
            else text
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"data must be JSON: {error}; keep texts, numbers, lists and objects"
        ) from error


def body_of(record: Record) -> bytes:
    """Return the stored form of *record* without its id, times and successor."""
    kept: dict[str, object] = {"text": record.text}
    if record.tags:
        kept["tags"] = record.tags
    for name in ("by", "supersedes", "session_id"):
        if (value := getattr(record, name)) is not None:
            kept[name] = value
    if record.data:
        kept["data"] = dict(record.data)
    return json_of(kept)


def record_of(record_id: str, stored: bytes, superseded_by: bytes | None) -> Record:
    """Return the record that is stored as *stored*: when it was made, when redacted or 0, and its body."""
    at_ms, redacted_ms, body = stored.split(b" ", 2)
    kept: dict[str, Any] = json.loads(body)
    return Record(
        record_id=record_id,
        kind=_BY_LETTER[record_id[0]],
        text=kept["text"],
        tags=tuple(kept.get("tags", ())),
        at_ms=int(at_ms),
        by=kept.get("by"),
        supersedes=kept.get("supersedes"),
        superseded_by=superseded_by.decode() if superseded_by is not None else None,
        session_id=kept.get("session_id"),
        data=kept.get("data", {}),
        redacted_ms=int(redacted_ms) or None,
    )


def redact(record: Record) -> Record:
    """Return *record* without what its author said and who that was; kind, tags, links and times stay."""
    return replace(record, text=REDACTED, by=None, data={})


def difference(stored: Record, loaded: Record) -> str | None:
    """Return why *loaded* is not the record that is stored under its id, None when it is."""
    # What supersedes it says so itself.
    if replace(stored, superseded_by=None) == replace(loaded, superseded_by=None):
        return None
    if stored.redacted_ms is not None and loaded.redacted_ms is None:
        return "its author was forgotten here since, and that stands"
    return f"another record is stored as {stored.record_id!r}; load it into another project"


def refuse_unknown(project_id: str, record_id: str, what: str) -> InvalidInput:
    """Return the error for a field *what* that names a missing record."""
    return InvalidInput(
        f"{what} {record_id!r} is not a record of project {project_id!r}; `tasklore "
        "projects search` lists them"
    )


def refuse_superseded(record_id: str, by: str) -> InvalidInput:
    """Return the error for a *record_id* that was superseded before."""
    return InvalidInput(
        f"supersedes {record_id!r} is superseded by {by!r} already; supersede {by!r}, or look at it first"
    )


def _demand_unicode(text: str, what: str) -> None:
    if _SURROGATE.search(text):
        raise InvalidInput(
            f"{what} contains an unpaired surrogate, which is invalid Unicode; send "
            "valid Unicode"
        )
