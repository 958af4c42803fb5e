"""Whether a pipeline can run as it is declared, and what its inputs are."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from contracts.errors import InvalidInput
from contracts.pipelines import Input, Phase, Pipeline
from supervisor.pipelines.declaration.checks import problems_of
from supervisor.pipelines.declaration.inputs import fill_defaults, parse_inputs, problems_in_inputs
from supervisor.pipelines.declaration.problems import Problem


def a_phase(name: str = "p", **fields: Any) -> Phase:
    """Return a phase of which only *fields* matter."""
    return Phase(**{"name": name, "agent": "A", "task": "t", **fields})


def of(*phases: Phase, **fields: Any) -> list[Problem]:
    """Return what is wrong with a pipeline of *phases*."""
    return problems_of(Pipeline(**{"name": "x", "phases": phases, **fields}))


ANALYSIS = a_phase("analysis", writes=("results", "dependencyMap"))

BROKEN: list[tuple[str, tuple[Phase, ...], dict[str, Any], tuple[str | int, ...], list[str]]] = [
    ("two of one name", (ANALYSIS, ANALYSIS), {}, ("phases", 1, "name"), ["'analysis'", "rename"]),
    (
        "an unknown phase before",
        (ANALYSIS, a_phase(after=("analysis", "analisys"))),
        {},
        ("phases", 1, "after", 1),
        ["runs after 'analisys'", "did you mean 'analysis'?"],
    ),
    ("itself before", (a_phase(after=("p",)),), {}, ("phases", 0, "after", 0), ["runs after itself"]),
    ("corrects nobody", (a_phase(corrects="zzz"),), {}, ("phases", 0, "corrects"), ["no phase 'zzz'", "'p'"]),
    ("corrects itself", (a_phase(corrects="p"),), {}, ("phases", 0, "corrects"), ["corrects itself"]),
    (
        "corrected twice",
        (ANALYSIS, a_phase("b", corrects="analysis"), a_phase("c", corrects="analysis")),
        {},
        ("phases", 2, "corrects"),
        ["'b' corrects it already", "correct 'b' instead"],
    ),
    (
        "reads of no phase",
        (ANALYSIS, a_phase(reads=("analisys:results",))),
        {},
        ("phases", 1, "reads", 0),
        ["reads 'analisys:results'", "there is no phase 'analisys'; did you mean 'analysis'?"],
    ),
    (
        "reads what is not written",
        (ANALYSIS, a_phase(parameters={"x": {"y": ["${analysis:dependencymap.a}"]}})),
        {},
        ("phases", 1, "parameters", "x"),
        ["parameters.x reads '${analysis:dependencymap.a}'", "did you mean 'dependencyMap'?"],
    ),
    (
        "reads what nobody thought of",
        (ANALYSIS, a_phase(reads=("analysis:zzz?",))),
        {},
        ("phases", 1, "reads", 0),
        ["'analysis' writes 'results', 'dependencyMap'; add 'zzz' to its writes"],
    ),
    (
        "a key that is none",
        (ANALYSIS, a_phase(reads=("analysis",))),
        {},
        ("phases", 1, "reads", 0),
        ["breaks the naming rule", "'analysis:dependencyMap'"],
    ),
    ("reads itself", (a_phase(reads=("p:results",)),), {}, ("phases", 0, "reads", 0), ["what it writes itself"]),
    (
        "an unknown input",
        (a_phase(parameters={"x": "in ${input.foldr}"}),),
        {"inputs": {"folder": {}}},
        ("phases", 0, "parameters", "x"),
        ["there is no input 'foldr'; did you mean 'folder'?"],
    ),
    (
        "an unknown input in the condition",
        (a_phase(when="${input.deep}"),),
        {},
        ("phases", 0, "when"),
        ["when reads '${input.deep}'", "declared are nothing"],
    ),
    (
        "a reference that is not closed",
        (a_phase(parameters={"x": "${analysis:results"}),),
        {},
        ("phases", 0, "parameters", "x"),
        ["not closed"],
    ),
    ("a bad condition", (a_phase(when="1 +"),), {}, ("phases", 0, "when"), ["'+' means nothing at character 3"]),
    (
        "standards of no tag",
        (a_phase(parameters={"rules": "${standards}"}),),
        {},
        ("phases", 0, "parameters", "rules"),
        ["no tags of standards", 'standards = ["docs"]'],
    ),
    ("an empty tag", (a_phase(design=("a", " ")),), {}, ("phases", 0, "design"), ["empty tag"]),
    (
        "left out and needed",
        (a_phase("maybe", when="true"), a_phase(parameters={"x": "${maybe:results.a}"})),
        {},
        ("phases", 1, "parameters", "x"),
        ["'maybe' may be left out by its `when`", "write '${maybe:results.a?}'"],
    ),
    (
        "left out and read",
        (a_phase("maybe", when="true"), a_phase(reads=("maybe:results",))),
        {},
        ("phases", 1, "reads", 0),
        ["write 'maybe:results?'"],
    ),
    (
        "left out and not always corrected",
        (
            a_phase("one", when="true"),
            a_phase("two", corrects="one", when="false"),
            a_phase(reads=("one:results",)),
        ),
        {},
        ("phases", 2, "reads", 0),
        ["'one' may be left out"],
    ),
    (
        "corrected by less",
        (
            a_phase("one", writes=("results", "files")),
            a_phase("two", corrects="one"),
            a_phase(reads=("one:files",)),
        ),
        {},
        ("phases", 1, "writes"),
        ["corrects 'one' but does not write 'files', which 'p' reads", "add it to `writes`"],
    ),
    ("writes twice", (a_phase(writes=("a", "b", "a")),), {}, ("phases", 0, "writes", 2), ["writes 'a' twice"]),
    (
        "read with another's mistake",
        (
            a_phase("draft"),
            a_phase("better", corrects="draft"),
            a_phase(reads=("draft:nothing",)),
        ),
        {},
        ("phases", 2, "reads", 0),
        ["'draft' writes 'results'"],
    ),
    (
        "files below nothing",
        (a_phase(reads_files=("*.txt",)),),
        {},
        ("phases", 0, "reads_files"),
        ["reads_files needs a `root`", 'root = "${input.folder}"'],
    ),
    (
        "an absolute pattern",
        (a_phase(reads_files=("ok/**", "/etc/*")),),
        {"root": "/x"},
        ("phases", 0, "reads_files", 1),
        ["'/etc/*' must be relative to the pipeline's root"],
    ),
    (
        "a pattern that leads out",
        (a_phase(reads_files=("../x/*",)),),
        {"root": "/x"},
        ("phases", 0, "reads_files", 0),
        ["must not lead out"],
    ),
    (
        "a folder",
        (a_phase(reads_files=("src/",)),),
        {"root": "/x"},
        ("phases", 0, "reads_files", 0),
        ["write 'src/**'"],
    ),
    (
        "an empty step",
        (a_phase(reads_files=("./a//b",)),),
        {"root": "/x"},
        ("phases", 0, "reads_files", 0),
        ["write 'a/b'"],
    ),
    (
        "backslashes",
        (a_phase(reads_files=("a\\b",)),),
        {"root": "/x"},
        ("phases", 0, "reads_files", 0),
        ["write 'a/b'"],
    ),
    (
        "a pattern that is too long",
        (a_phase(reads_files=("*" * 1001,)),),
        {"root": "/x"},
        ("phases", 0, "reads_files", 0),
        ["has 1,001 characters, at most 1,000"],
    ),
    (
        "a pattern of too many steps",
        (a_phase(reads_files=("*/" * 50 + "a",)),),
        {"root": "/x"},
        ("phases", 0, "reads_files", 0),
        ["has 51 steps, at most 50"],
    ),
    (
        "too many patterns",
        (
            a_phase("a", reads_files=("a",) * 500),
            a_phase("b", reads_files=("a",) * 500),
            a_phase("c", reads_files=("a",)),
        ),
        {"root": "/x"},
        ("phases",),
        ["reads_files: all phases together have 1,001 patterns, at most 1,000"],
    ),
    ("no pattern", (a_phase(reads_files=("",)),), {"root": "/x"}, ("phases", 0, "reads_files", 0), ["is empty"]),
    ("a home", (a_phase(reads_files=("~/x",)),), {"root": "/x"}, ("phases", 0, "reads_files", 0), ["relative"]),
    ("a drive", (a_phase(reads_files=("C:/x",)),), {"root": "/x"}, ("phases", 0, "reads_files", 0), ["relative"]),
    (
        "an endless timeout",
        (a_phase(timeout=timedelta(days=8)),),
        {},
        ("phases", 0, "timeout"),
        ["timeout is 8 days", "more than 7 days"],
    ),
    (
        "a number that is none",
        (a_phase(parameters={"x": [{"y": float("nan")}]}),),
        {},
        ("phases", 0, "parameters", "x"),
        ["nan or inf"],
    ),
    ("no such result", (a_phase(),), {"result": "p:total"}, ("result",), ["result is 'p:total'", "writes 'results'"]),
    ("a result of nobody", (a_phase(),), {"result": "q:results"}, ("result",), ["there is no phase 'q'"]),
    ("a result that is no key", (a_phase(),), {"result": "p"}, ("result",), ["naming rule"]),
    ("a root of an entry", (a_phase(),), {"root": "${p:results}"}, ("root",), ["only inputs"]),
    ("a root of no input", (a_phase(),), {"root": "${input.x}"}, ("root",), ["no input 'x'"]),
    ("a root that is broken", (a_phase(),), {"root": "${input.x"}, ("root",), ["not closed"]),
    (
        "a default of another type",
        (a_phase(),),
        {"inputs": {"n": {"type": "number", "default": True}}},
        ("inputs", "n", "default"),
        ["input 'n': its default must be a number, not true or false"],
    ),
    (
        "a default that is no number",
        (a_phase(),),
        {"inputs": {"n": {"default": [float("inf")]}}},
        ("inputs", "n", "default"),
        ["nan or inf"],
    ),
]


@pytest.mark.parametrize(
    ("phases", "fields", "place", "words"),
    [broken[1:] for broken in BROKEN],
    ids=[broken[0] for broken in BROKEN],
)
def test_what_cannot_run_is_told_with_its_place_and_its_cure(
    phases: tuple[Phase, ...], fields: dict[str, Any], place: tuple[str | int, ...], words: list[str]
) -> None:
    """One problem, and no other that follows from it."""
    problems = of(*phases, **fields)

    assert [problem.place for problem in problems] == [place]
    assert [word for word in words if word not in problems[0].text] == []


def test_a_circle_is_one_problem_at_its_first_phase() -> None:
    """It names all of its steps."""
    (problem,) = of(a_phase("s"), a_phase("a", after=("b",)), a_phase("b", reads=("a:results",)))

    assert problem.place == ("phases", 1)
    assert "a -> b -> a ('a' runs after 'b', 'b' reads 'a:results')" in problem.text


def test_everything_wrong_is_told_at_once() -> None:
    """Also when phases go in a circle."""
    problems = of(
        a_phase("a", after=("b", "x"), when="("),
        a_phase("b", after=("a",), reads=("a:no", "bad"), writes=("q", "q")),
        result="c:d",
    )

    assert [problem.place for problem in problems] == [
        ("result",),
        ("phases", 0, "after", 1),
        ("phases", 0, "when"),
        ("phases", 1, "reads", 0),
        ("phases", 1, "writes", 1),
        ("phases", 1, "reads", 1),
        ("phases", 0),
    ]


def test_what_may_be_left_out_is_told_beside_other_problems() -> None:
    """None waits for the others to be mended."""
    problems = of(
        a_phase("maybe", when="true"),
        a_phase("b", reads=("maybe:results", "x:results", "b:results"), corrects="b", after=("b",)),
        a_phase("b", parameters={"x": "${maybe:results"}),
    )

    assert ("phases", 1, "reads", 0) in [problem.place for problem in problems]
    assert len(problems) == 7


def test_what_can_run_has_no_problem() -> None:
    """Optional readings, corrections, identifiers, standards, a root of an input, a result that may not be."""
    phases = (
        a_phase("query", reads_files=("**/*.py",), parameters={"in": "${input.folder}", "price": "$${input.none}"}),
        a_phase("maybe", when="${query:results.deep} and ${input.n} > 1"),
        a_phase("one", reads=("query:file:src/a.py",), writes=("results", "files")),
        a_phase("review", reads=("one:results", "maybe:results?"), standards=("style",)),
        a_phase("two", corrects="one", when="${review:results.bad}", writes=("results",)),
        a_phase(
            "last", parameters={"r": "${standards}", "x": "${one:files?}", "y": "${one:results}"}, standards=("a",)
        ),
        a_phase("quiet", writes=(), timeout="7d", after=("last",)),
    )
    inputs = {"folder": Input(type="text"), "n": Input(type="number", default=1), "x": Input(default=None)}

    assert of(*phases, inputs=inputs, root="${input.folder}/src", result="maybe:results") == []


def test_a_phase_that_is_always_corrected_may_be_left_out() -> None:
    """Whoever reads it finds the correction; the correction itself and what it rests on do not."""
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


def test_inputs_are_those_declared_and_of_their_types() -> None:
    """All problems at once, each with its input."""
    problems = problems_in_inputs(INPUTS, {"foldr": "x", "n": True, "deep": 1, "names": "a", "more": None})

    assert {problem.place: problem.text for problem in problems} == {
        ("inputs", "foldr"): "there is no input 'foldr'; did you mean 'folder'?",
        ("inputs", "folder"): "input 'folder' is missing (where to look); give it, such as --input folder=...",
        ("inputs", "n"): "input 'n' must be a number, not true or false",
        ("inputs", "deep"): "input 'deep' must be true or false, not a number",
        ("inputs", "names"): "input 'names' must be a list, not a text",
        ("inputs", "more"): "input 'more' must be an object, not null",
    }
    given = {"folder": "", "n": 0.5, "deep": True, "names": None, "more": {}, "free": [None]}
    assert problems_in_inputs(INPUTS, given) == []


def test_inputs_that_are_not_given_have_their_defaults() -> None:
    """What is given, null too, stays."""
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
        ("folder", "", ""),
        ("n", "12", 12),
        ("n", "-1.5", -1.5),
        ("deep", "true", True),
        ("deep", "No", False),
        ("names", '["a", 1]', ["a", 1]),
        ("more", '{"a": null}', {"a": None}),
        ("free", "12", 12),
        ("free", "true", True),
        ("free", "src/x", "src/x"),
        ("free", "NaN", "NaN"),
    ],
)
def test_a_command_line_says_inputs_as_text(name: str, text: str, value: JsonValue) -> None:
    """Read as the declared type; where that is open, as JSON if it is some."""
    assert parse_inputs(INPUTS, {name: text}) == {name: value}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("n", "many", "input 'n' must be a number written as JSON, not 'many'"),
        ("n", "NaN", "NaN is no number"),
        ("n", '"1"', "must be a number, not a text"),
        ("deep", "perhaps", "true or false, not 'perhaps'"),
        ("names", "a,b", "must be a list written as JSON"),
        ("more", "a=b", "must be an object written as JSON"),
        ("more", "[1]", "must be an object, not a list"),
        ("foldr", "x", "did you mean 'folder'"),
    ],
)
def test_a_text_that_is_not_of_the_type_is_refused(name: str, text: str, words: str) -> None:
    """By the name of the input."""
    with pytest.raises(InvalidInput) as caught:
        parse_inputs(INPUTS, {name: text})

    assert words in str(caught.value)
