"""The conclusion from the filled slots of a task: understood, or a question about missing or doubtful values.

Rules and model end here alike: neither starts a task over words that no slot took. A reading of the rules is doubtful
where the words name things that the card does not know, or only talk about the task. The examples of a card are the
measure: a card without a question among them does not expect one. A cached task has no effects, so that talk about it
may start it: "how am I doing with 50k" is answered.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

from tasklore.contracts.messages import TaskCall
from tasklore.supervisor.understanding.currencies import settle_currencies
from tasklore.supervisor.understanding.moods import moods_in, moods_of, words_of
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    TextSpan,
    Understood,
)
from tasklore.supervisor.understanding.questions import (
    Unplaced,
    ask_for,
    ask_to_confirm,
    ask_whose,
    tell_useless,
)
from tasklore.supervisor.understanding.routing import RoutingTask
from tasklore.supervisor.understanding.schema import Slot
from tasklore.supervisor.understanding.utterance import (
    STOP,
    ReadUtterance,
    Token,
    mark,
    tells_of_past,
    word_set,
)

_NEXT_WORD = re.compile(r"\s+[\w'\u2019-]+")
#: Words without a slot that a question names; they all are asked about.
_MOST_LEFT = 8
_DETERMINERS = word_set("a an the my our your his her their another")
_DEFINITE = word_set("the my our your this that")
#: What a thing is said to be, or to have: "it's urgent", "with candles"; and what somebody does.
_JOINING = word_set("with without by via and or plus it's is are i we")
#: Behind these stands what a task is for, and who it is for: "for my team".
_FOR = word_set("for in at on to of about from")
_SUBJECTS_VERB = word_set("has had did is was will wants needs")
#: What makes a number one of several alike.
_DISTRIBUTING = word_set("each every apiece respectively")
#: What begins a statement of its own behind a request: "but I'm on dialysis".
_LIMITING = word_set("but though although unless except however")
_STATING = word_set(
    "i i'm i've he he's she she's it it's we we're we've they they're my our his her their"
)


@dataclass(kw_only=True)
class Filled:
    """The values of one *task* in an utterance, by slot, with the *spans* they stand at.

    *questions* are about slots that were said in two ways, or wrongly; *whose* are values that may be for several.
    *left* are words that no slot took and that must not be dropped, as start and end. *faulty* names slots that have
    to be said again. *unsure* gives the reason why a value is shown for a yes, and *notes* the sources of such values.
    """

    task: RoutingTask
    values: dict[str, Any] = field(default_factory=dict)
    spans: list[TextSpan] = field(default_factory=list)
    questions: dict[str, str] = field(default_factory=dict)
    whose: list[Unplaced] = field(default_factory=list)
    left: list[tuple[int, int]] = field(default_factory=list)
    guessed: set[str] = field(default_factory=set)
    computed: dict[str, str] = field(default_factory=dict)
    faulty: set[str] = field(default_factory=set)
    unsure: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def is_open(self, slot: Slot) -> bool:
        """Return whether nothing was said of *slot*."""
        return slot.name not in self.values and slot.name not in self.questions

    def put(self, slot: Slot, value: Any, start: int, end: int, text: str) -> None:
        """Give *slot* its *value*, or one more when it takes a list; it stands at *start* to *end* of *text*."""
        self.values[slot.name] = (
            [*self.values.get(slot.name, ()), value] if slot.is_list else value
        )
        self.spans.append(TextSpan(slot.name, start, end, text[start:end]))

    def holds(self, start: int, end: int) -> bool:
        """Return whether a value was taken from these characters, or from some of them."""
        return any(span.start < end and start < span.end for span in self.spans)


def conclude(
    filled: Filled, text: str, *, is_agreed: bool = False, is_doubted: bool = False
) -> Understood | Clarification:
    """Return the conclusion from *filled*, read from *text*; words that no slot took are asked about first.

    A task with effects is shown for a yes before it starts, unless that *is_agreed*, or another person has to agree; so
    is one that *is_doubted*, one with a value that is *unsure*, and one that leaves words out.
    """
    task = filled.task
    slots = filled.task.schema.slots
    card = filled.task.offer.task
    agent_id, name = task.key
    settle_currencies(slots, filled.spans, filled.values, filled.questions)
    questions = [
        question for slot in slots if (question := filled.questions.get(slot.name, ""))
    ]
    absent = {
        slot.name
        for slot in slots
        if slot.name in filled.faulty or (slot.is_required and filled.is_open(slot))
    }
    if absent:
        # An answer to this question completes the task at once, so unsure values are asked for as well.
        absent |= filled.unsure.keys()
    missing = tuple(
        slot.name
        for slot in slots
        if slot.name in absent or slot.name in filled.questions
    )
    # Declared order, so that the same question always looks the same.
    names = [
        slot.name
        for slot in slots
        if slot.name in filled.values and slot.name not in absent
    ]
    known = {name: filled.values[name] for name in names}
    spans = tuple(span for span in filled.spans if span.field not in absent)
    left = _texts_left(filled.left, text)
    useless = tell_useless(left) if left else ""
    whose = list(dict.fromkeys(filled.whose))
    parts = [ask_whose(whose), *questions] if whose else questions
    if absent and not filled.whose:
        parts.append(ask_for([slot for slot in slots if slot.name in absent]))
    if parts:
        return Clarification(
            " ".join(filter(None, [useless, *parts])),
            agent_id=agent_id,
            task_name=name,
            known=known,
            missing=missing,
            spans=spans,
        )
    if (
        filled.unsure
        or is_doubted
        or left
        or (card.confirm and card.approver is None and not is_agreed)
    ):
        reasons: dict[str, list[str]] = {}
        for slot in slots:
            if slot.name in filled.unsure:
                reasons.setdefault(filled.unsure[slot.name], []).append(slot.words)
        explained = "".join(
            f" ({', '.join(labels)}: {why})" for why, labels in reasons.items()
        )
        shown = [
            f"{ask_to_confirm(task.offer, known)}{explained}",
            *filled.notes,
            useless,
        ]
        return Clarification(
            " ".join(filter(None, shown)),
            agent_id=agent_id,
            task_name=name,
            known=known,
            missing=(),
            spans=spans,
        )
    computed = {name: words for name, words in filled.computed.items() if name in known}
    call = TaskCall(name=name, parameters=known)
    return Understood(
        agent_id=agent_id,
        task=call,
        spans=spans,
        guessed=frozenset(filled.guessed),
        computed=computed,
        approver=card.approver,
    )


def _texts_left(left: Sequence[tuple[int, int]], text: str) -> list[str]:
    """Return the words at *left*, each once, and none that say nothing alone: "a" stands with the word behind it."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(set(left)):
        word = text[start:end].lower()
        is_empty = word in STOP and word not in _DISTRIBUTING
        if is_empty and (more := _NEXT_WORD.match(text, end)):
            end = more.end()
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return [text[start:end] for start, end in found[:_MOST_LEFT]]


def is_only_talk(utterance: ReadUtterance, filled: Filled) -> bool:
    """Return whether *utterance* asks about the task, denies, imagines or reports it, as no example does."""
    task = filled.task
    if task.offer.task.remember != "never" or not task.offer.task.examples:
        return False
    # "I have spent 42k" announces a value, "I borrowed" is another word than the "borrow" of a request.
    worded = words_of(task.offer.task.examples)
    cues = (
        utterance.tokens[at]
        for cue in task.cues.find(utterance.tokens)
        for at in range(cue.first, cue.end)
    )
    taken = [
        one
        for one in cues
        if one.text in (one.stem, *worded) or not tells_of_past((one,))
    ]
    places = chain(
        ((span.start, span.end) for span in filled.spans),
        ((one.start, one.end) for one in taken),
    )
    marks = mark(len(utterance.text), places)
    tokens = [
        one._replace(text="", stem="") if marks[one.start] else one
        for one in utterance.tokens
    ]
    if _tells_of_values(utterance, filled, marks):
        return True
    return not moods_in(tokens) <= moods_of(task.offer.task.examples)


def _tells_of_values(
    utterance: ReadUtterance, filled: Filled, marks: Sequence[int]
) -> bool:
    """Return whether *utterance* says what its values did, or what somebody is: "I'm allergic to funghi"."""
    known = filled.task.said
    tokens = [one for one in utterance.tokens if one.is_word]
    new = [
        one.stem not in known and one.text not in STOP and not marks[one.start]
        for one in tokens
    ]
    said = [one.text for one in tokens[:2]]
    who = 1 if said[:1] == ["i'm"] else 2 if said == ["i", "am"] else 0
    is_told = bool(
        who and new[who : who + 1] == [True] and not tokens[who].text.endswith("ing")
    )
    return is_told or any(
        marks[before.start]
        and is_new
        and tells_of_past((token,))
        and not token.text.endswith("s")
        for (before, token), is_new in zip(pairwise(tokens), new[1:], strict=True)
        if not utterance.text.endswith("?")
    )


def find_unknown_words(
    utterance: ReadUtterance, filled: Filled
) -> list[tuple[int, int]]:
    """Return the places of words that no slot took, that the card does not know, and that change the request.

    Those are what is ordered ("a *table*"), how it is ("it's *urgent*"), who did it ("my *boss* drove"), what it comes
    with, what a value is of ("my limit for *patience* is 10"), what is done to a thing that is there ("*close* the
    ticket"), what makes several of one number ("300 kg *each*"), and what is stated behind a request without a value.
    """
    task = filled.task
    if not task.offer.task.examples:
        return []
    taken = mark(
        len(utterance.text),
        chain(utterance.value_spans, ((one.start, one.end) for one in filled.spans)),
    )
    guessed = {
        span.start
        for span in filled.spans
        if span.field in filled.guessed and span.text.isdigit()
    }
    blank = Token("", "", 0, 0, is_word=False)
    tokens = (blank, blank, *utterance.tokens, blank, blank)
    kinds = task.names.union(
        *(
            one.stems
            for slot in task.schema.slots
            if slot.choices
            for one in slot.phrases
        )
    )
    announcing = {
        utterance.tokens[cue.end - 1].stem
        for cue in task.cues.find(utterance.tokens)
        if any(span.field == cue.slot.name for span in filled.spans)
    }
    found = []
    for place in range(2, len(tokens) - 2):
        earlier, before, token, after, later = tokens[place - 2 : place + 3]
        if (
            not token.is_word
            or token.text in STOP
            or token.stem in task.said
            or taken[token.start]
        ):
            continue
        is_thing = before.text in _DETERMINERS and earlier.text not in _FOR
        is_quality = (
            before.text in _JOINING or after.stem in kinds or after.start in guessed
        )
        is_undone = place < 5 and after.text in _DEFINITE and later.stem in task.said
        is_kind = (
            before.text in {"for", "of"}
            and earlier.stem in announcing
            and any(token.end < span.start for span in filled.spans)
        )
        is_subject = place == 2 and (
            after.text in _SUBJECTS_VERB or tells_of_past((after,))
        )
        if is_thing or is_quality or is_undone or is_kind or is_subject:
            found.append((token.start, token.end))
    return [
        *found,
        *find_shares(utterance, filled),
        *_find_statements(utterance, task, taken),
    ]


def find_shares(utterance: ReadUtterance, filled: Filled) -> list[tuple[int, int]]:
    """Return the places of words by which a number is that of each of several: "300 kg *each*", "*per pallet*".

    Where they announce a value, as "each month" does, they are part of it.
    """
    tokens = utterance.tokens
    slots = filled.task.schema.slots
    here = [one for one in filled.spans if one.source is None]
    taken = mark(len(utterance.text), ((one.start, one.end) for one in here))
    announcing = {
        at
        for cue in filled.task.cues.find(tokens)
        if cue.slot.name in filled.values
        for at in range(cue.first, cue.end)
    }
    counted = {
        one.stems
        for slot in slots
        if slot.kind == "integer" and slot.name in filled.values
        for one in slot.phrases
    }
    found = []
    for at, token in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        is_per = token.text == "per" and after is not None and (after.stem,) in counted
        is_share = token.text in _DISTRIBUTING or is_per
        if is_share and not taken[token.start] and at not in announcing:
            found.append((token.start, _end_of_share(utterance, token, after)))
    return found


def _end_of_share(utterance: ReadUtterance, token: Token, after: Token | None) -> int:
    """Return where *token*, such as "each", ends with the noun *after* it, and alone where none is."""
    is_noun = after is not None and after.is_word and after.text not in STOP
    if after is None or not is_noun or utterance.amount_marks[after.start]:
        return token.end
    return after.end


def _find_statements(
    utterance: ReadUtterance, task: RoutingTask, taken: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the places of statements behind the request that have no value, and a word that the card does not know.

    "Creatinine 1.4, but *I'm on dialysis*" asks for more, or for less, than creatinine 1.4.
    """
    clauses: list[list[Token]] = [[]]
    for token in utterance.tokens:
        if token.text in _LIMITING or not (token.is_word or taken[token.start]):
            clauses.append([])
        clauses[-1].append(token)
    found = []
    is_begun = False
    for clause in clauses:
        words = [one for one in clause if one.is_word]
        is_limit = bool(words) and words[0].text in _LIMITING
        said = words[1:] if is_limit else words
        has_value = any(taken[one.start] for one in clause)
        is_new = any(
            not (one.text in STOP or one.text in _STATING or one.stem in task.said)
            for one in said
        )
        is_statement = is_limit or (bool(words) and words[0].text in _STATING)
        if is_begun and is_statement and is_new and not has_value:
            found.append((said[0].start, said[-1].end))
        is_begun = is_begun or has_value
    return found
