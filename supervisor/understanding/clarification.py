"""Answers to clarification questions: by value, by the word of a slot, by place ("the second"), yes and no."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.quantities.amounts import Amount
from tasklore.contracts.quantities.amounts.money import spell_money
from tasklore.contracts.quantities.errors import InvalidAmount
from tasklore.contracts.quantities.numerals import find_amounts, parse_number
from tasklore.supervisor.understanding.conclusion import Filled, conclude, find_shares
from tasklore.supervisor.understanding.conversation import (
    OWN_WORDS,
    Open,
    Past,
    take,
    words_before,
)
from tasklore.supervisor.understanding.currencies import currency_named
from tasklore.supervisor.understanding.outcome import Clarification, Single, Unfitting
from tasklore.supervisor.understanding.questions import (
    amount_asked,
    asks_to_confirm,
    leave,
    value_asked,
    values_asked,
)
from tasklore.supervisor.understanding.routing import Route, Router, RoutingTask
from tasklore.supervisor.understanding.schema import Slot
from tasklore.supervisor.understanding.slots import fill
from tasklore.supervisor.understanding.utterance import (
    STOP,
    ReadUtterance,
    collapse_space,
    stems_of,
    word_set,
)
from tasklore.supervisor.understanding.wholeness import mark_loose

#: Words of an answer that only names a task, and of one without any value; more are about something else.
_SHORT = 4
_MOST_WORDS = 6
_PLACES = {
    "first": 0, "1st": 0, "former": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3, "fifth": 4,
    "5th": 4, "last": -1, "latter": -1, "other": -1,
}  # fmt: skip
_DIGITS = {"1": 0, "one": 0, "2": 1, "two": 1, "3": 2, "three": 2, "4": 3, "four": 3}
_ALL = word_set("both all each everything")
#: Also in other languages: a model reads the rest of them, but only these words start or leave what was shown.
_YES = word_set(
    "yes yeah yep yup ok okay sure correct right exactly absolutely definitely indeed do ja jawohl klar genau oui sí si"
    " sì sim vale claro va bene certo da да evet igen ano 是 是的 对 好 好的 可以 はい ええ 네 예 نعم أجل हाँ हां"
)
_NO = word_set(
    "no nope nah neither none not don't nein non não нет nem 不 不是 不要 いいえ 아니요 لا नहीं nee nej"
)
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
_INSTEAD = re.compile(
    rf"\W*{_LEAVE}(?:\s+(?:it|that|them|both))?\s*[,.;:!]\s*(?=\S)", re.IGNORECASE
)
#: Words that may stand beside the word that chooses: more are an utterance of their own.
_BESIDE = word_set(
    "the a i mean meant want take choose pick please would like it's that's it is was that this of them these those go"
    " with for then thanks thank you one ones option choice answer reading number task agent question value sorry well"
    " oh just i'd i'll think guess and 's"
)
_POINTING = word_set("the that this these those") | _PLACES.keys()
_WORDS = re.compile(r"[\w']+")
_SEPARATOR = re.compile(
    r"\s*[;\n]\s*|,\s+(?:(?:and|then)\s+)?|\s+and\s+", re.IGNORECASE
)
#: In the answer to several questions: two numbers of which neither is said for good, and what is said of several.
_OPEN_ENDED = re.compile(
    r"\bbetween\b[^,;.]*\d|\d\S*\s+or\s+\S*\d|\b(?:both|each|all|first|second|third|last|other)\b",
    re.IGNORECASE,
)
#: How long a yes means what was shown; a later one is shown it again.
_AGREED_WITHIN = timedelta(minutes=30)
_UNTOLD = "(I cannot tell which of these questions that answers.)"


def answer_questions(
    opened: Sequence[Open],
    utterance: ReadUtterance,
    choice: Route | None,
    router: Router,
    previous: Sequence[ChatTurn],
) -> list[Single] | None:
    """Return the outcomes of *opened*, questions of *previous* turns, by *utterance*; None for another matter."""
    left: list[Single] = [
        Unfitting(
            leave("it" if len(opened) == 1 else "them", router.catalogue.abilities())
        )
    ]
    if _LEAVING.fullmatch(utterance.text):
        return left
    if all(one.wants_yes for one in opened):
        if _says_yes(utterance.text):
            return [
                agreed
                for one in opened
                if (agreed := _agree(one, utterance)) is not None
            ]
        if pick(utterance.text, 1) == ():
            return left
    if len(opened) > 1:
        return _answer_several(opened, utterance, choice)
    [one] = opened
    if one.offered:
        return (
            left
            if _places(one, utterance, choice) == ()
            else _choose_task(one, utterance, choice, previous)
        )
    found = _answer_one(one, utterance, choice)
    return None if found is None else [found]


def rest_instead(utterance: ReadUtterance) -> ReadUtterance | None:
    """Return the request in place of an open question ("never mind, greet Bob"); None without one."""
    match = _INSTEAD.match(utterance.text)
    if match is None or len(utterance.stems) <= _SHORT - 1:
        return None
    return ReadUtterance(
        utterance.text[match.end() :],
        decimal_mark=utterance.decimal_mark,
        now=utterance.now,
    )


def pick(
    text: str, count: int, *, may_be_digit: bool = False
) -> tuple[int, ...] | None:
    """Return which of *count* things *text* picks, by their places from 0; empty for none of them.

    None when it picks nothing by place. A bare number picks where it *may_be_digit*. A yes picks the only one.
    """
    words = _words_in(text)
    names = {
        **_PLACES,
        **(
            _DIGITS
            if may_be_digit or {"option", "number", "choice"} & set(words)
            else {}
        ),
    }
    named = [
        (at, names[word])
        for at, word in enumerate(words)
        if word in names and not (word in _DIGITS and at and words[at - 1] in _POINTING)
    ]
    others = set(words) - _BESIDE - _YES - _NO - names.keys()
    if named and not others:
        denied = {
            place % count for at, place in named if "not" in words[max(at - 2, 0) : at]
        }
        places = {place % count for at, place in named if place < count} - denied
        if denied and not places and count == 2:
            return (1 - denied.pop(),)
        return tuple(sorted(places)) or None
    if others:
        return tuple(range(count)) if others <= _ALL and count > 1 else None
    if not _NO.isdisjoint(words):
        return ()
    return (0,) if count == 1 and _says_yes(text) else None


def _words_in(text: str) -> list[str]:
    return _WORDS.findall(text.lower().replace("\u2019", "'"))


def _says_yes(text: str) -> bool:
    """Return whether *text* agrees, and says nothing else ("yes please", "that's right")."""
    words = _words_in(text)
    return not _YES.isdisjoint(words) and _YES.union(_BESIDE).issuperset(words)


def _says_nothing(text: str) -> bool:
    """Return whether *text* is a yes, a no or a place alone, and so no value."""
    return not set(_words_in(text)) - _BESIDE - _YES - _NO - _ALL - _PLACES.keys()


def _agree(one: Open, utterance: ReadUtterance) -> Single | None:
    """Return the task of *one* as it was shown; shown again where that was too long ago."""
    if one.task is None:
        return None
    filled = Filled(task=one.task)
    _keep(filled, one)
    is_late = utterance.now - one.turn.at > _AGREED_WITHIN
    is_agreed = asks_to_confirm(one.turn) and not is_late
    return conclude(filled, utterance.text, is_agreed=is_agreed)


def _places(
    one: Open, utterance: ReadUtterance, choice: Route | None
) -> tuple[int, ...] | None:
    """Return which of the offered tasks are chosen: by place, by a word that only one has, or asked for."""
    if (
        places := pick(utterance.text, len(one.offered), may_be_digit=True)
    ) is not None:
        return places
    said = set(utterance.stems)
    names = [
        {*stems_of(task.offer.label), *stems_of(task.offer.agent.agent_id)}
        for task in one.offered
    ]
    telling = [
        own - set().union(*(other for other in names if other is not own))
        for own in names
    ]
    named = [place for place, own in enumerate(telling) if own & said]
    if len(named) == 1 and len(said) <= 2 * _SHORT:
        return (named[0],)
    is_short = not utterance.amounts and len(utterance.stems) <= _SHORT
    if (
        is_short
        and choice is not None
        and choice.task in one.offered
        and not choice.rivals
    ):
        return (one.offered.index(choice.task),)
    return None


def _choose_task(
    one: Open,
    utterance: ReadUtterance,
    choice: Route | None,
    previous: Sequence[ChatTurn],
) -> list[Single] | None:
    places = _places(one, utterance, choice)
    said = words_before(one.turn, previous)
    if places is None and _says_yes(utterance.text):
        return [Clarification(one.turn.text)]
    if places is None or said is None:
        return None
    at = said.at.astimezone(utterance.now.tzinfo) if utterance.now.tzinfo else said.at
    earlier = ReadUtterance(
        collapse_space(said.text), decimal_mark=utterance.decimal_mark, now=at
    )
    return [
        mark_loose(conclude(fill(earlier, task), earlier.text), earlier, task)
        for task in (one.offered[place] for place in places)
    ]


def _answer_one(
    one: Open, utterance: ReadUtterance, choice: Route | None
) -> Single | None:
    """Return the task of *one* completed by *utterance*, None when that is about something else."""
    task = one.task
    if task is None:
        return None
    filled = _fill_by_place(one, task, utterance)
    if filled is None:
        is_other = (
            choice is not None and choice.task is not task and task not in choice.rivals
        )
        filled = (
            Filled(task=task)
            if _says_nothing(utterance.text)
            else fill(utterance, task, one.slots)
        )
        if is_other and choice is not None:
            takes_any_words = any(slot.kind == "text" for slot in one.slots)
            if (
                takes_any_words
                or not filled.values
                or fill(utterance, choice.task).values
            ):
                return None
        if not filled.values and not filled.questions and not filled.whose:
            return (
                None
                if choice is None and len(utterance.stems) > _MOST_WORDS
                else _ask_again(one)
            )
    filled.left += find_shares(utterance, filled)
    _keep(filled, one)
    # The question announced them.
    filled.guessed -= {slot.name for slot in one.slots}
    return mark_loose(
        conclude(filled, utterance.text),
        utterance,
        task,
        asked=[slot.name for slot in one.slots],
        own=_BESIDE | OWN_WORDS,
    )


def _fill_by_place(
    one: Open, task: RoutingTask, utterance: ReadUtterance
) -> Filled | None:
    """Return the choice of "the second one" or "the limit" among the offers; None when it is no such answer."""
    is_denied = "not" in _words_in(utterance.text)
    if (
        asked := value_asked(one.turn, task.schema)
    ) is not None and not utterance.amounts:
        text, slots = asked
        places = pick(utterance.text, len(slots), may_be_digit=True)
        cued = {cue.slot.name for cue in task.cues.find(utterance.tokens)}
        chosen = [slots[place] for place in places or ()] or [
            slot for slot in slots if slot.name in cued
        ]
        if chosen and not places and is_denied:
            others = [slot for slot in slots if slot not in chosen]
            chosen = others if len(others) == 1 else []
        return _fill_with(text, task, chosen, utterance) if chosen else None
    for slot in one.slots:
        if (money := _complete_money(one, slot, utterance)) is not None:
            return _fill_with(money, task, [slot], utterance)
        values = () if slot.choices else values_asked(one.turn, slot)
        if values:
            places = pick(utterance.text, len(values)) or ()
            found = [values[place] for place in places]
            found = found or [
                value
                for value in values
                if not is_denied and _is_said(utterance, slot, value)
            ]
            if len(found) == 1:
                return _fill_with(found[0], task, [slot], utterance)
            if not _is_whole(utterance, slot):
                return Filled(task=task, questions={slot.name: one.turn.text})
        if slot.kind == "boolean" and len(one.slots) == 1:
            words = set(_words_in(utterance.text)) - _BESIDE
            if words and (words <= _YES or words <= _NO):
                filled = Filled(task=task)
                filled.put(slot, words <= _YES, *utterance.extent, utterance.text)
                return filled
    return None


def _complete_money(one: Open, slot: Slot, utterance: ReadUtterance) -> str | None:
    """Return the amount that *one* asked the currency of, in the currency that *utterance* names; None without one."""
    if slot.kind != "money" or utterance.amounts:
        return None
    asked = find_amounts(amount_asked(one.turn, slot))
    code = currency_named(utterance.text)
    if len(asked) != 1 or asked[0].value is None or code is None:
        return None
    return spell_money(Amount(asked[0].value, code))


def _keep(filled: Filled, one: Open) -> None:
    """Keep the known values that *filled* has no new ones for."""
    if one.turn.task is None:
        return
    past = Past(filled.task, one.turn.task, one.turn.turn_id)
    for slot in filled.task.schema.slots:
        if slot.name in past.call.parameters and filled.is_open(slot):
            take(
                filled,
                past=past,
                slot=slot,
                span=(0, len(one.turn.text)),
                text=one.turn.text,
            )


def _fill_with(
    text: str, task: RoutingTask, slots: Sequence[Slot], utterance: ReadUtterance
) -> Filled | None:
    """Return *text*, a value that a question named, as the value of *slots*; its place is the whole of *utterance*."""
    filled = Filled(task=task)
    said = ReadUtterance(
        text.strip(), decimal_mark=utterance.decimal_mark, now=utterance.now
    )
    for slot in slots:
        found = fill(said, task, (slot,))
        if slot.name not in found.values:
            return None
        filled.put(slot, None, *utterance.extent, utterance.text)
        filled.values[slot.name] = found.values[slot.name]
    return filled


def _is_whole(utterance: ReadUtterance, slot: Slot) -> bool:
    """Return whether *utterance* says a value of its own: a number in digits, a day with a time."""
    if slot.is_timed:
        return any(
            one.has_day and isinstance(one.readings[0], datetime)
            for one in utterance.moments
        )
    return any(map(str.isdigit, utterance.text)) or not slot.is_numeric


def _is_said(utterance: ReadUtterance, slot: Slot, value: str) -> bool:
    """Return whether *utterance* says *value*, or of a moment its day or its time."""
    if not slot.is_timed:
        return any(
            found.value is not None and found.value == _number(value)
            for found in utterance.amounts
        )
    said = set()
    for found in utterance.moments:
        for reading in found.readings:
            if found.has_day:
                said.add(
                    (
                        reading.date() if isinstance(reading, datetime) else reading
                    ).isoformat()
                )
            elif isinstance(reading, datetime):
                said.add(reading.time().isoformat().removesuffix(":00"))
    return any(value.startswith(one) or value.endswith(one) for one in said)


def _number(value: str) -> Decimal | None:
    try:
        return parse_number(value)
    except InvalidAmount:
        return None


def _answer_several(
    opened: Sequence[Open], utterance: ReadUtterance, choice: Route | None
) -> list[Single] | None:
    """Return the outcome of each of *opened*, by the words of its clause or by order; None for another matter."""
    text = utterance.text
    cuts = [
        (0, 0),
        *(match.span() for match in _SEPARATOR.finditer(text)),
        (len(text), len(text)),
    ]
    clauses = [
        (start, end)
        for (_, start), (end, _) in pairwise(cuts)
        if text[start:end].strip()
    ]
    leaves_one = any(_LEAVES_ONE.match(text[slice(*one)]) for one in clauses)
    if (
        leaves_one
        and choice is not None
        and choice.task not in [one.task for one in opened]
    ):
        return None
    if leaves_one or _says_nothing(text) or _OPEN_ENDED.search(text):
        return [_ask_again(one) for one in opened]
    taken: dict[int, list[tuple[int, int]]] = {}
    loose = []
    for clause in clauses:
        place = _fitting(opened, utterance.only(clause), taken.keys())
        loose.append(clause) if place is None else taken.setdefault(place, []).append(
            clause
        )
    free = [place for place in range(len(opened)) if place not in taken]
    if (
        loose
        and len(loose) == len(free)
        and all(_is_bare(utterance.only(one)) for one in loose)
    ):
        taken |= {place: [clause] for place, clause in zip(free, loose, strict=True)}
        loose = []
    if loose and not taken and (choice is not None or not utterance.amounts):
        return None
    return [
        (
            _answer_one(one, utterance.only(*taken[place]), None)
            if place in taken
            else None
        )
        or _ask_again(one, is_untold=bool(loose))
        for place, one in enumerate(opened)
    ]


def _fitting(
    opened: Sequence[Open], said: ReadUtterance, taken: Collection[int]
) -> int | None:
    """Return the one question that *said* answers: by a cue of its task, or as the only one that it fits."""
    fitting = []
    cued = []
    for place, one in enumerate(opened):
        if one.task is None:
            continue
        values = fill(said, one.task, one.slots).values
        if any(cue.slot.name in values for cue in one.task.cues.find(said.tokens)):
            cued.append(place)
        names = {
            slot.name for slot in one.slots if slot.kind != "text" or not said.amounts
        }
        if (
            names & values.keys()
            and place not in taken
            and _is_bare(said, allows_text=True)
        ):
            fitting.append(place)
    found = cued or fitting
    return found[0] if len(found) == 1 else None


def _is_bare(said: ReadUtterance, *, allows_text: bool = False) -> bool:
    """Return whether *said* is a value and small words: "between 40k" and "50k or 60k" are no answers."""
    if len(said.amounts) > 1 or "or" in said.stems or "between" in said.stems:
        return False
    words = [token for token in said.tokens if token.is_word and token.text not in STOP]
    others = [
        one
        for one in words
        if not any(start <= one.start < end for start, end in said.value_spans)
    ]
    return allows_text or not others or not said.value_spans


def _ask_again(one: Open, *, is_untold: bool = False) -> Single:
    """Return the question of *one* again, in the same words."""
    text = one.turn.text.removesuffix(_UNTOLD).rstrip()
    text = f"{text} {_UNTOLD}" if is_untold else text
    if one.task is None or one.turn.task is None:
        return Clarification(text)
    return Clarification(
        text,
        *one.task.key,
        one.turn.task.parameters,
        tuple(slot.name for slot in one.slots),
    )
