"""The YAML between two lines of `---` that a Markdown file may begin with: every value is the text there."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import cast

import yaml
from pydantic import JsonValue

#: Lines of front matter: more is a file that begins with a rule.
MAX_LINES = 200

_WORDS = re.compile(r"[^\W_]+")
_DAY_NAMES = ("last_updated", "updated", "last_modified", "modified", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """What stands before a file's content, which begins at index `end` of its lines.

    `tags` and `updated` are as in a document's metadata, `resource_id` is empty when it is not said. `others` are the
    names without a meaning of their own, `unread` the lines that say something of which nothing is left in all that.
    """

    end: int = 0
    resource_id: str = ""
    tags: tuple[str, ...] = ()
    updated: date | None = None
    others: Mapping[str, JsonValue] = field(default_factory=dict)
    unread: Sequence[tuple[int, str]] = ()
    lines: Sequence[str] = ()

    def line_of(self, name: str) -> int:
        """Return the number of the line that *name* stands on, 1 when no line begins with it."""
        numbered = enumerate(self.lines, start=1)
        return next(
            (
                number
                for number, line in numbered
                if line.lstrip("\"' ").startswith(name)
            ),
            1,
        )


class _Loader(yaml.BaseLoader):
    """Reads every value as text, `no` and `2025-12-28` too, and refuses references, which can grow without bounds."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("references are not read")
        return super().compose_node(parent, index)


def front_matter(lines: Sequence[str]) -> FrontMatter:
    """Return the front matter of a file; without any, its content begins at the first line."""
    if not lines or lines[0].rstrip() != "---":
        return FrontMatter()
    ends = (
        number
        for number, line in enumerate(lines[1:MAX_LINES], start=1)
        if line.rstrip() in ("---", "...")
    )
    last = next(ends, None)
    if last is None:
        return FrontMatter()
    inner = lines[1:last]
    try:
        content = _as_json(yaml.load("\n".join(inner), _Loader))  # noqa: S506 - it makes texts, lists and mappings alone
    except (yaml.YAMLError, RecursionError, ValueError, TypeError):
        content = {}
    content = content if isinstance(content, dict) else {}
    others = dict(content)
    resource_id = _take(others, "resource_id") or _take(others, "id")
    updated = next(
        (day for name in _DAY_NAMES if (day := _day(others, name)) is not None), None
    )
    tags = _tags(others)
    words = set(_WORDS.findall(str(content)))
    unread = [
        (number, line.strip())
        for number, line in enumerate(inner, start=2)
        if not words.issuperset(_WORDS.findall(line))
    ]
    return FrontMatter(
        end=last + 1,
        resource_id=resource_id,
        tags=tags,
        updated=updated,
        others=others,
        unread=unread,
        lines=lines[: last + 1],
    )


def _as_json(value: object) -> JsonValue:
    if isinstance(value, dict):
        return {str(name): _as_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    return str(value)


def _take(content: dict[str, JsonValue], name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str):
        return ""
    del content[name]
    return value.strip()


def _day(content: dict[str, JsonValue], name: str) -> date | None:
    """Take the day under *name* out of *content*; leave what says more than a day."""
    try:
        day = date.fromisoformat(cast("str", content.get(name)))
    except (TypeError, ValueError):
        return None
    del content[name]
    return day


def _tags(content: dict[str, JsonValue]) -> tuple[str, ...]:
    value = content.get("tags")
    tags = value.split(",") if isinstance(value, str) else value
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return ()
    del content["tags"]
    return tuple(tag.strip() for tag in cast("list[str]", tags) if tag.strip())
