"""Whether agents can do what a pipeline asks: tasks, parameters, results and paths in them."""

from datetime import date
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel, JsonValue

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.contracts.quantities.amounts import Amount, Money
from tasklore.supervisor.pipelines.declaration.cards import problems_with
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.problems import Flaw
from tasklore.supervisor.pipelines.declaration.schemas import (
    ANY,
    PhaseSchema,
    mismatches,
)
from tasklore.workers.agent import Agent
from tasklore.workers.card import card_of

agent = Agent("ReaderAgent")


class Place(BaseModel):
    """Something found."""

    path: str
    line: int | None = None


class Found(BaseModel):
    """What a task returns."""

    places: list[Place]
    by_name: dict[str, Place]
    pair: tuple[int, str]
    total: Amount
    text: str
    ok: bool
    score: float | None = None
    anything: Any = None


class Asked(Parameters):
    """Everything that parameters can be."""

    text: str = Field(default="", min_length=2, max_length=5, aliases=("words",))
    count: int = Field(default=1, ge=1, le=9, aliases=("n", "number"))
    share: float = Field(default=0.5, gt=0, lt=1)
    limit: Amount = Field(default="1", unit="USD")
    price: Decimal = Decimal(1)
    flag: bool = False
    day: date = date(2024, 1, 1)
    kind: Literal["deep", "full"] = "deep"
    maybe: int | None = None
    names: list[str] = Field(default=())
    numbers: list[int] = Field(default=())
    places: dict[str, int] = Field(default={})
    place: Place | None = None
    mixed: str | list[str] = "x"
    either: int | str = 1
    couple: tuple[int, str] | None = None
    free: Any = None


class Needy(Parameters):
    """What cannot do without."""

    path: str = Field(aliases=("file",))


@agent.task
def find(asked: Asked) -> Found:
    """Find."""
    raise NotImplementedError


@agent.task
def need(needy: Needy) -> list[int]:
    """Need."""
    raise NotImplementedError


CARDS = {agent.agent_id: card_of(agent)}


def a_phase(name: str, task: str = "find", **fields: Any) -> Phase:
    return Phase(**{"name": name, "agent": "ReaderAgent", "task": task, **fields})


def misfits_of(
    *phases: Phase, cards: dict[str, AgentCard] = CARDS, **fields: Any
) -> list[Flaw]:
    """Return the problems of *phases* with *cards*; by themselves they have none."""
    pipeline = Pipeline(**{"name": "x", "phases": phases, **fields})
    assert problems_of(pipeline) == []
    return problems_with(pipeline, cards)


def test_an_unknown_agent_or_task_is_reported_with_the_nearest() -> None:
    (near,) = misfits_of(a_phase("a", agent="ReadrAgent"))
    assert near.place == ("phases", 0, "agent")
    assert near.text.endswith(
        "is not known; did you mean 'ReaderAgent'? or start it with `tasklore worker`"
    )
    (far,) = misfits_of(a_phase("a", agent="Zzz"))
    assert "known are 'ReaderAgent'" in far.text
    (none,) = misfits_of(a_phase("a"), cards={})
    assert "no agent has reported yet" in none.text
    (task,) = misfits_of(a_phase("a", task="fnd"))
    assert task == Flaw(
        ("phases", 0, "task"),
        "task 'fnd' is not a task of 'ReaderAgent'; did you mean 'find'?",
    )


def test_parameters_are_checked_by_name_and_alias() -> None:
    problems = misfits_of(
        a_phase("a", parameters={"conut": 1, "n": 2, "words": "abc"}),
        a_phase("b", parameters={"n": 1, "count": 1}),
        a_phase("c", task="need", writes=()),
        a_phase("d", task="need", parameters={"file": "x"}),
    )
    assert [(problem.place, problem.text) for problem in problems] == [
        (
            ("phases", 0, "parameters", "conut"),
            "parameters.conut is not a parameter of 'find'; did you mean 'count'?",
        ),
        (
            ("phases", 1, "parameters", "count"),
            "parameters.count is the same parameter as 'n'; give it once",
        ),
        (
            ("phases", 2, "parameters"),
            "parameters.path is missing; task 'need' needs it",
        ),
    ]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("text", 5, "parameters.text must be a text, not 5"),
        (
            "words",
            "abcdef",
            'parameters.words is not right: "abcdef" is longer than 5 characters',
        ),
        ("count", 1.5, '1.5 is not of type "integer"'),
        ("count", 10, "10 is greater than the maximum of 9"),
        ("count", {"unit": "km"}, "must be a number, not "),
        ("share", 0, "0 is less than or equal to the minimum of 0"),
        ("kind", "flat", "must be one of 'deep', 'full', not 'flat'"),
        ("maybe", [1], "must be null or a number, not [1]"),
        ("names", "a", "must be a list, not 'a'"),
        ("names", ["a", 1], "parameters.names.1 must be a text, not 1"),
        ("places", {"a": [1]}, "parameters.places.a must be a number, not [1]"),
        ("mixed", 1, "must be a list or a text, not 1"),
    ],
)
def test_a_value_of_another_type_is_refused(
    name: str, value: JsonValue, words: str
) -> None:
    (problem,) = misfits_of(a_phase("a", parameters={name: value}))
    assert problem.place == ("phases", 0, "parameters", name)
    assert words in problem.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "abc"),
        ("text", "$${x"),
        ("count", "many"),
        ("count", 9.0),
        ("share", "0.5"),
        ("limit", "$5,000.00"),
        ("limit", {"value": 5, "unit": "USD"}),
        ("flag", "yes"),
        ("flag", 1),
        ("day", 1_700_000_000),
        ("kind", "full"),
        ("maybe", None),
        ("numbers", [1, "2", "three"]),
        ("place", {"path": "x", "and": "more"}),
        ("place", {"paht": 5}),
        ("either", True),
        ("couple", [True, "x"]),
        ("free", {"a": [None, True]}),
    ],
)
def test_a_value_that_a_task_can_read_is_accepted(name: str, value: JsonValue) -> None:
    assert misfits_of(a_phase("a", parameters={name: value})) == []


@pytest.mark.parametrize(
    ("name", "reference", "words"),
    [
        ("names", "${a:results}", "must be a list, and '${a:results}' is an object"),
        ("count", "${a:results}", "must be a number, and '${a:results}' is an object"),
        ("places", "${a:results.by_name.x.path}", "must be an object, and"),
        (
            "names",
            "all of ${a:places}",
            "must be a list, and 'all of ${a:places}' is a text",
        ),
        ("names", ["${a:results.score}"], "parameters.names.0 must be a text"),
        ("names", "${standards.0.text}", "is a text"),
        ("count", "${b:results}", "is a list"),
    ],
)
def test_an_entry_of_another_type_is_refused(
    name: str, reference: JsonValue, words: str
) -> None:
    problems = misfits_of(
        a_phase("a", writes=("results", "text", "ok", "places")),
        a_phase("b", task="need", parameters={"path": "x"}),
        a_phase("c", parameters={name: reference}, standards=("x",)),
        inputs={"n": {"type": "number"}, "deep": {"type": "flag"}},
    )
    assert [problem.place for problem in problems] == [
        ("phases", 2, "parameters", name)
    ]
    assert words in problems[0].text


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("names", "${a:places}"),
        ("names", "${a:results.anything.deep.down?}"),
        ("count", "${a:total}"),
        ("count", "${a:text}"),
        ("count", "${a:results.pair.0}"),
        ("text", "${a:results.by_name.x.path}"),
        ("maybe", "${a:results.score?}"),
        ("day", "${a:results.pair.0}"),
        ("free", "${a:results}"),
        ("names", "${a:text:src/a.py}"),
        ("count", "${a:results.by_name}"),
        ("names", "${standards.0.tags}"),
        ("count", "${b:results.0}"),
    ],
)
def test_an_entry_that_may_fit_is_accepted(name: str, reference: JsonValue) -> None:
    problems = misfits_of(
        a_phase("a", writes=("results", "text", "ok", "places", "total")),
        a_phase("b", task="need", parameters={"path": "x"}),
        a_phase("c", parameters={name: reference}, standards=("x",)),
        inputs={"free": {}},
    )
    assert problems == []


def test_a_path_that_an_entry_never_has_is_refused() -> None:
    problems = misfits_of(
        a_phase("a"),
        a_phase(
            "b",
            parameters={
                "free": "${a:results.plces.0}",
                "text": "x ${a:results.text.x}",
            },
        ),
        a_phase("c", when="${a:results.okay} and ${input.n.x} == 1"),
        inputs={"n": {"type": "number"}},
    )

    assert [(problem.place, problem.text) for problem in problems] == [
        (
            ("phases", 1, "parameters", "free"),
            "parameters.free reads '${a:results.plces.0}', but 'a:results' has no 'plces'; did you mean 'places'?",
        ),
        (
            ("phases", 1, "parameters", "text"),
            "parameters.text reads 'x ${a:results.text.x}', but 'a:results.text' is a text".replace(
                "'x $", "'$"
            ),
        ),
        (("phases", 2, "when"), problems[2].text),
        (("phases", 2, "when"), "when reads '${input.n.x}', but 'n' is a number"),
    ]
    assert "'a:results' has no 'okay'; did you mean 'ok'?" in problems[2].text


def test_a_property_that_a_result_lacks_is_refused_under_writes() -> None:
    problems = misfits_of(
        a_phase("a", writes=("results", "plces", "by_name")),
        a_phase(
            "b", task="need", parameters={"path": "x"}, writes=("results", "count")
        ),
    )
    assert [(problem.place, problem.text) for problem in problems] == [
        (
            ("phases", 0, "writes", 1),
            "writes 'plces', but the result of 'find' has no 'plces'; did you mean 'places'?",
        ),
        (
            ("phases", 1, "writes", 1),
            "writes 'count', but the result of 'need' is a list; write 'results', which is all of it",
        ),
    ]


def test_a_corrected_entry_may_have_either_type() -> None:
    first = a_phase("one", writes=("results",))
    second = a_phase(
        "two", task="need", corrects="one", parameters={"path": "x"}, after=("before",)
    )
    problems = misfits_of(
        first,
        a_phase("before", parameters={"names": "${one:results}"}),
        second,
        a_phase(
            "later",
            parameters={
                "names": "${one:results}",
                "place": "${one:results}",
                "flag": "${one:results}",
            },
        ),
    )
    assert [problem.place[1:] for problem in problems] == [
        (1, "parameters", "names"),
        (3, "parameters", "flag"),
    ]


FOREIGN: list[JsonValue] = [
    {},
    {"properties": "x"},
    {"properties": {"x": True}},
    {"properties": {"x": {"$ref": "http://elsewhere/x"}}},
    {"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}},
    {"properties": {"x": {"allOf": [{"type": "number"}, {"minimum": 3}]}}},
    {"properties": {"x": {"type": "text"}}},
    {"properties": {"x": {"enum": [{"a": 1}, "b"], "type": "object"}}},
    {"properties": {"x": {"anyOf": [{"type": "null"}], "properties": {"a": {}}}}},
    {"properties": {"y": {}}, "additionalProperties": True},
    {"properties": {"y": {}}, "patternProperties": {"x": {"type": "object"}}},
    {
        "$ref": "#/$defs/p",
        "$defs": {"p": {"properties": {"x": {"type": "object"}}, "required": ["y"]}},
    },
    {"properties": {"x": {"type": "object", "aliases": "y"}}, "required": [1]},
]


@pytest.mark.parametrize("schema", FOREIGN, ids=range(len(FOREIGN)))
def test_an_unusual_schema_refuses_nothing(schema: dict[str, JsonValue]) -> None:
    task = TaskCard(name="t", parameters=schema, result=schema)
    card = AgentCard(agent_id="F", tasks=(task,), digest="0")
    phases = (
        Phase(
            name="a",
            agent="F",
            task="t",
            parameters={"x": {"a": 1}},
            writes=("results", "x"),
        ),
        Phase(name="b", agent="F", task="t", parameters={"x": "${a:x}"}),
    )
    assert misfits_of(*phases, cards={"F": card}) == []


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"enum": [1, 2]}, 3, "one of 1, 2"),
        ({"const": "a"}, "b", "one of 'a'"),
        ({"type": ["string", "null"]}, 1, "null or a text"),
        (
            {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
            [1],
            ".0 must be a text",
        ),
        (False, 1, "must be nothing"),
    ],
)
def test_other_keywords_of_json_schema_are_checked(
    schema: JsonValue, value: JsonValue, words: str
) -> None:
    task = TaskCard(name="t", parameters={"properties": {"x": schema}})
    card = AgentCard(agent_id="F", tasks=(task,), digest="0")
    (problem,) = misfits_of(
        Phase(name="a", agent="F", task="t", parameters={"x": value}), cards={"F": card}
    )
    assert words in problem.text


def test_a_recursive_schema_is_followed_lazily() -> None:
    tree: JsonValue = {
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]}},
        "type": "object",
    }
    inner = PhaseSchema.of({"$ref": "#/$defs/T", "$defs": {"T": tree}})
    for _ in range(50):
        inner = inner.inside("next") or ANY
    assert inner.kinds() == {"object", "null"}
    assert inner.names() == ("next",)
    assert inner.inside("nxt") is None
    branches: JsonValue = [
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "array", "items": {"$ref": "#"}},
    ]
    deep: JsonValue = 1
    for _ in range(100):
        deep = [deep]
    assert (
        list(mismatches(deep, PhaseSchema.of({"anyOf": branches}), lambda _: None))
        == []
    )


class Priced(Parameters):
    """Money alone, in a list, and left out."""

    price: Money
    parts: tuple[Money, ...] = ()
    fee: Money | None = None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"price": 5}, ".price must be money with its currency, such as '120 EUR', not 5"),
        ({"price": "5"}, ".price must be money with its currency, such as '120 EUR', not '5'"),
        ({"price": "5 km"}, "not '5 km'"),
        ({"price": "80 kr"}, "not '80 kr'"),
        ({"price": "5 EUR", "parts": ["5 EUR", 7]}, ".parts.1 must be money"),
        ({"price": "5 EUR", "fee": 7}, ".fee must be money"),
        ({"price": "${input.count}"}, ".price must be money"),
        ({"price": "5 EUR"}, None),
        ({"price": "$5", "parts": [{"value": 5, "unit": "EUR"}], "fee": None}, None),
        ({"price": "${input.text}"}, None),
    ],
)  # fmt: skip
def test_a_pipeline_gives_money_with_its_currency(
    given: dict[str, Any], said: str | None
) -> None:
    """A number alone, also that of another phase, is found before the task runs."""
    target = PhaseSchema.of(Priced.schema_for_cards())
    kinds = {"count": "number", "text": "string"}
    found = list(
        mismatches(given, target, lambda one: PhaseSchema.of({"type": kinds[one.name]}))
    )
    assert (said is None and not found) or said in "; ".join(found)
