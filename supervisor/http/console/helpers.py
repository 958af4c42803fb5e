"""How templates spell what views hold: times, spans, money, ids, states and JSON."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup
from pydantic import BaseModel

#: States, by how they look: what went well, went wrong, goes on, waits, or is neither.
_LOOKS = {
    "completed": "good",
    "open": "wait",
    "answered": "good",
    "failed": "bad",
    "rejected": "bad",
    "expired": "bad",
    "cancelled": "off",
    "cancelling": "off",
    "running": "live",
    "waiting": "wait",
    "accepted": "wait",
    "done": "good",
    "pending": "wait",
    "ok": "good",
    "asked": "live",
    "late": "wait",
    "parked": "wait",
}
#: The longest word of each state; a person reads "queued" where the wire says accepted.
_WORDS = {"accepted": "queued"}
_REASONS = {
    "attempts": "each attempt failed",
    "code_error": "its code has a fault",
    "gave_up": "its agent gave up",
    "crashes": "its workers crashed",
    "deadline": "its time was over",
    "unreadable": "it cannot be read",
    "unproven": "nothing proves who sent it",
    "foreign": "it is of another system",
}
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"))
#: Characters of JSON that are shown: a page has several, and some come anew every few seconds.
_LONGEST_JSON = 50_000
#: Letters that are not seen, or turn the order of their neighbours: controls but for tabs and ends of lines, and marks
#: that embed, override or isolate a direction of writing (those that stand for one letter change nothing else). As a
#: regular expression that the script of pages reads too.
MARKS = (
    r"[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]"
)
_MARK = re.compile(MARKS)
_SPELLED_MARKS = {
    code: f"⟨U+{code:04X}⟩" for code in range(0x2100) if _MARK.match(chr(code))
}
#: Numbers from this on, and what is none, are said to be unusual.
_LARGEST = 1e18
_UNUSUAL = "an unusual number"
#: Characters of an id that tell it from its neighbours: ids of one minute begin alike.
_SHORT_ID = 16


def spell_when(at: datetime | float | None, now: datetime | None = None) -> Markup:
    """Return a time, or ms since 1970, as "4 min ago", with the exact time as its title; "" for None."""
    if at is None:
        return Markup("")
    moment = read_moment(at)
    if moment is None:
        return Markup("a time that no calendar has")
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    words = (
        f"{spell_span(seconds * 1000)} ago"
        if seconds >= 0
        else f"in {spell_span(-seconds * 1000)}"
    )
    if abs(seconds) < 1:
        words = "now"
    exact = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.isoformat(), exact, words
    )


def spell_moment(at: datetime) -> Markup:
    """Return a time as its day and minute in UTC, with its seconds where it has any."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    seconds = ":%S" if aware.second else ""
    words = f"{aware.astimezone(UTC):%Y-%m-%d %H:%M{seconds}} UTC"
    return Markup('<time datetime="{}">{}</time>').format(aware.isoformat(), words)


def read_moment(at: datetime | float) -> datetime | None:
    """Return *at*, a time or ms since 1970, as a time in UTC; None for one that it does not have."""
    try:
        if isinstance(at, datetime):
            aware = at if at.tzinfo else at.replace(tzinfo=UTC)
            return aware.astimezone(UTC)
        return datetime.fromtimestamp(at / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def spell_span(ms: float | None) -> str:
    """Return a span of time in its two largest units; "" for None."""
    if ms is None:
        return ""
    if not _is_usual(ms):
        return _UNUSUAL
    if ms < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    for place, (size, unit) in enumerate(_SPANS):
        if seconds < size:
            continue
        whole, rest = divmod(int(seconds), size)
        if place + 1 < len(_SPANS) and whole < 10:
            smaller, word = _SPANS[place + 1]
            if rest // smaller:
                return f"{whole} {unit} {rest // smaller} {word}"
        return f"{whole:,} {unit}"
    return f"{seconds:.0f} s"


def spell_money(usd: float | None) -> str:
    """Return US dollars; small amounts keep what says something. "" for None."""
    if usd is None:
        return ""
    if not _is_usual(usd):
        return _UNUSUAL
    if usd == 0:
        return "$0"
    if abs(usd) < 0.0001:
        return "< $0.0001"
    return f"${usd:,.4f}" if abs(usd) < 0.1 else f"${usd:,.2f}"


def spell_number(value: float | None) -> str:
    """Return a number with commas; "" for None."""
    if value is None:
        return ""
    if not _is_usual(value):
        return _UNUSUAL
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def _is_usual(value: float) -> bool:
    """Return whether *value* is a number that a person can read."""
    return -_LARGEST < value < _LARGEST


def shorten_id(name: str) -> Markup:
    """Return the two ends of an id, with all of it as their title."""
    if len(name) <= _SHORT_ID:
        return Markup('<code class="id">{}</code>').format(name)
    return Markup('<code class="id" title="{}">{}…{}</code>').format(
        name, name[:8], name[-6:]
    )


def badge(state: str) -> Markup:
    """Return a state as a badge: its word, and a colour beside it."""
    look = _LOOKS.get(state, "off")
    return Markup('<span class="badge {}">{}</span>').format(
        look, _WORDS.get(state, state)
    )


def spell_json(value: object) -> str:
    """Return *value*, a view or a value of JSON, as indented JSON; a text as it is. A long one is cut, with a note."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    try:
        spelled = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    except RecursionError:
        return "It is nested too deep to be shown."
    return _cut(spelled)


def _cut(text: str) -> str:
    left = len(text) - _LONGEST_JSON
    if left <= 0:
        return text
    return f"{text[:_LONGEST_JSON]}\n… and {left:,} characters more, which are not shown here"


def show_marks(value: object) -> object:
    """Return *value* with each of `MARKS` spelled out.

    A person who approves a question has to read its words in their order.
    """
    if not isinstance(value, str) or _MARK.search(value) is None:
        return value
    return value.translate(_SPELLED_MARKS)


def spell_reason(reason: str) -> str:
    """Return why a task was given up, by the word of its dead letter."""
    return _REASONS.get(reason, reason)


#: Filters of every template, by name.
FILTERS: Mapping[str, Any] = {
    "when": spell_when,
    "moment": spell_moment,
    "span": spell_span,
    "money": spell_money,
    "number": spell_number,
    "id": shorten_id,
    "reason": spell_reason,
    "badge": badge,
    "json": spell_json,
}
