"""Memory as Markdown for a prompt: pinned items, then relevant ones, each with its date, in a budget.

First come the pinned places of the kinds (protected ones, name, language, manner of answering): they have a budget of
their own and are never cut silently. Then items and quoted turns compete by their worth for the query. Everything lies
in one block. Its lines begin with `MARK`, and text of a document stands in double quotes, as `plain` makes it; so
no stored sentence can begin a line, close its quotes or end the block (see
`tasklore.memory.rendering.quoting` and, for recognising a block that comes back in a conversation,
`tasklore.memory.rendering.recalled`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from pydantic import JsonValue

from tasklore.memory.documents.decay import confidence_now
from tasklore.memory.documents.items import CONFLICT, Item, leaf_text, leaf_values
from tasklore.memory.documents.kinds import Kind, Kinds
from tasklore.memory.documents.paths import Path
from tasklore.memory.episodes.ranking import rank_items
from tasklore.memory.rendering.quoting import MARK, plain, quote
from tasklore.memory.rendering.recalled import (
    CLOSE,
    OPEN,
    find_rendered,
    without_rendered,
)
from tasklore.memory.rendering.tokens import exact, likely

__all__ = [
    "Quotation",
    "Rendered",
    "find_rendered",
    "render",
    "tokens_of",
    "without_rendered",
]

#: Tokens for what is remembered in one prompt: about 60 items, a tenth of what a short conversation takes.
BUDGET_TOKENS = 1_000
#: Tokens for what is pinned: 400 allergies. What is beyond is counted in the block, newest kept.
PINNED_TOKENS = 8_000
#: What an item that shares no word with the query is worth beside answers, of which the best is worth 1.
UNASKED = 0.25
#: Below this an item is not shown: what was said for sure is then more than four half-lives old.
FAINT = 0.05
#: From here on an item counts as certain, and its confidence is not worth its tokens: a taste told ten months ago.
CERTAIN = 0.75
#: What the least line takes, `MARK`, dash and quotes: with fewer tokens left nothing more fits.
LEAST_LINE = 3
_SAID = f"{MARK} ## Said in conversations"
_MORE_PINNED = (
    f"{MARK} (more of these that must not be missed: look at the whole document)"
)
_PLAIN_TITLE = re.compile(r"[\w ,&'()/-]+")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A turn that may stand in the block, word for word: who said it, and when.

    `worth` compares it with items and other turns: 1 is the best of all that was found.
    """

    text: str
    speaker: str
    at: date
    worth: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A block for a prompt.

    `text` is the block, empty when there is nothing to show. `shown` is what stands in it, by resource id and
    path, best first. `left_out` counts what did not fit. `tokens` is what the block takes at most, `pinned_tokens` its
    first part.
    """

    text: str
    shown: tuple[tuple[str, Path], ...] = ()
    left_out: int = 0
    tokens: int = 0
    pinned_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _RankedLeaf:
    """One leaf as it competes for its line; `section` numbers the heading it stands under."""

    resource_id: str
    path: Path
    value: JsonValue
    item: Item | None
    section: int
    is_pinned: bool
    is_past: bool
    worth: float = 0.0

    @property
    def added(self) -> int:
        """The day on which it was said, 0 where no one knows."""
        return (
            self.item.added.toordinal()
            if self.item is not None and self.item.added is not None
            else 0
        )


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
    pinned_tokens: int = PINNED_TOKENS,
    said: Sequence[Quotation] = (),
) -> Rendered:
    """Return *documents*, bodies by resource id, as one block; the same arguments give the same text.

    Pinned items come first, within *pinned_tokens*. Behind them all of *budget_tokens* goes by worth to items and to
    turns that were *said*: an item is worth the more the better its words answer *query* (BM25), and one that does not
    as much as `UNASKED`, the newest first. The past is shown only where it has to do with the query, behind what holds,
    and says so. What expired, faded or is hidden by a temporary statement is not shown. With 0 *pinned_tokens* pinned
    items compete like the rest.
    """
    block = _Block(kinds, today)
    found = [
        leaf for name, body in documents.items() for leaf in block.leaves_of(name, body)
    ]
    scores = block.scores(found, query)
    kept = [
        number
        for number, leaf in enumerate(found)
        if not leaf.is_past or scores[number] > 0
    ]
    order = sorted(
        kept,
        key=lambda number: (
            -scores[number],
            found[number].is_past,
            -found[number].added,
            number,
        ),
    )
    best = max((scores[number] for number in order), default=0.0)
    ranked = [
        replace(found[number], worth=scores[number] / best if best else 0.0)
        for number in order
    ]
    pinned = (
        [leaf for leaf in ranked if leaf.is_pinned and not leaf.is_past]
        if pinned_tokens
        else []
    )
    pinned.sort(key=lambda leaf: -leaf.added)
    for_pinned = block.choose(pinned, pinned_tokens)
    is_whole = len(for_pinned.lines) == len(pinned)
    rest = [
        leaf
        for leaf in ranked
        if not (leaf.is_pinned and not leaf.is_past and pinned_tokens)
    ]
    frame = tokens_of(f"{OPEN}\n{_more(10**6)}\n{CLOSE}\n")
    chosen = block.choose(
        sorted([*rest, *said], key=_worth, reverse=True), budget_tokens - frame
    )
    if not (for_pinned.lines or chosen.lines or chosen.quotations):
        return Rendered(text="", left_out=len(ranked))
    left_out = len(ranked) - len(chosen.lines) - len(for_pinned.lines)
    lines = [
        OPEN,
        *block.lines(for_pinned),
        *([] if is_whole else [_MORE_PINNED]),
        *block.lines(chosen),
        *_quotations(chosen.quotations),
    ]
    if left_out:
        lines.append(_more(left_out))
    shown = tuple(
        (leaf.resource_id, leaf.path) for leaf, _ in (*for_pinned.lines, *chosen.lines)
    )
    text = "\n".join([*lines, CLOSE])
    return Rendered(
        text=text,
        shown=shown,
        left_out=left_out,
        tokens=frame + chosen.tokens + for_pinned.tokens,
        pinned_tokens=for_pinned.tokens,
    )


def tokens_of(text: str) -> int:
    """Return how many tokens *text* is: exactly with the extra `tokens`, else about (`likely`)."""
    return (exact() or likely)(text)


def _worth(one: "_RankedLeaf | Quotation") -> float:
    """Return what a line is worth beside others; of equals the first stays first."""
    return max(one.worth, UNASKED) if isinstance(one, _RankedLeaf) else one.worth


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Leaves that fit, each with its line, turns that fit, and the tokens of all these lines and their headings."""

    lines: tuple[tuple[_RankedLeaf, str], ...]
    quotations: tuple[Quotation, ...]
    tokens: int


class _Block:
    """One block in the making: its headings as they are found in the documents."""

    def __init__(self, kinds: Kinds, today: date) -> None:
        self._kinds = kinds
        self._today = today
        self._sections: list[_Section] = []

    def leaves_of(
        self, resource_id: str, body: Mapping[str, JsonValue]
    ) -> Iterator[_RankedLeaf]:
        """Yield the leaves of one document that may be shown."""
        kind = self._kinds.get(resource_id)
        numbers: dict[tuple[object, ...], int] = {}
        for path, value in leaf_values(body):
            item = Item.read(value)
            place = kind.place_at(path) if kind is not None else None
            is_pinned = place is not None and place.pinned
            state = "current" if item is None else item.state(self._today)
            if state in {"expired", "paused"}:
                continue
            if (
                item is not None
                and not is_pinned
                and confidence_now(item, self._today) < FAINT
            ):
                continue
            home = path.steps[:-1]
            if home not in numbers:
                numbers[home] = len(self._sections)
                self._sections.append(_Section(resource_id, _title(Path(home), kind)))
            yield _RankedLeaf(
                resource_id=resource_id,
                path=path,
                value=value,
                item=item,
                section=numbers[home],
                is_pinned=is_pinned,
                is_past=state == "past",
            )

    def scores(self, found: Sequence[_RankedLeaf], query: str) -> list[float]:
        """Return how well each leaf with its headings answers *query*."""
        if not query.strip():
            return [0.0] * len(found)
        texts = [
            f"{self._heading_words(leaf)} {leaf_text(leaf.value)}" for leaf in found
        ]
        return rank_items(query, texts, self._kinds)

    def _heading_words(self, leaf: _RankedLeaf) -> str:
        subject = leaf.item.subject if leaf.item is not None else None
        section = self._sections[leaf.section]
        kind = self._kinds.get(leaf.resource_id)
        place = kind.place_at(leaf.path) if kind is not None else None
        return f"{section.title} {place.meaning if place is not None else section.resource_id} {subject or ''}"

    def choose(self, ranked: Iterable[_RankedLeaf | Quotation], budget: int) -> _Chosen:
        """Return the leaves and turns of *ranked* that fit into *budget* tokens."""
        spent = 0
        lines: list[tuple[_RankedLeaf, str]] = []
        quotations: list[Quotation] = []
        headed: set[str | int] = set()
        for one in ranked:
            if spent + LEAST_LINE > budget:
                break
            line = self._line(one)
            headings = self._headings(one)
            needed = tokens_of(f"{line}\n") + sum(
                tokens_of(f"{text}\n")
                for name, text in headings.items()
                if name not in headed
            )
            if spent + needed > budget:
                continue
            spent += needed
            headed |= headings.keys()
            if isinstance(one, Quotation):
                quotations.append(one)
            else:
                lines.append((one, line))
        return _Chosen(tuple(lines), tuple(quotations), spent)

    def _line(self, one: _RankedLeaf | Quotation) -> str:
        if isinstance(one, Quotation):
            return _quotation(one)
        return f"{MARK} - {_show(one, self._today)}"

    def _headings(self, one: _RankedLeaf | Quotation) -> dict[str | int, str]:
        """Return the headings above the line of *one* by what each is of."""
        if isinstance(one, Quotation):
            return {"": _SAID}
        return {
            one.resource_id: _document_heading(one.resource_id, self._kinds),
            one.section: _section_heading(self._sections[one.section]),
        }

    def lines(self, chosen: _Chosen) -> Iterator[str]:
        """Yield the lines of *chosen* under their headings, in the order of the best line of each."""
        by_document: dict[str, dict[int, list[str]]] = {}
        for leaf, line in chosen.lines:
            by_document.setdefault(leaf.resource_id, {}).setdefault(
                leaf.section, []
            ).append(line)
        for resource_id, by_section in by_document.items():
            yield _document_heading(resource_id, self._kinds)
            for section, lines in by_section.items():
                yield _section_heading(self._sections[section])
                yield from lines


def _quotations(said: Sequence[Quotation]) -> list[str]:
    """Return the lines of *said* in the order of time, under their heading."""
    ordered = sorted(said, key=lambda one: one.at)
    return [_SAID, *map(_quotation, ordered)] if said else []


def _quotation(one: Quotation) -> str:
    return f"{MARK} - {quote(one.text)} (said {one.at}, by {quote(one.speaker)})"


def _title(place: Path, kind: Kind | None) -> str:
    """Return the heading of what stands at *place*: plain words for a place of the kind, else its steps in quotes."""
    if kind is not None and any(known.path == place for known in kind.places):
        return _words(str(place.last).replace("_", " ").capitalize())
    # What stands in no list and no object needs a heading too, or it would seem to belong to the one before.
    return (
        " / ".join(
            quote(step) if isinstance(step, str) else str(step) for step in place.steps
        )
        or "More"
    )


def _words(title: str) -> str:
    """Return *title* as a heading, in quotes when there is more in it than words."""
    return title if _PLAIN_TITLE.fullmatch(title) else quote(title)


def _document_heading(resource_id: str, kinds: Kinds) -> str:
    kind = kinds.get(resource_id)
    return f"{MARK} ## {_words(kind.title) if kind is not None else quote(resource_id)}"


def _section_heading(section: _Section) -> str:
    return f"{MARK} ### {section.title}"


def _more(count: int) -> str:
    return f"{MARK} ({count} more not shown)"


def _show(leaf: _RankedLeaf, today: date) -> str:
    """Return one leaf as a line shows it, without what stands before it."""
    if leaf.item is None:
        last = leaf.path.last
        value = _value(leaf.value)
        return f"{quote(last)}: {value}" if isinstance(last, str) else value
    notes = [
        *_notes(leaf, leaf.item, today),
        *(
            f"{quote(name)}: {_value(other)}"
            for name, other in leaf.item.others.items()
            if name != CONFLICT
        ),
    ]
    return (
        f"{quote(leaf.item.display)} ({', '.join(notes)})"
        if notes
        else quote(leaf.item.display)
    )


def _notes(leaf: _RankedLeaf, item: Item, today: date) -> Iterator[str]:
    if item.added is not None and not leaf.is_pinned:
        yield f"said {item.added}"
    if leaf.is_past:
        yield "no longer so"
    if item.subject:
        yield f"about {quote(item.subject)}"
    if item.since is not None:
        yield f"since {item.since}"
    if (end := item.until if leaf.is_past else item.expiry) is not None:
        yield f"until {end}"
    sure = confidence_now(item, today)
    if sure < CERTAIN and not leaf.is_past:
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
        return short if "\u2026" not in short else quote(short)
    return quote(shown)
