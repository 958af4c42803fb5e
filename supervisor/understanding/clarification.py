"""Answers to clarification questions: by value, by the word of a slot, by place ("the second"), yes and no."""

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from contracts.messages import ChatTurn
from quantities.errors import InvalidAmount
from quantities.numerals import parse_number
from supervisor.understanding.carry_over import take
from supervisor.understanding.conclusion import conclude
from supervisor.understanding.conversation import Open, Past, words_before
from supervisor.understanding.outcome import Ambiguous, Missing, Single, Unfitting
from supervisor.understanding.questions import leave, value_asked, values_asked
from supervisor.understanding.routing import Choice, Router, Task
from supervisor.understanding.schema import Slot
from supervisor.understanding.slots import Filled, fill
from supervisor.understanding.utterance import Utterance, evened, stems_of, word_set

_PLACES = {
    "first": 0, "1st": 0, "former": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3, "fifth": 4,
    "5th": 4, "last": -1, "latter": -1, "other": -1,
}  # fmt: skip
_DIGITS = {"1": 0, "one": 0, "2": 1, "two": 1, "3": 2, "three": 2, "4": 3, "four": 3}
_MOST = word_set("bigger biggest larger largest higher highest greater greatest later latest")
_LEAST = word_set("smaller smallest lower lowest lesser least earlier earliest sooner soonest")
_ALL = word_set("both all each everything")
_YES = word_set("yes yeah yep yup ok okay sure correct right exactly absolutely definitely indeed do")
_NO = word_set("no nope nah neither none not don't")
_LEAVE = (
    r"(?:(?:oh|no|ok|okay|please|just|actually|well|sorry)\W+)*(?:never ?mind|forget(?: about)?|cancel|stop|leave|drop"
    r"|skip|no thanks?|no thank you|neither|none|(?:i )?(?:don't|do not) (?:want|need))"
)
_LEAVING = re.compile(
    rf"\W*{_LEAVE}(?:\s+(?:it|that|this|them|these|those|all|both|of|please|then|thanks|thank you)\b|\W)*",
    re.IGNORECASE,
)
_LEAVES_ONE = re.compile(rf"\W*{_LEAVE}\b", re.IGNORECASE)
#: "Never mind, greet Bob" leaves what was asked for another request.
INSTEAD = re.compile(rf"\W*{_LEAVE}(?:\s+(?:it|that|them|both))?\s*[,.;:!]\s*(?=\S)", re.IGNORECASE)
#: What may stand beside the word that chooses: more words are an utterance of their own.
_BESIDE = word_set(
    "the a i mean meant want take choose pick please would like it's that's it is was that this of them these those go"
    " with for then thanks thank you one ones option choice answer reading number task agent question value sorry well"
    " oh just i'd i'll think guess and 's"
)
_WORDS = re.compile(r"[\w']+")
_SEPARATOR = re.compile(r"\s*[;\n]\s*|,\s+(?:and\s+|then\s+)?|\s+and\s+", re.IGNORECASE)
_UNTOLD = "(I cannot tell which of these questions that answers.)"


class Clarification:
    """Reads an utterance as an answer to *opened*, the open questions of *previous* turns."""

    def __init__(self, router: Router, previous: Sequence[ChatTurn], opened: Sequence[Open]) -> None:
        self._router, self._previous, self._opened = router, previous, opened

    def answer(self, utterance: Utterance, choice: Choice | None) -> list[Single] | None:
        """Return what the open questions come to by *utterance*; None when it is about something else."""
        if _LEAVING.fullmatch(utterance.text):
            return [Unfitting(leave("it" if len(self._opened) == 1 else "them", self._router.catalogue.abilities()))]
        if len(self._opened) == 1:
            return self._answer_one(self._opened[0], utterance, choice)
        return self._answer_several(utterance, choice)

    # -- one question -------------------------------------------------------------------------------------------------

    def _answer_one(self, one: Open, utterance: Utterance, choice: Choice | None) -> list[Single] | None:
        if one.offered:
            return self._choose_task(one, utterance, choice)
        if one.wants_yes and (found := self._agree(one, utterance)) is not None:
            return [found]
        found = self._fill(one, utterance, choice)
        return None if found is None else [found]

    def _choose_task(self, one: Open, utterance: Utterance, choice: Choice | None) -> list[Single] | None:
        places = pick(utterance.text, len(one.offered), may_be_digit=True)
        if places is None:
            places = _named(utterance, one.offered)
        if places is None and says_yes(utterance.text):
            return [Ambiguous(one.turn.text)]
        if places is None and choice is not None and choice.task in one.offered and not choice.rivals:
            if not utterance.amounts and len(utterance.stems) <= 4:
                places = (one.offered.index(choice.task),)
        if places is None:
            return None
        if not places:
            return [Unfitting(leave("it", self._router.catalogue.abilities()))]
        said = words_before(one.turn, self._previous)
        if said is None:
            return None
        earlier = Utterance(evened(said.text), decimal_mark=utterance.decimal_mark, now=_at(said, utterance))
        tasks = [one.offered[place] for place in places]
        return [conclude(task, fill(earlier, task), earlier) for task in tasks]

    def _agree(self, one: Open, utterance: Utterance) -> Single | None:
        """Return the task that is started by a yes, or left by a no."""
        if one.task is None or one.turn.task is None:
            return None
        if says_yes(utterance.text):
            filled = Filled()
            self._keep(filled, one)
            return conclude(one.task, filled, utterance)
        if pick(utterance.text, 1) == ():
            return Unfitting(leave("it", self._router.catalogue.abilities()))
        return None

    def _fill(self, one: Open, utterance: Utterance, choice: Choice | None) -> Single | None:
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
            filled = Filled() if _says_nothing(utterance.text) else fill(utterance, task, one.slots)
            if not filled.values and not filled.questions and not filled.whose:
                if is_other or (choice is None and _is_statement(utterance)):
                    return None
                return self._ask_again(one, filled, utterance)
        self._keep(filled, one)
        return conclude(task, filled, utterance)

    def _ask_again(self, one: Open, filled: Filled, utterance: Utterance) -> Single | None:
        if any(slot.kind == "boolean" for slot in one.slots) or one.task is None:
            return None
        self._keep(filled, one)
        return conclude(one.task, filled, utterance)

    def _by_place(self, one: Open, utterance: Utterance) -> Filled | None:
        """Return what "the second one" and "the limit" choose of what was asked; None when it is no such answer."""
        task = one.task
        if task is None:
            return None
        if (asked := value_asked(one.turn, task.schema)) is not None and not utterance.amounts:
            text, slots = asked
            places = pick(utterance.text, len(slots), may_be_digit=True)
            chosen = [slots[place] for place in places or ()] or _cued(utterance, task, slots)
            if len(chosen) == 1 and len(slots) == 2 and "not" in _words(utterance.text) and not places:
                chosen = [slot for slot in slots if slot is not chosen[0]]
            return _read(text, task, chosen, utterance) if chosen else None
        for slot in one.slots:
            values = () if slot.choices else values_asked(one.turn, slot)
            if values and (chosen_value := _chosen(utterance, slot, values)) is not None:
                return _settled(slot, chosen_value, task, utterance)
            if values and not _is_whole(utterance, slot):
                filled = Filled()
                filled.questions[slot.name] = one.turn.text
                return filled
            if slot.kind == "boolean" and len(one.slots) == 1 and _yes_or_no(utterance.text) is not None:
                filled = Filled()
                filled.put(slot, _yes_or_no(utterance.text), 0, len(utterance.text), utterance.text)
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

    # -- several questions --------------------------------------------------------------------------------------------

    def _answer_several(self, utterance: Utterance, choice: Choice | None) -> list[Single] | None:
        text = re.sub(r"\bfor (?:both|each|all)(?: of them)?\b|\bboth(?: of them)?\b|\beach\b", "", utterance.text)
        if text != utterance.text:
            same = [self._fill(one, _same_now(text, utterance), None) for one in self._opened]
            return [found for found in same if found is not None] if all(same) else None
        if _says_nothing(text):
            return [_asked_again(one, untold=False) for one in self._opened]
        clauses = [clause for clause in _SEPARATOR.split(utterance.text) if clause.strip()]
        answers: dict[int, Single] = {}
        dropped: set[int] = set()
        loose: list[Utterance] = []
        for clause in clauses:
            said = _same_now(clause, utterance)
            place, rest = self._placed(said)
            if (leaving := _LEAVES_ONE.match(clause)) is not None:
                place = place if place is not None else self._meant(_same_now(clause[leaving.end() :], utterance))
                if place is None:
                    return None
                dropped.add(place)
                continue
            if place is None:
                place, rest = self._fitting(said, answers), said
            if place is None:
                loose.append(said)
            elif (found := self._fill(self._opened[place], rest, None)) is not None:
                answers[place] = found
        free = [place for place in range(len(self._opened)) if place not in answers and place not in dropped]
        if loose and len(loose) == len(free):
            for place, said in zip(free, loose, strict=True):
                if (found := self._fill(self._opened[place], said, None)) is not None:
                    answers[place] = found
        elif loose and (choice is not None or (not answers and not any(said.amounts for said in loose))):
            return None
        untold = bool(loose) and len(loose) != len(free)
        kept = [(place, one) for place, one in enumerate(self._opened) if place not in dropped]
        if not kept:
            return [Unfitting(leave("them", self._router.catalogue.abilities()))]
        return [answers.get(place) or _asked_again(one, untold) for place, one in kept]

    def _meant(self, said: Utterance) -> int | None:
        """Return the one question whose task or slots the words of *said* name."""
        tasks = [one.task for one in self._opened]
        named = [place for place, task in enumerate(tasks) if task is not None and task.names & set(said.stems)]
        return named[0] if len(named) == 1 else None

    def _placed(self, said: Utterance) -> tuple[int | None, Utterance]:
        """Return which question *said* answers by its place ("the second is 4"), and the rest of it."""
        match = re.search(
            r"(?:\bfor )?\b(?:the )?(first|second|third|fourth|last|latter|former|other|then)\b(?: one)?",
            said.text,
            re.IGNORECASE,
        )
        if match is None:
            return None, said
        place = _PLACES.get(match[1].lower(), -1) % len(self._opened)
        rest = f"{said.text[: match.start()]}{said.text[match.end() :]}".strip(" :,")
        return place, _same_now(re.sub(r"^(?:is|are|:)\s+", "", rest), said)

    def _fitting(self, said: Utterance, answers: dict[int, Single]) -> int | None:
        """Return the one question that *said* can answer: by a cue, or as the only one that it fits."""
        fitting, cued = [], []
        for place, one in enumerate(self._opened):
            if one.task is None or place in answers:
                continue
            filled = fill(said, one.task, one.slots)
            names = {slot.name for slot in one.slots}
            if names & filled.values.keys():
                fitting.append(place)
                if any(cue.slot.name in names for cue in one.task.cues.find(said.tokens)):
                    cued.append(place)
        if len(cued) == 1:
            return cued[0]
        return fitting[0] if len(fitting) == 1 else None


def _asked_again(one: Open, untold: bool) -> Single:
    text = one.turn.text.removesuffix(_UNTOLD).rstrip()
    text = f"{text} {_UNTOLD}" if untold else text
    if one.task is None or one.turn.task is None:
        return Ambiguous(text)
    agent_id, name = one.task.key
    names = tuple(slot.name for slot in one.slots)
    return Missing(agent_id, name, one.turn.task.parameters, names, text)


def _same_now(text: str, utterance: Utterance) -> Utterance:
    return Utterance(text.strip(), decimal_mark=utterance.decimal_mark, now=utterance.now)


def _at(turn: ChatTurn, utterance: Utterance) -> datetime:
    return turn.at.astimezone(utterance.now.tzinfo) if utterance.now.tzinfo else turn.at


def _read(text: str, task: Task, slots: Sequence[Slot], utterance: Utterance) -> Filled | None:
    """Return *text*, a value that a question named, as the value of *slots*; its place is the whole of *utterance*."""
    filled = Filled()
    for slot in slots:
        found = fill(_same_now(text, utterance), task, (slot,))
        if slot.name not in found.values:
            return None
        filled.put(slot, found.values[slot.name], 0, len(utterance.text), utterance.text)
        filled.values[slot.name] = found.values[slot.name]
    return filled


def _settled(slot: Slot, value: str, task: Task, utterance: Utterance) -> Filled | None:
    """Return *value*, one that a question offered, for *slot*; it is as the slot writes it when that is a time."""
    if not slot.is_timed:
        return _read(value, task, [slot], utterance)
    filled = Filled()
    filled.put(slot, value, 0, len(utterance.text), utterance.text)
    return filled


def _is_whole(utterance: Utterance, slot: Slot) -> bool:
    """Return whether *utterance* says a value of its own: a number in digits, a day with a time."""
    if slot.is_timed:
        return any(one.has_day and isinstance(one.readings[0], datetime) for one in utterance.moments)
    return any(map(str.isdigit, utterance.text)) or not slot.is_numeric


def _chosen(utterance: Utterance, slot: Slot, values: Sequence[str]) -> str | None:
    """Return which of *values* that a question offered is chosen: by its place, its size or a part of it."""
    places = pick(utterance.text, len(values))
    if places is not None and len(places) == 1:
        return values[places[0]]
    words = set(_words(utterance.text)) - _BESIDE
    if len(words) == 1 and words <= _MOST | _LEAST:
        ranked = sorted(values, key=lambda value: value if slot.is_timed else _number(value))
        return ranked[-1] if words <= _MOST else ranked[0]
    denied = bool(re.match(r"\W*(?:no\W+)?not\b", utterance.text, re.IGNORECASE))
    found = [value for value in values if _is_said(utterance, slot, value)]
    if denied and len(values) == 2 and len(found) == 1:
        return next(value for value in values if value not in found)
    return found[0] if len(found) == 1 else None


def _number(value: str) -> Decimal:
    try:
        return parse_number(value)
    except InvalidAmount:
        return Decimal(0)


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


def _cued(utterance: Utterance, task: Task, slots: Sequence[Slot]) -> list[Slot]:
    return list({cue.slot.name: cue.slot for cue in task.cues.find(utterance.tokens) if cue.slot in slots}.values())


def _named(utterance: Utterance, offered: Sequence[Task]) -> tuple[int, ...] | None:
    """Return which of *offered* the words name that only one of them has."""
    said = set(utterance.stems)
    if not said or len(said) > 8:
        return None
    names = [{*stems_of(task.offer.label), *stems_of(task.offer.agent.agent_id)} for task in offered]
    telling = [own - set().union(*(other for other in names if other is not own)) for own in names]
    found = tuple(place for place, own in enumerate(telling) if own & said)
    return found if len(found) == 1 else None


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower().replace("\u2019", "'"))


def says_yes(text: str) -> bool:
    """Return whether *text* agrees, and says nothing else ("yes please", "that's right")."""
    words = _words(text)
    return not _YES.isdisjoint(words) and _YES.union(_BESIDE).issuperset(words)


def _yes_or_no(text: str) -> bool | None:
    words = set(_words(text)) - _BESIDE
    return True if words and words <= _YES else False if words and words <= _NO else None


def _says_nothing(text: str) -> bool:
    """Return whether *text* is a yes, a no or a place alone, and so no value."""
    return not set(_words(text)) - _BESIDE - _YES - _NO - _ALL - _PLACES.keys()


def _is_statement(utterance: Utterance) -> bool:
    return len(utterance.stems) > 6


def pick(text: str, count: int, *, may_be_digit: bool = False) -> tuple[int, ...] | None:
    """Return which of *count* things *text* picks, by their places from 0; empty for none of them.

    None when it picks nothing by place. A bare number picks where it *may_be_digit*. A yes picks the only one.
    """
    words = _words(text)
    names = {**_PLACES, **(_DIGITS if may_be_digit or {"option", "number", "choice"} & set(words) else {})}
    pointing = word_set("the that this these those")
    named = [
        (at, names[word])
        for at, word in enumerate(words)
        if word in names and not (word in _DIGITS and at and (words[at - 1] in pointing or words[at - 1] in _PLACES))
    ]
    others = set(words) - _BESIDE - _YES - _NO - names.keys()
    if named and not others:
        denied = {place % count for at, place in named if "not" in words[max(at - 2, 0) : at]}
        places = {place % count for at, place in named if place < count} - denied
        if denied and not places and count == 2:
            return (1 - denied.pop(),)
        return tuple(sorted(places)) or None
    if others and others <= _ALL:
        return tuple(range(count)) if count > 1 else None
    if others:
        return None
    if not _NO.isdisjoint(words):
        return ()
    return (0,) if count == 1 and says_yes(text) else None
