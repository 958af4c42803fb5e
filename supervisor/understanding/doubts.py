"""What makes it doubtful that a task is to be started: things that its card does not know, and talk about the task.

The examples of a card are the measure: who never wrote a question among them does not expect one. A task that is
remembered has no effects, so that talk about it may start it: "how am I doing with 50k" is answered.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise

from supervisor.understanding.conclusion import Filled
from supervisor.understanding.utterance import STOP, Token, Utterance, mark, tells_of_past, tokens_of, word_set

_ASKING = word_set("what what's how who who's which when where where's why is are was were does has")
#: Said of what did not happen, or may happen.
_UNREAL = word_set("might maybe never won't wouldn't didn't doesn't don't haven't hasn't isn't wasn't cannot can't")
_HELPERS = word_set("did do does have has will would should could can")
_DETERMINERS = word_set("a an the my our your his her their another")
_DEFINITE = word_set("the my our your this that")
#: What a thing is said to be, or to have: "it's urgent", "with candles"; and what somebody does.
_JOINING = word_set("with without by via and or plus it's is are i we")
#: Behind these stands what a task is for, and who it is for: "for my team".
_FOR = word_set("for in at on to of about from")
_SUBJECTS_VERB = word_set("has had did is was will wants needs")


def is_only_talk(utterance: Utterance, filled: Filled) -> bool:
    """Return whether *utterance* asks about the task, denies or imagines it, or tells of it, as no example does."""
    task = filled.task
    asks, tells = _manner(task.offer.task.examples)
    taken = mark(len(utterance.text), ((span.start, span.end) for span in filled.spans))
    tokens = [token for token in utterance.tokens if not taken[token.start]]
    words = [token.text for token in tokens if token.is_word]
    denied = not _UNREAL.isdisjoint(words) or any(
        before in _HELPERS and after in {"not", "never"} for before, after in pairwise(words)
    )
    if task.offer.task.remember != "never" or not task.offer.task.examples or not words:
        return False
    is_imagined = words[0] in {"if", "no"} or denied or ("would" in words and "have" in words)
    # "I have spent 42k" announces a value.
    announced = {
        utterance.tokens[at].start for cue in task.cues.find(utterance.tokens) for at in range(cue.first, cue.end)
    }
    told = [token for token in tokens if token.start not in announced]
    return (not asks and (is_imagined or _asks(utterance.tokens))) or (not tells and tells_of_past(told))


@lru_cache(maxsize=4096)
def _manner(examples: tuple[str, ...]) -> tuple[bool, bool]:
    """Return whether one of *examples* asks, and whether one tells of the past."""
    read = [tokens_of(example) for example in examples]
    return any(map(_asks, read)), any(map(tells_of_past, read))


def _asks(tokens: Sequence[Token]) -> bool:
    """Return whether *tokens* ask, with no request beside: not "Is it free? Then book it"."""
    said = [token.text for token in tokens]
    return len(said) > 1 and said[0] in _ASKING and {"?", ".", "!"}.isdisjoint(said[:-1])


def strangers(utterance: Utterance, filled: Filled) -> list[tuple[int, int]]:
    """Return where words stand that no slot took, that the card does not know, and that change what is asked for.

    Those are what is ordered ("a *table*"), how it is ("it's *urgent*"), who did it ("my *boss* drove"), what it comes
    with, and what is done to a thing that is there ("*close* the ticket").
    """
    task = filled.task
    if not task.offer.task.examples:
        return []
    taken = mark(len(utterance.text), chain(utterance.value_spans, ((one.start, one.end) for one in filled.spans)))
    guessed = {span.start for span in filled.spans if span.field in filled.guessed and span.text.isdigit()}
    blank = Token("", "", 0, 0, is_word=False)
    tokens = (blank, blank, *utterance.tokens, blank, blank)
    kinds = task.names.union(*(one.stems for slot in task.schema.slots if slot.choices for one in slot.phrases))
    found = []
    for place in range(2, len(tokens) - 2):
        (earlier, before), token, (after, later) = (
            tokens[place - 2 : place],
            tokens[place],
            tokens[place + 1 : place + 3],
        )
        if token.text == "every" and after.is_word:
            found.append((token.start, after.end))
        if not token.is_word or token.text in STOP or token.stem in task.said or taken[token.start]:
            continue
        is_thing = before.text in _DETERMINERS and earlier.text not in _FOR
        is_undone = place < 5 and after.text in _DEFINITE and later.stem in task.said
        is_subject = place == 2 and (after.text in _SUBJECTS_VERB or tells_of_past((after,)))
        if (
            is_thing
            or before.text in _JOINING
            or after.stem in kinds
            or is_undone
            or is_subject
            or after.start in guessed
        ):
            found.append((token.start, token.end))
    return found
