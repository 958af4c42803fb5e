"""The context of the next utterance in a conversation: open questions, and tasks whose values it goes on with.

"Again with spent 45000", "same history" and "and for Bob?" leave the rest of their values to an earlier task.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tasklore.contracts.messages import ChatTurn, TaskCall
from tasklore.supervisor.understanding.changes import SlotChange, changes_in, put_change
from tasklore.supervisor.understanding.conclusion import Filled
from tasklore.supervisor.understanding.cues import Cue
from tasklore.supervisor.understanding.outcome import TextSpan
from tasklore.supervisor.understanding.questions import (
    Unplaced,
    ask_unknown_reference,
    asks_to_confirm,
    asks_to_leave_out,
    asks_which_task,
    name_offered,
    slots_asked,
    tasks_asked,
)
from tasklore.supervisor.understanding.routing import Router, RoutingTask
from tasklore.supervisor.understanding.schema import Slot
from tasklore.supervisor.understanding.slots import fill
from tasklore.supervisor.understanding.utterance import (
    LIGHT,
    STOP,
    ReadUtterance,
    stem,
    word_set,
)

_SAME = frozenset(
    {"same", "previous", "earlier", "prior", "identical", "unchanged", "last", "old"}
)
#: Words between "same" and the slot, beside names of slots ("the same limit and history").
_BETWEEN = frozenset(
    {"my", "old", "and", "or", "of", "the", "as", "values", "value", "for"}
)
_REPEATING = re.compile(
    r"\b(?:again|once more|one more time|repeat|redo|re-?run|re-?check|instead|same|as before|like before|as last time"
    r"|everything else|the rest|this time)\b",
    re.IGNORECASE,
)
_ONCE_MORE = re.compile(r"\bone more time\b", re.IGNORECASE)
#: An utterance that begins so goes on with the task before it.
_GOING_ON = re.compile(
    r"^\W*(?:(?:and|but|now|ok|okay|so|then|no|sorry|actually|oops|wait|please)\W+)*(?:(?:and|but|now|no|sorry|actually"
    r"|oops|wait|i mean|i meant|correction)\b|what about|how about|what if|with|without|make (?:it|that|them)|only"
    r"|raise|increase|lower|reduce|decrease|cut|set|change|bump|drop|move|use|add|take|remove|double|triple|halve|half"
    r"|twice)",
    re.IGNORECASE,
)
#: Words of such an utterance that speak of nothing else.
OWN_WORDS = LIGHT | STOP | word_set(
    "again once more time repeat redo rerun recheck instead same before last everything else rest change changed set"
    " raise increase lower reduce decrease cut bump drop move use make add take remove double triple halve half"
    " twice tripled doubled halved times actually sorry oops wait mean meant correction question thing less fewer"
    " higher extra additional task values value figures numbers unchanged previous earlier old if"
)  # fmt: skip
_OWN_STEMS = frozenset(map(stem, OWN_WORDS))


class Past(NamedTuple):
    """A task of the conversation, as the catalogue has it now; *turn_id* is None within the utterance itself."""

    task: RoutingTask
    call: TaskCall
    turn_id: str | None


class Open(NamedTuple):
    """A question that the person may answer: for slots of *task*, for a yes to it, or which of *offered* is meant."""

    turn: ChatTurn
    task: RoutingTask | None
    slots: tuple[Slot, ...] = ()
    offered: tuple[RoutingTask, ...] = ()
    wants_yes: bool = False


def open_questions(previous: Sequence[ChatTurn], router: Router) -> list[Open]:
    """Return the questions of the assistant's last turns, those about parts of one utterance, in order."""
    last = previous[-1] if previous else None
    if last is None or last.speaker != "assistant":
        return []
    found = []
    for turn in previous:
        is_beside = turn is last or (
            turn.request_id is not None and turn.request_id == last.request_id
        )
        if (
            turn.speaker == "assistant"
            and is_beside
            and (one := _open(turn, router)) is not None
        ):
            found.append(one)
    return found


def _open(turn: ChatTurn, router: Router) -> Open | None:
    if turn.kind not in (None, "question"):
        # A report may read like a question of ours, and its task has run.
        return None
    if asks_which_task(turn):
        labelled = {
            (task.key[0], name): task
            for task in reversed(router.tasks)
            for name in (task.offer.label, name_offered(task.offer))
        }
        offered = tuple(labelled[key] for key in tasks_asked(turn) if key in labelled)
        return Open(turn, None, offered=offered) if offered else None
    task = (
        router.find(turn.agent_id, turn.task.name)
        if turn.task is not None and turn.agent_id
        else None
    )
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
                found.append(Past(task, turn.task, turn.turn_id))
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


def carry_over(
    utterance: ReadUtterance,
    task: RoutingTask,
    pasts: Sequence[Past],
    *,
    is_asked_for: bool,
) -> Filled | None:
    """Return the values of *task* in *utterance*, completed from the latest of *pasts* of that task.

    With *is_asked_for* its words ask for the task by themselves. None when they are about something else.
    """
    past = next((one for one in pasts if one.task is task), None)
    cues = task.cues.find(utterance.tokens)
    changes = changes_in(utterance, cues)
    named = _same_slots(utterance, cues)
    refers = goes_on(utterance) or bool(changes)
    if not is_asked_for and (past is None or not refers):
        return None
    told = [(change.start, change.end) for change in changes]
    told += [match.span() for match in _ONCE_MORE.finditer(utterance.text)]
    filled = fill(utterance.without(told) if told else utterance, task)
    if not is_asked_for and _speaks_of_else(utterance, task, filled, changes):
        return None
    if past is None:
        for slot in [
            *named,
            *(change.slot for change in changes if change.slot is not None),
        ]:
            if filled.is_open(slot):
                filled.questions[slot.name] = ask_unknown_reference(slot)
        unread = [
            one
            for one in changes
            if one.slot is None or one.slot.name not in filled.questions
        ]
        filled.left += [(one.start, one.end) for one in unread]
        return filled
    _put_changes(filled, utterance, past, changes)
    is_whole = not named or bool(
        re.search(
            r"\b(?:else|rest|again|but|with|instead)\b", utterance.text, re.IGNORECASE
        )
    )
    refers = refers and (is_whole or not is_asked_for)
    for slot in task.schema.slots:
        if (
            slot.name in past.call.parameters
            and filled.is_open(slot)
            and (slot in named or refers)
        ):
            take(
                filled,
                past=past,
                slot=slot,
                span=named.get(slot, utterance.extent),
                text=utterance.text,
            )
    return filled


def goes_on(utterance: ReadUtterance) -> bool:
    """Return whether the words of *utterance* go on with a task before it."""
    return bool(_REPEATING.search(utterance.text) or _GOING_ON.search(utterance.text))


def take(
    filled: Filled, past: Past, slot: Slot, span: tuple[int, int], text: str
) -> None:
    """Give *slot* the value that it had in *past*, which the words at *span* of *text* ask for."""
    filled.values[slot.name] = past.call.parameters[slot.name]
    filled.spans.append(TextSpan(slot.name, *span, text[slice(*span)], past.turn_id))


def _same_slots(
    utterance: ReadUtterance, cues: Sequence[Cue]
) -> dict[Slot, tuple[int, int]]:
    """Return the slots whose earlier value is asked for by name, with the words: "same limit and history"."""
    tokens = utterance.tokens
    starting = {cue.first: cue for cue in cues}
    found: dict[Slot, tuple[int, int]] = {}
    for place, token in enumerate(tokens):
        if token.text not in _SAME:
            continue
        after = place + 1
        while after < len(tokens) and (
            tokens[after].text in _BETWEEN or after in starting
        ):
            cue = starting.get(after)
            if cue is not None:
                found[cue.slot] = (token.start, tokens[cue.end - 1].end)
            after = cue.end if cue is not None else after + 1
    return found


def _speaks_of_else(
    utterance: ReadUtterance,
    task: RoutingTask,
    filled: Filled,
    changes: Sequence[SlotChange],
) -> bool:
    """Return whether a word of *utterance* is about something else than *task*: "tell me that joke again"."""
    taken = [(change.start, change.end) for change in changes]
    taken += [*utterance.value_spans, *utterance.quotations]
    taken += filled.left
    return any(
        token.is_word
        and token.stem not in _OWN_STEMS
        and token.text not in OWN_WORDS
        and token.stem not in task.known
        and not filled.holds(token.start, token.end)
        and not any(start <= token.start < end for start, end in taken)
        for token in utterance.tokens
    )


def _put_changes(
    filled: Filled, utterance: ReadUtterance, past: Past, changes: Sequence[SlotChange]
) -> None:
    """Work out each of *changes* from the value in *past*, exactly."""
    earlier = past.call.parameters
    scalars = [
        slot
        for slot in past.task.schema.slots
        if slot.is_numeric and not slot.is_list and slot.name in earlier
    ]
    for change in changes:
        text = utterance.text[change.start : change.end]
        slot = change.slot or (scalars[0] if len(scalars) == 1 else None)
        if slot is None:
            if scalars:
                filled.whose.append(Unplaced(text, tuple(scalars)))
        elif slot.name not in earlier:
            filled.questions[slot.name] = ask_unknown_reference(slot)
        elif put_change(
            filled,
            slot=slot,
            change=change,
            earlier=earlier[slot.name],
            utterance=utterance,
        ):
            filled.spans.append(
                TextSpan(
                    slot.name,
                    start=change.start,
                    end=change.end,
                    text=text,
                    turn_id=past.turn_id,
                )
            )
