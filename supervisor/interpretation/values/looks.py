"""What the values of a text field look like, as its examples, format or pattern tell: "my sister" is no "LH 1023".

Only what is plainly written to a rule has looks: codes, numbers as text, addresses of the net, names of files. Titles,
names and places have none, whatever their examples are: nothing is kept from them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from quantities.times import stretches
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.words import STOP, stems_of

#: Characters of one example, and examples, that are looked at.
_LONGEST, _MOST_EXAMPLES = 64, 16
#: Addresses and names of files, which no spaces part.
_FORMS = (
    re.compile(r"[^\s@,;<>()]{1,64}@[^\s@,;<>()]{1,190}\.[^\W\d_]{2,24}"),
    re.compile(r"(?:[a-z][a-z0-9+.-]{1,12}://|www\.)[^\s<>\"]{1,200}[^\s<>\".,;:!?)]", re.IGNORECASE),
    re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE),
    re.compile(r"(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_][^\W_]{0,11}"),
)
_EMAIL, _ADDRESS, _UUID, _DOTTED = _FORMS
#: Those that are known wherever they stand in a sentence, and what is always in them.
_SIGNS = {_EMAIL: ("@",), _ADDRESS: ("://", "www.")}
#: Formats of JSON Schema that say the same as examples do.
_BY_FORMAT = {
    "email": _EMAIL,
    "idn-email": _EMAIL,
    "uri": _ADDRESS,
    "url": _ADDRESS,
    "uuid": _UUID,
    "hostname": _DOTTED,
}
#: Letters and digits, and single marks or spaces between them.
_CODE = re.compile(r"[+#(]?[A-Za-z0-9]+(?:[-_/.:,() ]{1,2}[A-Za-z0-9]+){0,11}")
#: Small letters that may be any word: "Apollo 11" is no code.
_WORD = re.compile(r"[a-z]{4}")
#: "2 kg", "50 EUR", "30min", "1h30": so much of something, which has many wordings.
_MUCH = re.compile(r"[\d.,:]+(?: +[A-Za-z]+|[a-z]+\d*)")
#: Whatever a field called so has for examples, anything may be its value.
_ANYTHING = frozenset(
    stems_of(
        "title name song film movie book album artist band game show series team brand company product model vehicle"
        " city town place street restaurant hotel user username login nickname nick handle topic subject query"
        " question answer message text note body content reason description comment memo reminder todo password"
    )
)
#: Unless it is called so: a "team code", a "model number".
_CODED = frozenset(stems_of("code number no nr id identifier ref reference sku serial iban isbn vin"))
#: A field called so may have codes of nothing but letters.
_OF_LETTERS = frozenset(stems_of("code currency ticker symbol iata icao iso"))
#: A code may have so many more letters in a row, and characters, than the longest example.
_SPARE_LETTERS, _SPARE = 1, 3
#: Pieces of letters or digits past which nothing shows which of them comes first.
_MOST_PIECES = 3


@dataclass(frozen=True, slots=True)
class Looks:
    """What examples have in common: a *form*, or the lengths and the pieces of codes."""

    form: re.Pattern[str] | None = None
    has_letters: bool | None = None
    has_digits: bool | None = None
    first_kinds: frozenset[bool] = frozenset()
    most_words: int = 1
    most_letters: int = 0
    least: int = 0
    most: int = 0
    may_be_time: bool = False

    def fit(self, text: str) -> bool:
        """Return whether *text* could be one more of the examples."""
        if self.form is not None:
            return self.form.fullmatch(text) is not None
        pieces = _pieces(text)
        if not pieces or _CODE.fullmatch(text) is None or (_is_time(text) and not self.may_be_time):
            return False
        kinds = {piece.isdigit() for piece in pieces}
        # "May" is a month, "CHF" and "chf" are codes.
        is_alike = (self.has_digits is not False or text.isupper() or text.islower()) and (
            self.has_letters in (None, False in kinds)
            and self.has_digits in (None, True in kinds)
            and (not self.first_kinds or pieces[0].isdigit() in self.first_kinds)
        )
        return is_alike and self.least <= sum(map(len, pieces)) <= self.most and self._has_its_words(text, pieces)

    def _has_its_words(self, text: str, pieces: Sequence[str]) -> bool:
        """True when *text* has no words that the codes lack: "at 1200" is no "KL 1023", "KL1023" is."""
        words = text.split()
        longest = max((len(piece) for piece in pieces if piece.isalpha()), default=0)
        if len(words) > self.most_words + 1 or any(word.lower() in STOP and word.islower() for word in words):
            return False
        return longest <= self.most_letters + (_SPARE_LETTERS if len(words) == 1 else 0)


def address_in(field: FieldShape, text: str) -> re.Match[str] | None:
    """Return the one address of the net in *text* for a *field* of such, None for any other field or several."""
    looks = looks_of(field)
    if looks is None or looks.form not in _SIGNS or not any(sign in text for sign in _SIGNS[looks.form]):
        return None
    matches = list(looks.form.finditer(text))
    return matches[0] if len(matches) == 1 else None


def resembles(field: FieldShape, text: str) -> bool:
    """Return whether *text* may be a value of *field*: True where its examples have no looks of their own."""
    if field.pattern is not None and (pattern := simple_pattern(field.pattern)) is not None:
        return len(text) <= _LONGEST and pattern.search(text) is not None
    looks = looks_of(field)
    return looks is None or looks.fit(text)


def looks_of(field: FieldShape) -> Looks | None:
    """Return what the values of *field* look like, None where they may look like anything."""
    if field.kind != "text":
        return None
    if field.text_format in _BY_FORMAT:
        return Looks(_BY_FORMAT[field.text_format])
    texts = tuple(one for one in field.examples if isinstance(one, str) and 0 < len(one) <= _LONGEST)
    if not texts or not len(texts) == len(field.examples) <= _MOST_EXAMPLES:
        return None
    called = {stem for phrase in field.phrases for stem in phrase.stems}
    is_free = not called.isdisjoint(_ANYTHING) and called.isdisjoint(_CODED)
    return _looks(texts, is_free=is_free, may_be_letters=not called.isdisjoint(_OF_LETTERS))


@lru_cache(maxsize=1024)
def _looks(texts: tuple[str, ...], *, is_free: bool, may_be_letters: bool) -> Looks | None:
    form = next((form for form in _FORMS if all(map(form.fullmatch, texts))), None)
    if form is not None:
        return Looks(form)
    split = [_pieces(text) for text in texts]
    has_digits = {any(piece.isdigit() for piece in pieces) for pieces in split}
    is_letters = may_be_letters and has_digits == {False} and all(text.isupper() and text.isalpha() for text in texts)
    if is_free or not (has_digits == {True} or is_letters) or not all(map(_is_code, texts)):
        return None
    has_letters = {any(piece.isalpha() for piece in pieces) for pieces in split}
    sizes = [sum(map(len, pieces)) for pieces in split]
    is_short = all(len(pieces) <= _MOST_PIECES for pieces in split)
    return Looks(
        has_letters=has_letters.pop() if len(has_letters) == 1 else None,
        has_digits=not is_letters,
        first_kinds=frozenset(pieces[0].isdigit() for pieces in split) if is_short else frozenset(),
        most_words=max(len(text.split()) for text in texts),
        most_letters=max(len(piece) for pieces in split for piece in (*pieces, "") if not piece.isdigit()),
        least=min(sizes) if is_letters else (min(sizes) + 1) // 2,
        most=max(sizes) + (0 if is_letters else _SPARE),
        may_be_time=any(map(_is_time, texts)),
    )


def _is_code(text: str) -> bool:
    return _CODE.fullmatch(text) is not None and not _WORD.search(text) and not _MUCH.fullmatch(text)


def _pieces(text: str) -> list[str]:
    """Return the runs of letters and of digits in *text*."""
    kinds = groupby(text, lambda letter: (letter.isalpha(), letter.isdigit()))
    return ["".join(run) for kind, run in kinds if any(kind)]


def _is_time(text: str) -> bool:
    return not text.isdigit() and stretches(text) == ((0, len(text)),)


#: One step of a pattern that can be tried without harm: a character or a set of them, and how often.
_STEP = r"(?:\\[dwDW.\-/+_ ]|\[[^\[\]\\&~|]*(?:\\[dw.\-/][^\[\]\\&~|]*){0,4}\]|[\w \-/#:@])"
_TIMES = r"(?:\{\d{1,2}(?:,\d{0,2})?\}|[?*+])?"
_SIMPLE = re.compile(rf"\^?(?:{_STEP}{_TIMES}){{1,24}}\$?")
#: How often a number of repetitions may be open: each multiplies the ways to try.
_MOST_OPEN = 3
_OPEN = re.compile(r"(?<!\\)[?*+]|\{\d+,\d*\}")


@lru_cache(maxsize=1024)
def simple_pattern(pattern: str) -> re.Pattern[str] | None:
    """Return *pattern* of a card, None for one with groups or choices: it may be anybody's, and take for ever."""
    if len(pattern) > 2 * _LONGEST or _SIMPLE.fullmatch(pattern) is None:
        return None
    if len(_OPEN.findall(re.sub(r"\[[^\]]*\]", "x", pattern))) > _MOST_OPEN:
        return None
    try:
        return re.compile(pattern)
    except re.error:
        return None
