"""The last task with another value, in a few words: "make it 5", "no, Saturday", "for 3 days", "actually we are 5"."""

import re

from quantities.times import stretches
from supervisor.understanding.outcome import Missing, Single, Understood
from supervisor.interpretation.questions import ask_for
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import STOP, word_set

#: Words that say that something is to be otherwise, with a value of any field behind them.
_OTHERWISE = re.compile(
    r"^\W*(?:(?:oh|ok|okay|and|but|please|can you|could you|let's|hmm|sorry|wait|oops)\b\W*)*"
    r"(?:(?:make|change|switch|move|set|put) (?:it|that|them|this)\b|no\b|nope\b|actually\b|rather\b|correction\b"
    r"|i mean(?:t)?\b|or rather\b)|\binstead\W*$",
    re.IGNORECASE,
)
#: "And tomorrow?", "what about Saturday": the same on another day.
_AND_THEN = re.compile(r"^\W*(?:and|(?:and )?(?:what|how) about)\b", re.IGNORECASE)
#: What may be said beside the value.
_BESIDE = STOP | word_set(
    "about actually sorry oops wait rather instead correction mean meant change switch move set put nope oh hmm today"
    " people persons guests us only let's please"
)
#: What is said of the answer, or asks about it, wants nothing anew.
_COMMENT = word_set("thanks thank thx good great fine nice ok okay yes yeah perfect cool hello hi hey new same")
_ASKING = word_set("is are was were does did do has have what why how when where who which if")
#: A word in capitals in the middle of a sentence.
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z][\w'-]*")
_NO_NAMES = STOP | word_set("eur usd gbp chf euro euros mr mrs ms dr")
#: Words of what says only that; more is a sentence.
_MOST = 12


def ask_for_unread(found: Single, scene: Scene, task: Prepared) -> Single:
    """Return *found* as the question for its name where *scene* has one that was not read: "and Rome for 2 days"."""
    if not isinstance(found, Understood):
        return found
    read = [(span.start, span.end) for span in found.spans if span.source is None]
    kept = [
        shape
        for span in found.spans
        if span.source is not None and (shape := task.shape.field(span.field)) and shape.kind == "text"
    ]
    names = [match for match in _NAME.finditer(scene.text) if match[0].lower() not in _NO_NAMES]
    times = stretches(scene.text) if names and len(kept) == 1 else ()
    is_unread = any(not any(a <= match.start() < b for a, b in (*read, *times)) for match in names)
    if len(kept) != 1 or kept[0].is_list or not is_unread:
        return found
    name = kept[0].name
    known = {one: value for one, value in found.task.parameters.items() if one != name}
    spans = tuple(span for span in found.spans if span.field != name)
    return Missing(found.agent_id, found.task.name, known, (name,), ask_for([kept[0]]), spans)


def says_anew(scene: Scene, cues: tuple[Cue, ...]) -> bool:
    """Return whether *scene* says a value of the last task, an amount or a time, and nothing else.

    It is announced by one of *cues*, or put in the place of another one.
    """
    words = [token for token in scene.tokens if token.is_word]
    if not words or len(words) > _MOST or scene.quoted:
        return False
    is_other_day = not scene.items and bool(scene.times) and _AND_THEN.match(scene.text) is not None
    if words[0].text in _ASKING and not is_other_day:
        return False
    if not cues and not is_other_day and _OTHERWISE.search(scene.text) is None:
        return False
    cued = {place for cue in cues for place in range(cue.first, cue.end)}
    said = [*((item.start, item.end) for item in scene.items), *scene.times]
    rest = [
        token
        for place, token in enumerate(scene.tokens)
        if token.is_word and place not in cued and not any(start <= token.start < end for start, end in said)
    ]
    return (
        bool(said)
        and all(token.text in _BESIDE for token in rest)
        and not any(token.text in _COMMENT for token in rest)
    )
