"""Filters of a search in a project's records, and the indexes that lead to the records that meet them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from tasklore.contracts.errors import InvalidInput
from tasklore.memory import keys
from tasklore.memory.command_batch import Command
from tasklore.memory.projects.records import (
    END_OF_TIME_MS,
    LETTERS,
    Kind,
    Record,
    check_tags,
    kind_of,
)
from tasklore.memory.projects.words import tag_name, words_of

#: Records of one answer; whoever wants more goes on `before` the last.
MAX_LIMIT = 1_000
#: Words of one question: a long sentence.
MAX_WORDS = 64
#: Words of the vocabulary that the words of a question may begin, together; a beginning of more is met by so many
#: records that walking another index is quicker.
_MOST_INDEXES = 512
_FEWEST_INDEXES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """The conditions of a search; every one has to be met.

    With `any_tag` one of the tags is enough. Times are ms since 1970: from `since_ms` on, before `until_ms`.
    """

    kind: Kind | None = None
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    since_ms: int = 0
    until_ms: int = END_OF_TIME_MS
    in_force: bool = False
    limit: int = 20
    before: str | None = None
    any_tag: bool = False


def read_filter(
    *,
    kind: Kind | None,
    tags: Sequence[str],
    text: str,
    since_ms: int | None,
    until_ms: int | None,
    in_force: bool,
    limit: int,
    before: str | None,
) -> SearchFilter | None:
    """Return the filter, None when nothing can meet it: *text* has no word, or no time is left.

    Raises:
        InvalidInput: a field is invalid; the message names the field and the cure.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(
            f"limit {limit} must be 1 to {MAX_LIMIT:,}; for more, continue `before` the "
            "last record"
        )
    words = tuple(words_of(text))
    if len(words) > MAX_WORDS:
        raise InvalidInput(
            f"text has {len(words)} different words, at most {MAX_WORDS} are looked for; leave some out"
        )
    since = max(0, since_ms or 0)
    until = END_OF_TIME_MS if until_ms is None else min(until_ms, END_OF_TIME_MS)
    if (text.strip() and not words) or since >= until:
        return None
    if kind is not None:
        kind_of(kind)
    return SearchFilter(
        kind=kind,
        tags=check_tags(tags),
        words=words,
        since_ms=since,
        until_ms=until,
        in_force=in_force,
        limit=limit,
        before=before,
    )


class IndexCondition(NamedTuple):
    """A condition: one of *texts* stands in a record's line of words; *indexes* hold all that meet it.

    Without *texts* every line does; without *indexes* there are too many that do.
    """

    texts: tuple[str, ...]
    indexes: tuple[str, ...]


def line_of(record: Record) -> str:
    """Return the line of words of *record*: its kind, tags and words, each behind a space."""
    words = [] if record.redacted_ms is not None else words_of(record.text)
    return " ".join(("", f":{record.kind}", *map(tag_text, record.tags), *words, ""))


def tag_text(tag: str) -> str:
    """Return how *tag* stands in a line of words, and behind the letter of a kind among the marks."""
    return f"#{quote(tag_name(tag), safe='')}"


def indexes_of(project_id: str, record: Record) -> list[str]:
    """Return the keys of every index that *record* stands in, that of its kind in force first."""
    part = keys.project_part
    return [
        part(project_id, "in-force", record.kind),
        part(project_id, "kind", record.kind),
        *(part(project_id, "tag", tag_name(tag)) for tag in record.tags),
        *(
            part(project_id, "word", word)
            for word in line_of(record).split(" ")
            if word and word[0] not in ":#"
        ),
    ]


def vocabulary_lookup(project_id: str, words: Sequence[str]) -> list[Command]:
    """Return what asks for the words of the vocabulary that begin with each of *words*, one more than may be."""
    vocabulary = keys.project_part(project_id, "vocabulary")
    most = _most(len(words))
    return [
        (
            "ZRANGEBYLEX",
            vocabulary,
            b"[" + word.encode(),
            b"[" + word.encode() + b"\xff",
            "LIMIT",
            0,
            most + 1,
        )
        for word in words
    ]


def conditions_of(
    project_id: str, wish: SearchFilter, known: Sequence[Sequence[bytes]]
) -> list[IndexCondition]:
    """Return the conditions of *wish*; *known* are the replies to `vocabulary_lookup`."""
    part = keys.project_part
    most = _most(len(known))
    conditions = []
    index = "in-force" if wish.in_force else "kind"
    if wish.kind is not None:
        conditions.append(
            IndexCondition((f" :{wish.kind} ",), (part(project_id, index, wish.kind),))
        )
    elif wish.in_force:
        conditions.append(
            IndexCondition((), tuple(part(project_id, index, kind) for kind in LETTERS))
        )
    by_tag = [
        IndexCondition(
            (f" {tag_text(tag)} ",), (part(project_id, "tag", tag_name(tag)),)
        )
        for tag in wish.tags
    ]
    if wish.any_tag and by_tag:
        texts, indexes = zip(*by_tag, strict=True)
        by_tag = [IndexCondition(sum(texts, ()), sum(indexes, ()))]
    conditions += by_tag
    for beginning, words in zip(wish.words, known, strict=True):
        indexes = (
            tuple(part(project_id, "word", word.decode()) for word in words)
            if len(words) <= most
            else ()
        )
        conditions.append(IndexCondition((f" {beginning}",), indexes))
    return conditions


def _most(words: int) -> int:
    """Return how many indexes one of so many words may lead to."""
    return max(_FEWEST_INDEXES, _MOST_INDEXES // max(1, words))
