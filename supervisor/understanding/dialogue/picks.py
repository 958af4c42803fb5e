"""Short answers: "the second one", "both", "neither", "yes please", "never mind"; the same whatever was asked."""

import re

from supervisor.understanding.utterance import word_set

PLACES = {
    "first": 0, "1st": 0, "former": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3, "fifth": 4,
    "5th": 4, "last": -1, "latter": -1, "other": -1,
}  # fmt: skip
_DIGITS = {"1": 0, "one": 0, "2": 1, "two": 1, "3": 2, "three": 2, "4": 3, "four": 3}
_ALL = word_set("both all each everything")
#: Also in other languages: a model reads the rest of them, but only these words start or leave what was shown.
_YES = word_set(
    "yes yeah yep yup ok okay sure correct right exactly absolutely definitely indeed do ja jawohl klar genau oui sí si"
    " sì sim vale claro va bene certo da да evet igen ano 是 是的 对 好 好的 可以 はい ええ 네 예 نعم أجل हाँ हां"
)
_NO = word_set("no nope nah neither none not don't nein non não нет nem 不 不是 不要 いいえ 아니요 لا नहीं nee nej")
_LEAVE = (
    r"(?:(?:oh|no|ok|okay|please|just|actually|well|sorry)\W+)*(?:never ?mind|forget(?: about)?|cancel|stop|leave|drop"
    r"|skip|no thanks?|no thank you|neither|none|(?:i )?(?:don't|do not) (?:want|need))"
)
LEAVING = re.compile(
    rf"\W*{_LEAVE}(?:\s+(?:it|that|this|them|these|those|all|both|of|please|then|thanks|thank you)\b|\W)*",
    re.IGNORECASE,
)
LEAVES_ONE = re.compile(rf"\W*{_LEAVE}\b", re.IGNORECASE)
#: "Never mind, greet Bob" leaves what was asked for another request.
INSTEAD = re.compile(rf"\W*{_LEAVE}(?:\s+(?:it|that|them|both))?\s*[,.;:!]\s*(?=\S)", re.IGNORECASE)
#: What may stand beside the word that chooses: more words are an utterance of their own.
BESIDE = word_set(
    "the a i mean meant want take choose pick please would like it's that's it is was that this of them these those go"
    " with for then thanks thank you one ones option choice answer reading number task agent question value sorry well"
    " oh just i'd i'll think guess and 's"
)
_WORDS = re.compile(r"[\w']+")


def words_in(text: str) -> list[str]:
    """Return the words of *text* in small letters."""
    return _WORDS.findall(text.lower().replace("\u2019", "'"))


def says_yes(text: str) -> bool:
    """Return whether *text* agrees, and says nothing else ("yes please", "that's right")."""
    words = words_in(text)
    return not _YES.isdisjoint(words) and _YES.union(BESIDE).issuperset(words)


def yes_or_no(text: str) -> bool | None:
    """Return what *text* says to a question for a switch, None when it is neither yes nor no."""
    words = set(words_in(text)) - BESIDE
    return True if words and words <= _YES else False if words and words <= _NO else None


def says_nothing(text: str) -> bool:
    """Return whether *text* is a yes, a no or a place alone, and so no value."""
    return not set(words_in(text)) - BESIDE - _YES - _NO - _ALL - PLACES.keys()


def pick(text: str, count: int, *, may_be_digit: bool = False) -> tuple[int, ...] | None:
    """Return which of *count* things *text* picks, by their places from 0; empty for none of them.

    None when it picks nothing by place. A bare number picks where it *may_be_digit*. A yes picks the only one.
    """
    words = words_in(text)
    names = {**PLACES, **(_DIGITS if may_be_digit or {"option", "number", "choice"} & set(words) else {})}
    pointing = word_set("the that this these those")
    named = [
        (at, names[word])
        for at, word in enumerate(words)
        if word in names and not (word in _DIGITS and at and (words[at - 1] in pointing or words[at - 1] in PLACES))
    ]
    others = set(words) - BESIDE - _YES - _NO - names.keys()
    if named and not others:
        denied = {place % count for at, place in named if "not" in words[max(at - 2, 0) : at]}
        places = {place % count for at, place in named if place < count} - denied
        if denied and not places and count == 2:
            return (1 - denied.pop(),)
        return tuple(sorted(places)) or None
    if others and others <= _ALL:
        return tuple(range(count)) if count > 1 else None
    if others:
        return None
    if not _NO.isdisjoint(words):
        return ()
    return (0,) if count == 1 and says_yes(text) else None
