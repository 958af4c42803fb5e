"""An answer to an open question beside a wish of its own, in either order: "What's the weather in Lima? 50k"."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from supervisor.understanding.outcome import (
    Ambiguous,
    Interpretation,
    Missing,
    Several,
    Single,
    Understood,
    Unfitting,
)
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.clauses import Clause, clauses_of
from supervisor.interpretation.wishes.routing import Choice, Prepared, Router
from supervisor.interpretation.words import STOP, word_set

#: Characters of a sentence, and clauses of it, past which it is no answer with a wish beside it.
_LONGEST, _MOST = 400, 12
#: Words of an answer that is a name.
_MOST_IN_NAME = 4
#: What may stand beside an amount or a date that answers.
_BESIDE = STOP | word_set("first sorry oh well hmm yeah yep sure actually think guess say maybe it's that's usd eur")
#: In capitals where a sentence begins, these are no names.
_NO_NAMES = STOP | word_set(
    "wait hang hold sec second moment minute sorry well hmm cool great nice perfect later first actually anyway anyhow"
    " also cheers bye oh btw question quick quickly just stop cancel nevermind yeah yep nope sure right now today"
    " tomorrow tonight yesterday maybe perhaps dunno idk nothing something anything someone somebody"
)
_TRAILING = re.compile(r"(?:[\s,;.]|\s(?:and|but|then|also|plus))+$")
_WORDS = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")

#: Reads words as an answer to what is open, None when they are none.
Answer = Callable[[Scene], Sequence[Single] | None]
#: Reads words as wishes.
Read = Callable[[Scene], Interpretation]


def answer_and_wishes(
    scene: Scene,
    router: Router,
    asked: Collection[Prepared],
    answer: Answer,
    read: Read,
    read_alone: Read,
    open_again: Callable[[], Sequence[Single]],
) -> list[Single] | None:
    """Return what *scene* makes of the open questions of *asked* and of the wishes beside it; None for only one.

    What a wish has use for when it is *read_alone*, as if nothing had been said before, is the wish's own. Where
    something is left that may be an answer or may be none, the questions are *open_again* beside the wishes.
    """
    if len(scene.text) > _LONGEST:
        return None
    clauses = clauses_of(scene, at_commas=True)
    if not 1 < len(clauses) <= _MOST:
        return None
    alone = [scene.only([clause.place]) for clause in clauses]
    wishes = [clause for clause, part in zip(clauses, alone, strict=True) if _is_other_wish(router.choose(part), asked)]
    if not wishes:
        return None
    said = [
        clause
        for clause, part in zip(clauses, alone, strict=True)
        if clause not in wishes and _is_answer(part, clause, asked, answer)
    ]
    others = [one for one in clauses if one not in wishes]
    is_nothing = _says_nothing if said else _is_polite
    left = [one for one in others if one not in said and not is_nothing(scene.text[one.start : one.end])]
    if left or not said:
        return _reminded(scene, left, said, open_again, answer, read, read_alone, wishes[0].start)
    # "Book a table for 4, on Friday": what the wish has use for is no answer to something else.
    places = [one.place for one in said]
    rest = scene.without(places)
    wanted = read_alone(rest)
    for one in said:
        is_told = bool(_cued(scene.only([one.place]), asked))
        joined = read_alone(scene.without(place for place in places if place != one.place))
        if _is_used(wanted, joined, but=scene.text[one.start : one.end] if is_told else None):
            return None
    answers = answer(scene.only(places))
    if not answers:
        return None
    parts = _parts(read(rest))
    return [*answers, *parts] if said[0].start < wishes[0].start else [*parts, *answers]


def _reminded(
    scene: Scene,
    left: Sequence[Clause],
    said: Sequence[Clause],
    open_again: Callable[[], Sequence[Single]],
    answer: Answer,
    read: Read,
    read_alone: Read,
    first_wish: int,
) -> list[Single] | None:
    """Return the wishes of *scene* with the questions beside them, where what is *left* is of no use to them.

    Mostly None: then nothing is left, or the wishes have a use for it.
    """
    if not left:
        return None
    rest = scene.without(one.place for one in (*left, *said))
    is_ended = any(isinstance(one, Unfitting) for clause in left for one in answer(scene.only([clause.place])) or ())
    is_idle = is_ended or all(_says_nothing(scene.text[one.start : one.end]) for one in left)
    if not is_idle and _is_used(read_alone(rest), read_alone(scene), but=None):
        return None
    wanted = _parts(read(rest))
    if is_ended:
        return wanted
    # Of several questions it may be told why they come again.
    told = answer(scene.only(one.place for one in left)) or ()
    again = told if len(told) > 1 and all(isinstance(one, Missing) for one in told) else open_again()
    return [*again, *wanted] if left[0].start < first_wish else [*wanted, *again]


def _is_polite(text: str) -> bool:
    return all(word.lower() in STOP for word in _WORDS.findall(text))


def _says_nothing(text: str) -> bool:
    """True for "hmm, let me think" and "one sec": of no use to a wish either."""
    return all(word.lower() in _BESIDE | _NO_NAMES for word in _WORDS.findall(text))


def _is_other_wish(choice: Choice | None, asked: Collection[Prepared]) -> bool:
    return choice is not None and not any(task in asked for task in (choice.task, *choice.rivals))


def _cued(part: Scene, asked: Collection[Prepared]) -> list[Cue]:
    """Return the words of *part* that announce a field of what is open."""
    return [cue for task in asked for cue in task.cues.find(part.tokens)]


def _is_answer(part: Scene, clause: Clause, asked: Collection[Prepared], answer: Answer) -> bool:
    """Return whether all of *clause*, which stands alone in *part*, answers what is open."""
    found = answer(part) or ()
    if any(isinstance(one, Unfitting) for one in found):
        return False
    spans = [
        span for one in found if isinstance(one, Understood | Missing) for span in one.spans if span.source is None
    ]
    if not spans:
        # A "yes" confirms what has its places elsewhere.
        return any(isinstance(one, Understood) for one in found)
    text = part.text[clause.start : clause.end]
    if any(isinstance(value, str) and value == text for value in _values(found)):
        return _is_name(text)
    places = [(span.start, span.end) for span in spans]
    places += [(part.tokens[cue.first].start, part.tokens[cue.end - 1].end) for cue in _cued(part, asked)]
    return all(
        word.group().lower() in _BESIDE or any(start <= word.start() < end for start, end in places)
        for word in _WORDS.finditer(part.text, clause.start, clause.end)
    )


def _is_name(text: str) -> bool:
    """True for "Lima": small letters may be anything ("hang on"), and a message may be anything in any letters."""
    words = _WORDS.findall(text)
    is_short = 0 < len(words) <= _MOST_IN_NAME
    return is_short and all(word[0].isupper() and word.lower() not in _NO_NAMES for word in words)


def _values(found: Sequence[Single]) -> list[Any]:
    return [value for one in found for _, values in [_call(one)] for value in values.values()]


def _is_used(wanted: Interpretation, joined: Interpretation, *, but: str | None) -> bool:
    """Return whether *joined*, read with one clause more than *wanted*, has made values of it, and not only a doubt.

    A text that goes on into *but*, which is plainly something else, has no use for it.
    """
    if any(isinstance(one, Ambiguous) for one in _parts(joined)):
        return False
    calls = [_call(one) for one in _parts(joined)]
    if but is not None:
        calls += [(name, {key: _up_to(value, but) for key, value in values.items()}) for name, values in calls]
    return any(_call(one) not in calls for one in _parts(wanted))


def _up_to(value: Any, behind: str) -> Any:
    return _TRAILING.sub("", value.removesuffix(behind)) if isinstance(value, str) and value != behind else value


def _parts(found: Interpretation) -> list[Single]:
    return list(found.parts) if isinstance(found, Several) else [found]


def _call(found: Single) -> tuple[str, dict[str, Any]]:
    """Return the task of *found* and its values so far."""
    if isinstance(found, Understood):
        return found.task.name, dict(found.task.parameters)
    if isinstance(found, Missing | Ambiguous):
        return found.task_name or "", dict(found.known)
    return "", {}
