"""Questions back to the person, which are also parsed here, and replies to words that no task is for."""

import re
from collections.abc import Mapping, Sequence

from tasklore.contracts.messages import ChatTurn
from tasklore.supervisor.catalogue import Offer
from tasklore.supervisor.understanding.routing import Route
from tasklore.supervisor.understanding.schema import Slot, TaskSchema
from tasklore.supervisor.understanding.utterance import ReadUtterance, stem

#: Tasks named in a question before "or another one": more is no question, and thousands are no message.
_MOST_NAMED = 12
_WHICH_TASK = "Do you mean "
#: One of the tasks of that question: its label, and in parentheses its agent.
_OFFERED = re.compile(r"(?:mean |, | or )([^,()]{1,200}) \(([A-Za-z0-9_-]{1,64})\)")
_WHOSE = "What is '"
_VALUE = re.compile(r"What is '(.{1,400})': ([^?]{1,2000})\?", re.DOTALL)
_WHICH = "Which"
_HOW_MANY = "How many"
#: How a question for one value opens; 0.2 asked "What is", and its turns are kept.
_OPENINGS = ("What is", _WHICH, _HOW_MANY, "Is")
#: "number of copies" is no count of numbers.
_OF = " of "
#: A last word that is a plural: no "status", "address", "basis" or "gas".
_PLURAL = re.compile(r"people|children|men|women|feet|[a-z]+[^aisu\W\d_]s|[a-z]{3,}as")
_ONE_OF = " One of: "
_WITH_CURRENCY = ", with its currency"
_LEAVE_OUT = "Shall I leave it out?"
#: Characters of a description that a question repeats; a longer one explains how to write the value to programs.
_LONGEST_HINT = 80
#: Characters of the words that a question quotes.
_MOST_QUOTED = 80
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
    labels = [slot.label for slot in slots]
    if len(labels) == 1:
        return f"{ask_value(slots[0], _explain(slots[0]))}{_hint(slots[0])}"
    return f"What should {', '.join(labels[:-1])} and {labels[-1]} be?"


def ask_value(slot: Slot, wanted: str = "") -> str:
    """Return the question for the value of *slot*; *wanted*, such as " in EUR", says more about it."""
    if slot.is_list:
        return f"{_WHICH} {slot.label}{wanted}?"
    if _is_counted(slot):
        return f"{_HOW_MANY} {slot.label}{wanted}?"
    return f"{_open_question(slot)}{wanted}?"


def _open_question(slot: Slot) -> str:
    return f"What should {slot.label} be"


def _is_counted(slot: Slot) -> bool:
    """Return whether "how many" asks for *slot*: a whole number of what its label names in the plural."""
    label = slot.label.lower()
    return (
        slot.kind == "integer"
        and slot.unit is None
        and not slot.choices
        and _OF not in label
        and _PLURAL.fullmatch(label.rpartition(" ")[2]) is not None
    )


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
    said = [str(value) for value in values]
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


def ask_whose(text: str, slots: Sequence[Slot]) -> str:
    """Return the question for a value that nothing assigns to one of *slots*."""
    labels = [slot.label for slot in slots]
    return (
        ask_for(slots)
        if len(labels) == 1
        else f"{_WHOSE}{text}': {', '.join(labels[:-1])} or {labels[-1]}?"
    )


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


def ask_to_leave_out(texts: Sequence[str], label: str) -> str:
    """Return the question about words, *texts*, that no slot of the task called *label* takes."""
    return f"{tell_useless(texts, label)} {_LEAVE_OUT}"


def tell_useless(texts: Sequence[str], label: str) -> str:
    """Return the sentence before another question about a task that has no use for *texts*."""
    quoted = " and ".join(f"'{text[:_MOST_QUOTED]}'" for text in texts)
    return f"{label} has no parameter for {quoted}."


def asks_to_leave_out(turn: ChatTurn) -> bool:
    """Return whether *turn* asked whether to start its task without some of the words."""
    return turn.task is not None and turn.text.endswith(_LEAVE_OUT)


def leave(what: str, abilities: str) -> str:
    """Return the reply to a person who leaves the questions, *what* is "it" or "them"."""
    return f"OK, I will not start {what}. {abilities}"


def ask_unknown_reference(slot: Slot) -> str:
    """Return the question for "same history" when the conversation holds none."""
    return f"This conversation has no earlier {slot.label}. {ask_value(slot)}"


def ask_which_task(offers: Sequence[Offer]) -> str:
    """Return the question for words that fit several tasks."""
    names = [
        f"{offer.label} ({offer.agent.agent_id})" for offer in offers[:_MOST_NAMED]
    ]
    if len(offers) > len(names):
        names.append("another one")
    return (
        f"{_WHICH_TASK}{' or '.join(filter(None, [', '.join(names[:-1]), names[-1]]))}?"
    )


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
    """Return the question for a yes before a task is started with *values*; without any, it says what the task does."""
    said = ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in values.items()
    )
    if said:
        return f"{_WHICH_TASK}{offer.label} with {said}?"
    does = " ".join(offer.task.description.partition("\n\n")[0].split()).rstrip(".")
    explained = f" ({does[:1].lower()}{does[1:]})" if does else ""
    return f"{_WHICH_TASK}{offer.label}{explained}?"


def asks_to_confirm(turn: ChatTurn) -> bool:
    """Return whether *turn* asked for a yes before its task is started."""
    return turn.task is not None and turn.text.startswith(_WHICH_TASK)


def slots_asked(turn: ChatTurn, schema: TaskSchema) -> tuple[Slot, ...]:
    """Return the slots that *turn* waits for: required ones it lacks, and those its question names."""
    if (found := value_asked(turn, schema)) is not None:
        return found[1]
    known = turn.task.parameters if turn.task else {}
    return tuple(
        slot
        for slot in schema.slots
        if slot.name not in known and (slot.is_required or _asks_for(turn.text, slot))
    )


def _asks_for(text: str, slot: Slot) -> bool:
    """Return whether *text* asks for a value of *slot*."""
    return _open_question(slot) in text or any(
        f"{one} {slot.label}{end}" in text for one in _OPENINGS for end in "? ,"
    )


def says_cannot(text: str) -> bool:
    """Return whether *text* is the rules' reply to words that they do not understand or cannot act on."""
    return text.startswith("I cannot ")


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
