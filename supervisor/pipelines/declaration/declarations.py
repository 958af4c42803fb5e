"""Reading a declaration that arrives as plain values, from a file or a message, and what is wrong with it in words."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from contracts.errors import InvalidPipeline
from contracts.faults import complaint_of
from contracts.pipelines import MOST_PHASES, Input, Phase, Pipeline
from quantities.amounts.spellings import shown
from supervisor.pipelines.declaration.problems import Place, Problem, listed, nearest

_CLASSES: Mapping[str, type[BaseModel]] = {"Pipeline": Pipeline, "Phase": Phase, "Input": Input}
#: What pydantic calls as Python does, in words of a declaration.
_IN_WORDS = {
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "string_type": "a text",
    "int_type": "a whole number",
    "bool_type": "true or false",
}
#: What people write for a field of another name.
_OTHERWISE = {"depends_on": "after", "needs": "after", "outputs": "writes", "inputs": "reads", "params": "parameters"}


def pipeline_from(mapping: Mapping[str, Any]) -> Pipeline:
    """Return the pipeline that *mapping*, such as the JSON of a request, declares.

    Raises:
        InvalidPipeline: it declares none; one sentence a field that is missing, unknown or unusable.
    """
    pipeline, problems = read_declaration(mapping)
    if pipeline is None:
        raise InvalidPipeline([place_in_words(problem.place, mapping) + problem.text for problem in problems])
    return pipeline


def read_declaration(mapping: Mapping[str, Any]) -> tuple[Pipeline | None, list[Problem]]:
    """Return the pipeline that *mapping* declares, or None and what is wrong, with its places."""
    phases = mapping.get("phases")
    if isinstance(phases, list) and len(phases) > MOST_PHASES:
        # Each of these may be wrong in many ways, and all of them would be told.
        return None, [Problem(("phases",), f"phases has {len(phases):,} items; keep to {MOST_PHASES}")]
    try:
        return Pipeline.model_validate(dict(mapping)), []
    except ValidationError as error:
        return None, problems_in(error)


def problems_in(error: ValidationError) -> list[Problem]:
    """Return what *error*, raised by a declaration, says, once for every field."""
    problems: dict[Place, Problem] = {}
    details = error.errors(include_url=False)
    # A list is also called too short when what is in it is refused.
    for detail in [one for one in details if one["type"] != "too_short"] or details:
        place = _field(detail["loc"])
        problems.setdefault(place, Problem(place, _sentence(detail, place, error.title)))
    return list(problems.values())


def sentences(error: ValidationError) -> list[str]:
    """Return what *error* says of a declaration in Python, each sentence with its field."""
    return [place_in_words(problem.place, {}) + problem.text for problem in problems_in(error)]


def place_in_words(place: Place, declaration: Mapping[str, Any]) -> str:
    """Return "phase analysis: " for a place in a phase, by its name in *declaration* or else its number, or ""."""
    if len(place) < 2 or place[0] != "phases" or not isinstance(place[1], int):
        return ""
    phases = declaration.get("phases")
    phase = phases[place[1]] if isinstance(phases, list | tuple) and place[1] < len(phases) else None
    name = phase.get("name") if isinstance(phase, Mapping) else getattr(phase, "name", None)
    return f"phase {name}: " if isinstance(name, str) else f"phase {place[1] + 1}: "


def _field(location: Place) -> Place:
    """Return *location* as far as it names what somebody wrote: inside parameters, pydantic goes on with types."""
    for n, part in enumerate(location):
        if part == "parameters":
            return location[: n + 2]
        if part == "default":
            return location[: n + 1]
    return location


def _sentence(detail: ErrorDetails, place: Place, title: str) -> str:
    inner = place[2:] if place[:1] == ("phases",) and len(place) > 1 else place
    field = ".".join(map(str, inner)) or "it"
    said = shown(detail["input"])
    kind = detail["type"]
    if kind == "too_short":
        return f"{field} is empty; give at least {detail['ctx']['min_length']}"
    if kind == "too_long":
        return f"{field} has {detail['ctx']['actual_length']:,} items; keep to {detail['ctx']['max_length']}"
    if kind == "missing":
        return f"{field} is missing; give it"
    if kind == "extra_forbidden":
        return _unknown(str(place[-1]), place, title)
    if kind == "string_pattern_mismatch":
        return f"{field} {said} must be 1 to 64 letters, digits, '_' or '-'"
    if place[:1] == ("inputs",) and place[-1] == "[key]":
        return f"the input's name {said} must be 1 to 64 letters, digits, '_' or '-'"
    if "parameters" in place[:-1] or place[-1:] == ("default",):
        return f"{field} is {said}, which JSON does not know; write it as a text, a number, a list or a table"
    message = _IN_WORDS.get(kind) or complaint_of(detail).removeprefix("Input should be ")
    message = message if message.startswith(("must", "is ", "has ")) else f"must be {message}"
    return f"{field} {message}, not {said}"


def _unknown(name: str, place: Place, title: str) -> str:
    owner = {"phases": "Phase", "inputs": "Input"}.get(str(place[0]), title) if len(place) > 1 else title
    known = list(_CLASSES.get(owner, Pipeline).model_fields)
    meant = _OTHERWISE.get(name)
    near = f"; did you mean {meant!r}?" if meant in known else nearest(name, known)
    return f"{name!r} is not known here{near or f'; known are {listed(known, 20)}'}"
