"""Wrong values by the thousand are reported in few words, in linear time."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from tasklore.contracts.errors import (
    InvalidParameters,
    InvalidPipeline,
    MessageTooLarge,
)
from tasklore.contracts.messages import PipelineRequest
from tasklore.contracts.parameters.body_sizes import MOST_VALUES, demand_few_values
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.pipelines import MOST_NAMES, MOST_PHASES, Phase, Pipeline
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.declarations import pipeline_from
from tasklore.supervisor.pipelines.declaration.graph import MOST_MENTIONS
from tasklore.supervisor.pipelines.declaration.inputs import problems_in_inputs
from tasklore.supervisor.pipelines.declaration.problems import MOST_PROBLEMS

MANY = 20_000


class Inner(BaseModel):
    """A model inside a list."""

    number: int


class Wide(Parameters):
    """Lists of everything."""

    texts: list[str] = Field(default_factory=list)
    numbers: list[int] = Field(default_factory=list)
    models: list[Inner] = Field(default_factory=list)


@pytest.mark.parametrize(
    "body", [b"1," * MOST_VALUES, b'["a",' * MOST_VALUES, b'{"a":1},' * MOST_VALUES]
)
def test_a_body_of_too_many_values_is_too_large(body: bytes) -> None:
    """Whatever they are."""
    with pytest.raises(MessageTooLarge, match="send fewer"):
        demand_few_values(body)


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"1," * (MOST_VALUES - 1) + b"1]",
        json.dumps({"text": ',"\\,' * MOST_VALUES}).encode(),
        b'"' + b'\\",' * MOST_VALUES,
        b'{"a": "' + b"," * MOST_VALUES + b'\\"',
    ],
)
def test_what_is_in_a_text_counts_for_nothing(body: bytes) -> None:
    """Also in one that nothing closes."""
    demand_few_values(body)


@pytest.mark.parametrize(
    ("field", "items"), [("keys", [1] * MANY), ("design", [{}] * MANY)]
)
def test_a_message_tells_of_the_first_wrong_item_of_a_list(
    field: str, items: list[Any]
) -> None:
    """To tell of each of 400,000 took 5 s and 600 MB."""
    with pytest.raises(ValidationError) as refused:
        PipelineRequest.model_validate_json(json.dumps({"action": "run", field: items}))
    assert refused.value.error_count() == 1


@pytest.mark.parametrize("field", ["texts", "models"])
def test_parameters_tell_of_the_first_wrong_item_of_a_list(field: str) -> None:
    """Whatever the list holds."""
    with pytest.raises(InvalidParameters) as refused:
        Wide.read({field: [{}] * MANY})
    assert str(refused.value).startswith(f"{field}.0")
    assert len(str(refused.value)) < 200


def test_a_flood_of_unknown_parameters_is_told_in_one_sentence() -> None:
    with pytest.raises(InvalidParameters) as refused:
        Wide.read({f"p{number}": 1 for number in range(MANY)})
    assert (
        str(refused.value)
        == f"there are {MANY:,} parameters; known are texts, numbers, models"
    )


def _phase(name: str, **fields: Any) -> Phase:
    return Phase(**{"name": name, "agent": "A", "task": "t", **fields})


def test_a_list_of_a_phase_has_so_many_names() -> None:
    """Of 100,000 names to write, each was compared with all before: 100 s in which the supervisor hardly answered."""
    declared = {"name": "x", "phases": [{"name": "p", "agent": "A", "task": "t"}]}
    for field in ("writes", "after", "reads", "reads_files", "standards", "design"):
        declared["phases"] = [
            {"name": "p", "agent": "A", "task": "t", field: ["w"] * (MOST_NAMES + 1)}
        ]
        with pytest.raises(
            InvalidPipeline,
            match=f"{field} has {MOST_NAMES + 1} items; keep to {MOST_NAMES}",
        ):
            pipeline_from(declared)


def test_phases_beyond_the_most_are_not_looked_at() -> None:
    with pytest.raises(InvalidPipeline) as refused:
        pipeline_from({"name": "x", "phases": [1] * MANY})
    assert list(refused.value.problems) == [
        f"phases has {MANY:,} items; keep to {MOST_PHASES}"
    ]


def test_so_many_problems_of_a_pipeline_are_looked_for() -> None:
    """Each unknown name is compared with all that are known."""
    phases = [
        _phase(f"p{number}", after=[f"q{number}{other}" for other in range(50)])
        for number in range(100)
    ]
    assert len(problems_of(Pipeline(name="x", phases=phases))) == MOST_PROBLEMS
    pipeline = Pipeline(name="x", phases=phases[:1])
    assert (
        len(problems_in_inputs(pipeline, {f"i{number}": 1 for number in range(1_000)}))
        == MOST_PROBLEMS
    )


def test_a_phase_refers_to_so_many_things() -> None:
    """A reference takes thirteen bytes, and is looked up several times."""
    text = "".join(f"${{a:results.p{number}}}" for number in range(2 * MOST_MENTIONS))
    found = problems_of(
        Pipeline(name="x", phases=[_phase("a"), _phase("b", parameters={"text": text})])
    )
    assert [problem.place for problem in found] == [("phases", 1, "parameters", "text")]
    assert f"more than {MOST_MENTIONS:,}" in found[0].text
