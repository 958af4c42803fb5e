"""The patterns and lists of `table.toml`, compiled once."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["Pattern", "PatternForm", "Table", "load_table"]

#: Capitalised words, with the signs that stand in names.
_CAPITAL = r"[A-Z\u00c0-\u00de\u0100-\u017f\u0400-\u042f]"
_NAME = rf"(?-i:{_CAPITAL}[\w'\u2019-]*(?: (?:{_CAPITAL}[\w'\u2019-]*|de|of|upon|la|le)){{0,2}})"
_TIME = r"(?:[01]?\d|2[0-3])(?:[:.][0-5]\d)?(?: ?[ap]m)?"
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DATE = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})|(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?)(?:,? \d{{4}})?"
_SPAN = r"(?:(?:\w+ ){0,3}(?:days?|weeks?|months?|years?|ago|\d{4}))"
#: A word in small letters: a capitalised one may be anybody's name.
_SMALL = (
    r"(?!(?:and|or|anymore|any more|any longer|at all|again)\b)"
    r"(?-i:[^\W_A-Z\u00c0-\u00de][^\W_]*(?:['\u2019-][^\W_]+)*)"
)
_THING = rf"(?!the ){_SMALL}(?: {_SMALL}){{0,5}}"
_OPEN = {
    "Name": _NAME,
    "OtherName": _NAME,
    "time": _TIME,
    "date": _DATE,
    "span": _SPAN,
    "thing": rf"{_THING}(?:(?:, especially|, | and | or ){_THING}){{0,3}}",
    "named": rf"(?:the )?(?-i:{_CAPITAL}[\w'\u2019-]*)(?: [^\W_][\w'\u2019-]*){{0,3}}",
    "things": rf"{_THING}(?:(?:, | and | or |, and ){_THING}){{0,7}}",
}
#: The value of what is kept as it was said, and slots for a thing that no list knows.
_AS_SAID = "{clause}"
_THINGS = ("thing", "named")
_SLOT = re.compile(r"\{(\w+)\}")
#: What stands between the terms of a list; a blank within a term is a no-break space.
_BLANKS = re.compile(r"[ \n]+")
#: Words that may stand before a term of a list and belong to it.
_MODIFIERS = (
    r"(?:(?:fresh|fried|grilled|boiled|scrambled|roasted|baked|smoked|raw|spicy|dark|white|black|green|red|hot|iced"
    r"|homemade) )?"
)
_QUOTES = '"\u201c\u201d\u201e\u00ab\u00bb'
_CONTRACTIONS = {
    "i'm": "i(?:'m| am)",
    "i've": "i(?:'ve| have)",
    "can't": "(?:can't|cannot)",
    "don't": "(?:don't|dont)",
}
#: Lists whose terms may be joined: "tea, rice and eggs with lox".
_SEVERAL = frozenset({"foods", "allergens", "hobbies", "languages", "things"})


class Pattern(BaseModel):
    """One kind of statement: its list, its relation to items there, and the text of its fact."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    category: str
    forms: tuple[str, ...]
    text: str
    value: str = "{slot}"
    relation: Literal["new", "ends", "forget"] = "new"
    polarity: Literal["positive", "negative", "neutral"] = "neutral"
    durability: Literal["permanent", "long_term", "short_term"] = "long_term"


@dataclass(frozen=True, slots=True)
class PatternForm:
    """One wording of a pattern. `slot` is the group of its value, `is_list` is true where several may be joined."""

    pattern: Pattern
    expression: re.Pattern[str]
    slot: str
    is_list: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What stands around statements, as expressions.

    `lead_ins` and `endings` are courtesies at either end of a clause. A sentence with one of `doubts` may mean
    something else than its words. A text that begins with one of `tasks` is about a text, not about who writes it.
    What holds one of `no_names` is no name, however it is written; what holds one of `no_things` means something that
    was said before.
    """

    lead_ins: re.Pattern[str]
    endings: re.Pattern[str]
    doubts: re.Pattern[str]
    tasks: re.Pattern[str]
    no_names: re.Pattern[str]
    no_things: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Table:
    """All wordings, in the order in which they are tried, and the words around them.

    `attitudes` are those of likes and dislikes that are kept as they were said.
    """

    forms: tuple[PatternForm, ...]
    attitudes: tuple[PatternForm, ...]
    words: Words


@cache
def load_table() -> Table:
    """Return the shipped table."""
    raw = tomllib.loads(Path(__file__).with_name("table.toml").read_text("utf-8"))
    terms = {name: _terms(text) for name, text in raw["lists"].items()}
    patterns = [Pattern.model_validate(one) for one in raw["pattern"]]
    forms = tuple(
        _form(pattern, wording, terms)
        for pattern in patterns
        for wording in pattern.forms
    )
    attitudes = tuple(
        form
        for form in forms
        if form.slot in _THINGS
        and form.pattern.value == _AS_SAID
        and form.pattern.polarity != "neutral"
    )
    return Table(
        forms,
        attitudes,
        _words(
            {
                name: "|".join(map(re.escape, words))
                for name, words in raw["words"].items()
            }
        ),
    )


def _words(around: dict[str, str]) -> Words:
    return Words(
        lead_ins=re.compile(rf"(?:(?:{around['lead_ins']})[,!:]?\s+)+", re.IGNORECASE),
        endings=re.compile(rf"(?:,?\s*(?:{around['endings']}))+$", re.IGNORECASE),
        doubts=re.compile(rf"[{_QUOTES}*>|]|\b(?:{around['doubts']})\b", re.IGNORECASE),
        tasks=re.compile(
            rf"\s*(?:(?:please|can you|could you)\s+)*(?:{around['tasks']})\b",
            re.IGNORECASE,
        ),
        no_names=re.compile(rf"\b(?:{around['no_names']})\b", re.IGNORECASE),
        no_things=re.compile(rf"\b(?:{around['no_things']})\b", re.IGNORECASE),
    )


def _terms(text: str) -> str:
    """Return the terms of a list as one alternation, the longest first, plurals with their singular."""
    terms = sorted(
        {term.replace("\u00a0", " ") for term in _BLANKS.split(text) if term},
        key=lambda term: -len(term),
    )
    return "|".join(
        f"{re.escape(term)}?" if term.endswith("s") else re.escape(term)
        for term in terms
    )


def _form(pattern: Pattern, wording: str, terms: dict[str, str]) -> PatternForm:
    slots = [name for name in _SLOT.findall(wording) if name != "span"]
    slot = next((name for name in slots if name in terms or name == "Name"), slots[0])
    expression = _wording_pattern(wording)
    for name in dict.fromkeys(_SLOT.findall(wording)):
        inner = _OPEN.get(name) or _list_pattern(name, terms[name])
        expression = expression.replace(f"{{{name}}}", f"(?P<{name}>{inner})")
    return PatternForm(
        pattern, re.compile(expression, re.IGNORECASE), slot, slot in _SEVERAL
    )


def _list_pattern(name: str, terms: str) -> str:
    if name not in _SEVERAL:
        return f"(?:{terms})"
    # "pasta carbonara" and "oat milk" are one thing each.
    one = rf"{_MODIFIERS}(?:{terms})(?: (?:{terms}))?"
    return rf"{one}(?:(?:, | and | or |, and | with ){one}){{0,7}}"


def _wording_pattern(wording: str) -> str:
    """Return *wording* as an expression whose parts that may be missing take the blank behind them along."""
    for short, spelled in _CONTRACTIONS.items():
        wording = wording.replace(short, spelled)
    wording = re.sub(r" (\([^()]*(?:\([^()]*\)[^()]*)*\)\?)$", r"(?: \1)", wording)
    wording = re.sub(
        r"(\((?!\?)[^()]*(?:\([^()]*\)[^()]*)*\))\? ", r"(?:\1 )?", wording
    )
    return re.sub(r"\((?!\?)", "(?:", wording.replace(")?)", "))?"))
