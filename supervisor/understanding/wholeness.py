"""Whether rules read a sentence whole: each of its words is a value, a word of the card, or one that says nothing.

All others are a model's, where there is one. Rules that took half of a sentence know a task and its values,
and not what the other half makes of them: "limit 50k, 42k spent, says my boss" is about the boss as well.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from tasklore.supervisor.understanding.moods import moods_in, moods_of, words_of
from tasklore.supervisor.understanding.outcome import Single, TextSpan, Understood
from tasklore.supervisor.understanding.routing import RoutingTask
from tasklore.supervisor.understanding.utterance import (
    ReadUtterance,
    Token,
    mark,
    tells_of_past,
    word_set,
)

#: Words that change nothing: courtesy, who speaks, what joins a cue to its value. "Every", "no", "over", "if" and
#: "he" are none of them: they make another request of the same values.
_EMPTY = word_set(
    "a an the my our your this that these those of is are am be being been as at to for from in on with into by per"
    " it it's i i'm i've i'd i'll we we've we'd we'll me us you have has had got get do does did will would should can"
    " could may and also about around roughly approximately exactly just currently now already so far please pls plz"
    " kindly equal equals s set total out there here hi hello hey dear thanks thank thx ok okay yes sorry let let's"
    " make give show tell want need like"
)


def mark_loose(
    found: Single,
    utterance: ReadUtterance,
    task: RoutingTask,
    *,
    asked: Collection[str] = (),
    own: Collection[str] = (),
) -> Single:
    """Return *found*, the task that rules read from *utterance*, marked unless they read all of it (see `is_whole`)."""
    if not isinstance(found, Understood) or is_whole(
        utterance, task, found.spans, asked=asked, own=own
    ):
        return found
    return replace(found, is_loose=True)


def is_whole(
    utterance: ReadUtterance,
    task: RoutingTask,
    spans: Sequence[TextSpan],
    *,
    asked: Collection[str] = (),
    own: Collection[str] = (),
) -> bool:
    """Return whether rules that took *spans* of *utterance* for *task* read all of it.

    *asked* names fields that a question before it was about: their text is the answer, whatever words it has. *own* are
    more words that say nothing here. A text that stands in no quotation marks was bounded by rules, so that nothing
    with one is read whole; nor is a question, a denial or a report, where no example of the task is one.
    """
    quoted = mark(len(utterance.text), utterance.quotations)
    free = {
        slot.name
        for slot in task.schema.slots
        if slot.kind == "text" and not slot.choices and slot.name not in asked
    }
    here = [one for one in spans if one.source is None]
    if any(one.field in free and not quoted[one.start] for one in here):
        return False
    if any(unexplained_words(utterance, task, here, own=own)):
        return False
    read = _read_marks(utterance, task, here)
    rest = [
        one._replace(text="", stem="") if read[one.start] else one
        for one in utterance.tokens
    ]
    return moods_in(rest) <= moods_of(task.offer.task.examples)


def unexplained_words(
    utterance: ReadUtterance,
    task: RoutingTask,
    spans: Sequence[TextSpan],
    *,
    own: Collection[str] = (),
) -> Iterator[Token]:
    """Yield the words of *utterance* that no value of *spans*, no word of the card of *task* and no list explains."""
    read = _read_marks(utterance, task, spans)
    worded = words_of(task.offer.task.examples)
    for token in utterance.tokens:
        is_empty = token.text in _EMPTY or token.text in own or token.text in worded
        # "I borrowed" is no request to borrow, while "spent" announces a value.
        is_told = token.text != token.stem and tells_of_past((token,))
        is_of_card = token.stem in task.said and not is_told
        if token.is_word and not (read[token.start] or is_empty or is_of_card):
            yield token


def _read_marks(
    utterance: ReadUtterance, task: RoutingTask, spans: Sequence[TextSpan]
) -> bytearray:
    """Return 1 for each character of a value, and of the words that announce one of those at *spans*."""
    tokens = utterance.tokens
    fields = {one.field for one in spans}
    places = [*utterance.value_spans, *((one.start, one.end) for one in spans)]
    places += [
        (tokens[cue.first].start, tokens[cue.end - 1].end)
        for cue in task.cues.find(tokens)
        if cue.slot.name in fields
    ]
    return mark(len(utterance.text), places)
