"""The conversation that a client sends along, as turns that "the same with 45k" can refer back to.

A client of OpenAI's API holds the conversation and sends the whole of it. Its words count, as it may have edited one
and ask again; the store adds which task each answer came from. An answer that the store does not hold is understood
from the question before it, by rules, which cost nothing and give the same every time.
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from tasklore.contracts.messages import ChatTurn, TaskCall
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.chat.forms import LONGEST_TEXT, ChatMessage
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.requests.readings import LOOK_BACK, read_turns
from tasklore.supervisor.understanding import (
    Clarification,
    RuleInterpreter,
    Several,
    Single,
    Understood,
    Unfitting,
)

#: Stored messages among which those that were sent are looked for.
_STORED = 200
_SPEAKERS = {"user": "person", "assistant": "assistant"}


def derive_conversation(
    owner: Sequence[str | None], messages: Sequence[ChatMessage]
) -> str:
    """Return the id of a conversation without a name: by its *owner* and the first message of the person.

    That stays as it is while a client sends the whole conversation. Two that begin alike share the id; neither is
    answered out of the other, as both bring their own words.
    """
    first = next(message.text for message in messages if message.role == "user")
    return f"chat-{hashlib.blake2b(json.dumps([*owner, first]).encode(), digest_size=16).hexdigest()}"


class _Origin(NamedTuple):
    """Agent and task that an answer came from, if any."""

    agent_id: str | None
    task: TaskCall | None
    #: What the rules said, where the person was shown other words.
    text: str | None = None

    @classmethod
    def of(cls, found: Single) -> "_Origin":
        """Return that of *found*."""
        if isinstance(found, Unfitting):
            return cls(None, None)
        return cls(
            found.agent_id, found.task if isinstance(found, Understood) else found.call
        )

    def on(self, turn: ChatTurn) -> ChatTurn:
        """Return *turn* with this origin."""
        said = {} if self.text is None else {"text": self.text}
        about = {"agent_id": self.agent_id, "task": self.task}
        return turn.model_copy(update=about | said)


class ChatHistory:
    """Turns the messages that a client sends along into turns of the conversation."""

    def __init__(self, parts: ApiDependencies) -> None:
        self._parts = parts
        self._rules = RuleInterpreter()

    async def read(
        self,
        conversation_id: str,
        user_id: str | None,
        messages: Sequence[ChatMessage],
        among: Catalogue | None = None,
    ) -> list[ChatTurn]:
        """Return *messages*, all before the one to be answered, as turns of the conversation, oldest first.

        Answers to other users there do not count. When the store does not answer, it adds nothing. *among* is the part
        of the catalogue that answers, None all of it.
        """
        spoken = [
            message
            for message in messages
            if message.role in _SPEAKERS and message.text.strip()
        ][-LOOK_BACK:]
        now = datetime.now(UTC)
        turns = [
            ChatTurn(
                turn_id=f"sent-{number}",
                conversation_id=conversation_id,
                speaker="person" if message.role == "user" else "assistant",
                text=message.text[:LONGEST_TEXT],
                at=now,
            )
            for number, message in enumerate(spoken)
        ]
        if not any(turn.speaker == "assistant" for turn in turns):
            return turns
        stored = await read_turns(self._parts.conversations, conversation_id, _STORED)
        own = [turn for turn in stored if turn.user_id in (None, user_id)]
        asked = {
            turn.request_id: turn.text.strip()
            for turn in own
            if turn.speaker == "person"
        }
        # By question and answer; of two alike the later one.
        origins = {
            (asked[turn.request_id], (turn.shown or turn.text).strip()): _Origin(
                turn.agent_id, turn.task, turn.text if turn.shown else None
            )
            for turn in own
            if turn.speaker == "assistant" and turn.request_id in asked
        }
        # A long sentence takes milliseconds to read, and twenty of them would hold up everybody else.
        catalogue = self._parts.catalogue() if among is None else among
        return await asyncio.to_thread(self._add_origins, turns, origins, catalogue)

    def _add_origins(
        self,
        turns: Sequence[ChatTurn],
        origins: dict[tuple[str, str], _Origin],
        catalogue: Catalogue,
    ) -> list[ChatTurn]:
        found: list[ChatTurn] = []
        for turn in turns:
            asked = found[-1] if found and found[-1].speaker == "person" else None
            if turn.speaker == "assistant" and asked is not None:
                known = origins.get((asked.text.strip(), turn.text.strip()))
                found += (
                    [known.on(turn)]
                    if known
                    else self._read_answer(turn, asked.text, catalogue, found[:-1])
                )
            else:
                found.append(turn)
        return found

    def _read_answer(
        self,
        turn: ChatTurn,
        text: str,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
    ) -> list[ChatTurn]:
        """Return *turn*, the answer to *text*, with its origin; once for each of several tasks."""
        found = self._rules.understand(text, catalogue=catalogue, previous=previous)
        if not isinstance(found, Several):
            return [_Origin.of(found).on(turn)]
        # A question comes last, as it is answered next, and in its own words.
        parts = sorted(found.parts, key=lambda part: isinstance(part, Clarification))
        texts = [
            part.question if isinstance(part, Clarification) else turn.text
            for part in parts
        ]
        together = turn.model_copy(update={"request_id": turn.turn_id})
        return [
            _Origin.of(part).on(
                together.model_copy(
                    update={"turn_id": f"{turn.turn_id}-{place}", "text": words}
                )
            )
            for place, (part, words) in enumerate(zip(parts, texts, strict=True), 1)
        ]
