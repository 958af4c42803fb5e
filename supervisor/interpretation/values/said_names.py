"""The names that a task was filled with as the sentence says them, and what of them is none."""

import re
from collections.abc import Iterator

from supervisor.understanding.outcome import Span
from supervisor.interpretation.questions import ask_which_name, ask_which_value
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.plain_values import DEEDS, is_free
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared

#: "Where my brother lives" tells a place by whoever is there; "where the wild things are" may be a title.
_WHERE = re.compile(r"(?:^|[\s,]+)where(?:ver)? (?:my|our|his|her|their|i|we|you|he|she|they)\b")
#: "Anna to get milk": who is told, and what.
_TO_DEED = re.compile(rf"[\s,]+to (?:{'|'.join(sorted(DEEDS))}) \w")
#: What follows a name in small letters may take it back: "ghent no bruges".
_NO = re.compile(r"(?P<first>[^\W\d][\w'\u2019-]*) no (?P<second>[^\W_][\w'\u2019-]*)")
#: Words that a "no" belongs to: "say no more", "symphony no 3".
_BEFORE_NO = re.compile(
    r"say|says|there|there's|with|yes|has|have|is|symphony|concerto|sonata|opus|op|quartet|quintet|prelude|nocturne|etude"
    r"|mambo|chanel|number|waltz|psalm|chapter|part|rhapsody|overture|fugue|suite|studio|platform|gate|line|room|route",
    re.IGNORECASE,
)
_AFTER_NO = re.compile(
    r"more|one|way|man|time|problem|limits?|fear|name|regrets?|longer|matter|doubt|evil|logo|hands", re.IGNORECASE
)
#: Characters of a name that is looked at.
_LONGEST = 160


def said_names(scene: Scene, task: Prepared, filled: Filled) -> Iterator[tuple[FieldShape, Span]]:
    """Yield each field that holds a name, and where it stands; neither messages nor what is quoted."""
    for shape in task.shape.fields:
        said = filled.values.get(shape.name)
        span = next((one for one in filled.spans if one.field == shape.name), None)
        if shape.kind != "text" or span is None or not isinstance(said, str) or is_free(shape):
            continue
        if said == scene.text[span.start : span.end] and not any(
            one.start <= span.start < one.end for one in scene.quoted
        ):
            yield shape, span


def cut_name(scene: Scene, shape: FieldShape, span: Span, end: int, filled: Filled) -> None:
    """Let the name of *shape* at *span* end at *end*; one of which nothing is left was never said."""
    filled.drop(shape.name)
    if end > span.start:
        filled.point(shape.name, span.start, end, scene.text)
        filled.values[shape.name] = scene.text[span.start : end]


def doubt_names(scene: Scene, task: Prepared, filled: Filled) -> None:
    """Take off names what is said of them ("where my brother lives", "to get milk"), ask about "ghent no bruges"."""
    if not any(hint in scene.text for hint in (" no ", "where", " to ")):
        return
    is_told = any(is_free(shape) and not filled.has(shape) for shape in task.shape.required)
    for shape, span in tuple(said_names(scene, task, filled)):
        if len(span.text) > _LONGEST:
            continue
        match = _WHERE.search(span.text) or (_TO_DEED.search(span.text) if is_told else None)
        if match is not None:
            cut_name(scene, shape, span, span.start + match.start(), filled)
        elif (match := _NO.fullmatch(span.text)) and not (
            _BEFORE_NO.fullmatch(match["first"]) or _AFTER_NO.fullmatch(match["second"])
        ):
            _doubt_no(shape, match, task, filled)


def _doubt_no(shape: FieldShape, match: re.Match[str], task: Prepared, filled: Filled) -> None:
    """Ask which of both is meant; a number may take the place of the one another field was filled with."""
    if not match["second"][0].isdigit():
        filled.doubt(Doubt(shape, ask_which_name(shape, [match["first"], match["second"]])))
        return
    filled.doubt(Doubt(shape, ask_which_name(shape, [match["first"], match[0]])))
    counts = [
        one for one in task.shape.fields if one.kind == "integer" and not one.is_list and one.name in filled.values
    ]
    if len(counts) == 1 and match["second"].isdigit():
        values = [filled.values[counts[0].name], match["second"]]
        filled.doubt(Doubt(counts[0], ask_which_value(counts[0], values)))
