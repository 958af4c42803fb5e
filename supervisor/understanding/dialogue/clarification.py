"""Answers to clarification questions: by value, by the word of a slot, by place ("the second"), yes and no."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from contracts.messages import ChatTurn
from quantities.errors import InvalidAmount
from quantities.numerals import parse_number
from supervisor.understanding.conclusion import Filled, conclude
from supervisor.understanding.dialogue.carry_over import take
from supervisor.understanding.dialogue.conversation import Open, Past, words_before
from supervisor.understanding.dialogue.picks import (
    LEAVING,
    pick,
    says_nothing,
    says_yes,
    words_in,
    yes_or_no,
)
from supervisor.understanding.dialogue.several_answers import ask_again, read_several
from supervisor.understanding.outcome import Ambiguous, Single, Unfitting
from supervisor.understanding.questions import asks_to_confirm, leave, value_asked, values_asked
from supervisor.understanding.routing import Choice, Router, Task
from supervisor.understanding.schema import Slot
from supervisor.understanding.slots import fill
from supervisor.understanding.utterance import Utterance, evened, stems_of

#: Words of an answer that only names a task.
_SHORT = 4
#: Words of an answer without any value; more are about something else.
_MOST_WORDS = 6


class Clarification:
    """Reads an utterance as an answer to *opened*, the open questions of *previous* turns."""

    def __init__(self, router: Router, previous: Sequence[ChatTurn], opened: Sequence[Open]) -> None:
        self._router, self._previous, self._opened = router, previous, opened

    def answer(self, utterance: Utterance, choice: Choice | None) -> list[Single] | None:
        """Return what the open questions come to by *utterance*; None when it is about something else."""
        if LEAVING.fullmatch(utterance.text):
            return [Unfitting(leave("it" if len(self._opened) == 1 else "them", self._router.catalogue.abilities()))]
        if len(self._opened) == 1:
            return self._answer_one(self._opened[0], utterance, choice)
        if (agreed := self._agree_to_all(utterance)) is not None:
            return agreed
        return read_several(self._opened, self.fill, utterance, choice)

    # -- one question -------------------------------------------------------------------------------------------------

    def _answer_one(self, one: Open, utterance: Utterance, choice: Choice | None) -> list[Single] | None:
        if one.offered:
            return self._choose_task(one, utterance, choice)
        if one.wants_yes and (found := self._agree(one, utterance)) is not None:
            return [found]
        found = self.fill(one, utterance, choice)
        return None if found is None else [found]

    def _choose_task(self, one: Open, utterance: Utterance, choice: Choice | None) -> list[Single] | None:
        places = pick(utterance.text, len(one.offered), may_be_digit=True)
        if places is None:
            places = _named(utterance, one.offered)
        if places is None and says_yes(utterance.text):
            return [Ambiguous(one.turn.text)]
        is_short = not utterance.amounts and len(utterance.stems) <= _SHORT
        if places is None and is_short and choice is not None and choice.task in one.offered and not choice.rivals:
            places = (one.offered.index(choice.task),)
        if places is None:
            return None
        if not places:
            return [Unfitting(leave("it", self._router.catalogue.abilities()))]
        said = words_before(one.turn, self._previous)
        if said is None:
            return None
        at = said.at.astimezone(utterance.now.tzinfo) if utterance.now.tzinfo else said.at
        earlier = Utterance(evened(said.text), decimal_mark=utterance.decimal_mark, now=at)
        tasks = [one.offered[place] for place in places]
        return [conclude(task, fill(earlier, task), earlier) for task in tasks]

    def _agree(self, one: Open, utterance: Utterance) -> Single | None:
        """Return the task that is started by a yes, or left by a no."""
        if one.task is None or one.turn.task is None:
            return None
        if says_yes(utterance.text):
            filled = Filled()
            self._keep(filled, one)
            return conclude(one.task, filled, utterance, is_agreed=asks_to_confirm(one.turn))
        if pick(utterance.text, 1) == ():
            return Unfitting(leave("it", self._router.catalogue.abilities()))
        return None

    def _agree_to_all(self, utterance: Utterance) -> list[Single] | None:
        """Return the tasks that one yes starts, or one reply for all that a no leaves; None for any other answer."""
        agreed = [self._agree(one, utterance) for one in self._opened if one.wants_yes]
        found = [one for one in agreed if one is not None]
        if len(found) < len(self._opened):
            return None
        return found if says_yes(utterance.text) else found[:1]

    def fill(self, one: Open, utterance: Utterance, choice: Choice | None) -> Single | None:
        """Return the task of *one* with what *utterance* adds, None when that is about something else."""
        task = one.task
        if task is None or one.turn.task is None:
            return None
        filled = self._by_place(one, utterance)
        if filled is None:
            is_other = choice is not None and choice.task is not task and task not in choice.rivals
            texts = [slot for slot in one.slots if slot.kind == "text"]
            if is_other and choice is not None:
                if texts or not fill(utterance, task, one.slots).values:
                    return None
                if fill(utterance, choice.task).values:
                    return None
            filled = Filled() if says_nothing(utterance.text) else fill(utterance, task, one.slots)
            if not filled.values and not filled.questions and not filled.whose:
                if is_other or (choice is None and len(utterance.stems) > _MOST_WORDS):
                    return None
                return ask_again(one)
        self._keep(filled, one)
        return conclude(task, filled, utterance)

    def _by_place(self, one: Open, utterance: Utterance) -> Filled | None:
        """Return what "the second one" and "the limit" choose of what was asked; None when it is no such answer."""
        task = one.task
        if task is None:
            return None
        if (asked := value_asked(one.turn, task.schema)) is not None and not utterance.amounts:
            text, slots = asked
            places = pick(utterance.text, len(slots), may_be_digit=True)
            cued = {cue.slot.name for cue in task.cues.find(utterance.tokens)}
            chosen = [slots[place] for place in places or ()] or [slot for slot in slots if slot.name in cued]
            if chosen and not places and "not" in words_in(utterance.text):
                others = [slot for slot in slots if slot not in chosen]
                chosen = others if len(others) == 1 else []
            return _read(text, task, chosen, utterance) if chosen else None
        for slot in one.slots:
            values = () if slot.choices else values_asked(one.turn, slot)
            if values and (value := _chosen(utterance, slot, values)) is not None:
                return _read(value, task, [slot], utterance)
            filled = Filled()
            if values and not _is_whole(utterance, slot):
                filled.questions[slot.name] = one.turn.text
                return filled
            if slot.kind == "boolean" and len(one.slots) == 1 and yes_or_no(utterance.text) is not None:
                filled.put(slot, yes_or_no(utterance.text), 0, len(utterance.text), utterance.text)
                return filled
        return None

    def _keep(self, filled: Filled, one: Open) -> None:
        """Keep what was known before, as far as nothing else is said now."""
        if one.task is None or one.turn.task is None:
            return
        past = Past(one.task, one.turn.task, one.turn)
        for slot in one.task.schema.slots:
            if slot.name in past.call.parameters and filled.is_open(slot):
                take(filled, past, slot, (0, len(one.turn.text)), one.turn.text)


def _read(text: str, task: Task, slots: Sequence[Slot], utterance: Utterance) -> Filled | None:
    """Return *text*, a value that a question named, as the value of *slots*; its place is the whole of *utterance*."""
    filled, said = Filled(), Utterance(text.strip(), decimal_mark=utterance.decimal_mark, now=utterance.now)
    for slot in slots:
        found = fill(said, task, (slot,))
        if slot.name not in found.values:
            return None
        filled.put(slot, None, 0, len(utterance.text), utterance.text)
        filled.values[slot.name] = found.values[slot.name]
    return filled


def _is_whole(utterance: Utterance, slot: Slot) -> bool:
    """Return whether *utterance* says a value of its own: a number in digits, a day with a time."""
    if slot.is_timed:
        return any(one.has_day and isinstance(one.readings[0], datetime) for one in utterance.moments)
    return any(map(str.isdigit, utterance.text)) or not slot.is_numeric


def _chosen(utterance: Utterance, slot: Slot, values: Sequence[str]) -> str | None:
    """Return which of *values* that a question offered is chosen: by its place or a part of it."""
    places = pick(utterance.text, len(values))
    if places is not None and len(places) == 1:
        return values[places[0]]
    found = [value for value in values if _is_said(utterance, slot, value)]
    return found[0] if len(found) == 1 and "not" not in words_in(utterance.text) else None


def _number(value: str) -> Decimal | None:
    try:
        return parse_number(value)
    except InvalidAmount:
        return None


def _is_said(utterance: Utterance, slot: Slot, value: str) -> bool:
    """Return whether *utterance* says *value*, or of a moment its day or its time."""
    if not slot.is_timed:
        return any(found.value is not None and found.value == _number(value) for found in utterance.amounts)
    said = set()
    for found in utterance.moments:
        for reading in found.readings:
            if found.has_day:
                said.add((reading.date() if isinstance(reading, datetime) else reading).isoformat())
            elif isinstance(reading, datetime):
                said.add(reading.time().isoformat())
    return any(value.startswith(one) or value.endswith(one) for one in said)


def _named(utterance: Utterance, offered: Sequence[Task]) -> tuple[int, ...] | None:
    """Return which of *offered* the words name that only one of them has."""
    said = set(utterance.stems)
    if not said or len(said) > 8:
        return None
    names = [{*stems_of(task.offer.label), *stems_of(task.offer.agent.agent_id)} for task in offered]
    telling = [own - set().union(*(other for other in names if other is not own)) for own in names]
    found = tuple(place for place, own in enumerate(telling) if own & said)
    return found if len(found) == 1 else None
