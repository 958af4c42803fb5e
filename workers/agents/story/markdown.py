"""The facts of an entity's Markdown file: each bullet, and each sentence of its prose."""

import re
from collections.abc import Iterator

from tasklore.workers.agents.story.prose import sentences

#: Lines about the file, and not about its entity.
_HEADERS = re.compile(r"(?:kind|also called|aliases?|file)\s*:", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\A---\s*\n.*?\n---\s*(?:\n|\Z)", re.DOTALL)
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*\Z")
_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(.*)\Z")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}\Z")
_QUOTED = re.compile(r"\A\s*(?:>\s?)+")
#: An inner bracket begins anew, so that no part is read twice.
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()]|\([^()]*\))*\)")
#: Marks around words: bold, italics, code and struck out; an underscore within a word is its own.
_MARKS = re.compile(r"\*{1,3}|`+|~~|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")


def lines_of(text: str) -> tuple[str, ...]:
    """Return the facts of the Markdown file *text*, in order, each once and without the marks of Markdown."""
    found: dict[str, None] = {}
    for kind, written in _parts(_FRONT_MATTER.sub("", text)):
        if kind == "heading":
            continue
        texts = (
            [written] if kind == "bullet" else [one.text for one in sentences(written)]
        )
        facts = (
            one
            for one in map(bare, texts)
            if any(map(str.isalnum, one)) and not _HEADERS.match(one)
        )
        found.update(dict.fromkeys(facts))
    return tuple(found)


def bare(text: str) -> str:
    """Return *text* as one line without the marks of Markdown."""
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", text)).split())


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield headings, bullets with the lines they go on in, and paragraphs."""
    kind = "prose"
    lines = list[str]()
    for written in [*text.splitlines(), ""]:
        line = _QUOTED.sub("", written)
        heading = _HEADING.match(line.strip())
        bullet = _BULLET.match(line)
        if lines and (heading or bullet or not line.strip() or _RULE.match(line)):
            yield kind, " ".join(lines)
            kind = "prose"
            lines = []
        if heading:
            yield "heading", heading[1]
        elif bullet and not _RULE.match(line):
            kind = "bullet"
            lines = [bullet[1]]
        elif line.strip() and not _RULE.match(line):
            lines.append(line.strip())
