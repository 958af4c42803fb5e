"""Answer questions of a person about themselves and earlier turns from memory, with quotations."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path as Folder

import structlog
from pydantic import BaseModel

from tasklore import Context, Field, Parameters
from tasklore.contracts.errors import LlmError
from tasklore.memory.documents.entries import live_entries
from tasklore.memory.episodes.ranking import rank
from tasklore.memory.grounding import locate, numbers_in
from tasklore.memory.recall import Memory, Recalled, is_question
from tasklore.memory.rendering.quoting import quote
from tasklore.workers.agent_files import load_agent_files
from tasklore.workers.answers import AnswerSchema

log = structlog.get_logger(__name__)

FOLDER = Folder(__file__).with_name("recall")
#: Tokens of memory that a model is shown.
_BUDGET_TOKENS = 2_000
#: Memories that are looked at, and those that an answer quotes.
_MOST_FOUND = 20
_MOST_QUOTED = 3
#: Items of an overview.
_MOST_KNOWN = 200
_MOST_SAID = 10
#: Characters of one quotation that are shown.
_LONGEST = 300

NOTHING_SAID = "Nothing was said about that."


class Question(Parameters):
    """What a person wants to know of themselves."""

    question: str = Field(
        min_length=1,
        max_length=2_000,
        description="The question in the person's own words.",
    )


class Nothing(Parameters):
    """The user who asks is all that is needed."""


class Quoted(BaseModel):
    """The source of an answer: words of an item, or of a turn of *speaker*; *at* is the day, None if unknown."""

    text: str
    speaker: str = "person"
    at: date | None = None
    reference: str = ""


class FromMemory(BaseModel):
    """The *answer* with its quotations in words; empty quotations mean that nothing was said about it."""

    answer: str
    quotations: tuple[Quoted, ...] = ()
    by: str = "search"


class Worded(AnswerSchema):
    """What a model answers from the notes."""

    reasoning: str
    is_answered: bool
    answer: str = ""
    quotations: tuple[str, ...] = ()


async def recall(asked: Question, context: Context) -> FromMemory:
    """Answer a question of the user from what is remembered of them, with the words that it rests on.

    Without a model, or where its answer is not grounded, the nearest words are quoted as they are.

    Raises:
        InvalidInput: nobody known asked, or the question has no word.
        MemoryUnavailable: the documents or turns did not answer in time; the task is run again.
    """
    found = await context.memory.search(asked.question, limit=_MOST_FOUND)
    if context.llm.configured:
        answered = await _ask_model(asked.question, found, context)
        if answered is not None:
            return answered
    nearest = () if found.is_nothing_said else _nearest(asked.question, found.memories)
    if not nearest or not is_question(asked.question):
        return FromMemory(answer=NOTHING_SAID)
    return FromMemory(
        answer=_with_sources("What comes nearest to that:", nearest), quotations=nearest
    )


def _nearest(question: str, memories: Sequence[Memory]) -> tuple[Quoted, ...]:
    """Return the person's own words among *memories* that share most with *question*, nearest first."""
    said = [
        one for one in memories if one.speaker == "person" and not is_question(one.text)
    ]
    scores = rank(question, [one.text for one in said])
    least = max(scores, default=0.0) / 2
    order = sorted(range(len(said)), key=lambda number: -scores[number])
    return tuple(
        _quote(said[at], said[at].text)
        for at in order[:_MOST_QUOTED]
        if scores[at] > 0 and scores[at] >= least
    )


async def about_me(_asked: Nothing, context: Context) -> dict[str, list[str]]:
    """Tell what is remembered about the user.

    It returns everything that holds today, by category.

    Raises:
        InvalidInput: nobody known asked.
        MemoryUnavailable: the documents or turns did not answer in time; the task is run again.
    """
    documents = context.documents
    entries = live_entries(
        await documents.bodies(), documents.kinds, context.now().date()
    )
    known: dict[str, list[str]] = {}
    for entry in entries[:_MOST_KNOWN]:
        whose = f"{entry.subject}: " if entry.subject else ""
        known.setdefault(str(entry.path.parent).replace(".", " "), []).append(
            f"{whose}{entry.text}"
        )
    if len(entries) > _MOST_KNOWN:
        known["more"] = [
            f"{len(entries) - _MOST_KNOWN} items; `tasklore memory show` has them all"
        ]
    if said := await _said_lately(context):
        known["said"] = said
    return known


async def _said_lately(context: Context) -> list[str]:
    """Return the last statements of the user, oldest first, without the words that ask for this task.

    They may have left no item behind.
    """
    asking = {
        turn.turn_id
        for turn in await context.conversation.recent(_MOST_SAID)
        if turn.request_id is not None
        and turn.request_id == context.assignment.request_id
    }
    return [
        one.text[:_LONGEST]
        for one in await context.memory.recent(limit=_MOST_SAID)
        if one.turn_id not in asking and not is_question(one.text)
    ]


async def _ask_model(
    question: str, found: Recalled, context: Context
) -> FromMemory | None:
    """Return the answer of a model, None when it gives no grounded one."""
    notes = await context.memory.block(question, budget_tokens=_BUDGET_TOKENS)
    if not notes:
        return FromMemory(answer=NOTHING_SAID)
    files = load_agent_files(FOLDER, context.agent_files)
    today = context.now().date()
    shown = f"{notes}\n\ntoday: {today:%A} {today}\nquestion: {quote(question, 2_000)}"
    fault = ""
    for _ in range(2):
        try:
            reply = await context.llm.ask(
                files.role, Worded, system=files.render(), user=shown + fault
            )
        except LlmError as error:
            log.info("recall_without_a_model", error=type(error).__name__)
            return None
        if not reply.is_answered:
            return FromMemory(
                answer=NOTHING_SAID, by=context.llm.role(files.role).model
            )
        faults = list(_faults(reply, notes, question, str(today)))
        if not faults:
            sources = tuple(
                _source_of(words, found.memories)
                for words in reply.quotations[:_MOST_QUOTED]
            )
            answer = _with_sources(reply.answer.strip(), sources)
            return FromMemory(
                answer=answer, quotations=sources, by=context.llm.role(files.role).model
            )
        fault = "\nrefused before:\n" + "\n".join(f"- {one}" for one in faults)
    return None


def _faults(reply: Worded, notes: str, question: str, today: str) -> Iterator[str]:
    """Yield the faults of *reply*: quotations and numbers that were not shown."""
    if not reply.answer.strip():
        yield "answer: is needed where is_answered is true"
    if not reply.quotations:
        yield "quotations: copy the words of a note that say it"
    for words in reply.quotations:
        if next(locate(words, notes), None) is None:
            yield f"quotations: {words[:80]!r} does not stand in the notes; copy its words"
    shown = {
        reading
        for number in numbers_in(f"{notes}\n{question}\n{today}")
        for reading in number.readings
    }
    for number in numbers_in(reply.answer):
        if not shown & set(number.readings):
            yield f"answer: {reply.answer[number.start : number.end]} stands in no note"


def _source_of(words: str, memories: Sequence[Memory]) -> Quoted:
    """Return the memory that holds *words*; where the search did not find it, the words alone."""
    holder = next(
        (one for one in memories if next(locate(words, one.text), None) is not None),
        None,
    )
    return Quoted(text=words) if holder is None else _quote(holder, words)


def _quote(memory: Memory, words: str) -> Quoted:
    """Return *words* of *memory* as a quotation; those of an item begin with its category and whom it is about."""
    place = memory.reference.partition(":")[2].rpartition(".")[0].replace(".", " ")
    about = " of ".join(filter(None, (place, memory.subject)))
    text = f"{about}: {words}" if memory.source == "item" and about else words
    if memory.until is not None:
        text = f"{text} (until {memory.until})"
    return Quoted(
        text=text[:_LONGEST],
        speaker=memory.speaker,
        at=memory.at,
        reference=memory.reference,
    )


def _with_sources(answer: str, sources: Sequence[Quoted]) -> str:
    """Return *answer* with its quotations, a line each."""
    lines = []
    for source in sources:
        who = {"person": "you", "assistant": "I"}.get(source.speaker, source.speaker)
        day = f", {source.at}" if source.at is not None else ""
        lines.append(f'- "{source.text}" ({who}{day})')
    return "\n".join([answer, *dict.fromkeys(lines)])
