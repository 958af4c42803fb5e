"""The conversation that a client sends along, made into what "the same with 45k" can refer back to.

A client of OpenAI's API holds the conversation and sends the whole of it. Its words count, as it may have edited one
and ask again; what the store holds of them adds which task each answer came from. An answer that the store does not
hold is understood from the question before it: by rules, which cost nothing and give the same every time.
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import structlog

from contracts.messages import ChatTurn, TaskCall
from supervisor.catalogue import Catalogue
from supervisor.http.chat.forms import LONGEST_TEXT, ChatMessage
from supervisor.http.parts import Parts
from supervisor.requests.readings import LOOK_BACK, stored_turns
from supervisor.understanding import Clarification, RuleInterpreter, Several, Single, Understood, Unfitting

log = structlog.get_logger(__name__)

#: Stored messages among which those that were sent are looked for.
_STORED = 200
_SPEAKERS = {"user": "person", "assistant": "assistant"}


def derived_conversation(owner: Sequence[str | None], messages: Sequence[ChatMessage]) -> str:
    """Return the id of a conversation that nobody named: of *owner*, by the first thing that the person said.

    That stays as it is while a client sends the whole conversation. Two that begin alike share the id; neither is
    answered out of the other, as both bring their own words.
    """
    first = next(message.text for message in messages if message.role == "user")
    return f"chat-{hashlib.blake2b(json.dumps([*owner, first]).encode(), digest_size=16).hexdigest()}"


class Recollection:
    """Makes turns of the messages that a client sends along."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rules = RuleInterpreter()

    async def before(
        self, conversation_id: str, user_id: str | None, messages: Sequence[ChatMessage]
    ) -> list[ChatTurn]:
        """Return *messages*, all that came before the one to be answered, as turns of the conversation, oldest first.

        What other users were answered there counts for nothing. When the store does not answer, nothing is known there.
        """
        spoken = [message for message in messages if message.role in _SPEAKERS and message.text.strip()][-LOOK_BACK:]
        if not any(message.role == "assistant" for message in spoken):
            return _turns(conversation_id, spoken)
        stored = await stored_turns(self._parts.conversations, conversation_id, _STORED)
        tasks = _tasks_of([turn for turn in stored if turn.user_id in (None, user_id)])
        # A long sentence takes milliseconds to read, and twenty of them would hold up everybody else.
        return await asyncio.to_thread(self._read, conversation_id, spoken, tasks)

    def _read(self, conversation_id: str, spoken: Sequence[ChatMessage], tasks: "_Tasks") -> list[ChatTurn]:
        catalogue = self._parts.catalogue()
        turns: list[ChatTurn] = []
        for turn in _turns(conversation_id, spoken):
            asked = turns[-1] if turns and turns[-1].speaker == "person" else None
            if turn.speaker == "assistant" and asked is not None:
                known = tasks.get((asked.text.strip(), turn.text.strip()))
                turns += [known.on(turn)] if known else self._answers_in(turn, asked.text, catalogue, turns[:-1])
            else:
                turns.append(turn)
        return turns

    def _answers_in(
        self, turn: ChatTurn, text: str, catalogue: Catalogue, previous: Sequence[ChatTurn]
    ) -> list[ChatTurn]:
        """Return *turn*, the answer to *text*, with the task it came from; once for each of several tasks."""
        found = self._rules.understand(text, catalogue=catalogue, previous=previous)
        if not isinstance(found, Several):
            return [_Task.of(found).on(turn)]
        # What asks back comes last, as it is what is answered next, and in its own words.
        parts = sorted(found.parts, key=lambda part: isinstance(part, Clarification))
        told = [part.question if isinstance(part, Clarification) else turn.text for part in parts]
        together = turn.model_copy(update={"request_id": turn.turn_id})
        return [
            _Task.of(part).on(together.model_copy(update={"turn_id": f"{turn.turn_id}-{place}", "text": words}))
            for place, (part, words) in enumerate(zip(parts, told, strict=True), 1)
        ]


class _Task(NamedTuple):
    """Which agent and task an answer came from, if any."""

    agent_id: str | None
    task: TaskCall | None

    @classmethod
    def of(cls, found: Single) -> "_Task":
        """Return that of *found*."""
        if isinstance(found, Unfitting):
            return cls(None, None)
        return cls(found.agent_id, found.task if isinstance(found, Understood) else found.call)

    def on(self, turn: ChatTurn) -> ChatTurn:
        """Return *turn* as one that came from it."""
        return turn.model_copy(update={"agent_id": self.agent_id, "task": self.task})


#: That of each answer, by what was asked and what was answered.
_Tasks = dict[tuple[str, str], _Task]


def _tasks_of(stored: Sequence[ChatTurn]) -> _Tasks:
    """Return the tasks of *stored* answers; of two alike the later one."""
    asked = {turn.request_id: turn.text.strip() for turn in stored if turn.speaker == "person"}
    return {
        (asked[turn.request_id], turn.text.strip()): _Task(turn.agent_id, turn.task)
        for turn in stored
        if turn.speaker == "assistant" and turn.request_id in asked
    }


def _turns(conversation_id: str, spoken: Sequence[ChatMessage]) -> list[ChatTurn]:
    now = datetime.now(UTC)
    return [
        ChatTurn(
            turn_id=f"sent-{number}",
            conversation_id=conversation_id,
            speaker="person" if message.role == "user" else "assistant",
            text=message.text[:LONGEST_TEXT],
            at=now,
        )
        for number, message in enumerate(spoken)
    ]
