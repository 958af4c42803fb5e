"""Stored text made harmless: one line of visible signs in double quotes that it cannot close.

Letters and digits of every script stay as they are. What a prompt, Markdown, JSON, HTML, a template or a chat format
reads as structure becomes a plain sign that looks alike, and invisible characters are left out.
"""

import re
import unicodedata

#: Stands before every line of a rendered block; no stored text can bring it along.
MARK = "\u00a6"
#: Characters of one stored text that are shown: three long sentences. What is longer is cut, and ends in an ellipsis.
MAX_SHOWN = 400
#: Marks upon one letter: as many as any language writes. More of them only cover what stands around.
MAX_MARKS = 4
#: Signs whose replacement is kept for the next time, so that odd texts do not fill the memory.
MAX_KEPT = 20_000

_QUOTES = (
    '"`\u00ab\u00bb\u00b4\u02ba\u02bb\u02cb\u02dd\u02ee\u2018\u201a\u201b\u201c\u201d\u201e\u201f\u2033'
    "\u2035\u2036\u275d\u275e\u301d\u301e\u301f\uff02\uff40"
)
_REPLACED = {
    **dict.fromkeys(_QUOTES, "'"),
    **dict.fromkeys(
        "<\u2329\u276e\u2770\u27e8\u27ea\u3008\u300a\ufe64\uff1c\u226a\u22d8", "\u2039"
    ),
    **dict.fromkeys(
        ">\u232a\u276f\u2771\u27e9\u27eb\u3009\u300b\ufe65\uff1e\u226b\u22d9", "\u203a"
    ),
    **dict.fromkeys("[{\u3010\u3014\u3016\u27e6\u27ec\uff3b\uff5b\ufe5b\u301a", "("),
    **dict.fromkeys("]}\u3011\u3015\u3017\u27e7\u27ed\uff3d\uff5d\ufe5c\u301b", ")"),
    **dict.fromkeys(
        "\u00a6\u2058\u205e\u2506\u2507\u250a\u250b\u254e\u254f\u2af6\u2e3d\uffe4", "|"
    ),
    **dict.fromkeys("\\\u2216\u29f5\u29f9\ufe68\uff3c", "/"),
    **dict.fromkeys("#\ufe5f\uff03", "#"),
    # Letters and marks by their category, and nothing to see.
    **dict.fromkeys(
        "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0", ""
    ),
    **dict.fromkeys(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))), ""),
}
#: Categories that are left out: controls, formats (bidi, zero width, tags), surrogates, private and unassigned ones.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_LINE_BREAKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"
_HEADINGS = re.compile(r"(?<![\w#])#+(?=[\s#]|$)")
_RUNS = re.compile("([-=~_*#|+\u2039\u203a])\\1{2,}|([\u2039\u203a])\\2")
_ENTITIES = re.compile(r"&(?=#?\w{1,32};)")
_MANY_SIGNS = re.compile(rf"[^\w\s\x00-\x7f]{{{MAX_MARKS + 1},}}")


class _Signs(dict[int, str]):
    """What each sign becomes, found out when it is met for the first time."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        category = unicodedata.category(sign)
        if sign in _REPLACED:
            shown = _REPLACED[sign]
        elif category[0] == "Z" or sign in _LINE_BREAKS:
            shown = " "
        else:
            shown = "" if category in _UNSEEN else sign
        if len(self) < MAX_KEPT:
            self[code] = shown
        return shown


_SIGNS = _Signs()


def quote(text: str, limit: int = MAX_SHOWN) -> str:
    """Return *text* as `plain` makes it, in double quotes."""
    return f'"{plain(text, limit)}"'


def plain(text: str, limit: int = MAX_SHOWN) -> str:
    """Return *text* as one line that means nothing but itself, at most *limit* characters.

    There is no double quote, backtick, backslash, `<`, `>`, bracket, brace or `MARK` in it, no line break and nothing
    invisible, and no run of three signs that could be a rule or a fence. Making it plain once more changes nothing.
    """
    # What is beyond any limit after the signs that vanish is not looked at.
    seen = text[: 4 * limit].translate(_SIGNS)
    if not seen.isascii():
        seen = _MANY_SIGNS.sub(
            _with_few_marks, unicodedata.normalize("NFC", seen)
        ).translate(_SIGNS)
    seen = _HEADINGS.sub("", _RUNS.sub(lambda run: run[0][0], seen))
    seen = " ".join(_ENTITIES.sub("& ", seen).split())
    return (
        seen
        if len(seen) <= limit and len(text) <= 4 * limit
        else f"{seen[: limit - 1].rstrip()}\u2026"
    )


def _with_few_marks(run: re.Match[str]) -> str:
    kept = []
    marks = 0
    for sign in run[0]:
        marks = marks + 1 if unicodedata.category(sign)[0] == "M" else 0
        if marks <= MAX_MARKS:
            kept.append(sign)
    return "".join(kept)
