"""Keys of a session's entries: `{phase}:{data_type}` or `{phase}:{data_type}:{identifier}`, such as `analysis:results`.

The phase owns the entry: whoever runs the phase again replaces it, and invalidating the phase removes it.
"""

import re
from typing import NamedTuple

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import NAME_PATTERN

#: Characters of a whole key: room for a path as its identifier.
MAX_KEY = 512

_NAME = re.compile(NAME_PATTERN)
_RULE = (
    "write '{phase}:{data_type}' or '{phase}:{data_type}:{identifier}', phase and data type 1 to 64 letters, digits, "
    "'_' or '-', such as 'analysis:dependencyMap'"
)


class EntryKey(NamedTuple):
    """The parts of a key; `identifier` is None when the phase has one such entry."""

    phase: str
    data_type: str
    identifier: str | None = None

    def __str__(self) -> str:
        """Return the key as it is written."""
        return ":".join(part for part in self if part is not None)


def read_key(text: str) -> EntryKey:
    """Return the parts of the key *text*.

    Raises:
        InvalidInput: it breaks the naming rule; the message tells the rule.
    """
    phase, _, rest = text.partition(":")
    data_type, colon, identifier = rest.partition(":")
    if not (_NAME.fullmatch(phase) and _NAME.fullmatch(data_type)):
        raise InvalidInput(f"session key {text!r} breaks the naming rule; {_RULE}")
    if colon and not (identifier and identifier.isprintable()):
        raise InvalidInput(
            f"session key {text!r} has an identifier that is empty or not printable; {_RULE}"
        )
    if len(text) > MAX_KEY:
        raise InvalidInput(
            f"session key {text[:40]!r}... has {len(text)} characters, at most {MAX_KEY} are taken"
        )
    return EntryKey(phase, data_type, identifier if colon else None)
