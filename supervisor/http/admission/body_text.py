"""What Python reads as JSON and nothing can keep: half of a surrogate pair, and numbers that are none."""

import json
import math
import re
from typing import Any

from tasklore.supervisor.operations.refusals import Fault

#: How a body spells what may be one; most bodies hold neither. Python reads halves written as if they were characters
#: of UTF-8 too, bodies in UTF-16 (which have zeros), and a number that is too large for it as infinity.
_SUSPECT = re.compile(
    rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]|\x00"
    rb"|NaN|Infinity|[0-9][eE]\+?[0-9]{3}|(?<![0-9])[0-9]{209}"
)
_HALF = re.compile("[\ud800-\udfff]")
#: Characters of the place that a fault names.
_LONGEST = 200
_UNICODE = (
    "contains an unpaired surrogate, which is invalid Unicode; send both "
    "halves, or the character itself in UTF-8"
)
_NUMBER = "is a number that cannot be stored; send null or one below 1e308, or omit it"


def find_unkeepable(body: bytes) -> Fault | None:
    """Return the first fault of *body*, None where it has none or cannot be read as JSON."""
    if _SUSPECT.search(body) is None:
        return None
    try:
        pending: list[tuple[str, Any]] = [("", json.loads(body))]
    except (ValueError, RecursionError):
        return None
    while pending:
        place, value = pending.pop()
        if isinstance(value, dict):
            if any(map(_HALF.search, value)):
                return _fault(place, f"a name in it {_UNICODE}")
            inner = list(value.items())
        elif isinstance(value, list):
            inner = [(str(number), one) for number, one in enumerate(value)]
        elif isinstance(value, str) and _HALF.search(value):
            return _fault(place, _UNICODE)
        elif isinstance(value, float) and not math.isfinite(value):
            return _fault(place, _NUMBER)
        else:
            continue
        # The first in the body is looked at next.
        before = f"{place}." if place else ""
        pending += [(f"{before}{name}", one) for name, one in reversed(inner)]
    return None


def _fault(place: str, message: str) -> Fault:
    return Fault(where=place[:_LONGEST] or "body", message=message)
