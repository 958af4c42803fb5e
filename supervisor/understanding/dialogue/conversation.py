"""What the turns of a conversation hold for the next utterance: tasks that were asked for, and open questions."""

from collections.abc import Sequence
from typing import NamedTuple

from contracts.messages import ChatTurn, TaskCall
from supervisor.understanding.questions import (
    asks_to_confirm,
    asks_to_leave_out,
    asks_which_task,
    slots_asked,
    tasks_asked,
)
from supervisor.understanding.routing import Router, Task
from supervisor.understanding.schema import Slot


class Past(NamedTuple):
    """A task of the conversation, as the catalogue has it now, and the turn that holds its call."""

    task: Task
    call: TaskCall
    turn: ChatTurn


class Open(NamedTuple):
    """A question that the person may answer: for slots of *task*, for a yes to it, or which of *offered* is meant."""

    turn: ChatTurn
    task: Task | None
    slots: tuple[Slot, ...] = ()
    offered: tuple[Task, ...] = ()
    wants_yes: bool = False


def open_questions(previous: Sequence[ChatTurn], router: Router) -> list[Open]:
    """Return the questions of the assistant's last turns, those about parts of one utterance, in order."""
    last = previous[-1] if previous else None
    if last is None or last.speaker != "assistant":
        return []
    found = []
    for turn in previous:
        is_beside = turn is last or (turn.request_id is not None and turn.request_id == last.request_id)
        if turn.speaker == "assistant" and is_beside and (one := _open(turn, router)) is not None:
            found.append(one)
    return found


def _open(turn: ChatTurn, router: Router) -> Open | None:
    if turn.kind not in (None, "question"):
        # A report may read like a question of ours, and its task has run.
        return None
    if asks_which_task(turn):
        labelled = {(task.key[0], task.offer.label): task for task in reversed(router.tasks)}
        offered = tuple(labelled[key] for key in tasks_asked(turn) if key in labelled)
        return Open(turn, None, offered=offered) if offered else None
    task = router.find(turn.agent_id, turn.task.name) if turn.task is not None and turn.agent_id else None
    if task is None:
        return None
    if asks_to_confirm(turn) or asks_to_leave_out(turn):
        return Open(turn, task, wants_yes=True)
    slots = slots_asked(turn, task.schema)
    return Open(turn, task, slots) if slots else None


def past_tasks(previous: Sequence[ChatTurn], router: Router) -> list[Past]:
    """Return the tasks of *previous* that an utterance may refer back to, the latest first."""
    found = []
    for turn in reversed(previous):
        if turn.speaker == "assistant" and turn.task is not None and turn.agent_id:
            task = router.find(turn.agent_id, turn.task.name)
            if task is not None:
                found.append(Past(task, turn.task, turn))
    return found


def words_before(turn: ChatTurn, previous: Sequence[ChatTurn]) -> ChatTurn | None:
    """Return the person's turn that *turn* asked about, also when it asked again after an answer that chose none."""
    said = None
    for one in reversed(previous):
        if one.speaker == "person":
            said = one
        elif said is not None and one.text != turn.text:
            break
    return said
