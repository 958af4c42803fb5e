"""What people wrote behind an entry about the entry: `(added 2024-03-01, until 2025-12-31, confidence 80%)`."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date

from pydantic import JsonValue

from tasklore.memory.documents.items import Body

_NOTES = re.compile(
    r"(?<!\s)\s*+(?:\((?P<round>[^()]+)\)|\[(?P<square>[^\[\]]+)\]|<!--(?P<comment>[^<>]+?)-->)\s*$"
)
_DAY = r"(?P<day>\d{4}-\d\d-\d\d)"
_ADDED = re.compile(rf"(?:added|added on|noted|recorded)\s*+[:=]?\s*+{_DAY}")
_EXPIRY = re.compile(
    rf"(?:until|valid until|through|expires|expires on|expiry|expiry[ _]date)\s*+[:=]?\s*+{_DAY}"
)
_CONFIDENCE = re.compile(
    r"confidence\s*+[:=]?\s*+(?P<share>[01](?:\.\d+)?|\d{1,3}\s?%)"
)
_DURABILITY = re.compile(
    r"(?:durability\s*+[:=]?\s*+)?(?P<word>permanent|long[-_ ]term|short[-_ ]term|momentary)"
)


def with_notes(text: str) -> tuple[str, Body]:
    """Return *text* without the notes at its end, and these as fields of an item; any other bracket stays."""
    found = _NOTES.search(text)
    if not found or not text[: found.start()].strip():
        return text, {}
    fields: Body = {}
    for note in re.split(
        r"[,;]", found["round"] or found["square"] or found["comment"]
    ):
        read = next(_field(note.strip().casefold()), None)
        if read is None or read[0] in fields:
            return text, {}
        fields[read[0]] = read[1]
    return text[: found.start()], fields


def _field(note: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the field that *note* is, none when it is something else."""
    for name, pattern in (("added", _ADDED), ("expiry", _EXPIRY)):
        found = pattern.fullmatch(note)
        if found:
            with suppress(ValueError):
                date.fromisoformat(found["day"])
                yield name, found["day"]
    confidence = _CONFIDENCE.fullmatch(note)
    if confidence:
        text = confidence["share"]
        share = (
            round(float(text.rstrip("% ")) / 100, 4)
            if text.endswith("%")
            else float(text)
        )
        if share <= 1:
            yield "confidence", share
    durability = _DURABILITY.fullmatch(note)
    if durability:
        yield "durability", re.sub("[- ]", "_", durability["word"])
