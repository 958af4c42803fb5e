"""The references of a phase, and its parameters with values put in; the grammar is in `places`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from contracts.errors import InvalidInput
from contracts.pipelines import Phase
from supervisor.pipelines.declaration.conditions import Condition
from supervisor.pipelines.declaration.places import Lookup, Reference, read_entry, read_text, value_at
from supervisor.pipelines.declaration.problems import Place, Problem

__all__ = ["Lookup", "Mention", "Reference", "keys_read", "mentions_of", "references_in", "resolve"]


#: References of one phase.
MOST_MENTIONS = 1_000


@dataclass(frozen=True, slots=True)
class Mention:
    """A reference and the place in its phase where it stands, such as `("parameters", "files")` or `("reads", 0)`."""

    place: Place
    reference: Reference


def references_in(value: JsonValue) -> tuple[Reference, ...]:
    """Return every reference in *value*, at any depth, in the order of reading.

    Raises:
        InvalidInput: one of them cannot be read.
    """
    return tuple(piece for text in _texts(value) for piece in read_text(text) if isinstance(piece, Reference))


def resolve(value: JsonValue, lookup: Lookup) -> JsonValue:
    """Return *value* with the value of every reference in its place.

    A text that is one reference becomes the value as it is; in a longer one, texts stand as they are and anything else
    as compact JSON. Names of properties are no place for references and stay.

    Raises:
        InvalidInput: a reference cannot be read, or leads nowhere; or whatever *lookup* raises.
    """
    if isinstance(value, str):
        pieces = read_text(value)
        if len(pieces) == 1 and isinstance(pieces[0], Reference):
            return value_at(pieces[0], lookup)
        return "".join(piece if isinstance(piece, str) else _as_text(value_at(piece, lookup)) for piece in pieces)
    if isinstance(value, list):
        return [resolve(item, lookup) for item in value]
    if isinstance(value, dict):
        return {name: resolve(item, lookup) for name, item in value.items()}
    return value


def keys_read(phase: Phase) -> dict[str, bool]:
    """Return the keys of the entries that *phase* reads, in parameters, `reads` and `when`; True: it may be missing.

    Raises:
        InvalidInput: a reference, a key or the condition cannot be read.
    """
    mentions, problems = mentions_of(phase)
    if problems:
        raise InvalidInput(f"phase {phase.name}: {problems[0].text}")
    keys: dict[str, bool] = {}
    for mention in mentions:
        if mention.reference.kind == "entry":
            # One place that needs it outweighs all that could do without.
            keys[mention.reference.name] = keys.get(mention.reference.name, True) and mention.reference.optional
    return keys


def mentions_of(phase: Phase) -> tuple[list[Mention], list[Problem]]:
    """Return everything that *phase* refers to, and what of it cannot be read; places are inside the phase."""
    mentions: list[Mention] = []
    problems: list[Problem] = []
    for name, value in phase.parameters.items():
        _collect(("parameters", name), value, mentions, problems)
    if phase.for_each is not None:
        _collect(("for_each",), phase.for_each, mentions, problems)
    for n, text in enumerate(phase.reads):
        try:
            mentions.append(Mention(("reads", n), read_entry(text)))
        except InvalidInput as error:
            problems.append(Problem(("reads", n), f"reads: {error}"))
    for field, condition in (("when", phase.when), ("repeat_until", phase.repeat_until)):
        if condition is not None:
            try:
                mentions.extend(Mention((field,), reference) for reference in Condition.parse(condition).references)
            except InvalidInput as error:
                problems.append(Problem((field,), f"{field}: {error}"))
    return mentions, problems


def _collect(place: Place, value: JsonValue, mentions: list[Mention], problems: list[Problem]) -> None:
    for text in _texts(value):
        try:
            found = references_in(text)
        except InvalidInput as error:
            problems.append(Problem(place, f"{'.'.join(map(str, place))}: {error}"))
        else:
            mentions.extend(Mention(place, reference) for reference in dict.fromkeys(found))
    if len(mentions) > MOST_MENTIONS:
        del mentions[MOST_MENTIONS:]
        problems.append(Problem(place, f"{'.'.join(map(str, place))}: it refers to more than {MOST_MENTIONS:,} things"))


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
