"""Time zones by the names that IANA gives them: whose "tomorrow" it is."""

import re
from datetime import UTC, datetime, timezone, tzinfo
from functools import cache
from typing import Annotated

from pydantic import AfterValidator, Field

from tasklore.contracts.errors import InvalidInput

__all__ = ["TimeZone", "in_zone", "read_zone"]

#: Characters of a name; the longest there is has 32.
_LONGEST = 64
#: Names begin with a capital: what does not is a file of the machine's own, such as `localtime`, or another form.
_NAME = re.compile(r"[A-Z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*){0,2}")
#: How alike a mistyped name must be to the one suggested, from 0 to 1.
_ALIKE = 0.6


def read_zone(name: str) -> tzinfo:
    """Return the time zone that is called *name*, such as `Europe/Berlin` or `UTC`.

    Raises:
        InvalidInput: there is none of that name, or this machine knows no zones at all.
    """
    if name == "UTC":
        return UTC
    # Not before one is asked for: most processes never are.
    from zoneinfo import ZoneInfo

    try:
        if len(name) <= _LONGEST and _NAME.fullmatch(name):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    raise InvalidInput(_cure(name[:_LONGEST]))


def in_zone(moment: datetime, name: str) -> datetime:
    """Return *moment* in the zone *name*, with its offset at that time.

    The offset is a fixed one, so that what is reckoned from it in hours stays an instant across a change of the clocks.

    Raises:
        InvalidInput: there is no such zone.
    """
    told = moment.astimezone(read_zone(name))
    offset = told.utcoffset()
    return told.replace(tzinfo=timezone(offset)) if offset else told.replace(tzinfo=UTC)


def _checked(name: str) -> str:
    try:
        read_zone(name)
    except InvalidInput as error:
        raise ValueError(str(error)) from error
    return name


#: The name of a zone that there is, as a field of a message or a setting.
TimeZone = Annotated[
    str, Field(min_length=1, max_length=_LONGEST), AfterValidator(_checked)
]


@cache
def _known() -> dict[str, str]:
    """Return the names of all zones by their small letters; reading the table anew takes as long as many requests."""
    from zoneinfo import available_timezones

    return {
        one.lower(): one
        for one in sorted(available_timezones())
        if _NAME.fullmatch(one)
    }


def _cure(name: str) -> str:
    import difflib

    by_letters = _known()
    if not by_letters:
        return f"{name!r} cannot be looked up, for this machine has no table of time zones; install the package tzdata"
    found = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=_ALIKE)
    cure = (
        f"did you mean {by_letters[found[0]]!r}?"
        if found
        else "write one such as 'Europe/Berlin' or 'UTC'"
    )
    return f"there is no time zone {name!r}; {cure}"
