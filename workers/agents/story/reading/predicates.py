"""What a clause says by its verb, whether it denies it, and whether another clause says the opposite."""

from dataclasses import dataclass, replace
from typing import Literal

from workers.agents.story.reading.clauses import Clause
from workers.agents.story.reading.lexicon import lexicon, stem
from workers.agents.story.reading.named_words import Word

_BE, _HAVE, _DO = stem("is"), stem("has"), stem("does")
_ABLE = frozenset({"can", "could", "cannot"})
#: How much of what the shorter one says the other must say too, and in so many words.
_SHARED = 0.6
#: Words from the subject on among which stands what denies a clause.
_BESIDE = 6
#: Words from the subject on in which the verb stands.
_REACH = 8
Form = Literal["plain", "be", "have", "perfect", "past perfect", "able", "going on"]


@dataclass(frozen=True, slots=True)
class Predicate:
    """The verb of a clause and the words with it that carry meaning; `is_habit` when it tells more than one moment."""

    verb: str
    form: Form
    content: frozenset[str]
    is_negated: bool
    is_habit: bool


def predicate_of(clause: Clause) -> Predicate | None:
    """Return what *clause* says by its verb, None when it has none that is plain."""
    found = _verb(clause.words)
    if found is None or clause.owned:
        return None
    verb, form = found
    words = lexicon().words
    habit = any(word.low in words["anchored"] or word.low == "never" for word in clause.words)
    signs = [place for place, word in enumerate(clause.words) if not word.low[0].isalnum()]
    # What stands behind a comma is said beside it.
    core = replace(clause, words=clause.words[: signs[0]]) if signs else clause
    return Predicate(verb, form, content_of(core) - {verb}, is_negated(core.words), habit)


def content_of(clause: Clause) -> frozenset[str]:
    """Return the stems of the words of *clause* that carry meaning, and the names in it; not that of its subject."""
    stop = lexicon().stop
    return frozenset(
        word.name.casefold() if word.name else word.stem
        for word in clause.words
        if word.name != clause.subject and word.number is None and (word.name or (word.stem and word.stem not in stop))
        if word.low[0].isalnum()
    )


def is_negated(words: tuple[Word, ...]) -> bool:
    """Tell whether *words* deny what they say: what they deny later on is something else."""
    return sum(map(_denies, words[:_BESIDE])) % 2 == 1


def deny(old: Predicate, new: Predicate) -> bool:
    """Tell whether *new* says what *old* denies, or denies what it says, and time alone does not explain it."""
    if old.is_negated == new.is_negated or old.verb != new.verb or "going on" in {old.form, new.form}:
        return False
    return _is_of_all_times(old, new) and _say_the_same(old, new)


def _is_of_all_times(old: Predicate, new: Predicate) -> bool:
    """Tell whether both hold of more than their moment: who has not done something yet may do it any time."""
    if old.is_negated and old.form in {"perfect", "past perfect"}:
        return new.form == "past perfect" or new.is_habit
    if old.is_negated and old.is_habit and new.form == "past perfect":
        return True
    is_lasting = new.verb in lexicon().lasting or new.is_habit or new.form == "able"
    return is_lasting and not (new.form in {"perfect", "past perfect"} and new.is_negated and not new.is_habit)


def _say_the_same(old: Predicate, new: Predicate) -> bool:
    least = min(len(old.content), len(new.content))
    if not least:
        return old.form == "able" == new.form or (old.is_habit and old.is_negated and not old.content)
    return len(old.content & new.content) >= _SHARED * least


def _denies(word: Word) -> bool:
    return word.low in lexicon().words["negations"] or word.low.endswith("n't")


def _verb(words: tuple[Word, ...]) -> tuple[str, Form] | None:
    auxiliaries = lexicon().words["auxiliaries"]
    helpers: list[str] = []
    for place, word in enumerate(words[:_REACH]):
        if not word.low[0].isalpha() or word.name or word.number:
            break
        if _denies(word) and word.stem not in {_BE, _HAVE, _DO, "can", "could"} and word.low != "cannot":
            if word.low == "no":
                break
            continue
        if word.stem in {_BE, _HAVE, _DO} or word.low in _ABLE or word.stem in {"can", "could"}:
            helpers.append(word.stem if word.low != "cannot" else "can")
            continue
        if word.low in auxiliaries or word.low.endswith("ly"):
            continue
        return _with(helpers, word, is_past=any(one.low in {"had", "hadn't"} for one in words[:place]))
    return _alone(helpers)


def _with(helpers: list[str], word: Word, *, is_past: bool) -> tuple[str, Form] | None:
    """Return verb and form of the first word behind *helpers*."""
    if not helpers:
        return None if word.stem in lexicon().stop else (word.stem, "plain")
    is_stop = word.stem in lexicon().stop
    is_participle = word.low.endswith("ed") or word.low in lexicon().forms or word.stem in lexicon().lasting
    if helpers[-1] == _BE:
        if word.low.endswith("ing") and not is_stop:
            return (word.stem, "going on")
        return (word.stem, "plain") if is_participle and not is_stop else (_BE, "be")
    if helpers[-1] == _HAVE:
        perfect: Form = "past perfect" if is_past else "perfect"
        return (word.stem, perfect) if is_participle and not is_stop else (_HAVE, "have")
    return (word.stem, "able" if helpers[0] in {"can", "could"} else "plain")


def _alone(helpers: list[str]) -> tuple[str, Form] | None:
    if not helpers:
        return None
    if helpers[-1] == _BE:
        return _BE, "be"
    return (_HAVE, "have") if helpers[-1] == _HAVE else None
