"""All that a phase refers to, each with the place where it stands."""

from collections.abc import Iterator
from dataclasses import dataclass

from contracts.errors import InvalidInput
from contracts.pipelines import Phase
from supervisor.pipelines.declaration.conditions import Condition
from supervisor.pipelines.declaration.problems import Flaw, Place
from supervisor.pipelines.declaration.references import Reference, read_entry, references_in, texts_in

#: References of one phase.
MOST_MENTIONS = 1_000


@dataclass(frozen=True, slots=True)
class Mention:
    """A reference and the place in its phase where it stands, such as `("parameters", "files")` or `("reads", 0)`."""

    place: Place
    reference: Reference


def keys_read(phase: Phase) -> dict[str, bool]:
    """Return the keys of the entries that *phase* reads anywhere; True for one that may be missing.

    Raises:
        InvalidInput: a reference, a key or the condition cannot be read.
    """
    mentions, problems = mentions_of(phase)
    if problems:
        raise InvalidInput(f"phase {phase.name}: {problems[0].text}")
    keys: dict[str, bool] = {}
    for reference in (mention.reference for mention in mentions):
        if reference.kind == "entry":
            # One place that needs it outweighs all that could do without.
            keys[reference.name] = keys.get(reference.name, True) and reference.optional
    return keys


def mentions_of(phase: Phase) -> tuple[list[Mention], list[Flaw]]:
    """Return everything that *phase* refers to, and the references that cannot be read; places are inside the phase."""
    mentions: list[Mention] = []
    problems: list[Flaw] = []
    for place, text in _texts_of(phase):
        field = ".".join(map(str, place)) if place[0] == "parameters" else place[0]
        try:
            if field in ("when", "repeat_until"):
                found = Condition.parse(text).references
            else:
                found = (read_entry(text),) if field == "reads" else references_in(text)
        except InvalidInput as error:
            problems.append(Flaw(place, f"{field}: {error}"))
        else:
            mentions.extend(Mention(place, reference) for reference in dict.fromkeys(found))
        if len(mentions) > MOST_MENTIONS:
            problems.append(Flaw(place, f"{field}: it refers to more than {MOST_MENTIONS:,} things"))
            return mentions[:MOST_MENTIONS], problems
    return mentions, problems


def _texts_of(phase: Phase) -> Iterator[tuple[Place, str]]:
    for name, value in phase.parameters.items():
        for text in texts_in(value):
            yield ("parameters", name), text
    if phase.for_each is not None:
        yield ("for_each",), phase.for_each
    for n, text in enumerate(phase.reads):
        yield ("reads", n), text
    if phase.when is not None:
        yield ("when",), phase.when
    if phase.repeat_until is not None:
        yield ("repeat_until",), phase.repeat_until
