"""Where a measure is named right after a number: "5 km", "10-gallon", "20 (kg)", "3.5 km/h", "24 m²", `6'2"`.

Works on the characters of a sentence, so that case counts ("mW", "MW") and signs are seen. Each call looks at a few
words after the number and at a bounded stretch before it.
"""

import re
from functools import lru_cache

from tasklore.contracts.quantities.units.catalogue import (
    Measure,
    named,
    named_exactly,
    of_code,
)
from tasklore.contracts.quantities.units.measures import RATES

#: Words in the longest name ("british thermal unit", "pounds per square inch").
_MOST_WORDS = 4
#: Characters that a name can have; what is longer is none.
_LONGEST_NAME = 48
#: Characters before a number within which an opening quotation mark makes the one after it a closing one.
_QUOTED_WITHIN = 60

#: Characters beside a number that can say what it is.
_NEAR = 12

_GAP = re.compile(
    r"(?P<hyphen>-| - )(?=[^\W\d_])|[ \u00a0\u202f\u2009]{0,2}(?P<open>[(\[{<] ?)?"
)
_CLOSERS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_ATOM = re.compile(
    r"[°º] ?[CFKcfk](?!\w)|[°ºΩ℃℉Å](?!\w)|[^\W\d_²³]+(?:\.(?=[^\W\d_]|[\ -])|·m)?",
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d_]+(?!\w)")
_JOINT = re.compile(r" - |[ -]")
_EXPONENT = re.compile(r"(?:[23²³]|\^[23]|\*\*[23])(?![\w^])| (squared|cubed|sq)\b")
_EXPONENTS = {"2": 2, "²": 2, "3": 3, "³": 3}
_FIGURES = {"square": 2, "sq": 2, "sq.": 2, "cubic": 3, "cu": 3, "cu.": 3}
_PER = re.compile(r" ?/ ?|[ -]per[ -](?:an? )?| p/", re.IGNORECASE)
_EACH = re.compile(
    r" an? (?=(?:second|minute|hour|day|week|month|year)\b)", re.IGNORECASE
)
_SHORT_TIME = re.compile(r"([sdh])(?:(2|²|\^2)|(?![\w^²]))", re.IGNORECASE)
_SHORT_TIMES = {"s": "second", "d": "day", "h": "hour"}
_ALIAS = re.compile(
    r"(?:[^\W\d_]+/[^\W\d_]+|m\.p\.h\.|y\.o(?=\.?(?!\w))|[^\W\d_]+)(?!\w)(?!-yo)"
)

#: What says that a length is meant: "1.8m tall", "a 100m race", "2m x 3m".
_EXTENT = (
    r"tall|long|wide|high|deep|thick|away|apart|race|sprint|dash|swim|radius|diameter|distance"
    r"|in (?:height|length|width|depth|diameter)|(?:[x\u00d7]|by) ?\d"
)
_EXTENT_FOLLOWS = re.compile(
    rf"(?: ?[x\u00d7] ?\d|[ -](?:{_EXTENT})(?![^\W\d_]))", re.IGNORECASE
)
_EXTENT_BEFORE = re.compile(r"\dm ?(?:[x\u00d7]|by) ?$", re.IGNORECASE)
_SPEAKS_OF_EXTENT = re.compile(
    r"\b(?:lengths?|heights?|widths?|depths?|distances?|outreach|radius|diameters?|altitude|elevation|wingspan|"
    r"tall|taller|meters?|metres?|kilomet(?:er|re)s?)\b",
    re.IGNORECASE,
)
#: "10 in" is ten inches at the end, before "long" and beside another length; elsewhere "in" is a preposition.
_INCH_FOLLOWS = re.compile(
    rf"\.?(?:\s*$|\s*[,;.)](?!\w)| ?[x\u00d7] ?\d|[ -](?:{_EXTENT})(?!\w))",
    re.IGNORECASE,
)
_FEET_BEFORE = re.compile(
    r"(?:\b(?:ft|foot|feet)|')[,.]?(?: and)? ?-?[\d./\u00bd\u00bc\u00be]{1,8} ?$|\bin ?[x\u00d7] ?[\d.]{1,8} ?$"
)
_FEET_NOTE = re.compile(r"'[ ]?\d{1,2}(?:\.\d{1,2})?[ ]?$")


def measure_after(text: str, end: int) -> tuple[Measure, int] | None:
    """Return the measure named after the number that ends at *end* of *text*, and where its name ends."""
    sign = _read_mark(text, end)
    if sign is not None:
        return sign
    gap = _GAP.match(text, end)
    start = gap.end() if gap else end
    if start >= len(text):
        return None
    hyphen = gap.group("hyphen") if gap else None
    found = _inches(text, end, start) if text[start] in "iI" else None
    found = found or _expression(text, start)
    if found is None or (hyphen == " - " and found[1] - start < 3):
        return None
    opened = gap.group("open") if gap else None
    if not opened:
        return found
    measure, stop = found
    stop += text[stop : stop + 1] == " "
    return (measure, stop + 1) if text[stop : stop + 1] == _CLOSERS[opened[0]] else None


@lru_cache(1024)
def measure_named(name: str) -> Measure | None:
    """Return the measure that the whole of *name* stands for, rates and powers too ("km", "metres per second")."""
    if len(name) > _LONGEST_NAME:
        return None
    if found := named(name) or of_code(name):
        return found
    if name in {"in", "in.", "ins"}:
        return of_code("inch")
    expression = _expression(name, 0)
    return expression[0] if expression and expression[1] == len(name) else None


def means_metres(text: str, start: int, end: int) -> bool:
    """True when the number at *start* and the "m" glued to it, up to *end*, are a length: "1.8m tall", "2m x 3m"."""
    if _EXTENT_FOLLOWS.match(text, end):
        return True
    return _EXTENT_BEFORE.search(text[max(0, start - _NEAR) : start]) is not None


def speaks_of_extent(text: str) -> bool:
    """True when *text* speaks of lengths, so that its "48m" are metres and no millions."""
    return _SPEAKS_OF_EXTENT.search(text) is not None


def _expression(text: str, start: int) -> tuple[Measure, int] | None:
    """Read a measure at *start*: a one-word rate, or a name with a power and what it is counted per."""
    alias = _ALIAS.match(text, start)
    if alias and (full := RATES.get(alias.group())):
        return _rate_named(full), alias.end()
    found = _term(text, start)
    if found is None:
        return None
    measure, end = found
    if measure.dimension in {"time", "calendar"}:
        return found
    per = _PER.match(text, end) or (
        _EACH.match(text, end) if measure.dimension else None
    )
    below = _below(text, per.end()) if per else None
    return (measure.over(below[0]), below[1]) if below else found


@lru_cache(64)
def _rate_named(full: str) -> Measure:
    top, _, bottom = full.partition("/")
    measure = _whole_term(top)
    return measure.over(_whole_term(bottom)) if bottom else measure


def _whole_term(name: str) -> Measure:
    found = _below(name, 0)
    if found is None:
        raise KeyError(name)
    return found[0]


def _below(text: str, start: int) -> tuple[Measure, int] | None:
    """Read what stands after "per" or a slash, where "s" is a second and "d" a day."""
    short = _SHORT_TIME.match(text, start)
    if short is None:
        return _term(text, start)
    measure = _measure(_SHORT_TIMES[short.group(1).lower()])
    raised = measure.power(2) if short.group(2) else None
    return raised or measure, short.end()


def _term(text: str, start: int) -> tuple[Measure, int] | None:
    """Read "km", "square feet", "sq. ft", "m2", "metres squared" at *start*."""
    words = _words(text, start)
    if not words:
        return None
    exponent = _FIGURES.get(words[0][0].lower())
    if exponent and len(words) > 1:
        within = _plain(words[1:]) or _short_inch(words[1])
        figure = (
            within[0].power(exponent)
            if within and within[0].dimension == "length"
            else None
        )
        return (figure, within[1]) if figure and within else None
    found = _plain(words)
    if found is None:
        return None
    measure, end = found
    power = _EXPONENT.match(text, end)
    if power is None:
        # a digit that belongs to the word makes it another word: "m212"
        return (
            None
            if text[end : end + 1].isalnum() or text[end : end + 1] == "_"
            else found
        )
    exponent = (
        _EXPONENTS[power.group()[-1]]
        if not power.group(1)
        else 2 + (power.group(1).lower() == "cubed")
    )
    raised = measure.power(exponent)
    if raised is None:
        return None if not power.group(1) else found
    return raised, power.end()


def _short_inch(word: tuple[str, int]) -> tuple[Measure, int] | None:
    """Read the "in" of "4 sq in", which is a preposition anywhere else."""
    return (_measure("inch"), word[1]) if word[0].lower() in {"in", "in."} else None


def _words(text: str, start: int) -> list[tuple[str, int]]:
    """Return up to five words from *start* on, one space or hyphen apart, each with its end."""
    words: list[tuple[str, int]] = []
    while len(words) <= _MOST_WORDS and (match := _ATOM.match(text, start)):
        if len(match.group()) > _LONGEST_NAME:
            break
        words.append((match.group(), match.end()))
        joint = _JOINT.match(text, match.end())
        if joint is None and not match.group().endswith("."):
            break
        start = joint.end() if joint else match.end()
    return words


def _plain(words: list[tuple[str, int]]) -> tuple[Measure, int] | None:
    """Return the measure with the longest name that *words* begin with."""
    for length in range(min(len(words), _MOST_WORDS), 0, -1):
        name = " ".join(word for word, _ in words[:length])
        end = words[length - 1][1]
        if name.startswith(("°", "º")) and len(name) == 3:
            name = f"{name[0]}{name[2]}"
        found = named(name)
        if found is None and name.startswith(("°", "º")):
            found = named_exactly(name.upper())
        if found is None and name.endswith("."):
            found = named(name[:-1])
            end = end - 1
        if found:
            return found, end
    return None


def _read_mark(text: str, end: int) -> tuple[Measure, int] | None:
    """Read a foot or inch mark (`5'`, `10 "`), unless it closes a quotation."""
    place = end + (text[end : end + 1] == " ")
    mark = (
        text[place : place + 2]
        if text[place : place + 2] in {"''", "\u2019\u2019"}
        else text[place : place + 1]
    )
    if mark in {"\u2032", "\u2033"}:
        return _measure("ft" if mark == "\u2032" else "inch"), place + 1
    if mark not in {"'", '"', "''", "\u2019", "\u201d", "\u2019\u2019"}:
        return None
    after = place + len(mark)
    is_foot = mark in {"'", "\u2019"}
    if text[after : after + 1].isalpha() or (place > end and is_foot):
        return None
    before = text[max(0, end - _QUOTED_WITHIN) : end]
    if (
        is_foot
        and not text[after : after + 1].isdigit()
        and _is_quoted(before, "'\u2018")
    ):
        return None
    if not is_foot and not _FEET_NOTE.search(before) and _is_quoted(before, '"\u201c'):
        return None
    return _measure("ft" if is_foot else "inch"), after


def _is_quoted(before: str, marks: str) -> bool:
    """True when one of *marks* stands open before the number: at the start or after a space or bracket."""
    return any(
        mark in marks and (place == 0 or not before[place - 1].isalnum())
        for place, mark in enumerate(before)
    )


def _inches(text: str, end: int, start: int) -> tuple[Measure, int] | None:
    match = _WORD.match(text, start)
    word = match.group().lower() if match else ""
    if match is None or word != "in":
        return None
    is_sure = (start == end and match.end() - start == 2) or _FEET_BEFORE.search(
        text[max(0, end - 24) : end]
    )
    if text[end] == "-" or is_sure or _INCH_FOLLOWS.match(text, match.end()):
        return _measure("inch"), match.end()
    return None


def _measure(code: str) -> Measure:
    found = of_code(code)
    if found is None:
        raise KeyError(code)
    return found
