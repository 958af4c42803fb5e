"""What differs between two runs that show the same: ids, times, addresses and how long something took."""

import re
import socket
from collections.abc import Iterable, Sequence
from typing import Any

#: A year that tests name themselves, which stays as it is.
OUR_YEAR = 2099

_DAY = rf"\b(?!{OUR_YEAR})20(?:2[6-9]|[3-9]\d)-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])"
_TIME = _DAY + r"[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?"
_HOST = re.escape(socket.gethostname())
_PATTERNS = (
    (rf"\b{_HOST}-\d+-[0-9a-f]{{6}}\b", "<worker>"),
    (rf"\b{_HOST}\b", "<host>"),
    (r"\bSupervisorAgent-\d+-[0-9a-f]{8}\b", "<supervisor>"),
    (r"tlk_[\w-]{20,}", "<key>"),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<id>"),
    (_TIME, "<time>"),
    (rf"{_DAY}\b", "<day>"),
    (r"\b127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
    # A number of 16 digits is a bound.
    (r"\b(?!\d{16}\b)(?=[0-9a-f]*[0-9])[0-9a-f]{8,64}\b", "<hex>"),
)
#: How long something took, or how long ago it was.
_SPAN = re.compile(r"(?:under )?\b\d[\d.,]* ?m?s\b")
#: Fields of JSON whose numbers are measured, by the end of their names.
_MEASURED = re.compile(
    r"(?:_ms|_s|_seconds|_at|saved_by_phase)$"
    r"|(?:^|_)(?:age|bytes|dur|pid|sequence|since|size|took)$"
)
#: Those that are set instead.
_SET = frozenset({"every_s", "late_s", "patience_s", "ttl_ms"})

#: What is left out where it is nothing, so that it is there or not by chance.
_BY_CHANCE = frozenset({"saved_ms"})


class Normaliser:
    """Takes out of texts and values what is only of this run; *names* says what stands for which text."""

    def __init__(self, names: Iterable[tuple[str, str]] = ()) -> None:
        self._names = list(names)

    def text(self, text: str) -> str:
        """Return *text* with a word for each id, time and address."""
        for name, word in self._names:
            text = text.replace(name, word)
        for pattern, word in _PATTERNS:
            text = re.sub(pattern, word, text)
        return text

    def printed(self, text: str) -> str:
        """Return *text* as `text` does, with a word for how long something took."""
        return _SPAN.sub("<span>", self.text(text))

    def value(self, value: Any, field: str = "", hides: Sequence[str] = ()) -> Any:
        """Return *value*, of the field of that name, with a word for each id, time, address and measured number.

        Fields that *hides* names have a word for whatever they hold.
        """
        if field in hides:
            return "<hidden>"
        match value:
            case dict():
                # Numbers by name are measured as well.
                is_measured = _MEASURED.search(field)
                return {
                    self.text(name): self.value(
                        one, field if is_measured else name, hides
                    )
                    for name, one in value.items()
                    if name not in _BY_CHANCE
                }
            case list():
                return [self.value(one, field, hides) for one in value]
            case str():
                return self.printed(value)
            case bool():
                return value
            case int() | float() if _MEASURED.search(field) and field not in _SET:
                return "<number>"
        return value
