"""The finder: a model reads every line of the documents concerned, and names those that a sweeping fact is about.

It is asked where no search can know: which dishes a diet leaves out, or which items "forget my old job" means. All such
facts of a batch are put in one question. It is shown every leaf, page by page when there are many: a line that shares
no word with a fact may be the one that it ends. A line that it was not shown cannot be named.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as Folder

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidPath, LlmNotConfigured
from tasklore.contracts.messages import Fact
from tasklore.memory.documents.entries import DocumentEntry
from tasklore.memory.documents.paths import Path, parse
from tasklore.memory.rendering.quoting import plain, quote
from tasklore.memory.rendering.tokens import estimate
from tasklore.workers.agent_files import load_agent_files
from tasklore.workers.answers import AnswerSchema
from tasklore.workers.listening.context import ListenContext

FOLDER = Folder(__file__).with_name("finder")

#: Tokens of documents in one question; a small model misses lines of much longer ones.
PAGE_TOKENS = 3_000
#: Characters of one line; what an item is about stands at its beginning.
_LINE = 160
#: Characters of one fact: as many as one may have.
_FACT = 2_000
#: Places that one answer may name for one fact: more than a document's longest list that means one thing.
_MOST_PLACES = 500
#: Characters of what a model said that the history keeps of each text.
_SAID = 300


class FoundPlace(AnswerSchema):
    """One line that the fact with this number, from 1, ends or contradicts."""

    fact: int = 1
    path: str
    relevance: str = ""


class Found(AnswerSchema):
    """What the finder answers."""

    reasoning: str
    locations: tuple[FoundPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundEntries:
    """The entries found for one fact, *by* a model or "search".

    *locations* are references with why each matters; *refused* counts paths that a model named without being shown.
    """

    by: Mapping[str, JsonValue] = field(default_factory=lambda: {"model": "search"})
    locations: Mapping[str, str] = field(default_factory=dict)
    reasoning: str = ""
    refused: int = 0

    def dump(self, entries: Sequence[DocumentEntry]) -> JsonValue:
        """Return it as the history keeps it, with *entries*, all that were found in the end."""
        places: list[JsonValue] = [
            {
                "file": entry.resource_id,
                "path": str(entry.path),
                "current_value": entry.text[:_SAID],
                "relevance": self.locations.get(entry.reference, "")[:_SAID],
            }
            for entry in entries
        ]
        return {
            **self.by,
            "locations": places,
            "reasoning": self.reasoning[: 4 * _SAID],
            "refused": self.refused,
        }


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A part of the documents as the finder sees it, and the entries in it by resource id and path."""

    text: str
    shown: Mapping[tuple[str, Path], DocumentEntry]


async def find(
    context: ListenContext, facts: Sequence[Fact], entries: Sequence[DocumentEntry]
) -> list[FoundEntries]:
    """Return the findings of the finder for each of *facts* among *entries*.

    Raises:
        LlmError: one of the questions was not answered.
    """
    files = load_agent_files(FOLDER, context.agent_files)
    model = context.llm
    if model is None:
        raise LlmNotConfigured(
            "no language model: set TASKLORE_LLM_API_KEY or TASKLORE_LLM_BASE_URL"
        )
    role = model.role(files.role)
    by: dict[str, JsonValue] = {"model": role.model, "temperature": role.temperature}
    system = files.render()
    found = [FoundEntries(by)] * len(facts)
    async with asyncio.TaskGroup() as group:
        pages = list(pages_of(entries))
        asked = [
            group.create_task(
                model.ask(
                    files.role, Found, system=system, user=question_of(facts, page)
                )
            )
            for page in pages
        ]
    for page, task in zip(pages, asked, strict=True):
        found = read_answer(task.result(), page, found)
    return found


def question_of(facts: Sequence[Fact], page: DocumentPart) -> str:
    """Return the question: the facts, numbered and quoted, and a page of the documents."""
    lines = "\n".join(
        f"{number}: {quote(fact.text, _FACT)} ({fact.relation})"
        for number, fact in enumerate(facts, start=1)
    )
    return f"facts\n{lines}\nlines\n{page.text}"


def pages_of(entries: Sequence[DocumentEntry]) -> Iterator[DocumentPart]:
    """Yield *entries* under the document and path of what holds them, in pages of at most PAGE_TOKENS, one at least."""
    lines: list[str] = []
    shown: dict[tuple[str, Path], DocumentEntry] = {}
    spent = 0
    heading = ""
    for entry in entries:
        holder = f"{entry.resource_id}:{entry.path.parent}"
        line = f"{entry.path.last}: {plain(entry.text, _LINE)}"
        cost = estimate(line) + 1
        head = estimate(holder) + 1
        if shown and spent + cost + (head if holder != heading else 0) > PAGE_TOKENS:
            yield DocumentPart("\n".join(lines), shown)
            lines = []
            shown = {}
            spent = 0
            heading = ""
        if holder != heading:
            heading = holder
            lines.append(holder)
            spent += head
        lines.append(line)
        shown[entry.resource_id, entry.path] = entry
        spent += cost
    yield DocumentPart("\n".join(lines), shown)


def read_answer(
    answer: Found, page: DocumentPart, found: Sequence[FoundEntries]
) -> list[FoundEntries]:
    """Return *found* with the places of *answer* for each fact; a place that was not shown is counted and left out.

    The path of a whole list stands for all its shown entries.
    """
    places = [dict(one.locations) for one in found]
    refused = [one.refused for one in found]
    for named in answer.locations:
        # An answer without a sensible number is counted against the first fact: no other can be meant.
        index = named.fact - 1 if 1 <= named.fact <= len(found) else None
        under = _find_under(named.path, page) if index is not None else []
        if index is None or not under or len(places[index]) + len(under) > _MOST_PLACES:
            refused[index or 0] += 1
            continue
        for entry in under:
            places[index].setdefault(entry.reference, named.relevance)
    return [
        FoundEntries(
            one.by,
            places[index],
            " ".join(filter(None, (one.reasoning, answer.reasoning))),
            refused[index],
        )
        for index, one in enumerate(found)
    ]


def _find_under(text: str, page: DocumentPart) -> list[DocumentEntry]:
    """Return the entries on *page* that *text* names: one of them, or all in a list; none when nothing is there."""
    resource_id, colon, rest = text.strip().partition(":")
    try:
        path = parse(rest if colon else resource_id)
    except InvalidPath:
        return []
    wanted = resource_id.removesuffix(".json") if colon else None
    shown = [entry for (name, _), entry in page.shown.items() if wanted in (None, name)]
    if not path.steps:
        return []
    exact = [entry for entry in shown if entry.path == path]
    return exact or [entry for entry in shown if entry.path.parent == path]
