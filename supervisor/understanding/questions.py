"""Questions back to the person, which are also parsed here, and replies to words that no task is for."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tasklore.contracts.messages import ChatTurn
from tasklore.supervisor.catalogue import Offer
from tasklore.supervisor.understanding.routing import Route
from tasklore.supervisor.understanding.schema import (
    INTERROGATIVES,
    Slot,
    TaskSchema,
    task_schema,
)
from tasklore.supervisor.understanding.utterance import ReadUtterance, stem

#: Tasks named in a question before "or another one": more is no question, and thousands are no message.
_MOST_NAMED = 12
_WHICH_TASK = "Do you mean "
#: Opens a question for a yes, and one for several fields.
_SHALL_I = "Shall I "
_WHAT_ARE = "What are "
#: One of the tasks of that question: its label, and in parentheses its agent.
_OFFERED = re.compile(r"(?:mean |, | or )([^,()]{1,200}) \(([A-Za-z0-9_-]{1,64})\)")
#: What would end a task's words in that question.
_MARKS = re.compile(r"[,()?]| or ")
_WHOSE = "What is '"
_VALUE = re.compile(r"What is '(.{1,400})': ([^?]{1,2000})\?", re.DOTALL)
#: How questions for one value open that are not put by its name and kind; 0.2 knew no others, and its turns are kept.
_OPENINGS = ("What is", "Which", "Is")
_ONE_OF = " One of: "
_WITH_CURRENCY = ", with its currency"
_LEAVE_OUT = "Shall I leave it out?"
#: Characters of a description that a question repeats; a longer one explains how to write the value to programs.
_LONGEST_HINT = 80
#: Characters of the words that a question quotes.
_MOST_QUOTED = 80
#: The fields that one question asks for.
_SEVERAL = re.compile(rf"{_WHAT_ARE}([^?]{{1,4000}})\?")
#: Seconds of a clock, or of a day's beginning, that say nothing.
_WHOLE_MINUTE = re.compile(r"(?<=\b\d\d:\d\d):00\b")
HOW_TO_SEND = (
    "That is JSON and no sentence: nothing was started. Say it in words; a program sends a task with its parameters to"
    " /v1/tasks of the HTTP API."
)
_CANCELLING = (
    "I cannot cancel that by a sentence: nothing was cancelled. `tasklore cancel TASK` cancels a task that waits or"
    " runs, and so does DELETE /v1/tasks/TASK over HTTP."
)
_REQUEST = re.compile(
    r"""[{,]\s{0,99}(["']?)(?:agent|agent_id|task|task_name|tool|function|parameters|arguments|params)\1\s{0,9}:""",
    re.IGNORECASE,
)
_CANCEL = re.compile(
    r"\W*(?:(?:please|can you|could you|i want to|i'd like to|i would like to|ok|okay|no|wait)\W+)*"
    r"(?P<verb>cancel|call off|abort|stop|undo)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\W*(?:(?:please|no|oh|and|but)\W+)*(?:(?:i )?(?:don't|do not|never|don\u2019t)\s+(?!forget|worry|you\b)"
    r"(?:want\s+(?:you\s+)?to\s+)?(?P<verb>[a-z]+)|no need to\b|never mind\b|forget about\b)",
    re.IGNORECASE,
)
_COURTESY = (
    r"(?:ok(?:ay)?|great|perfect|nice|cool|good|well done|that's all|bye|good ?bye|thanks?(?: you)?|thx|cheers|a lot"
    r"|very much|so much|there|hi|hello|hey|good (?:morning|afternoon|evening)|for (?:that|now|everything|your help))"
)
_THANKS = re.compile(rf"\W*{_COURTESY}(?:\W+{_COURTESY})*\W*", re.IGNORECASE)
_NEVER_MIND = re.compile(
    r"\W*(?:(?:ok(?:ay)?|oh|no|sorry)\W+)*(?:never ?mind|no,? thanks?|no,? thank you)\W*",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"\W*(?:hi|hello|hey|good (?:morning|afternoon|evening))\b", re.IGNORECASE
)
_ABILITIES = re.compile(
    r"\W*(?:(?:hi|hello|hey)\W+)?(?:what (?:can|could|do) you (?:do|offer)|help|how (?:can|could) you help"
    r"|how does this work|what is this)\b.{0,20}",
    re.IGNORECASE,
)


def ask_for(slots: Sequence[Slot]) -> str:
    """Return the question for values that were not given."""
    if len(slots) == 1:
        wanted = "" if _is_asked_by_description(slots[0]) else _explain(slots[0])
        return f"{ask_value(slots[0], wanted)}{_hint(slots[0])}"
    labels = [slot.label for slot in slots]
    return f"{_WHAT_ARE}{', '.join(labels[:-1])} and {labels[-1]}?"


def ask_value(slot: Slot, wanted: str = "") -> str:
    """Return the question for the value of *slot*; *wanted*, such as " in EUR", says more about it."""
    answers = ": yes or no" if slot.kind == "boolean" else ""
    return f"{_open_question(slot)}{wanted}{answers}?"


def _open_question(slot: Slot) -> str:
    """Return what asks for the value of *slot*, as a person would by its name, kind and description."""
    if _is_asked_by_description(slot):
        hint = _explain(slot).strip(" ()")
        return f"{hint[:1].upper()}{hint[1:]}"
    words = f"{slot.words[:1].upper()}{slot.words[1:]}"
    if slot.is_particle:
        is_asking = slot.words.partition(" ")[0] in INTERROGATIVES
        return words if is_asking else f"{words}{_asking(slot)}"
    if slot.kind == "boolean":
        return words
    if slot.is_count:
        return f"How many {slot.words}"
    if slot.is_list or slot.choices:
        return f"Which {slot.words}"
    return f"{'When' if slot.is_timed else 'What'} is {slot.label}"


def _is_asked_by_description(slot: Slot) -> bool:
    """Return whether its description asks for *slot* better than its name: "Every" is "How often"."""
    first = _explain(slot).strip(" ()").partition(" ")[0]
    return slot.is_particle and first.casefold() in INTERROGATIVES


def _asking(slot: Slot) -> str:
    """Return the question words behind a name that stands before a value: "Until when", "From what"."""
    if slot.is_timed:
        return " when"
    if slot.kind == "duration":
        return " how long"
    return " how much" if slot.is_numeric else " what"


def _hint(slot: Slot) -> str:
    """Return the hint on the values of *slot*: its choices, or an example."""
    if slot.choices:
        return f"{_ONE_OF}{', '.join(str(choice) for choice in slot.choices)}."
    if slot.examples:
        example = slot.examples[0]
        return f" For example: {', '.join(map(str, example)) if isinstance(example, list | tuple) else example}."
    return ""


def _explain(slot: Slot) -> str:
    """Return the description of *slot* in parentheses, as in "What should every be (how often)?"."""
    description = slot.description.rstrip(".")
    if not 0 < len(description) <= _LONGEST_HINT or slot.choices or slot.examples:
        return ""
    is_word = description[1:2].islower() or description[1:2] == " "
    return (
        f" ({description[0].lower() if is_word else description[0]}{description[1:]})"
    )


def ask_which_value(slot: Slot, values: Sequence[object], written: str = "") -> str:
    """Return the question for a slot that was given several values, or one, *written*, with several readings."""
    said = [_spell(value) for value in values]
    question = f"Is {slot.label} {', '.join(said[:-1])} or {said[-1]}?"
    return f"{question} You wrote {written!r}." if written else question


def ask_currency(slot: Slot, written: str, codes: Sequence[str] = ()) -> str:
    """Return the question for the currency of *written*, one of *codes* where its name is that of several."""
    question = f"{ask_value(slot, _WITH_CURRENCY)} You wrote {written!r}"
    return (
        f"{question}, which may be {', '.join(codes[:-1])} or {codes[-1]}."
        if codes
        else f"{question}."
    )


def amount_asked(turn: ChatTurn, slot: Slot) -> str:
    """Return the amount of *slot* whose currency *turn* asked for, as it was written; "" when it did not."""
    opening = re.escape(ask_value(slot, _WITH_CURRENCY))
    match = re.search(rf"{opening} You wrote (['\"])(.{{1,400}}?)\1[.,]", turn.text)
    return match[2] if match else ""


def values_asked(turn: ChatTurn, slot: Slot) -> tuple[str, ...]:
    """Return the values of *slot* that *turn* asked to choose from, as it wrote them; empty when it named none."""
    if match := re.search(
        rf"(?:^|[?.] )Is {re.escape(slot.label)} ([^?]+ or [^?]+)\?", turn.text
    ):
        return _alternatives(match[1])
    return ()


class Unplaced(NamedTuple):
    """The *text* of a value that nothing assigns to one of *slots*."""

    text: str
    slots: tuple[Slot, ...]


def ask_whose(values: Sequence[Unplaced]) -> str:
    """Return the one question for *values*, one or more, that nothing assigns to a field."""
    slots = list(dict.fromkeys(slot for one in values for slot in one.slots))
    if len(slots) == 1:
        return ask_for(slots)
    if len(values) == 1:
        labels = [slot.label for slot in slots]
        return f"{_WHOSE}{values[0].text}': {', '.join(labels[:-1])} or {labels[-1]}?"
    needed = [slot for slot in slots if slot.is_required]
    asked = ask_for(needed if len(needed) == len(values) else slots)
    return f"I cannot tell which of {_quote_all([one.text for one in values])} is which. {asked}"


def value_asked(
    turn: ChatTurn, schema: TaskSchema
) -> tuple[str, tuple[Slot, ...]] | None:
    """Return the value that an `ask_whose` in *turn* could not place, and the slots it named; None for no such."""
    match = _VALUE.search(turn.text)
    if match is None:
        return None
    slots = {slot.label: slot for slot in schema.slots}
    labels = _alternatives(match[2])
    return (
        (match[1], tuple(slots[label] for label in labels))
        if slots.keys() >= set(labels)
        else None
    )


def _alternatives(text: str) -> tuple[str, ...]:
    *others, last = text.rsplit(" or ", 1)
    return (*(one for other in others for one in other.split(", ")), last)


def tell_useless(texts: Sequence[str]) -> str:
    """Return the sentence before another question about a task that has no use for *texts*."""
    return f"I cannot take {_quote_all(texts)} into account."


def _quote_all(texts: Sequence[str]) -> str:
    return " and ".join(f"'{text[:_MOST_QUOTED]}'" for text in texts)


def asks_to_leave_out(turn: ChatTurn) -> bool:
    """Return whether *turn* asked whether to start its task without some of the words, as version 0.2 did."""
    return turn.task is not None and turn.text.endswith(_LEAVE_OUT)


def leave(what: str, abilities: str) -> str:
    """Return the reply to a person who leaves the questions, *what* is "it" or "them"."""
    return f"OK, I will not start {what}. {abilities}"


def ask_unknown_reference(slot: Slot) -> str:
    """Return the question for "same history" when the conversation holds none."""
    return f"This conversation has no earlier {slot.words}. {ask_for([slot])}"


def ask_which_task(offers: Sequence[Offer]) -> str:
    """Return the question for words that fit several tasks."""
    names = [
        f"{name_offered(offer)} ({offer.agent.agent_id})"
        for offer in offers[:_MOST_NAMED]
    ]
    if len(offers) > len(names):
        names.append("another one")
    return (
        f"{_WHICH_TASK}{' or '.join(filter(None, [', '.join(names[:-1]), names[-1]]))}?"
    )


def name_offered(offer: Offer) -> str:
    """Return the name of *offer* in a question: its action, where no other task of its agent has the same one."""
    others = (
        Offer(offer.agent, task).action
        for task in offer.agent.tasks
        if task.name != offer.task.name
    )
    is_telling = offer.action not in others and not _MARKS.search(offer.action)
    return f"to {offer.action}" if offer.action and is_telling else offer.label


def tasks_asked(turn: ChatTurn) -> list[tuple[str, str]]:
    """Return the tasks that *turn* asked to choose from, each as its agent's id and its label, in the order asked."""
    return (
        [(match[2], match[1]) for match in _OFFERED.finditer(turn.text)]
        if asks_which_task(turn)
        else []
    )


def asks_which_task(turn: ChatTurn) -> bool:
    """Return whether *turn* asked which task is meant."""
    return turn.task is None and turn.text.startswith(_WHICH_TASK)


def ask_to_confirm(offer: Offer, values: Mapping[str, object]) -> str:
    """Return the question for a yes before a task is started with *values*; it says what the task does."""
    units = {slot.name: slot.unit for slot in task_schema(offer.task).slots}
    said = "; ".join(
        f"{name.replace('_', ' ')}: {_spell(value, units.get(name))}"
        for name, value in values.items()
    )
    does = offer.action or f"start '{offer.label}'"
    return f"{_SHALL_I}{does}{f' ({said})' if said else ''}?"


def _spell(value: object, unit: str | None = None) -> str:
    """Return *value* as a person is shown it: a switch in words, a number with its *unit*, minutes without seconds."""
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_spell(one, unit) for one in value)
    if isinstance(value, int | float) and unit is not None:
        return f"{value} {unit}"
    return _WHOLE_MINUTE.sub("", str(value))


def asks_to_confirm(turn: ChatTurn) -> bool:
    """Return whether *turn* asked for a yes before its task is started."""
    # Version 0.2 asked for it as it asks which task is meant.
    return turn.task is not None and turn.text.startswith((_SHALL_I, _WHICH_TASK))


def slots_asked(turn: ChatTurn, schema: TaskSchema) -> tuple[Slot, ...]:
    """Return the slots that *turn* waits for: required ones it lacks, and those its question names."""
    if (found := value_asked(turn, schema)) is not None:
        return found[1]
    known = turn.task.parameters if turn.task else {}
    several = {
        label
        for match in _SEVERAL.finditer(turn.text)
        for label in re.split(r", | and ", match[1])
    }
    return tuple(
        slot
        for slot in schema.slots
        if slot.name not in known
        and (slot.is_required or slot.label in several or _is_asked_in(turn.text, slot))
    )


def _is_asked_in(text: str, slot: Slot) -> bool:
    """Return whether *text* asks for the value of *slot* alone."""
    openings = [
        _open_question(slot),
        *(f"{one} {name}" for one in _OPENINGS for name in (slot.label, slot.words)),
    ]
    return any(f"{one}{end}" in text for one in openings for end in "? ,:")


def says_cannot(text: str) -> bool:
    """Return whether *text* is the rules' reply to words that they do not understand or cannot act on."""
    return text.startswith("I cannot ")


def says_nothing_fits(text: str) -> bool:
    """Return whether *text* is the reply to a wish that no task is for."""
    return text.startswith(("I cannot tell what to do with ", "No agent does "))


def is_json(text: str) -> bool:
    """Return whether *text* is an object or a list of JSON, or has a program's request in it."""
    bare = text.strip("` \n\t").removeprefix("json").lstrip()
    is_whole = "{" in bare and bare[0] in "{[" and bare[-1] in "}]"
    return is_whole or _REQUEST.search(text) is not None


def reply_without_task(
    utterance: ReadUtterance, choice: Route | None, abilities: str, last: Offer | None
) -> str | None:
    """Return the reply to an utterance that by its kind no task is for, None for any other; *last* is done."""
    text = utterance.text
    if is_json(text):
        return HOW_TO_SEND
    if choice is None:
        if _THANKS.fullmatch(text[:200]):
            return (
                f"Hello. {abilities}" if _GREETING.match(text) else "You are welcome."
            )
        if _NEVER_MIND.fullmatch(text[:200]):
            return "All right: nothing was started."
        if _ABILITIES.fullmatch(text[:200]):
            return abilities
    if (match := _CANCEL.match(text)) and not _does(choice, match["verb"].split()[0]):
        return _CANCELLING + (
            f" The last task of this conversation was {last.label}."
            if last is not None
            else ""
        )
    return None


def is_denied(utterance: ReadUtterance, choice: Route | None) -> bool:
    """Return whether *utterance* forbids something; "don't spend more than 50k" is a value."""
    match = _DENIED.match(utterance.text)
    if match is None or choice is None or _does(choice, "not"):
        return False
    verb = stem((match["verb"] or "").lower())
    return not any(
        phrase.stems == (verb,)
        for slot in choice.task.schema.slots
        for phrase in slot.phrases
    )


def _does(choice: Route | None, verb: str) -> bool:
    return (
        choice is not None
        and stem(verb.lower()) in choice.task.names | choice.task.known
    )
