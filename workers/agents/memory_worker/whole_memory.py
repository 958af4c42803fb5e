"""Forgetting a whole person from a chat: one sentence that they were shown has to be typed, and a yes does nothing.

A memory that is forgotten so is hidden at once, and can be brought back for a day. The tasks look up themselves which
words the person wrote, whatever their caller took these for.
"""

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tasklore import Context, Parameters
from tasklore.contracts.messages import ChatTurn
from tasklore.workers.context.edits import HeldMemory

#: Turns of the conversation in which the sentence, and the question for it, are looked for.
_TURNS = 20
#: How long a sentence that was shown may be typed.
_SHOWN_FOR = timedelta(minutes=30)
#: The share of a wording's pairs of signs from which on a sentence is of its language.
_LIKE = 0.5


class Everything(Parameters):
    """No parameters: the user who asks is all that is needed, and no other words will do."""

    model_config = ConfigDict(json_schema_extra={"named_whole": True})


class ForgettingWords(BaseModel):
    """The questions and answers in one language; a word in braces stands in an answer for a value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    asks: tuple[str, ...]
    sentence: str
    lost: str
    nothing: str
    done: str
    refused: str
    documents: str
    items: str
    turns: str
    since: str
    backs: tuple[str, ...]
    brought: str
    told: str
    unhidden: str
    offered: str
    elsewhere: str

    @property
    def back(self) -> str:
        """The sentence that brings a hidden memory back."""
        return self.backs[0]

    def describe(self, held: HeldMemory) -> str:
        """Return *held* in words, without what there is none of."""
        counts = {
            self.documents: held.documents,
            self.items: held.items,
            self.turns: held.turns,
        }
        parts = [f"{what}: {count:,}" for what, count in counts.items() if count]
        since = [] if held.since is None else [f"{self.since} {held.since.date()}"]
        return ", ".join([*parts, *since])


@cache
def forgetting_words() -> tuple[ForgettingWords, ...]:
    """Return the words of each language, English first."""
    text = Path(__file__).with_name("whole_memory.toml").read_text("utf-8")
    return tuple(
        ForgettingWords.model_validate(one) for one in tomllib.loads(text)["language"]
    )


def wordings() -> tuple[str, ...]:
    """Return all that asks for it whole, in every language, with the sentences that have to be typed."""
    return tuple(
        text for words in forgetting_words() for text in (*words.asks, words.sentence)
    )


def returning_wordings() -> tuple[str, ...]:
    """Return all that asks whole, in every language, for a forgotten memory to come back."""
    return tuple(text for words in forgetting_words() for text in words.backs)


async def forget_all_about_me(_asked: Everything, context: Context) -> str:
    """Forget everything that is remembered about the user, once they have typed a sentence that says so.

    Only for the person as a whole: an order, an account, a topic or one fact is something else.

    Raises:
        InvalidInput: the task has no user.
        MemoryUnavailable: the store did not answer in time; the task is run again.
    """
    edits = context.edits
    task_id = context.assignment.task_id
    turns = await context.conversation.recent(_TURNS)
    said = _request_in(turns, context)
    words = _language_of(said, turns)
    if not edits.is_forgotten_in_chat:
        return words.refused
    if await edits.hidden_by(task_id) is None:
        held = await edits.held(context.documents.kinds)
        if held.is_empty:
            return words.nothing
        if said is None or not _agrees(said, words, turns):
            return words.lost.format(held=words.describe(held), sentence=words.sentence)
    # An earlier run may have hidden the sentence with the rest; this one finishes it.
    hidden = await edits.hide(task_id)
    return words.done.format(
        until=_day_and_time(hidden.until), back=words.back, elsewhere=words.elsewhere
    )


async def bring_my_memory_back(_asked: Everything, context: Context) -> str:
    """Bring back what the user had forgotten from a chat within the last day.

    Only the memory of the person as a whole: an order, an item or a thing that they miss is something else.

    Raises:
        InvalidInput: the task has no user.
        MemoryUnavailable: the store did not answer in time; the task is run again.
    """
    edits = context.edits
    turns = await context.conversation.recent(_TURNS)
    said = _request_in(turns, context)
    words = _language_of(said, turns)
    asked = "" if said is None else _letters(said.text)
    if asked not in {_letters(text) for text in returning_wordings()}:
        hidden = await edits.hidden()
        if hidden is None:
            return words.unhidden
        return words.offered.format(until=_day_and_time(hidden.until), back=words.back)
    again = await edits.bring_back(context.assignment.task_id)
    if again is None:
        return words.unhidden
    return words.brought.format(told=words.told if again.is_anything else "")


def _request_in(turns: Sequence[ChatTurn], context: Context) -> ChatTurn | None:
    """Return the turn in which the person asked for this task; None where a program did, or it is no longer there."""
    request_id = context.assignment.request_id
    return next(
        (
            turn
            for turn in reversed(turns)
            if turn.speaker == "person"
            and turn.user_id == context.user_id
            and turn.request_id == request_id
            and request_id is not None
        ),
        None,
    )


def _language_of(said: ChatTurn | None, turns: Sequence[ChatTurn]) -> ForgettingWords:
    """Return the language of *said*; of few words that of the last sentence that was shown, else English."""
    known = forgetting_words()
    shown = next(
        (
            words
            for turn in reversed(turns)
            for words in known
            if turn.speaker == "assistant"
            and (words.sentence in turn.text or words.back in turn.text)
        ),
        known[0],
    )
    if said is None:
        return shown
    pairs = _pairs(said.text)

    def likeness(words: ForgettingWords) -> float:
        texts = (*words.asks, words.sentence, *words.backs)
        return max(len(pairs & own) / len(own) for own in map(_pairs, texts))

    # Where several are as like, the first of them is.
    best = max(known, key=likeness)
    return best if likeness(best) >= _LIKE else shown


def _pairs(text: str) -> frozenset[str]:
    """Return each two signs of *text* that stand side by side, in any script."""
    letters = f" {_letters(text)} "
    return frozenset(map("".join, pairwise(letters)))


def _day_and_time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _agrees(said: ChatTurn, words: ForgettingWords, turns: Sequence[ChatTurn]) -> bool:
    """Return whether *said* is the sentence of *words*, and was shown to its writer."""
    if _letters(said.text) != _letters(words.sentence):
        return False
    return any(
        turn.speaker == "assistant"
        and turn.user_id == said.user_id
        and turn.task is not None
        and turn.task.name == forget_all_about_me.__name__
        and words.sentence in turn.text
        and timedelta(0) <= said.at - turn.at <= _SHOWN_FOR
        for turn in turns
    )


def _letters(text: str) -> str:
    """Return the words of *text* in small letters, without marks."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"\w+", plain))
