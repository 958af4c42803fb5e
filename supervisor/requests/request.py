"""A request with its ids: those of its task, its conversation, and the turn of each side.

When words ask for several tasks, the ids of these follow from the one that a single task would have had and from the
place in the sentence: a repeat finds each of them, and the one id leads to all others.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from tasklore.contracts.messages import (
    ChatTurn,
    PersonReply,
    PersonRequest,
    ReplyKind,
    ReplyPart,
    Speaker,
    TaskAssignment,
    TaskCall,
)
from tasklore.memory.command_batch import Commands
from tasklore.supervisor.catalogue import Catalogue

_PART = re.compile(r"(r-[0-9a-f]{32})-[1-9][0-9]?\Z")

#: Called with each of several parts of a request once it is answered, and its place, from 1.
Ended = Callable[[int, ReplyPart], None]

#: Called with each task that a request becomes, once it has been handed over.
Routed = Callable[[TaskAssignment], None]


def ignore_part(_place: int, _part: ReplyPart) -> None:
    """Do nothing, where no client follows the parts."""


@dataclass(slots=True)
class ExtraCommands:
    """Commands that the store takes in the same round trip: *words* with the person's turn, *ending* with the answer.

    `has_ended` is set once the answer is kept with the commands that *ending* makes of the reply, `is_first` where it
    was the first answer to the request.
    """

    words: Commands = ()
    ending: Callable[[PersonReply], Commands] = lambda _reply: ()
    has_ended: bool = False
    is_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A request with its ids. *routed* is called with each task that it becomes, once that is handed over.

    *ended* is called with each of several parts once it is answered, while others may go on. With *is_new* its ids were
    just made, so that nothing of it can have been handed over; with *is_repeat* it was read before, so that all of it
    may have ended. *among* is the part of the catalogue that its sender chose, None all of it.
    """

    request: PersonRequest
    request_id: str
    conversation_id: str
    task_id: str
    routed: Callable[[TaskAssignment], None]
    ended: Ended = ignore_part
    is_new: bool = False
    is_repeat: bool = False
    alongside: ExtraCommands = field(default_factory=ExtraCommands)
    among: Catalogue | None = None

    def turn_id(self, speaker: Speaker) -> str:
        """Return the id of the turn of *speaker*."""
        return turn_id_of(self.request, self.conversation_id, self.request_id, speaker)

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
            tenant=self.request.tenant,
        )


def digest_of(*parts: str | None) -> str:
    """Return 32 hexadecimal digits of *parts*: two people may choose one request id."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def turn_id_of(
    request: PersonRequest, conversation_id: str, request_id: str, speaker: Speaker
) -> str:
    """Return the id of the turn of *speaker* for *request*, which came under *request_id* in a conversation."""
    return f"{digest_of(request.user_id, conversation_id, request_id)}-{speaker[0]}"


def single_task_id(supervisor_id: str, request: PersonRequest) -> str:
    """Return the id of the one task that *request*, which has an id, becomes at a supervisor.

    A request without a conversation has the same id as its repeat with the conversation of the reply.
    """
    conversation_id = (
        request.conversation_id
        if request.conversation_id != request.request_id
        else None
    )
    return f"r-{digest_of(supervisor_id, request.user_id, conversation_id, request.request_id)}"


def part_task_id(whole: str, place: int) -> str:
    """Return the id of the task at *place*, from 1, of the request with the task id *whole*."""
    return f"{whole}-{place}"


def whole_task_id(task_id: str) -> str | None:
    """Return the id that *task_id* is a part of, None when it is no part of a request that was named by its sender."""
    match = _PART.match(task_id)
    return match[1] if match is not None else None


def place_of_task(task_id: str) -> int:
    """Return the place that a `part_task_id` was made for; 1 for the one task of a request."""
    return int(task_id.rpartition("-")[2]) if whole_task_id(task_id) else 1


def part_turn_id(base: str, place: int) -> str:
    """Return the id of the turn that answers the part at *place*; *base* is that of a request's one answer."""
    return f"{base}{place}"
