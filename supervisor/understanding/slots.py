"""Slot filling: each value of an utterance goes to the slot of the nearest cue, and equal claims are asked about.

First values beside a cue, then announced texts, then values that only one open slot can take. Every number, date, name
and quoted text that is left after that is asked about: nothing is dropped, and no default replaces it.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from tasklore.contracts.quantities.units import unit_named
from tasklore.supervisor.understanding.conclusion import Filled
from tasklore.supervisor.understanding.cues import FAR, Cue, Distances
from tasklore.supervisor.understanding.evidence import Why
from tasklore.supervisor.understanding.outcome import TextSpan
from tasklore.supervisor.understanding.proper_names import names_in
from tasklore.supervisor.understanding.questions import (
    Unplaced,
    ask_for,
    ask_which_value,
)
from tasklore.supervisor.understanding.routing import RoutingTask
from tasklore.supervisor.understanding.schema import Slot
from tasklore.supervisor.understanding.texts import (
    find_announced_texts,
    is_sentence,
    remaining_text,
    stray_digits,
)
from tasklore.supervisor.understanding.utterance import LIGHT, STOP, ReadUtterance, mark
from tasklore.supervisor.understanding.values import ValueGroup, groups_of
from tasklore.supervisor.understanding.wholeness import unexplained_words

#: Assignments that are weighed side by side; those behind them are far worse.
_BEAM = 48
#: Cues of one utterance that its values are weighed against.
_MOST_CUES = 128
#: Words of an answer beside each of its numbers, for them to be in the order of the question.
_WORDS_EACH = 3
#: Two assignments nearer than this have equal claim.
_EQUAL = 0.2
#: A value that its slot cannot take as it stands, or in another unit, has to stand right beside the cue.
_STRANGE_STEP = 2.0
#: Words between a negation and what it negates ("no *past spending* history").
_NEGATION_REACH = 2
_NEGATIONS = frozenset({"no", "without", "not", "don't", "excluding", "never", "non"})
_NOTHING = frozenset({"none", "nothing", "empty", "nil", "null", "no", "off", "false"})
#: Who does something in a text that nothing announced.
_SUBJECTS = frozenset({"i", "i'm", "you", "we", "he", "she", "they", "it", "there"})
#: Behind these stands a thing of its own; "Port of Spain" and "Frankfurt on the Oder" are one.
_LEADING_ON = frozenset(
    {"to", "from", "for", "with", "without", "by", "via", "through", "as"}
)
#: A task that takes no date is done then anyway.
_AT_ONCE = frozenset({"now", "today", "right now"})
#: A unit that does not stand at its number: "120, in yen", "in miles: 5", "120 (JPY)", "40 pounds into dollars".
_UNIT_APART = re.compile(
    r"(?:\b(?:in|into|to)\s+(?:the\s+)?|\(\s*)(?P<unit>[^\W\d_]{1,20}\b|[€$£¥])",
    re.IGNORECASE,
)
#: Within a text it takes back what stands before it: "it beeps - urgent, no sorry, normal".
_CORRECTED = re.compile(
    r"[,.;:()!\u2013\u2014-]\s*(?:oh,?\s+)?(?:no\s*[,;:\u2013\u2014-]|no,?\s+(?:sorry|wait|actually)\b"
    r"|sorry,?\s+(?=\w)|wait\b|i mean\b|i meant\b|scratch that\b|correction\b|or rather\b|actually\b"
    r"|make (?:it|that)\b)",
    re.IGNORECASE,
)


class _Assignment(NamedTuple):
    cost: float
    pairs: tuple[tuple[int, Slot], ...]

    def slots(self) -> set[str]:
        return {slot.name for _, slot in self.pairs}


def fill(
    utterance: ReadUtterance, task: RoutingTask, asked: Sequence[Slot] = ()
) -> Filled:
    """Return the values of *task* in *utterance*; *asked* are the slots that a question before it was about."""
    filling = _Filling(utterance, task, asked)
    filling.take_switches()
    filling.take_beside_cues()
    filling.take_texts()
    filling.take_only_open()
    filling.take_rest()
    filling.ask_for_second_times()
    filling.doubt_texts()
    filling.ask_for_announced()
    return filling.filled


class _Filling:
    def __init__(
        self, utterance: ReadUtterance, task: RoutingTask, asked: Sequence[Slot]
    ) -> None:
        self.utterance = utterance
        self.task = task
        self.asked = asked
        self.text = utterance.text
        self.filled = Filled(task=task)
        self.cues = task.cues.find(utterance.tokens)[:_MOST_CUES]
        #: Words that were understood without being a value, such as "no" before "history".
        self.read: list[tuple[int, int]] = []
        self.groups = groups_of(utterance, task.schema.slots, self.read)
        self.distances = Distances(
            utterance, self.cues, [(one.start, one.end) for one in self.groups]
        )

    def take_switches(self) -> None:
        """Take values that are said to be absent, and switches that are named."""
        for cue in self.cues:
            slot = cue.slot
            tokens = self.utterance.tokens
            start = tokens[cue.first].start
            end = tokens[cue.end - 1].end
            negation = self._negation_before(cue)
            nothing = self._nothing_after(cue)
            if not self.filled.is_open(slot):
                continue
            if negation is not None or nothing is not None:
                value: Any = (
                    [] if slot.is_list else False if slot.kind == "boolean" else None
                )
                if slot.kind == "boolean" and cue.penalty:
                    self.filled.questions[slot.name] = ask_for(
                        [slot]
                    )  # "without gluten" may be gluten free
                    continue
                if (
                    not slot.is_list
                    and slot.kind != "boolean"
                    and (slot.is_required or not slot.is_nullable)
                ):
                    continue
                start = tokens[negation].start if negation is not None else start
                end = tokens[nothing].end if nothing is not None else end
                self.filled.values[slot.name] = value
                self.filled.spans.append(
                    TextSpan(slot.name, start, end, self.text[start:end])
                )
            elif slot.kind == "boolean" and cue.penalty == 0:
                self.filled.put(slot, value=True, start=start, end=end, text=self.text)

    def _negation_before(self, cue: Cue) -> int | None:
        for place in range(cue.first - 1, max(cue.first - 2 - _NEGATION_REACH, -1), -1):
            token = self.utterance.tokens[place]
            if (
                token.text in _NEGATIONS
                and self.utterance.tokens[cue.first].text not in _NEGATIONS
            ):
                return place
            if not token.is_word or token.text[0].isdigit():
                return None
        return None

    def _nothing_after(self, cue: Cue) -> int | None:
        tokens = self.utterance.tokens
        place = cue.end
        while place < min(len(tokens), cue.end + 4) and (
            tokens[place].text in LIGHT or tokens[place].text in ":="
        ):
            place += 1
        if place >= len(tokens) or tokens[place].text not in _NOTHING:
            return None
        follows = place + 1 < len(tokens) and tokens[place + 1].is_word
        return None if follows and tokens[place].text in _NEGATIONS else place

    def take_beside_cues(self) -> None:
        """Give each value to the slot whose cue is nearest, all of them together at the least cost."""
        found = self._assignments()
        best = found[0]
        rivals = [
            one
            for one in found[1:]
            if one.cost - best.cost < _EQUAL and _differ(best, one)
        ]
        doubted = self._ask_between(best, rivals[0]) if rivals else set()
        for place, slot in best.pairs:
            if slot.name not in doubted:
                self._give(self.groups[place], slot)

    def _ask_between(self, best: _Assignment, rival: _Assignment) -> set[str]:
        """Ask about what *best* and *rival* give differently, and return the slots that it is about."""
        changed = set(best.pairs) ^ set(rival.pairs)
        by_group: dict[int, list[Slot]] = {}
        by_slot: dict[str, list[int]] = {}
        order = {slot.name: at for at, slot in enumerate(self.task.schema.slots)}
        for place, slot in sorted(
            changed, key=lambda pair: (pair[0], order[pair[1].name])
        ):
            by_group.setdefault(place, []).append(slot)
            by_slot.setdefault(slot.name, []).append(place)
        for name, places in by_slot.items():
            slot = next(slot for _, slot in changed if slot.name == name)
            self._ask_which_value(slot, [self.groups[place] for place in places])
        for place, slots in by_group.items():
            if not any(slot.name in self.filled.questions for slot in slots):
                self._ask_whose(self.groups[place], slots)
        return set(by_slot)

    def _ask_which_value(self, slot: Slot, groups: Sequence[ValueGroup]) -> None:
        said = dict.fromkeys(self.text[group.start : group.end] for group in groups)
        if len(said) > 1:
            self.filled.questions[slot.name] = ask_which_value(slot, list(said))
            self.read += [(group.start, group.end) for group in groups]

    def _ask_whose(self, group: ValueGroup, slots: Sequence[Slot]) -> None:
        if len(slots) > 1:
            self.filled.whose.append(
                Unplaced(self.text[group.start : group.end], tuple(slots))
            )
            self.read.append((group.start, group.end))

    def _assignments(self) -> list[_Assignment]:
        """Return the cheapest ways to give values to slots, the cheapest first."""
        reached: list[list[_Assignment]] = [[] for _ in range(len(self.groups) + 1)]
        reached[0] = [_Assignment(0.0, ())]
        for place in range(len(self.groups)):
            options = list(self._options(place))
            for one in sorted(reached[place], key=itemgetter(0))[:_BEAM]:
                reached[place + 1].append(_Assignment(one.cost + FAR, one.pairs))
                used = one.slots()
                for cost, end, slot in options:
                    if slot.name not in used:
                        pairs = tuple((member, slot) for member in range(place, end))
                        reached[end].append(
                            _Assignment(one.cost + cost, one.pairs + pairs)
                        )
        return sorted(reached[-1], key=itemgetter(0))[:_BEAM]

    def _options(self, place: int) -> Iterator[tuple[float, int, Slot]]:
        """Yield cost, end and slot of each use of the value at *place*, or of the list that begins there."""
        group = self.groups[place]
        for slot in {one.slot.name: one.slot for one in group.candidates}.values():
            end = place + 1
            while True:
                cost = self._cost(slot, place, end)
                if cost < FAR:
                    yield cost, end, slot
                if (
                    not slot.is_list
                    or end >= len(self.groups)
                    or self.groups[end].run != group.run
                ):
                    break
                if self.groups[end].of(slot) is None:
                    break
                end += 1

    def _cost(self, slot: Slot, place: int, end: int) -> float:
        if not self.filled.is_open(slot):
            return FAR
        first = self.groups[place]
        last = self.groups[end - 1]
        near = min(
            (
                self.distances.between(cue, first.start, last.end)
                for cue in self.cues
                if cue.slot is slot
            ),
            default=FAR,
        )
        candidate = first.of(slot)
        if near < FAR and (candidate is None or not candidate.values):
            near += _STRANGE_STEP
        return near

    def _give(self, group: ValueGroup, slot: Slot, *, is_guessed: bool = False) -> None:
        candidate = group.of(slot)
        if candidate is None:
            return
        if is_guessed and slot.kind != "choice":
            # A choice is said by its own name.
            self.filled.guessed.add(slot.name)
        if candidate.is_clear:
            self.filled.put(
                slot,
                value=candidate.values[0],
                start=candidate.start,
                end=candidate.end,
                text=self.text,
            )
        else:
            self.filled.questions[slot.name] = candidate.question
        self.read.append((group.start, group.end))
        self._give_rest(group, slot)

    def _give_rest(self, group: ValueGroup, slot: Slot) -> None:
        """Give the day of "Monday at 10:00" to a slot for days when its time went to one for times, and vice versa."""
        if not slot.is_timed:
            return
        others = [
            one.slot
            for one in group.candidates
            if one.slot.is_timed and (one.slot.kind == "time") != (slot.kind == "time")
        ]
        open_slots = [
            one
            for one in others
            if self.filled.is_open(one) and "moment" not in (one.kind, slot.kind)
        ]
        pool = [one for one in open_slots if one.is_required] or open_slots
        if len(pool) == 1 and "when" not in (pool[0].kind, slot.kind):
            self._give(group, pool[0])

    def take_texts(self) -> None:
        """Take the texts that a cue or a frame of an example announces."""
        for slot, start, end in find_announced_texts(
            self.utterance,
            task=self.task,
            cues=self.cues,
            filled=self.filled,
            asked=self.asked,
        ):
            words = [
                one
                for one in self.utterance.tokens
                if one.is_word and one.start >= start and one.end <= end
            ]
            is_new = any(
                one.text not in STOP and one.stem not in self.task.names
                for one in words
            )
            if is_new or not slot.is_list:
                self.filled.put(
                    slot,
                    value=self.text[start:end],
                    start=start,
                    end=end,
                    text=self.text,
                )

    def take_only_open(self) -> None:
        """Give each value that is left to the only open slot that can take it: first those with a unit or a type."""
        self._take_in_order()
        for is_typed in (True, False):
            claims: dict[str, tuple[Slot, list[ValueGroup]]] = {}
            for group in self._free():
                slots = self._open_for(group, is_typed=is_typed)
                pool = (
                    [slot for slot in slots if slot in self.asked]
                    or [s for s in slots if s.is_required]
                    or slots
                )
                if len(pool) == 1 and (
                    pool[0].is_required
                    or pool[0] in self.asked
                    or self._is_lone(pool[0])
                ):
                    claims.setdefault(pool[0].name, (pool[0], []))[1].append(group)
            for slot, groups in claims.values():
                is_list = slot.is_list and len({group.run for group in groups}) == 1
                if len(groups) == 1 or is_list:
                    if (
                        is_typed
                        or self.asked
                        or not any(self._counts_something(group) for group in groups)
                    ):
                        for group in groups if is_list else groups[:1]:
                            self._give(group, slot, is_guessed=True)
                elif not slot.is_list:
                    self._ask_which_value(slot, groups)

    def _is_lone(self, slot: Slot) -> bool:
        """Return whether *slot*, which may be left out, is the only one of its sort: "3 funghi", "tomorrow"."""
        alike = [
            one
            for one in self.task.schema.slots
            if (one.is_numeric, one.is_timed) == (slot.is_numeric, slot.is_timed)
        ]
        return not slot.is_numeric or len(alike) == 1

    def _take_in_order(self) -> None:
        """Take as many bare numbers as there were slots asked for, in the order of the question."""
        free = self._free()
        slots = [slot for slot in self.asked if self.filled.is_open(slot)]
        if not 1 < len(slots) == len(free) or len(
            self.utterance.stems
        ) > _WORDS_EACH * len(free):
            return
        pairs = list(zip(free, slots, strict=True))
        if all((found := group.of(slot)) and found.is_clear for group, slot in pairs):
            for group, slot in pairs:
                self._give(group, slot)

    def _free(self) -> list[ValueGroup]:
        open_groups = [
            one for one in self.groups if not self.filled.holds(one.start, one.end)
        ]
        return [
            one
            for one in open_groups
            if not any(start < one.end and one.start < end for start, end in self.read)
        ]

    def _open_for(self, group: ValueGroup, *, is_typed: bool = False) -> list[Slot]:
        """Return the open slots that can take *group*; with *is_typed* those that its unit or type speaks for."""
        found = [
            one
            for one in group.candidates
            if one.values and self.filled.is_open(one.slot)
        ]
        if is_typed:
            found = [one for one in found if one.is_of_type or not one.slot.is_numeric]
        return list({one.slot.name: one.slot for one in found}.values())

    def _required_for(self, group: ValueGroup) -> list[Slot]:
        """Return the open slots, not to be left out, that *group* is a value of, but none that they take as it is."""
        found = [one for one in group.candidates if self.filled.is_open(one.slot)]
        slots = {one.slot.name: one.slot for one in found if one.slot.is_required}
        return [] if any(one.values for one in found) else list(slots.values())

    def _counts_something(self, group: ValueGroup) -> bool:
        """Return whether a noun that the card does not know follows: "2 dogs" is no price."""
        place = self.utterance.index_at(group.end - 1) + 1
        if place >= len(self.utterance.tokens):
            return False
        token = self.utterance.tokens[place]
        is_known = (
            token.text in STOP
            or token.stem in self.task.known
            or self.filled.holds(token.start, token.end)
        )
        return (
            token.is_word
            and not is_known
            and not any(one.start <= token.start < one.end for one in self.groups)
        )

    def take_rest(self) -> None:
        """Take the only text that is left, and note the values that no slot took."""
        if found := remaining_text(
            self.utterance,
            task=self.task,
            cues=self.cues,
            filled=self.filled,
            asked=self.asked,
        ):
            slot, start, end = found
            self.filled.put(
                slot, value=self.text[start:end], start=start, end=end, text=self.text
            )
            self.filled.guessed.add(slot.name)
        for group in self._free():
            strange = self._required_for(group)
            if len(strange) == 1:
                self._give(group, strange[0])
            elif slots := self._open_for(group):
                self._ask_whose(
                    group, [slot for slot in slots if slot in self.asked] or slots
                )
        known = [
            (
                self.utterance.tokens[cue.first].start,
                self.utterance.tokens[cue.end - 1].end,
            )
            for cue in self.cues
        ]
        taken = [*((span.start, span.end) for span in self.filled.spans), *self.read]
        marks = mark(len(self.text), [*taken, *known])
        taken_marks = mark(len(self.text), taken)
        numbers = {one.start for one in self.utterance.amounts}
        for start, end in _unread(self.utterance, self.task, self.groups):
            # "61 years" is not read where "years old" is a cue, unless its number is a value.
            is_number = start in numbers and not marks[start]
            if not any((taken_marks if is_number else marks)[start:end]):
                self.filled.left.append((start, end))
        numeric = {one.name for one in self.task.schema.slots if one.is_numeric}
        for match in (
            _UNIT_APART.finditer(self.text)
            if numeric & self.filled.values.keys()
            else ()
        ):
            if not any(marks[slice(*match.span("unit"))]):
                self._take_unit(*match.span("unit"))

    def ask_for_second_times(self) -> None:
        """Ask which time is meant where the day of one was taken and the time of another: "14:00 to 16:30 on 5 May"."""
        slots = {one.name: one for one in self.task.schema.slots if one.is_timed}
        spans = [one for one in self.filled.spans if one.field in slots]
        days = [one for one in spans if slots[one.field].kind == "date"]
        timed = {one.start for one in spans if one not in days}
        for span in days:
            moment = self.utterance.moments_by_start.get(span.start)
            if moment is None or span.start in timed:
                continue
            times = {
                one.time().isoformat()
                for one in moment.readings
                if isinstance(one, datetime)
            }
            for slot in slots.values():
                value = self.filled.values.get(slot.name)
                if slot.kind == "time" and value is not None and times - {value}:
                    self.filled.questions[slot.name] = ask_which_value(
                        slot, [value, *sorted(times - {value})]
                    )
                    del self.filled.values[slot.name]
                    self.filled.spans = [
                        one for one in self.filled.spans if one.field != slot.name
                    ]

    def doubt_texts(self) -> None:
        """Have texts shown for a yes whose bounds are not sure: cues or corrections in them, or words beside them."""
        slots = self.task.schema.slots
        texts = {one.name: one for one in slots if one.kind == "text"}
        spans = [one for one in self.filled.spans if one.field in texts]
        led = self._led_by_small_words()
        is_half_read = self._is_half_read()
        quoted = mark(len(self.text), self.utterance.quotations)
        taken = mark(
            len(self.text), ((one.start, one.end) for one in self.filled.spans)
        )
        for span in spans:
            if quoted[span.start] or texts[span.field].is_list:
                continue
            is_open = {
                one.slot.name
                for one in self.cues
                if span.start < self.utterance.tokens[one.first].start < span.end
            } - {one.field for one in spans if one.end <= span.start}
            is_open &= texts.keys() - {span.field}
            holds = any(
                one is not span and span.start <= one.start < span.end for one in spans
            )
            is_name = not is_sentence(texts[span.field])
            if (
                holds
                or (
                    span.field in led
                    and (is_half_read or (is_name and self._leads_on_inside(span)))
                )
                or (is_name and (is_open or ": " in span.text))
                or self._is_cut_off(span, taken)
                or _CORRECTED.search(span.text)
            ):
                self.filled.unsure[span.field] = Why.UNREAD

    def _is_half_read(self) -> bool:
        """Return whether a word that says something, from the first word of the card on, is explained by nothing.

        What stands before that is the way to ask: "what do you charge for shipping 2 kg to Dublin".
        """
        asking = (
            one.start
            for one in self.utterance.tokens
            if one.stem in self.task.said and one.text not in STOP
        )
        begin = next(asking, 0)
        left = unexplained_words(self.utterance, self.task, self.filled.spans, own=STOP)
        return any(one.start > begin for one in left)

    def _leads_on_inside(self, span: TextSpan) -> bool:
        """Return whether a small word within *span* leads something else: "Porto with refrigeration"."""
        first = self.utterance.index_at(span.start)
        last = self.utterance.index_at(span.end - 1)
        return any(
            one.text in _LEADING_ON for one in self.utterance.tokens[first + 1 : last]
        )

    def _led_by_small_words(self) -> set[str]:
        """Return the texts that stand behind a mere "to", "from", "for" or "with", which lead many other things too."""
        tokens = self.utterance.tokens
        return {
            span.field
            for span in self.filled.spans
            for cue in self.cues
            if cue.slot.name == span.field
            and cue.end == self.utterance.index_at(span.start)
            and all(one.text in LIGHT | STOP for one in tokens[cue.first : cue.end])
        }

    def ask_for_announced(self) -> None:
        """Ask for texts that may be left out and that a cue announces, as "to" does in "5 minutes to boil eggs"."""
        tokens = self.utterance.tokens
        in_cue = {at for cue in self.cues for at in range(cue.first, cue.end)}
        for cue in self.cues:
            slot = cue.slot
            after = tokens[cue.end] if cue.end < len(tokens) else None
            if (
                after is not None
                and after.is_word
                and cue.end not in in_cue
                and slot.kind == "text"
                and cue.side != "left"
                and not slot.is_required
                and self.filled.is_open(slot)
                and after.text not in STOP
                and after.stem not in self.task.names | self.task.openers
                and not self.filled.holds(after.start, after.end)
                and not any(
                    start <= after.start < end
                    for start, end in self.utterance.value_spans
                )
            ):
                self.filled.questions[slot.name] = ask_for([slot])

    def _is_cut_off(self, span: TextSpan, taken: Sequence[int]) -> bool:
        """Return whether a word that says something, and stands in no value or cue, is beside *span*, or before it.

        Where nothing announced the text, so is its subject: "translate *I* am going to Rome".
        """
        cued = {at for cue in self.cues for at in range(cue.first, cue.end)}
        own = self.task.names | self.task.openers
        place = self.utterance.index_at(span.start)
        words = [
            (at, one)
            for at, one in enumerate(self.utterance.tokens[:place])
            if one.is_word
        ]
        is_guessed = span.field in self.filled.guessed
        is_asked_for = False
        for at, one in words if is_guessed else words[-1:]:
            is_read = taken[one.start] or self.utterance.moment_marks[one.start]
            is_own = at in cued or bool(is_read) or one.stem in own
            if not is_own and (
                one.text not in STOP or (is_asked_for and one.text in _SUBJECTS)
            ):
                return True
            is_asked_for = is_asked_for or is_own
        return False

    def _take_unit(self, start: int, end: int) -> None:
        """Give the currency of "120, in yen" to a field for it; a unit that no field is in must not be dropped."""
        unit = unit_named(self.text[start:end])
        slots = self.task.schema.slots
        if unit is None or any(unit.code == slot.unit for slot in slots):
            return
        fields = [one for one in slots if unit.is_currency and one.is_currency]
        is_free = len(fields) == 1 and self.filled.is_open(fields[0])
        if is_free and unit.code in (fields[0].choices or (unit.code,)):
            self.filled.put(
                fields[0], value=unit.code, start=start, end=end, text=self.text
            )
        elif fields or not (unit.is_currency and any(one.takes_money for one in slots)):
            self.filled.left.append((start, end))


def _differ(one: _Assignment, other: _Assignment) -> bool:
    """Return whether one value goes to two slots, or one slot gets two values, by *one* and *other*."""
    places = dict(one.pairs)
    slots = {slot.name: place for place, slot in one.pairs}
    return any(
        (place in places and places[place] is not slot)
        or (slot.name in slots and slots[slot.name] != place)
        for place, slot in other.pairs
        if not slot.is_list
    )


def _unread(
    utterance: ReadUtterance, task: RoutingTask, groups: Sequence[ValueGroup]
) -> list[tuple[int, int]]:
    """Return where a number, a date, a quoted text or a name stands, in order."""
    found = [(group.start, group.end) for group in groups]
    found += [
        *((one.start, one.end) for one in utterance.amounts),
        *utterance.quotations,
    ]
    found += [
        (one.start, one.end)
        for one in utterance.moments
        if one.text.lower() not in _AT_ONCE
    ]
    found += [*names_in(utterance, task.known), *stray_digits(utterance)]
    kept: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept
