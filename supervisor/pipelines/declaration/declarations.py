"""Reading a declaration that arrives as plain values, from a file or a message, and its errors in words."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tasklore.contracts.errors import InvalidPipeline
from tasklore.contracts.faults import complaint_of, nearest
from tasklore.contracts.pipelines import MOST_PHASES, Input, Phase, Pipeline
from tasklore.contracts.quantities.amounts.spellings import shown
from tasklore.supervisor.pipelines.declaration.problems import (
    Flaw,
    Place,
    place_in_words,
    quote_names,
)

#: Names that people write for a field, and the field.
_SYNONYMS = {
    "depends_on": "after",
    "needs": "after",
    "outputs": "writes",
    "inputs": "reads",
    "params": "parameters",
}


def pipeline_from(mapping: Mapping[str, Any]) -> Pipeline:
    """Return the pipeline that *mapping*, such as the JSON of a request, declares.

    Raises:
        InvalidPipeline: it declares none; one sentence a field that is missing, unknown or unusable.
    """
    pipeline, problems = read_declaration(mapping)
    if pipeline is None:
        raise InvalidPipeline(
            [
                place_in_words(problem.place, mapping) + problem.text
                for problem in problems
            ]
        )
    return pipeline


def read_declaration(mapping: Mapping[str, Any]) -> tuple[Pipeline | None, list[Flaw]]:
    """Return the pipeline that *mapping* declares, or None and the problems.

    Its list of phases may be called as the blocks of a file are, `[[phase]]`: a client sends those as they are.
    """
    if "phase" in mapping and "phases" not in mapping:
        mapping = {name: one for name, one in mapping.items() if name != "phase"} | {
            "phases": mapping["phase"]
        }
    phases = mapping.get("phases")
    if isinstance(phases, list) and len(phases) > MOST_PHASES:
        # Each of these may be wrong in many ways, and all of them would be quote_names.
        return None, [
            Flaw(
                ("phases",), f"phases has {len(phases):,} items; keep to {MOST_PHASES}"
            )
        ]
    try:
        return Pipeline.model_validate(dict(mapping)), []
    except ValidationError as error:
        return None, problems_in(error)


def problems_in(error: ValidationError) -> list[Flaw]:
    """Return the problems in *error*, raised by a declaration, one for every field."""
    problems: dict[Place, Flaw] = {}
    details = error.errors(include_url=False)
    # A list is also called too short when its items are refused.
    for detail in [one for one in details if one["type"] != "too_short"] or details:
        place = detail["loc"]
        # Inside a value of JSON, pydantic goes on with types.
        for n, part in enumerate(place):
            if part in ("parameters", "default"):
                place = place[: n + 1 + (part == "parameters")]
                break
        problems.setdefault(place, Flaw(place, _describe(detail, place, error.title)))
    return list(problems.values())


def _describe(detail: ErrorDetails, place: Place, title: str) -> str:
    inner = place[2:] if place[:1] == ("phases",) and len(place) > 1 else place
    field = ".".join(map(str, inner)) or "it"
    given = shown(detail["input"])
    kind = detail["type"]
    name_rule = "must be 1 to 64 letters, digits, '_' or '-'"
    if kind == "too_short":
        return f"{field} is empty; give at least {detail['ctx']['min_length']}"
    if kind == "too_long":
        return f"{field} has {detail['ctx']['actual_length']:,} items; keep to {detail['ctx']['max_length']}"
    if kind == "missing":
        return f"{field} is missing; give it"
    if kind == "extra_forbidden":
        return _describe_unknown(str(place[-1]), place, title)
    if kind == "string_pattern_mismatch":
        return f"{field} {given} {name_rule}"
    if place[:1] == ("inputs",) and place[-1] == "[key]":
        return f"the input's name {given} {name_rule}"
    if "parameters" in place[:-1] or place[-1:] == ("default",):
        return f"{field} is {given}, which JSON does not know; write it as a text, a number, a list or a table"
    message = complaint_of(detail).replace("an object", "a table")
    message = (
        message if message.startswith(("must", "is ", "has ")) else f"must be {message}"
    )
    return f"{field} {message}, not {given}"


def _describe_unknown(name: str, place: Place, title: str) -> str:
    owner = (
        {"phases": "Phase", "inputs": "Input"}.get(str(place[0]), title)
        if len(place) > 1
        else title
    )
    models: dict[str, type[BaseModel]] = {"Phase": Phase, "Input": Input}
    fields = list(models.get(owner, Pipeline).model_fields)
    synonym = _SYNONYMS.get(name)
    near = (
        f"; did you mean {synonym!r}?" if synonym in fields else nearest(name, fields)
    )
    return (
        f"{name!r} is not known here{near or f'; known are {quote_names(fields, 20)}'}"
    )
