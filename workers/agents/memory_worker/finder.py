"""The finder: a small model reads every line of a document and says which of them each fact is about.

It is shown all leaves, page by page when there are many, and never a selection: what shares no word with a fact may be
what the fact is about. It answers with paths; what stands there is read from the document.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as Folder

from pydantic import JsonValue, field_validator

from contracts.messages import Fact
from memory.documents.draft import Document
from memory.documents.items import METADATA, leaves
from memory.documents.kinds import Kind
from memory.documents.paths import Path, exists, lookup
from memory.rendering.quoting import plain, quoted
from workers.agents.memory_worker.finding import Finding, Place, read_path
from workers.agents.memory_worker.prompting import ask, together, tokens_of
from workers.answers import Answer
from workers.listening.context import ListenContext

FOLDER = Folder(__file__).with_name("finder")

#: Tokens of a document in one question; a small model misses lines of much longer ones.
PAGE_TOKENS = 3_000
#: Facts in one question: what a user says in a minute, and few enough to keep apart.
MAX_FACTS = 12
#: Characters of one line; what an item is about stands at its beginning.
_LINE = 160
#: Characters of one fact: as many as one may have.
_FACT = 2_000
#: Places that one answer may name for one fact: more than a document's longest list that means one thing.
_MOST_PLACES = 500


class FoundPlace(Answer):
    """One line that the fact with this number, from 1, is about."""

    fact: int = 1
    path: str
    relevance: str = ""


class Found(Answer):
    """What the finder answers: the lines, and for each fact in order the list it would be added to."""

    reasoning: str
    locations: tuple[FoundPlace, ...] = ()
    suggested_insert_path: tuple[str, ...] = ()

    @field_validator("suggested_insert_path", mode="before")
    @classmethod
    def _read_one(cls, value: object) -> object:
        """Take a single path for a list of one, and none for an empty one: small models do not tell them apart."""
        return [] if value is None else [value] if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a document as the finder sees it: the text, the leaves in it, and what holds them."""

    text: str
    shown: Mapping[Path, JsonValue]
    headings: frozenset[Path] = field(default=frozenset())


async def find(
    context: ListenContext, facts: Sequence[Fact], document: Document, kind: Kind | None
) -> tuple[tuple[Finding, ...], Mapping[str, JsonValue]]:
    """Return what the finder found for each of *facts* in *document*, and which model it was, at what temperature.

    Raises:
        LlmError: one of the questions was not answered.
    """
    pages = list(pages_of(document, kind))
    asked = await together(ask(context, FOLDER, Found, question(facts, page)) for page in pages)
    findings = [Finding()] * len(facts)
    for page, answered in zip(pages, asked, strict=True):
        read = read_answer(answered.value, page, document, len(facts))
        findings = [one.joined(other) for one, other in zip(findings, read, strict=True)]
    return tuple(findings), asked[0].by


def question(facts: Sequence[Fact], page: Page) -> str:
    """Return what the finder is asked: the facts, numbered and quoted, and a page of the document."""
    told = "\n".join(f"{number}: {quoted(fact.text, _FACT)}" for number, fact in enumerate(facts, start=1))
    return f"facts\n{told}\ndocument\n{page.text}"


def pages_of(document: Document, kind: Kind | None) -> Iterator[Page]:
    """Yield the leaves of *document* under the path of what holds them, in pages of at most PAGE_TOKENS, one at least.

    Lists that are empty stand on the first page with what belongs there.
    """
    lines = _empty_places(document, kind)
    shown: dict[Path, JsonValue] = {}
    headings = {place.path for place in kind.places} if kind is not None else set()
    spent, heading = sum(map(tokens_of, lines)), None
    for path, text, value in leaves(document.body):
        if spent > PAGE_TOKENS and shown:
            yield Page("\n".join(lines), shown, frozenset(headings))
            lines, shown, spent, heading = [], {}, 0, None
        if path.parent != heading:
            heading = path.parent
            headings.add(heading)
            # As it is parsed, on one line: names are quoted there by the path itself.
            lines.append(str(heading))
            spent += tokens_of(lines[-1]) + 1
        lines.append(f"{path.last}: {plain(text, _LINE)}")
        shown[path] = value
        spent += tokens_of(lines[-1]) + 1
    yield Page("\n".join(lines), shown, frozenset(headings))


def read_answer(answer: Found, page: Page, document: Document, count: int) -> list[Finding]:
    """Return what *answer* says of each of *count* facts, without what it was never shown.

    The path of a whole list stands for all that is in it.
    """
    places: list[dict[Path, str]] = [{} for _ in range(count)]
    refused = [0] * count
    for found in answer.locations:
        # An answer without a sensible number is counted against the first fact: nobody else's can be meant.
        index = found.fact - 1 if 1 <= found.fact <= count else None
        under = _shown_under(found.path, page) if index is not None else []
        if index is None or not under or len(places[index]) + len(under) > _MOST_PLACES:
            refused[index or 0] += 1
            continue
        for path in under:
            places[index].setdefault(path, found.relevance)
    return [
        Finding(
            tuple(Place(document.resource_id, path, page.shown[path], why) for path, why in found.items()),
            *_insert(answer, index, page, document),
            refused=refused[index],
        )
        for index, found in enumerate(places)
    ]


def _insert(answer: Found, index: int, page: Page, document: Document) -> tuple[tuple[tuple[str, Path], ...], str]:
    """Return the list that *answer* suggests for fact *index*, if it is one, and its reasoning."""
    suggested = answer.suggested_insert_path
    path = read_path(suggested[index]) if index < len(suggested) else None
    if path is None or path not in page.headings:
        return (), answer.reasoning
    # A place that an imported document lacks is made when something is added to it.
    is_list = not exists(document.body, path) or isinstance(lookup(document.body, path), list)
    return ((document.resource_id, path),) if is_list else (), answer.reasoning


def _shown_under(text: str, page: Page) -> list[Path]:
    """Return the leaves on *page* that *text* names: one of them, or all in a list; none when nothing is there."""
    path = read_path(text)
    if path is None or path.steps[:1] in ((), (METADATA,)):
        return []
    if path in page.shown:
        return [path]
    if path not in page.headings:
        return []
    return [leaf for leaf in page.shown if leaf.parent == path]


def _empty_places(document: Document, kind: Kind | None) -> list[str]:
    """Return a line for each place of *kind* that holds nothing: its items cannot say what belongs there."""
    if kind is None:
        return []
    body = document.body
    empty = [place for place in kind.places if not exists(body, place.path) or not lookup(body, place.path)]
    return [f"{place.path} (none yet: {plain(place.meaning, _LINE)})" for place in empty]
