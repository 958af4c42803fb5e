"""Forgetting a whole person from a chat: one sentence that they were shown has to be typed, and a yes does nothing.

Whoever calls the task, and whatever they took the words for, it looks up what the person wrote itself.
"""

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tasklore import Context, Parameters
from tasklore.contracts.messages import ChatTurn
from tasklore.workers.agents.memory_worker.tasks import ELSEWHERE
from tasklore.workers.context.edits import HeldMemory

#: Turns of the conversation in which the sentence, and the question for it, are looked for.
_TURNS = 20
#: How long a sentence that was shown may be typed.
_SHOWN_FOR = timedelta(minutes=30)


class Everything(Parameters):
    """No parameters: the user who asks is all that is needed, and no other words will do."""

    model_config = ConfigDict(json_schema_extra={"named_whole": True})


class ForgettingWords(BaseModel):
    """What is asked and answered in one language; `held` stands in an answer for what would be lost."""

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

    def describe(self, held: HeldMemory) -> str:
        """Return *held* in words, without what there is none of."""
        counts = {
            self.documents: held.documents,
            self.items: held.items,
            self.turns: held.turns,
        }
        parts = [f"{count:,} {what}" for what, count in counts.items() if count]
        since = "" if held.since is None else f" ({self.since} {held.since.date()})"
        return f"{', '.join(parts)}{since}"


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


async def forget_all_about_me(_asked: Everything, context: Context) -> str:
    """Ask whether everything that is remembered about the user is to be forgotten.

    Only for the person as a whole: an order, an account, a topic or one fact is something else.

    Raises:
        InvalidInput: the task has no user.
        MemoryUnavailable: the store did not answer in time; the task is run again.
    """
    edits = context.edits
    turns = await context.conversation.recent(_TURNS)
    said = _request_in(turns, context)
    words = _language_of(said)
    if not edits.is_forgotten_in_chat:
        return words.refused
    held = await edits.held(context.documents.kinds)
    if held.is_empty:
        return words.nothing
    if said is None or not _agrees(said, words, turns):
        return words.lost.format(held=words.describe(held), sentence=words.sentence)
    await edits.forget()
    return words.done.format(held=words.describe(held), elsewhere=f"({ELSEWHERE})")


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


def _language_of(said: ChatTurn | None) -> ForgettingWords:
    """Return the language whose wording has most of its words in *said*; English where none has any."""
    known = forgetting_words()
    if said is None:
        return known[0]
    letters = _letters(said.text).split()

    def likeness(words: ForgettingWords) -> float:
        texts = (*words.asks, words.sentence)
        return max(
            len({*letters} & {*(own := _letters(text).split())}) / len({*own})
            for text in texts
        )

    # The first of several is English.
    return max(known, key=likeness)


def _agrees(said: ChatTurn, words: ForgettingWords, turns: Sequence[ChatTurn]) -> bool:
    """Return whether *said* is the sentence of *words*, and was shown to whoever wrote it."""
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
