"""Items: the one shape of a statement in a document, and the leaves that a reader sees.

An item is a JSON object `{"item", "display", "added", "expiry", "confidence", "durability", "source"}`. Documents
that came from elsewhere may lack fields, or hold plain strings and numbers: everything here reads those too, and
never fails on one.
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from hashlib import blake2b
from itertools import takewhile
from typing import Final, Literal, get_args

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.paths import Path

Durability = Literal["permanent", "long_term", "short_term", "momentary"]
#: How an item stands on a day: it holds; ended for good; is hidden by a temporary statement; holds later; ran out.
State = Literal["current", "past", "paused", "planned", "expired"]
Body = dict[str, JsonValue]

#: Where a document keeps what is about itself; no edit reaches it and no leaf is in it.
METADATA = "_metadata"
#: What every item of ours has, in this order.
FIELDS = ("item", "display", "added", "expiry", "confidence", "durability", "source")
#: What an item has beyond them while it contradicts another one of equal rank: the id of the plan that noticed it.
CONFLICT = "conflict"
#: What an item has only where it says so: days, whom it is about, and the category of a fact about somebody else.
OPTIONAL_FIELDS = ("since", "until", "paused_until", "subject", "category")
#: What an item is held to be that does not say.
DEFAULT_CONFIDENCE: Final = 1.0
DEFAULT_DURABILITY: Final = "long_term"
DEFAULT_SOURCE: Final = "imported"
#: Characters of a slug: as many as a path can hold and still be read at a glance.
MAX_SLUG = 64

#: From the most lasting on.
DURABILITIES: tuple[Durability, ...] = get_args(Durability)
#: An older spelling of `expiry`.
_EXPIRY_NAMES = ("expiry", "expiry_date")
_OWN = frozenset((*FIELDS, *OPTIONAL_FIELDS, *_EXPIRY_NAMES))
#: What the signs in a name are called, where leaving them out would make two names one.
_SPELLED = {"+": " plus ", "#": " sharp ", "%": " percent ", "&": " and ", "°": " deg "}
_SPELLING = str.maketrans(_SPELLED)
_MINUS = re.compile(r"(?<!\w)[-\u2212](?=\d)")
_BETWEEN = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item as it is read: `added` is None when unknown, `expiry` for no end, `confidence` is 0 to 1.

    `expiry` is the last day on which it holds. `source` is `stated:<turn id>`, `inferred:<turn id>`,
    `imported:<file>` or `told`. `others` are the fields that items of ours do not have.

    `since` is the first day on which it holds, None for always. `until` is the day on which it stopped being so: the
    item stays as the past. `paused_until` is the last day on which a temporary statement hides it. `subject` names the
    person it is about, None for the person. `category` is the path of the list that such facts have, where it stands
    elsewhere.
    """

    item: str
    display: str
    added: date | None = None
    expiry: date | None = None
    confidence: float = DEFAULT_CONFIDENCE
    durability: Durability = DEFAULT_DURABILITY
    source: str = DEFAULT_SOURCE
    others: Mapping[str, JsonValue] = field(default_factory=dict)
    since: date | None = None
    until: date | None = None
    paused_until: date | None = None
    subject: str | None = None
    category: str = ""

    @classmethod
    def read(cls, value: JsonValue) -> "Item | None":
        """Return *value* as an item, None when it is no object with the text `display` or `item`.

        A plain string is no item. What cannot be read (a date in words, a confidence of "high") is as if it were
        missing.
        """
        if not isinstance(value, dict) or not is_item(value):
            return None
        display = _text(value.get("display"))
        name = _text(value.get("item"))
        return cls(
            item=name or slug(display),
            display=display or name.replace("_", " "),
            added=_day(value.get("added")),
            expiry=next(
                (
                    day
                    for name in _EXPIRY_NAMES
                    if (day := _day(value.get(name))) is not None
                ),
                None,
            ),
            confidence=_confidence(value.get("confidence")),
            durability=_durability(value.get("durability")),
            source=_text(value.get("source")) or DEFAULT_SOURCE,
            others={name: other for name, other in value.items() if name not in _OWN},
            since=_day(value.get("since")),
            until=_day(value.get("until")),
            paused_until=_day(value.get("paused_until")),
            subject=_text(value.get("subject")) or None,
            category=_text(value.get("category")),
        )

    @property
    def is_inferred(self) -> bool:
        """Whether it is a conclusion, and the person did not say so."""
        return self.source.partition(":")[0] == "inferred"

    def state(self, today: date) -> State:
        """Return how the item stands on *today*."""
        if self.until is not None and self.until <= today:
            return "past"
        if self.expiry is not None and self.expiry < today:
            return "expired"
        if self.paused_until is not None and self.paused_until >= today:
            return "paused"
        if self.since is not None and self.since > today:
            return "planned"
        return "current"


def make_item(
    display: str,
    *,
    added: date,
    expiry: date | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    durability: str = DEFAULT_DURABILITY,
    source: str,
    since: date | None = None,
    subject: str | None = None,
    category: str = "",
) -> Body:
    """Return a new item for *display* as a document keeps it.

    Blanks are made one space each; a durability that is none of ours is long-term. *since*, *subject* and *category*
    are left out where they say nothing.

    Raises:
        InvalidInput: *display* has no text, or *confidence* is not 0 to 1.
    """
    shown = " ".join(display.split())
    if not shown:
        raise InvalidInput(
            f"display {display!r} of an item has no text; say what it is about"
        )
    if not 0 <= confidence <= 1:
        raise InvalidInput(f"confidence {confidence!r} of {shown!r} must be 0 to 1")
    return {
        "item": slug(shown),
        "display": shown,
        "added": added.isoformat()[:10],
        "expiry": None if expiry is None else expiry.isoformat()[:10],
        "confidence": confidence,
        "durability": _durability(durability),
        "source": source,
        **({} if since is None else {"since": since.isoformat()[:10]}),
        **({"subject": subject} if subject else {}),
        **({"category": category} if category else {}),
    }


def slug(text: str) -> str:
    """Return *text* as a short name: its words in small letters joined by `_`, in any script, at most 64 characters.

    It names, it does not identify: two texts may share one. A longer text is cut and ends in a digest, and one
    without any word is `item_` and a digest.
    """
    spelled = unicodedata.normalize("NFKC", text).casefold()
    spelled = _MINUS.sub(" minus ", spelled).translate(_SPELLING)
    words = _BETWEEN.sub(_joint, spelled).strip("_")
    if not words:
        return f"item_{_digest(text)}"
    if len(words) <= MAX_SLUG:
        return words
    return f"{words[: MAX_SLUG - 9].rstrip('_')}_{_digest(text)}"


def is_item(value: JsonValue) -> bool:
    """Tell whether *value* is an object with some text as `display` or `item`."""
    return isinstance(value, dict) and bool(
        _text(value.get("display")) or _text(value.get("item"))
    )


def is_expired(item: Item | JsonValue, today: date) -> bool:
    """Tell whether *item* no longer holds on *today*: its expiry is the last day on which it does, None is no end."""
    read = item if isinstance(item, Item) else Item.read(item)
    return read is not None and read.expiry is not None and read.expiry < today


def leaf_text(value: JsonValue) -> str:
    """Return what a reader of one leaf must see: an item's display and whatever else it says, other values as JSON.

    The item's own name is added where it says more than the display; dates, marks and the like are left out.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(map(leaf_text, value))
    item = Item.read(value)
    if item is None:
        return json.dumps(value, ensure_ascii=False)
    more = [
        f"{name}: {leaf_text(other)}"
        for name, other in item.others.items()
        if name != CONFLICT
    ]
    shown = item.display.casefold()
    if not all(
        word in shown for word in item.item.casefold().split("_")
    ) and item.item != slug(item.display):
        more.insert(0, item.item)
    return f"{item.display} ({'; '.join(more)})" if more else item.display


def lasting_name(path: Path, value: JsonValue) -> str:
    """Return a name for a leaf that stays when others come and go before it: its path, ending in the item's own name.

    A value that is no item, or has no name of its own, has its path only.
    """
    name = value.get("item") if isinstance(value, dict) else None
    return str(path.parent / name) if isinstance(name, str) and name else str(path)


def leaves(body: Mapping[str, JsonValue]) -> Iterator[tuple[Path, str, JsonValue]]:
    """Yield every leaf of *body* as its path, its text and its value, in the document's order.

    An item is one leaf, whatever is in it. Empty lists and objects have no leaf, and neither has `_metadata`.
    """
    for path, value in leaf_values(body):
        yield path, leaf_text(value), value


def leaf_values(body: Mapping[str, JsonValue]) -> Iterator[tuple[Path, JsonValue]]:
    """Yield what `leaves` yields, without the texts."""
    root = Path()
    for name, value in body.items():
        if name != METADATA:
            yield from _leaf_values(root / name, value)


def _leaf_values(path: Path, value: JsonValue) -> Iterator[tuple[Path, JsonValue]]:
    if isinstance(value, dict) and not is_item(value):
        for name, inner in value.items():
            yield from _leaf_values(path / name, inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaf_values(path / index, inner)
    else:
        yield path, value


def _text(value: JsonValue) -> str:
    return value.strip() if isinstance(value, str) else ""


def _day(value: JsonValue) -> date | None:
    """Return the day that *value* begins with, as in `2025-12-28T10:00:00Z`; None when it does not."""
    if not isinstance(value, str):
        return None
    try:
        return date.fromisoformat(value.strip()[:10])
    except ValueError:
        return None


def _confidence(value: JsonValue) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
    ):
        return DEFAULT_CONFIDENCE
    return min(1.0, max(0.0, float(value)))


def _durability(value: JsonValue) -> Durability:
    return (
        value
        if isinstance(value, str) and value in DURABILITIES
        else DEFAULT_DURABILITY
    )


def _joint(between: re.Match[str]) -> str:
    """Return what joins two words: `_`, and the marks that belong to the first, without which it is another word."""
    signs = between[0]
    if signs.isascii():
        return "_"
    marks = "".join(takewhile(lambda sign: unicodedata.category(sign)[0] == "M", signs))
    return marks if len(marks) == len(signs) else f"{marks}_"


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
