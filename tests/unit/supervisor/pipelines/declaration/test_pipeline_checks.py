"""Whether a pipeline can run as declared, and what its inputs are."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.inputs import (
    fill_defaults,
    parse_inputs,
    problems_in_inputs,
)
from tasklore.supervisor.pipelines.declaration.problems import Flaw
from tests.unit.supervisor.pipelines.fake_system import a_phase


def of(*phases: Phase, **fields: Any) -> list[Flaw]:
    return problems_of(Pipeline(**{"name": "x", "phases": phases, **fields}))


ANALYSIS = a_phase("analysis", writes=("results", "dependencyMap"))
MAYBE = a_phase("maybe", when="true")

#: Phases of which the last has one problem, its place, and words of it.
BROKEN_PHASES: list[tuple[tuple[Phase, ...], tuple[str | int, ...], str]] = [
    ((ANALYSIS, ANALYSIS), ("name",), "another phase is called 'analysis'; rename one"),
    (
        (ANALYSIS, a_phase(after=("analysis", "analisys"))),
        ("after", 1),
        "'analisys'; did you mean 'analysis'?",
    ),
    ((a_phase(after=("p",)),), ("after", 0), "runs after itself"),
    (
        (a_phase(corrects="zzz"),),
        ("corrects",),
        "there is no phase 'zzz'; there are 'p'",
    ),
    ((a_phase(corrects="p"),), ("corrects",), "corrects itself"),
    (
        (ANALYSIS, a_phase("b", corrects="analysis"), a_phase(corrects="analysis")),
        ("corrects",),
        "correct 'b' instead",
    ),
    (
        (ANALYSIS, a_phase(reads=("analisys:results",))),
        ("reads", 0),
        "no phase 'analisys'; did you mean 'analysis'?",
    ),
    (
        (ANALYSIS, a_phase(parameters={"x": {"y": ["${analysis:dependencymap.a}"]}})),
        ("parameters", "x"),
        "but 'analysis' writes 'results', 'dependencyMap'; did you mean 'dependencyMap'?",
    ),
    (
        (ANALYSIS, a_phase(reads=("analysis:zzz?",))),
        ("reads", 0),
        "add 'zzz' to its writes",
    ),
    ((a_phase(reads=("p:results",)),), ("reads", 0), "what it writes itself"),
    (
        (a_phase(when="${input.deep}"),),
        ("when",),
        "there is no input 'deep'; declared are nothing",
    ),
    (
        (a_phase(parameters={"x": "${analysis:results"}),),
        ("parameters", "x"),
        "not closed",
    ),
    ((a_phase(when="1 +"),), ("when",), "'+' means nothing at character 3"),
    (
        (a_phase(parameters={"rules": "${standards}"}),),
        ("parameters", "rules"),
        'such as standards = ["docs"]',
    ),
    ((a_phase(design=("a", " ")),), ("design",), "empty tag"),
    (
        (MAYBE, a_phase(reads=("maybe:results",))),
        ("reads", 0),
        "write 'maybe:results?'",
    ),
    (
        (
            MAYBE,
            a_phase("two", corrects="maybe", when="false"),
            a_phase(reads=("maybe:results",)),
        ),
        ("reads", 0),
        "'maybe' may be left out by its `when`",
    ),
    (
        (
            a_phase("draft"),
            a_phase("better", corrects="draft"),
            a_phase(reads=("draft:nothing",)),
        ),
        ("reads", 0),
        "'draft' writes",
    ),
    ((a_phase(writes=("a", "b", "a")),), ("writes", 2), "writes 'a' twice"),
    (
        (a_phase(reads_files=("*.txt",)),),
        ("reads_files",),
        'write root = "${input.folder}"',
    ),
    (
        (a_phase(timeout=timedelta(days=8)),),
        ("timeout",),
        "timeout is 8 days, more than 7 days",
    ),
    (
        (a_phase(parameters={"x": [{"y": float("nan")}]}),),
        ("parameters", "x"),
        "nan or inf",
    ),
]


@pytest.mark.parametrize(("phases", "place", "words"), BROKEN_PHASES)
def test_a_broken_phase_is_one_problem_with_place_and_cure(
    phases: tuple[Phase, ...], place: tuple[str | int, ...], words: str
) -> None:
    (problem,) = of(*phases)
    assert problem.place == ("phases", len(phases) - 1, *place)
    assert words in problem.text


def test_a_correction_that_writes_too_little_is_reported() -> None:
    first = a_phase("one", writes=("results", "files"))
    (problem,) = of(
        first, a_phase("two", corrects="one"), a_phase(reads=("one:files",))
    )
    assert problem.place == ("phases", 1, "writes")
    assert "does not write 'files', which 'p' reads; add it to `writes`" in problem.text


@pytest.mark.parametrize(
    ("glob", "words"),
    [
        ("/etc/*", "must be relative to the pipeline's root"),
        ("C:/x", "relative"),
        ("../x/*", "must not lead out"),
        ("src/", "write 'src/**'"),
        ("a\\b", "write 'a/b'"),
        ("", "is empty"),
        ("a\0b", "NUL"),
        ("*" * 1001, "has 1,001 characters, at most 1,000"),
        ("*/" * 50 + "a", "has 51 steps, at most 50"),
    ],
)
def test_an_invalid_pattern_of_files_is_refused(glob: str, words: str) -> None:
    (problem,) = of(a_phase(reads_files=("ok/**", glob)), root="/x")
    assert problem.place == ("phases", 0, "reads_files", 1)
    assert words in problem.text


def test_more_than_a_thousand_patterns_are_refused() -> None:
    many = [
        a_phase(name, reads_files=("a",) * number)
        for name, number in (("a", 500), ("b", 500), ("c", 1))
    ]
    (problem,) = of(*many, root="/x")
    assert problem.place == ("phases",)
    assert "1,001 patterns, at most 1,000" in problem.text


@pytest.mark.parametrize(
    ("fields", "place", "words"),
    [
        (
            {"result": "p:total"},
            ("result",),
            "result is 'p:total', but 'p' writes 'results'",
        ),
        ({"result": "p"}, ("result",), "naming rule"),
        ({"root": "${p:results}"}, ("root",), "only inputs"),
        ({"root": "${input.x}"}, ("root",), "no input 'x'"),
        ({"root": "${input.x"}, ("root",), "not closed"),
        (
            {"inputs": {"n": {"type": "number", "default": True}}},
            ("inputs", "n", "default"),
            "must be a number",
        ),
    ],
)
def test_a_broken_field_of_the_pipeline_is_one_problem(
    fields: dict[str, Any], place: tuple[str | int, ...], words: str
) -> None:
    (problem,) = of(a_phase(), **fields)
    assert problem.place == place
    assert words in problem.text


def test_a_cycle_is_one_problem() -> None:
    (problem,) = of(
        a_phase("s"), a_phase("a", after=("b",)), a_phase("b", reads=("a:results",))
    )
    assert problem.place == ("phases", 1)
    assert "a -> b -> a ('a' runs after 'b', 'b' reads 'a:results')" in problem.text


def test_all_problems_are_reported_at_once() -> None:
    problems = of(
        a_phase("maybe", when="true"),
        a_phase(
            "b",
            reads=("maybe:results", "x:results", "b:results"),
            corrects="b",
            after=("b",),
        ),
        a_phase("b", parameters={"x": "${maybe:results"}),
    )
    assert ("phases", 1, "reads", 0) in [problem.place for problem in problems]
    assert len(problems) == 7


def test_a_valid_pipeline_has_no_problem() -> None:
    phases = (
        a_phase(
            "query",
            reads_files=("**/*.py",),
            parameters={"in": "${input.folder}", "price": "$${input.none}"},
        ),
        a_phase("maybe", when="${query:results.deep} and ${input.n} > 1"),
        a_phase("one", reads=("query:file:src/a.py",), writes=("results", "files")),
        a_phase(
            "review", reads=("one:results", "maybe:results?"), standards=("style",)
        ),
        a_phase(
            "two", corrects="one", when="${review:results.bad}", writes=("results",)
        ),
        a_phase(
            "last",
            parameters={
                "r": "${standards}",
                "x": "${one:files?}",
                "y": "${one:results}",
            },
            standards=("a",),
        ),
        a_phase("quiet", writes=(), timeout="7d", after=("last",)),
    )
    inputs = {
        "folder": Input(type="text"),
        "n": Input(type="number", default=1),
        "x": Input(default=None),
    }
    assert (
        of(*phases, inputs=inputs, root="${input.folder}/src", result="maybe:results")
        == []
    )


def test_a_phase_that_is_always_corrected_may_be_skipped() -> None:
    one = a_phase("one", when="${input.x}")
    review = a_phase("review", reads=("one:results?",))
    two = a_phase("two", corrects="one", reads=("review:results", "one:results"))
    qa = a_phase("qa", reads=("one:results",))
    problems = of(one, review, two, qa, inputs={"x": Input(type="flag")})
    assert [problem.place for problem in problems] == [("phases", 2, "reads", 1)]


INPUTS = Pipeline(
    name="x",
    phases=(a_phase(),),
    inputs={
        "folder": Input(type="text", description="where to look"),
        "n": Input(type="number", default=3),
        "deep": Input(type="flag", default=False),
        "names": Input(type="list", default=None),
        "more": Input(type="object", default={"a": 1}),
        "free": Input(default=None),
    },
)


def test_inputs_are_checked_by_name_and_type() -> None:
    problems = problems_in_inputs(
        INPUTS, {"foldr": "x", "n": True, "deep": 1, "names": "a", "more": None}
    )
    assert {problem.place: problem.text for problem in problems} == {
        ("inputs", "foldr"): "there is no input 'foldr'; did you mean 'folder'?",
        (
            "inputs",
            "folder",
        ): "input 'folder' is missing (where to look); give it, such as --input folder=...",
        ("inputs", "n"): "input 'n' must be a number, not true or false",
        ("inputs", "deep"): "input 'deep' must be true or false, not a number",
        ("inputs", "names"): "input 'names' must be a list, not a text",
        ("inputs", "more"): "input 'more' must be an object, not null",
    }
    given = {
        "folder": "",
        "n": 0.5,
        "deep": True,
        "names": None,
        "more": {},
        "free": [None],
    }
    assert problems_in_inputs(INPUTS, given) == []


def test_missing_inputs_have_their_defaults() -> None:
    assert fill_defaults(INPUTS, {"folder": "src", "names": None, "n": 0}) == {
        "folder": "src",
        "n": 0,
        "deep": False,
        "names": None,
        "more": {"a": 1},
        "free": None,
    }


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("folder", "12", "12"),
        ("n", "12", 12),
        ("deep", "true", True),
        ("deep", "No", False),
        ("names", '["a", 1]', ["a", 1]),
        ("more", '{"a": null}', {"a": None}),
        ("free", "12", 12),
        ("free", "src/x", "src/x"),
        ("free", "NaN", "NaN"),
    ],
)
def test_inputs_are_parsed_by_their_type(
    name: str, text: str, value: JsonValue
) -> None:
    assert parse_inputs(INPUTS, {name: text}) == {name: value}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("n", "many", "input 'n' must be a number written as JSON, not 'many'"),
        ("n", "NaN", "JSON has no such number"),
        ("deep", "perhaps", "true or false, not 'perhaps'"),
        ("names", "a,b", "must be a list written as JSON"),
        ("more", "[1]", "must be an object, not a list"),
        ("foldr", "x", "did you mean 'folder'"),
    ],
)
def test_an_input_of_another_type_is_refused(name: str, text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_inputs(INPUTS, {name: text})
    assert words in str(caught.value)


def test_a_result_of_an_optional_phase_is_refused() -> None:
    (problem,) = of(a_phase("one", optional=True), result="one:results")
    assert problem.place == ("result",)
    assert "name another phase" in problem.text
    assert of(a_phase("one"), a_phase("two", optional=True), result="one:results") == []
