"""The context of a trace as W3C spells it (Trace Context, level 1): which trace, and which span of it is the parent.

It comes from strangers and is copied into headers, so that whatever is not exactly as it should be is as good as none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tasklore.contracts import subjects

#: Version, trace, parent and flags. Of a version that is not known yet more may follow, which means nothing to us.
_PARENT: Final = re.compile(
    r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]{1,200})?",
    re.ASCII,
)
#: What vendors add: printable ASCII, of which W3C asks nobody to carry more than 512 characters.
_STATE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,510}[\x21-\x7e])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Whose child the next span is; `state` is what other tracers want carried along, "" for nothing."""

    parent: str
    state: str = ""

    @property
    def trace_id(self) -> str:
        """The trace, 32 hexadecimal digits."""
        return self.parent[3:35]

    @property
    def span_id(self) -> str:
        """The parent span, 16 hexadecimal digits."""
        return self.parent[36:52]

    @property
    def flags(self) -> int:
        """The flags, from 0 to 255."""
        return int(self.parent[53:55], 16)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a message that belongs to it."""
        if not self.state:
            return {subjects.TRACE_HEADER: self.parent}
        return {
            subjects.TRACE_HEADER: self.parent,
            subjects.TRACE_STATE_HEADER: self.state,
        }

    def __str__(self) -> str:
        return f"{self.parent} {self.state}" if self.state else self.parent


def made_context(
    trace_id: int, span_id: int, flags: int, state: str = ""
) -> TraceContext:
    """Return the context of a span of ours."""
    return TraceContext(f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}", state)


def read_context(headers: Mapping[str, str] | None) -> TraceContext | None:
    """Return the context in *headers*, None when there is none that fits."""
    parent = _named(subjects.TRACE_HEADER, headers) if headers else None
    if headers is None or parent is None:
        return None
    return _checked(parent, _named(subjects.TRACE_STATE_HEADER, headers) or "")


def names_context(headers: Mapping[str, str]) -> bool:
    """Tell whether *headers* name a context, be it one that fits or not."""
    return _named(subjects.TRACE_HEADER, headers) is not None


def spelled_context(spelled: str) -> TraceContext | None:
    """Return the context that `str` has spelled, None when it is none."""
    parent, _, state = spelled.partition(" ")
    return _checked(parent, state)


def _named(name: str, headers: Mapping[str, str]) -> str | None:
    found = headers.get(name)
    if found is not None:
        return found
    # W3C asks for any case; NATS keeps what a sender wrote, and Go's propagators write a capital letter.
    for one in headers:
        if len(one) == len(name) and one.lower() == name:
            return headers[one]
    return None


def _checked(parent: str, state: str) -> TraceContext | None:
    found = _PARENT.fullmatch(parent)
    if found is None:
        return None
    version, trace_id, span_id, _, more = found.groups()
    if (
        version == "ff"
        or (version == "00" and more)
        or not trace_id.strip("0")
        or not span_id.strip("0")
    ):
        return None
    return TraceContext(parent, state if _STATE.fullmatch(state) else "")
