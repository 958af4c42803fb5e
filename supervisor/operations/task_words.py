"""The words of a person that became a task, and how they were read, as their conversation keeps them.

Nothing is kept for this: an ended task is found among the last turns of its user's conversations.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_of
from tasklore.contracts.messages import CompletionReport, TaskAssignment
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.owners import task_place
from tasklore.supervisor.operations.sent_tasks import TaskLooks
from tasklore.supervisor.requests.readings import HeardTurn, parse_turn
from tasklore.supervisor.requests.request import place_of_task, whole_task_id

#: Conversations of a user that are looked into, so many at a time, and the last turns of each.
_MOST_CONVERSATIONS = 50
_AT_ONCE = 10
_LAST_TURNS = 50


class TaskWords(View):
    """The words of a person that a task was made of, said `at` that time, and how they were understood.

    `parameters` are those of the task. `remembered` names such as nobody said: they come from the person's memory.
    `computed` says by name how a value was computed of what was said. `by` is `rules`, or `model` where a language
    model was asked as well; null of words that an earlier version read. Where the words asked `of` several things, the
    task is that at `place`, counted from 1.
    """

    task_id: str
    text: str
    at: datetime
    user: str | None
    conversation_id: str
    request_id: str | None
    by: Literal["rules", "model"] | None
    parameters: dict[str, JsonValue]
    remembered: tuple[str, ...]
    computed: dict[str, str]
    place: int
    of: int


async def find_words(
    services: TaskLooks, caller: Caller, task_id: str
) -> TaskWords | None:
    """Return the words that became a task that *caller* may see; None where they are not found, or not for them.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    whole = whole_task_id(task_id) or task_id
    conversations = Conversations(services.redis)
    looked_into = await _choose_conversations(services, caller, task_id, whole)
    for first in range(0, len(looked_into), _AT_ONCE):
        page = looked_into[first : first + _AT_ONCE]
        for bodies in await conversations.recent_of_many(page, _LAST_TURNS):
            turn = _find_turn(bodies, whole)
            if turn is not None and caller.may_see(turn.user_id, turn.tenant):
                return _view(turn, task_id)
    return None


async def _choose_conversations(
    services: TaskLooks, caller: Caller, task_id: str, whole: str
) -> Sequence[str]:
    """Return the conversation of a task as long as that is kept, else those of its user where that is known."""
    entry = await services.ledger.read(await services.ledger.name(task_id))
    newest = None if entry is None else entry.generations[entry.newest]
    if newest is not None and newest.assignment is not None:
        try:
            sent = TaskAssignment.model_validate_json(newest.assignment)
        except ValueError:
            # A worker of another version, or a program, may have written it.
            return ()
        return (sent.conversation_id,) if sent.conversation_id is not None else ()
    record = (await services.records.find(task_place(caller, whole))).record
    if record is not None and record.conversation_id is not None:
        return (record.conversation_id,)
    if newest is None or newest.report is None:
        return ()
    report = CompletionReport.model_validate_json(newest.report)
    row = await TaskIndex(services.redis).read(report.agent_id, task_id)
    if row is None or not row.user:
        return ()
    try:
        user_id = user_of(row.user)
    except InvalidInput:
        return ()
    owned = await Conversations(services.redis).of_user(user_id)
    return owned[:_MOST_CONVERSATIONS]


def _find_turn(bodies: Sequence[bytes], whole: str) -> HeardTurn | None:
    """Return the last turn among *bodies* that was read as the request with the task id *whole*."""
    name = whole.encode()
    for body in reversed(bodies):
        if name not in body:
            continue
        turn = parse_turn(body)
        if turn is not None and turn.read_as and turn.read_as.task_id == whole:
            return turn
    return None


def _view(turn: HeardTurn, task_id: str) -> TaskWords | None:
    parts = () if turn.read_as is None else turn.read_as.parts
    place = place_of_task(task_id)
    if place > len(parts):
        return None
    part = parts[place - 1]
    if part.task is None:
        return None
    return TaskWords(
        task_id=task_id,
        text=turn.text,
        at=turn.at,
        user=turn.user_id,
        conversation_id=turn.conversation_id,
        request_id=turn.request_id,
        by=part.by,
        parameters=part.task.parameters,
        remembered=part.remembered,
        computed=part.computed,
        place=place,
        of=len(parts),
    )
