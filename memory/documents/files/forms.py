"""How a JSON file is written: rules read off one text, by which the same text, or another, is written again."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, JsonValue

_TOKENS = re.compile(r'\s+|"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++')
_LINES = re.compile(r"\r?\n")


class JsonForm(BaseModel):
    """How a file is written.

    `indent` is what one level is indented by, None for a file on one line. `flat_lists` and `flat_objects` tell that
    those of single values stand on one line, with `padding` inside of the brackets and `comma` between. `metadata`
    and `digest` are those of the content when it was read: while that is the same, the file's own metadata is
    written, and `verbatim` if the rules above do not give the original.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    indent: str | None = "  "
    colon: str = ": "
    comma: str = ", "
    padding: str = ""
    flat_lists: bool = True
    flat_objects: bool = False
    ascii_only: bool = False
    newline: str = "\n"
    before: str = ""
    after: str = "\n"
    bom: bool = False
    metadata: tuple[JsonValue, ...] = ()
    digest: str = ""
    verbatim: str | None = None


@dataclass(slots=True, kw_only=True)
class _Holder:
    """A list or object while it is walked through: what stands after its bracket and around its first comma."""

    opening: str
    padding: str = ""
    comma: str | None = None
    is_empty: bool = True
    is_flat: bool = True

    @property
    def is_on_one_line(self) -> bool:
        return "\n" not in self.padding


def form_of(text: str) -> JsonForm:
    """Return the rules that *text*, which is JSON, seems to follow: each judged by the first place that shows it."""
    content = text.strip(" \t\r\n")
    start = text.index(content)
    colon, holders = _walk(content)
    root = holders[-1]
    flat_list, flat_object = (
        next(
            (held for held in holders if held.is_flat and held.opening == opening), None
        )
        for opening in "[{"
    )
    on_one_line = [
        held
        for held in (flat_list, flat_object, root)
        if held is not None and held.is_on_one_line
    ]
    newline = _LINES.search(text)
    return JsonForm(
        indent=None if root.is_on_one_line else _LINES.split(root.padding)[-1],
        colon=colon if colon and "\n" not in colon else ": ",
        comma=next(
            (
                held.comma
                for held in on_one_line
                if held.comma and "\n" not in held.comma
            ),
            ", ",
        ),
        padding=on_one_line[0].padding if on_one_line else "",
        flat_lists=flat_list is None or flat_list.is_on_one_line,
        flat_objects=flat_object is not None and flat_object.is_on_one_line,
        ascii_only=content.isascii() and "\\u" in content,
        newline=newline[0] if newline else "\n",
        before=text[:start],
        after=text[start + len(content) :],
    )


def _walk(content: str) -> tuple[str | None, list[_Holder]]:
    """Return the first colon of *content* with the blanks around it, and its containers, each after its members.

    Lists and objects without anything in them are left out; the last one is the document.
    """
    colon = None
    gap = ""
    within = list[_Holder]()
    found = list[_Holder]()
    before = ""
    mark = ""
    for token in (match[0] for match in _TOKENS.finditer(content)):
        if token.isspace():
            gap = token
            continue
        if mark in ("{", "["):
            within[-1].padding = gap
            within[-1].is_empty = token in ("}", "]")
        elif mark == ":" and colon is None:
            colon = f"{before}:{gap}"
        elif mark == "," and within[-1].comma is None:
            within[-1].comma = f"{before},{gap}"
        if token in ("{", "["):
            for holder in within[-1:]:
                holder.is_flat = False
            within.append(_Holder(opening=token))
        elif token in ("}", "]"):
            found += [
                closed
                for closed in (within.pop(),)
                if not closed.is_empty or not within
            ]
        before = gap
        mark = token
        gap = ""
    return colon, found


def text_of(body: JsonValue, form: JsonForm) -> str:
    """Return *body* as JSON in *form*, without a byte order mark."""
    scalar = json.JSONEncoder(ensure_ascii=form.ascii_only).encode
    return f"{form.before}{_spell(body, form, scalar, form.newline)}{form.after}"


def _spell(
    value: JsonValue, form: JsonForm, scalar: Callable[[object], str], line: str
) -> str:
    """Return *value* as JSON; *line* is what ends a line and indents the next one as far as *value* is."""
    if not isinstance(value, dict | list) or not value:
        return scalar(value)
    within = (
        None
        if form.indent is None or _is_on_one_line(value, form)
        else f"{line}{form.indent}"
    )
    inner = line if within is None else within
    if isinstance(value, dict):
        parts = [
            f"{scalar(name)}{form.colon}{_spell(held, form, scalar, inner)}"
            for name, held in value.items()
        ]
    else:
        parts = [_spell(held, form, scalar, inner) for held in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    if within is None:
        return f"{first}{form.padding}{form.comma.join(parts)}{form.padding}{last}"
    return f"{first}{within}{f',{within}'.join(parts)}{line}{last}"


def _is_on_one_line(
    value: dict[str, JsonValue] | list[JsonValue], form: JsonForm
) -> bool:
    wanted, held = (
        (form.flat_objects, value.values())
        if isinstance(value, dict)
        else (form.flat_lists, value)
    )
    return wanted and not any(isinstance(inner, dict | list) for inner in held)
