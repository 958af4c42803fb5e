"""Faults of a value in plain words: pydantic's errors without its own vocabulary, and the name that was meant."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from tasklore.contracts.identifiers import NAME_PATTERN

__all__ = ["OUR_FAULT", "complaint_of", "fault_of", "nearest", "repeats_of"]

#: What is answered when the fault is ours.
OUR_FAULT = (
    "internal error, not caused by your request; the supervisor's log has the cause"
)

#: What pydantic puts before the sentence of a check of ours.
_PREFIXES = ("Value error, ", "Assertion failed, ")
#: What it says in a way that names no cure.
_IN_WORDS = {
    "missing": "is needed",
    "extra_forbidden": "is not known; remove it, or correct its name",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
#: It names the class of the value, and of a list the time at which it counted.
_SHOULD = re.compile(r"^[A-Z]\w* should (?=be|have|match)")
_COUNTED = re.compile(r"( items?) after validation")
_NO_NAME = "must be 1 to 64 letters, digits, '_' or '-'"


def complaint_of(details: Mapping[str, object]) -> str:
    """Return what one error of pydantic's, an entry of `errors()`, says is wrong."""
    if (cure := _IN_WORDS.get(str(details["type"]))) is not None:
        return cure
    said = str(details["msg"])
    if details["type"] == "string_pattern_mismatch" and NAME_PATTERN in said:
        return _NO_NAME
    for prefix in _PREFIXES:
        said = said.removeprefix(prefix)
    return _COUNTED.sub(r"\1", _SHOULD.sub("must ", said))


def fault_of(details: Mapping[str, object], whole: str = "body") -> str:
    """Return place and fault as `FIELD: complaint`; the field is *whole* where it is all of it."""
    steps = details["loc"]
    where = ".".join(map(str, steps)) if isinstance(steps, Sequence) else ""
    return f"{where or whole}: {complaint_of(details)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the known name that is most alike, "" when none is."""
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def repeats_of(marks: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """Yield place, place of the first one, and mark of each of *marks* that was there before."""
    first: dict[str, int] = {}
    for place, mark in enumerate(marks):
        if (earlier := first.setdefault(mark, place)) != place:
            yield place, earlier, mark
