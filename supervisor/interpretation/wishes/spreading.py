"""One reading made several where the sentence names several: a task for each name, or the question what is meant."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from quantities.times import stretches
from supervisor.understanding.outcome import Ambiguous, Single, Span, Understood
from supervisor.interpretation.questions import ask_as_one, ask_which_name
from supervisor.interpretation.values.scene import Scene, scene_of
from supervisor.interpretation.wishes.days import Known, for_each_day
from supervisor.interpretation.wishes.listing import Kind, Listing, is_wordy, listing_at
from supervisor.interpretation.wishes.routing import Prepared

#: A name behind all that was read: ", and Oslo", "and in New York too".
_FURTHER = re.compile(
    r"\s*,?\s*\b(?:and|plus|also)\s+(?:also\s+)?(?:(?:in|for|to|at|of|from|with)\s+)?"
    r"(?P<name>[A-Z][\w'\u2019-]*(?:\s+[A-Z][\w'\u2019-]*){0,3})(?:,?\s+(?:too|as well|please))?\W*"
)
#: Characters behind what was read that may be no more than a name.
_LONGEST = 120


def spread(
    found: Single, scene: Scene, task: Prepared | None, settled: Collection[str] = (), open_turns: Collection[str] = ()
) -> list[Single]:
    """Return *found*, of *task* and with its places in *scene*, for each of the names where it has one of them.

    *settled* are texts of which the person has said that they are one name. Names that were kept until what lacks was
    said stand in one of *open_turns*.
    """
    if task is None or not isinstance(found, Known):
        return [found]
    days = for_each_day(found, scene, task)
    if len(days) > 1 or days[0] is not found:
        each = [_each_name(one, scene, task, settled, open_turns) for one in days]
        return [one for names in each for one in names]
    return _each_name(found, scene, task, settled, open_turns)


def _each_name(
    found: Single, scene: Scene, task: Prepared, settled: Collection[str], open_turns: Collection[str]
) -> list[Single]:
    if not isinstance(found, Known):
        return [found]
    for span in found.spans:
        shape = task.shape.field(span.field)
        if shape is None or shape.kind != "text" or shape.is_list:
            continue
        value = _parameters(found).get(span.field)
        if not isinstance(value, str) or value in settled:
            continue
        if span.source in open_turns:
            within = scene_of(value)
            listing = listing_at(within, shape, 0, len(value), task.cues.find(within.tokens))
            if listing is not None:
                return list(_spread(found, within, listing, span))
        elif span.source is None and value == span.text == scene.text[span.start : span.end]:
            listing = listing_at(scene, shape, span.start, span.end, task.cues.find(scene.tokens))
            if listing is not None and scene.text[listing.start : listing.end] not in settled:
                return list(_spread(found, scene, listing))
    return _with_further(found, scene, task, settled)


def _with_further(found: Known, scene: Scene, task: Prepared, settled: Collection[str]) -> list[Single]:
    """Return the question whether *found* is also wanted for the name at the end: "Lima, 2 days, and *Oslo*"."""
    last = max((span.end for span in found.spans if span.source is None), default=0)
    match = _FURTHER.fullmatch(scene.text, last) if len(scene.text) - last <= _LONGEST else None
    names = [span for span in found.spans if _is_of_name(span, task, scene)]
    if not isinstance(found, Understood) or match is None or len(names) != 1 or names[0].end == last:
        return [found]
    start, end = match.span("name")
    if any(one == 0 for one, _ in stretches(scene.text[start:end])):
        return [found]
    shape, first = task.shape.field(names[0].field), names[0]
    whole = f"{first.text} and {match['name']}"
    if shape is None or whole in settled:
        return [found]
    listing = Listing(shape, Kind.UNSURE, ((first.start, first.end), (start, end)), first.start, end)
    return [_asking(found, listing, ask_as_one(shape, whole, [first.text, match["name"]]))]


def _is_of_name(span: Span, task: Prepared, scene: Scene) -> bool:
    shape = task.shape.field(span.field)
    is_here = span.source is None and scene.text[span.start : span.end] == span.text
    return is_here and shape is not None and shape.kind == "text" and not shape.is_list and not is_wordy(shape)


def _parameters(found: Known) -> Mapping[str, Any]:
    return found.task.parameters if isinstance(found, Understood) else found.known


def _spread(found: Known, scene: Scene, listing: Listing, kept: Span | None = None) -> Iterator[Single]:
    """Yield what *listing* makes of *found*; *kept* is where its names stand, when that is an earlier turn."""
    texts = [scene.text[start:end] for start, end in listing.members]
    whole = scene.text[listing.start : listing.end]
    if not isinstance(found, Understood):
        # First what lacks, once for all of them.
        yield _with(found, whole, kept or Span(listing.field.name, listing.start, listing.end, whole))
    elif listing.kind in {Kind.EACH, Kind.TEXT}:
        for (start, end), text in zip(listing.members, texts, strict=True):
            yield _with(found, text, kept or Span(listing.field.name, start, end, text))
    elif listing.kind is Kind.EITHER:
        yield _asking(found, listing, ask_which_name(listing.field, texts))
    else:
        yield _asking(found, listing, ask_as_one(listing.field, whole, texts))


def _with(found: Known, value: str, span: Span) -> Known:
    """Return *found* with *value*, which rests on *span*, for the one that it has of that field."""
    parameters = {**_parameters(found), span.field: value}
    spans = tuple(span if one.field == span.field else one for one in found.spans)
    if isinstance(found, Understood):
        task = found.task.model_copy(update={"parameters": parameters})
        return replace(found, task=task, spans=spans)
    return replace(found, known=parameters, spans=spans)


def _asking(found: Understood, listing: Listing, question: str) -> Ambiguous:
    """Return *found* as *question* about the value that it has of the listed field."""
    name = listing.field.name
    known = {one: value for one, value in found.task.parameters.items() if one != name}
    spans = tuple(span for span in found.spans if span.field != name)
    return Ambiguous(question, found.agent_id, found.task.name, known, (name,), spans)
