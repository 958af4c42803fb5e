"""A request as it comes in, with the ids that it goes by: its task, its conversation, and the turn of each side."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from contracts.messages import ChatTurn, PersonRequest, ReplyKind, ReplyPart, Speaker, TaskAssignment, TaskCall
from supervisor.part_ids import part_turn_id

#: Hears what came of one of several things that were asked for, and at which place, from 1, it was.
Ended = Callable[[int, ReplyPart], None]


def unheard(_place: int, _part: ReplyPart) -> None:
    """Be what is told of parts when nobody wants to hear of them."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """*routed* is called with each task that the request becomes, once that is handed over.

    *ended* is called with each of several parts once it is answered, while others may go on. *is_new* tells that its
    ids were just made, so that nothing of it can have been handed over.
    """

    request: PersonRequest
    request_id: str
    conversation_id: str
    task_id: str
    routed: Callable[[TaskAssignment], None]
    ended: Ended = unheard
    is_new: bool = False

    def turn_id(self, speaker: Speaker) -> str:
        """Return the id of the turn in which *speaker* says their part of it."""
        return f"{digest_of(self.request.user_id, self.conversation_id, self.request_id)}-{speaker[0]}"

    def turn(
        self,
        speaker: Speaker,
        text: str,
        at: datetime,
        about: tuple[str | None, TaskCall | None] = (None, None),
        place: int = 0,
        kind: ReplyKind | None = None,
    ) -> ChatTurn:
        """Return the turn in which *speaker* says *text*; *about* is agent and task, *place* that of several parts.

        *kind* is that of the assistant's reply.
        """
        turn_id = self.turn_id(speaker)
        return ChatTurn(
            turn_id=part_turn_id(turn_id, place) if place else turn_id,
            conversation_id=self.conversation_id,
            user_id=self.request.user_id,
            speaker=speaker,
            text=text,
            at=at,
            request_id=self.request_id,
            agent_id=about[0],
            task=about[1],
            kind=kind,
        )


def digest_of(*parts: str | None) -> str:
    """Return 32 hexadecimal digits of *parts*: two people may choose one request id."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
