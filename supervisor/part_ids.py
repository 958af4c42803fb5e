"""The ids of the tasks that one request became when its words asked for several.

They follow from the id that the request's one task would have had and from the place in the sentence, so that a repeat
finds each of them, and whoever knows the one can look for the others.
"""

import re

_PART = re.compile(r"(r-[0-9a-f]{32})-[1-9][0-9]?\Z")


def part_task_id(whole: str, place: int) -> str:
    """Return the id of the task at *place*, counted from 1, of the request that *whole* is the task id of."""
    return f"{whole}-{place}"


def whole_task_id(task_id: str) -> str | None:
    """Return the id that *task_id* is a part of, None when it is no part of a request that was named by its sender."""
    match = _PART.match(task_id)
    return match[1] if match is not None else None


def part_turn_id(base: str, place: int) -> str:
    """Return the id of the turn that answers the part at *place*; *base* is that of a request's one answer."""
    return f"{base}{place}"


def place_of_turn(turn_id: str) -> int:
    """Return the place that a `part_turn_id` was made for; 0 for the turn of a request's one answer."""
    return int(turn_id.rpartition("-a")[2] or "0") if "-a" in turn_id else 0
