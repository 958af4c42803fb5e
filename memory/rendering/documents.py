"""Documents as Markdown for a prompt: headings, what was said, dates and confidence where they matter, within a budget.

Everything lies in one block. Its lines begin with `MARK`, and what came from a document stands in double quotes, as
`plain` makes it; so no stored sentence can begin a line, close its quotes or end the block (see
`memory.rendering.quoting` and, for recognising a block that comes back in a conversation,
`memory.rendering.recalled`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pydantic import JsonValue

from memory.documents.decay import confidence_now
from memory.documents.items import CONFLICT, Item, is_expired, leaf_text, leaf_values
from memory.documents.kinds import Kind, Kinds
from memory.documents.paths import Path
from memory.rendering.quoting import MARK, plain, quoted
from memory.rendering.recalled import CLOSE, OPEN, rendered_spans, without_rendered

__all__ = ["Rendered", "render", "rendered_spans", "tokens_of", "without_rendered"]

#: Tokens for what is remembered in one prompt: about 60 items, a tenth of what a short conversation takes.
BUDGET_TOKENS = 1_000
#: Characters of ASCII a token. English prose has four and more; lists of names, dates and signs come closer to three.
ASCII_PER_TOKEN = 3
#: Below this an item is not shown: what was said for sure is then more than four half-lives old.
FAINT = 0.05
#: From here on an item counts as certain, and its confidence is not worth its tokens: a taste told ten months ago.
CERTAIN = 0.75
#: What the least line takes, `MARK`, dash and quotes: with fewer tokens left nothing more fits.
LEAST_LINE = 3
#: Of these it matters when they were said; the others are as true as on the first day, or their confidence tells.
DATED = frozenset({"short_term", "momentary"})

_WORDS = re.compile(r"\w+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")
_PLAIN_TITLE = re.compile(r"[\w ,&'()/-]+")


@dataclass(frozen=True, slots=True)
class Rendered:
    """What may stand in a prompt.

    `text` is the block, empty when there is nothing to show. `shown` is what stands in it, by resource id and
    path, best first. `left_out` counts what did not fit, `tokens` estimates the block.
    """

    text: str
    shown: tuple[tuple[str, Path], ...] = ()
    left_out: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One leaf as it competes for its line; `section` numbers the heading it stands under."""

    resource_id: str
    path: Path
    value: JsonValue
    item: Item | None
    section: int


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading within a document; `title` is ready to be shown."""

    resource_id: str
    title: str


def render(
    documents: Mapping[str, Mapping[str, JsonValue]],
    kinds: Kinds,
    *,
    today: date,
    query: str = "",
    budget_tokens: int = BUDGET_TOKENS,
) -> Rendered:
    """Return *documents*, bodies by resource id, as one block of at most *budget_tokens* estimated tokens.

    What shares more, and rarer, words with *query* comes first, then what was added later, then what stands first in
    its document; where not all fits, the first ones do. What has expired or faded is not shown. The same arguments give
    the same text.
    """
    sections: list[_Section] = []
    found = [leaf for name, body in documents.items() for leaf in _leaves_of(name, body, kinds, sections, today)]
    scores = _scores(found, sections, query)
    order = sorted(range(len(found)), key=lambda number: (-scores[number], -_added(found[number]), number))
    chosen, spent = _choose([found[number] for number in order], sections, kinds, today, budget_tokens)
    if not chosen:
        return Rendered("", left_out=len(found))
    lines = [OPEN, *_lines(chosen, sections, kinds)]
    if len(chosen) < len(found):
        lines.append(_more(len(found) - len(chosen)))
    shown = tuple((leaf.resource_id, leaf.path) for leaf, _ in chosen)
    return Rendered("\n".join([*lines, CLOSE]), shown, len(found) - len(chosen), spent)


def tokens_of(text: str) -> int:
    """Return about how many tokens *text* is, rather too many: a third of its ASCII, one for any other character.

    Letters beyond ASCII take less than one each in most scripts; a pictograph takes up to three, and counts as two.
    """
    ascii_length = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return -(-ascii_length // ASCII_PER_TOKEN) + len(text.encode("utf-16-le")) // 2 - ascii_length


def _leaves_of(
    resource_id: str, body: Mapping[str, JsonValue], kinds: Kinds, sections: list[_Section], today: date
) -> Iterator[_Leaf]:
    """Yield what may be shown of one document, and append its headings to *sections*."""
    kind = kinds.get(resource_id)
    numbers: dict[tuple[object, ...], int] = {}
    for path, value in leaf_values(body):
        item = Item.read(value)
        if item is not None and (is_expired(item, today) or confidence_now(item, today) < FAINT):
            continue
        place = path.steps[:-1]
        if place not in numbers:
            numbers[place] = len(sections)
            sections.append(_Section(resource_id, _title(Path(place), kind)))
        yield _Leaf(resource_id, path, value, item, numbers[place])


def _title(place: Path, kind: Kind | None) -> str:
    """Return the heading of what stands at *place*: plain words for a place of the kind, else its steps in quotes."""
    if kind is not None and any(known.path == place for known in kind.places):
        return _words(str(place.last).replace("_", " ").capitalize())
    # What stands in no list and no object needs a heading too, or it would seem to belong to the one before.
    return " / ".join(quoted(step) if isinstance(step, str) else str(step) for step in place.steps) or "More"


def _words(title: str) -> str:
    """Return *title* as a heading, in quotes when there is more in it than words."""
    return title if _PLAIN_TITLE.fullmatch(title) else quoted(title)


def _scores(found: Sequence[_Leaf], sections: Sequence[_Section], query: str) -> list[float]:
    """Return how much each leaf has to do with *query*: the words they share, each worth less the more have it."""
    asked = list(dict.fromkeys(_terms(query)))
    if not asked:
        return [0.0] * len(found)
    headings = [set(_terms(f"{section.resource_id.replace('_', ' ')} {section.title}")) for section in sections]
    terms = [headings[leaf.section].union(_terms(leaf_text(leaf.value))) for leaf in found]
    spread = Counter(term for held in terms for term in asked if term in held)
    return [sum(1 / spread[term] for term in asked if term in held) for held in terms]


def _terms(text: str) -> Iterator[str]:
    """Yield the words of *text* as they are compared; pairs of signs where a script leaves no space between words."""
    folded = text.casefold()
    for word in _WORDS.findall(folded):
        yield word.removesuffix("s") if len(word) > 3 else word
    for run in () if folded.isascii() else _UNSPACED.findall(folded):
        yield from (run[at : at + 2] for at in range(len(run) - 1))


def _added(leaf: _Leaf) -> int:
    return leaf.item.added.toordinal() if leaf.item is not None and leaf.item.added is not None else 0


def _choose(
    ranked: Iterable[_Leaf], sections: Sequence[_Section], kinds: Kinds, today: date, budget: int
) -> tuple[list[tuple[_Leaf, str]], int]:
    """Return the leaves of *ranked* that fit, each with its line, and the tokens of the whole block."""
    spent = tokens_of(f"{OPEN}\n{_more(10**6)}\n{CLOSE}")
    chosen: list[tuple[_Leaf, str]] = []
    headed: set[str | int] = set()
    for leaf in ranked:
        if spent + LEAST_LINE > budget:
            break
        line = f"{MARK} - {_shown(leaf, today)}"
        needed = tokens_of(f"{line}\n")
        if leaf.resource_id not in headed:
            needed += tokens_of(f"{_document_heading(leaf.resource_id, kinds)}\n")
        if leaf.section not in headed:
            needed += tokens_of(f"{_section_heading(sections[leaf.section])}\n")
        if spent + needed <= budget:
            spent += needed
            chosen.append((leaf, line))
            headed |= {leaf.resource_id, leaf.section}
    return chosen, spent


def _lines(chosen: Iterable[tuple[_Leaf, str]], sections: Sequence[_Section], kinds: Kinds) -> Iterator[str]:
    """Yield the lines of the block under their headings; documents and headings in the order of their best line."""
    by_document: dict[str, dict[int, list[str]]] = {}
    for leaf, line in chosen:
        by_document.setdefault(leaf.resource_id, {}).setdefault(leaf.section, []).append(line)
    for resource_id, by_section in by_document.items():
        yield _document_heading(resource_id, kinds)
        for section, lines in by_section.items():
            yield _section_heading(sections[section])
            yield from lines


def _document_heading(resource_id: str, kinds: Kinds) -> str:
    kind = kinds.get(resource_id)
    return f"{MARK} ## {_words(kind.title) if kind is not None else quoted(resource_id)}"


def _section_heading(section: _Section) -> str:
    return f"{MARK} ### {section.title}"


def _more(count: int) -> str:
    return f"{MARK} ({count} more not shown)"


def _shown(leaf: _Leaf, today: date) -> str:
    """Return one leaf as a line shows it, without what stands before it."""
    if leaf.item is None:
        last = leaf.path.last
        value = _value(leaf.value)
        return f"{quoted(last)}: {value}" if isinstance(last, str) else value
    notes = [
        *_notes(leaf.item, today),
        *(f"{quoted(name)}: {_value(other)}" for name, other in leaf.item.others.items() if name != CONFLICT),
    ]
    return f"{quoted(leaf.item.display)} ({', '.join(notes)})" if notes else quoted(leaf.item.display)


def _notes(item: Item, today: date) -> Iterator[str]:
    if item.added is not None and item.durability in DATED:
        yield f"since {item.added}"
    if item.expiry is not None:
        yield f"until {item.expiry}"
    sure = confidence_now(item, today)
    if sure < CERTAIN:
        yield f"confidence {sure:.2f}"
    if item.is_inferred:
        yield "inferred"
    if CONFLICT in item.others:
        yield "in conflict"


def _value(value: JsonValue) -> str:
    """Return *value* as it is shown: numbers and the like as JSON, anything with text in it in quotes."""
    shown = leaf_text(value)
    if value is None or isinstance(value, bool | int | float):
        short = shown if len(shown) <= 40 else plain(shown, 40)
        return short if "\u2026" not in short else quoted(short)
    return quoted(shown)
