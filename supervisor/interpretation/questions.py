"""The questions asked back, and which fields an earlier one asked for: the only file that words or reads them."""

import re
from collections.abc import Collection, Mapping, Sequence

from contracts.messages import ChatTurn
from supervisor.catalogue import Offer
from supervisor.interpretation.values.fields import FieldShape, TaskShape

#: Tasks named in a question before "or another one": more is no question, and thousands are no message.
_MOST_NAMED = 12
_WHICH_TASK = "Do you mean "
#: One of the tasks of that question: its label, and in parentheses its agent.
_OFFERED = re.compile(r"(?:mean |, | or )([^,()]{1,200}) \(([A-Za-z0-9_-]{1,64})\)")
_WHOSE = "What is '"
#: The amount of that question, and the labels of the fields that it may be for.
_AMOUNT = re.compile(r"What is '(.{1,400})': ([^?]{1,2000})\?", re.DOTALL)
#: Before the values that a field allows.
_ONE_OF = " One of: "
#: How the reply begins to whoever does not want to be asked.
_LEFT = "All right, I leave "
#: A question of `ask_whether`; what it rests on stands in quotes that it cannot close, so it cannot look like one.
_WHETHER = re.compile(r'Is ([^"?]+)\? (?:I remember|You said) "[^"]*"\.')
#: A question of `ask_as_one` or `ask_which_name`: the label, the whole of it, the names.
_AS_ONE = re.compile(r'Is ([^"?]{1,200}) "([^"?]*)" as one, or each of ("[^"?]*"(?:(?:, | and )"[^"?]*")+)\?')
_WHICH_NAME = re.compile(r'Is ([^"?]{1,200}) ("[^"?]*"(?:(?:, | or )"[^"?]*")+)\?')
_IN_QUOTES = re.compile(r'"([^"]*)"')


def ask_for(fields: Sequence[FieldShape]) -> str:
    """Return the question for values nobody said."""
    labels = [field.label for field in fields]
    if len(labels) == 1:
        return f"What is {labels[0]}?{_hint(fields[0])}"
    return f"What are {', '.join(labels[:-1])} and {labels[-1]}?"


def _hint(field: FieldShape) -> str:
    if field.choices:
        return f"{_ONE_OF}{', '.join(str(choice) for choice in field.choices)}."
    return f" For example: {field.examples[0]}." if field.examples else ""


def ask_which_value(field: FieldShape, values: Sequence[object]) -> str:
    """Return the question for a field that was given several values."""
    said = [str(value) for value in values]
    return f"Is {field.label} {', '.join(said[:-1])} or {said[-1]}?"


def ask_as_one(field: FieldShape, whole: str, names: Sequence[str]) -> str:
    """Return the question whether *whole* is one value of *field*, or each of *names*, of which it is made, is."""
    return f'Is {field.label} "{_unquoted(whole)}" as one, or each of {_quoted(names, "and")}?'


def ask_which_name(field: FieldShape, names: Sequence[str]) -> str:
    """Return the question which of *names*, between which the person said "or", is meant for *field*."""
    return f"Is {field.label} {_quoted(names, 'or')}?"


def names_asked(turn: ChatTurn) -> tuple[str, str | None, tuple[str, ...]] | None:
    """Return the label, the whole and the names of an `ask_as_one` in *turn*; None when it asked no such.

    The whole is None for an `ask_which_name`.
    """
    if match := _AS_ONE.search(turn.text):
        return match[1], match[2], tuple(_IN_QUOTES.findall(match[3]))
    if match := _WHICH_NAME.search(turn.text):
        return match[1], None, tuple(_IN_QUOTES.findall(match[2]))
    return None


def _quoted(names: Sequence[str], joint: str) -> str:
    quoted = [f'"{_unquoted(name)}"' for name in names]
    return f"{', '.join(quoted[:-1])} {joint} {quoted[-1]}"


def _unquoted(text: str) -> str:
    return text.replace('"', "'").replace("?", "")


def ask_whether(field: FieldShape, value: object, line: str, *, was_said: bool = False) -> str:
    """Return the question whether a value holds for which *line*, which says more than that it does, is remembered.

    Or *was_said* by the person earlier in the conversation.
    """
    said = ", ".join(map(str, value)) if isinstance(value, list) else value
    quoted = line.replace('"', "'")
    return f'Is {field.label} {said}? {"You said" if was_said else "I remember"} "{quoted}".'


def agreed_in(question: str) -> str:
    """Return what a yes to *question* says, field by field in words; empty when it asks for no yes."""
    return " and ".join(match[1] for match in _WHETHER.finditer(question))


def ask_in_currency(field: FieldShape, currency: str) -> str:
    """Return the question for an amount in another currency than the ones beside it."""
    return f"What is {field.label} in {currency}? I do not convert currencies."


def ask_whose(text: str, fields: Sequence[FieldShape]) -> str:
    """Return the question for an amount that nothing assigns to a field."""
    labels = [field.label for field in fields]
    return ask_for(fields) if len(labels) == 1 else f"{_WHOSE}{text}': {', '.join(labels[:-1])} or {labels[-1]}?"


def amount_asked(turn: ChatTurn, shape: TaskShape) -> tuple[str, tuple[FieldShape, ...]] | None:
    """Return the amount that an `ask_whose` in *turn* could not place, and the fields it named; None for no such."""
    match = _AMOUNT.match(turn.text)
    if match is None:
        return None
    fields = {field.label: field for field in shape.fields}
    labels = _alternatives(match[2])
    return (match[1], tuple(fields[label] for label in labels)) if fields.keys() >= set(labels) else None


def values_asked(turn: ChatTurn, field: FieldShape) -> tuple[str, ...]:
    """Return the values of *field* that *turn* asked to choose from, as it wrote them; empty when it named none."""
    if match := re.search(rf"(?:^|[?.] )Is {re.escape(field.label)} ([^?\"]+ or [^?\"]+)\?", turn.text):
        return _alternatives(match[1])
    return tuple(map(str, field.choices)) if f"What is {field.label}?{_ONE_OF}" in turn.text else ()


def _alternatives(text: str) -> tuple[str, ...]:
    *others, last = text.rsplit(" or ", 1)
    return (*(one for other in others for one in other.split(", ")), last)


def leave(what: str, abilities: str) -> str:
    """Return the reply to a person who wants no answer to *what* was asked, "it" or "them"."""
    return f"{_LEFT}{what}. {abilities}"


def is_left(turn: ChatTurn) -> bool:
    """True when *turn* took note that what was asked before it is not to be answered."""
    return turn.task is None and turn.text.startswith(_LEFT)


def ask_unknown_reference(field: FieldShape) -> str:
    """Return the question for "same history" when the conversation holds none."""
    return f"This conversation has no earlier {field.label}. What is {field.label}?"


def ask_which_task(offers: Sequence[Offer]) -> str:
    """Return the question for words that fit several tasks."""
    names = [f"{offer.label} ({offer.agent.agent_id})" for offer in offers[:_MOST_NAMED]]
    if len(offers) > len(names):
        names.append("another one")
    return f"{_WHICH_TASK}{' or '.join(filter(None, [', '.join(names[:-1]), names[-1]]))}?"


def tasks_asked(turn: ChatTurn) -> list[tuple[str, str]]:
    """Return the tasks that *turn* asked to choose from, each as its agent's id and its label, in the order asked."""
    return [(match[2], match[1]) for match in _OFFERED.finditer(turn.text)] if asks_which_task(turn) else []


def asks_which_task(turn: ChatTurn) -> bool:
    """True when *turn* asked which task is meant."""
    return turn.task is None and turn.text.startswith(_WHICH_TASK)


def ask_to_confirm(offer: Offer, values: Mapping[str, object]) -> str:
    """Return the question for a task that only a language model saw in the words."""
    said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())
    return f"{_WHICH_TASK}{offer.label} with {said}?" if said else f"{_WHICH_TASK}{offer.label}?"


def name_remembered(question: str, values: Mapping[str, object], names: Collection[str]) -> str:
    """Return *question* with what of *values*, those of *names*, was taken from memory and not from the person."""
    taken = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items() if name in names)
    return f"{question} (I take {taken} as I remember it.)" if taken else question


def asks_to_confirm(turn: ChatTurn) -> bool:
    """True when *turn* asked whether its task is meant."""
    return turn.task is not None and turn.text.startswith(_WHICH_TASK)


def fields_asked(turn: ChatTurn, shape: TaskShape) -> tuple[FieldShape, ...]:
    """Return the fields that *turn* waits for: required ones it lacks, and those its question names."""
    if turn.text.startswith(_WHOSE):
        return tuple(field for field in shape.fields if field.is_numeric)
    known = turn.task.parameters if turn.task else {}
    return tuple(
        field for field in shape.fields if field.name not in known and (field.is_required or _asks(turn.text, field))
    )


def _asks(text: str, field: FieldShape) -> bool:
    return f"What is {field.label}" in text or f"Is {field.label} " in text
