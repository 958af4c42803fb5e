"""Pipelines in TOML and Python files, and the lines of their problems."""

import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.errors import InvalidPipeline
from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.declarations import pipeline_from
from tasklore.supervisor.pipelines.declaration.files import (
    describe_problems,
    lines_of,
    read_pipeline,
    with_lines,
)

Write = Callable[[str, str], Path]

GOOD = """\
name = "health"
root = "${input.folder}"

[inputs.folder]
type = "text"

[[phase]]
name = "query"
agent = "ContextAgent"
task = "look"
parameters = { folder = "${input.folder}" }
timeout = "90s"

[[phase]]
name = "analysis"
agent = "ImportsAgent"
task = "map"
reads = ["query:results"]

  [phase.parameters]
  depth = 3
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write files of a user's into the working directory; whatever they load is unloaded afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return Path(name)

    yield put
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def problems_at(path: Path) -> list[str]:
    """Return the problems of the file at *path*, whether it declares no pipeline or cannot run."""
    try:
        source = read_pipeline(path)
    except InvalidPipeline as error:
        return list(error.problems)
    return describe_problems(problems_of(source.pipeline), source)


def test_a_toml_file_is_a_pipeline(write: Write) -> None:
    source = read_pipeline(write("health.toml", GOOD))

    assert source.pipeline == Pipeline(
        name="health",
        root="${input.folder}",
        inputs={"folder": Input(type="text")},
        phases=(
            Phase(
                name="query",
                agent="ContextAgent",
                task="look",
                parameters={"folder": "${input.folder}"},
                timeout=timedelta(seconds=90),
            ),
            Phase(
                name="analysis",
                agent="ImportsAgent",
                task="map",
                reads=("query:results",),
                parameters={"depth": 3},
            ),
        ),
    )
    assert source.label == "health.toml"
    assert problems_of(source.pipeline) == []


def test_every_place_of_a_file_has_its_line(write: Write) -> None:
    source = read_pipeline(write("health.toml", GOOD))

    for place, line in [
        ((), None),
        (("name",), 1),
        (("result",), None),
        (("inputs", "folder", "type"), 5),
        (("inputs", "folder", "default"), 4),
        (("phases", 0, "parameters", "folder"), 11),
        (("phases", 1), 14),
        (("phases", 1, "reads", 0), 18),
        (("phases", 1, "parameters", "depth"), 21),
        (("phases", 1, "when"), 14),
        (("phases", 2), None),
    ]:
        assert source.line_of(place) == line, place


def test_lines_of_toml_with_odd_texts_and_lists() -> None:
    text = r'''
# [not] = "a table"
"quoted = key" = 1
a.b . "c" = """
[[phase]]
name = "no" # ""
\""" still """
d = """"two quotes""""
list = [ # [
  "one ] , #", # comment, with ] and "
  ["x"], { x = [1, 2], y = "}" },
  """
  four
""" , 5,
]
date = 1979-05-27T07:32:00Z

[ t . "u.v" ] # [w]
k = 1
[[t.list]]
k = 1
[[t.list]]
[t.list.inner]
k = 3
'''

    assert lines_of(text) == {
        ("quoted = key",): 3,
        ("a",): 4,
        ("a", "b"): 4,
        ("a", "b", "c"): 4,
        ("d",): 8,
        ("list",): 9,
        ("date",): 16,
        ("t",): 18,
        ("t", "u.v"): 18,
        ("t", "u.v", "k"): 19,
        ("t", "list", 0): 20,
        ("t", "list", 0, "k"): 21,
        ("t", "list", 1): 22,
        ("t", "list", 1, "inner"): 23,
        ("t", "list", 1, "inner", "k"): 24,
    }


HEAD = 'name = "x"\n'
PHASE = '[[phase]]\nname = "a"\nagent = "A"\ntask = "t"\n'

BROKEN: list[tuple[str, int | None, str]] = [
    (HEAD + "root = \n", 2, "this is not valid TOML"),
    (HEAD + 'root = "', None, "at the end of the file"),
    (HEAD, None, "it has no phases; write each as a block [[phase]]"),
    (HEAD + PHASE.replace("phase", "phases"), 2, "as a block [[phase]]"),
    (HEAD + "phase = [5]\n", 2, "phase 1: it must be"),
    (PHASE, None, "name is missing"),
    (HEAD + PHASE.replace('agent = "A"\n', ""), 2, "phase a: agent is missing"),
    (
        HEAD + PHASE + 'timout = "5m"\n',
        6,
        "phase a: 'timout' is not known here; did you mean 'timeout'?",
    ),
    (HEAD + PHASE + 'depends_on = ["b"]\n', 6, "did you mean 'after'?"),
    (HEAD + "[inputs.x]\ndefalt = 1\n" + PHASE, 3, "did you mean 'default'?"),
    (HEAD + PHASE.replace('"a"', '"a b"'), 3, "name 'a b' must be 1 to 64 letters"),
    (HEAD + '[inputs."a.b"]\n' + PHASE, 2, "'a.b' must be 1 to 64 letters"),
    (HEAD + "[inputs.x]\ntype = 'txt'\n" + PHASE, 3, "type must be 'text'"),
    ("ttl = -5\n" + HEAD + PHASE, 1, "ttl must be a span of time above zero"),
    (HEAD + PHASE + "retries = 100\n", 6, "less than or equal to 99, not 100"),
    (HEAD + PHASE + 'reads = "a:b"\n', 6, "reads must be a list, not 'a:b'"),
    (HEAD + PHASE + 'reads = [\n"a:b",\n5,\n]\n', 6, "reads.1 must be a text, not 5"),
    (
        HEAD + PHASE + "parameters = { x = [{ y = 07:32:00 }] }\n",
        6,
        "which JSON does not know",
    ),
    (HEAD + "[inputs.x]\ndefault = 2024-05-01\n" + PHASE, 3, "inputs.x.default is"),
    # These are pipelines, and cannot run.
    (HEAD + PHASE + "parameters = { x = nan }\n", 6, "parameters.x has a number"),
    (HEAD + PHASE + PHASE, 7, "phase a: name: another phase is called 'a'"),
    (HEAD + PHASE + '[phase.parameters]\nx = "${input.y}"\n', 7, "no input 'y'"),
    (
        HEAD
        + PHASE
        + 'after = ["b"]\n'
        + PHASE.replace('"a"', '"b"')
        + 'after = ["a"]\n',
        2,
        "a -> b -> a",
    ),
]


@pytest.mark.parametrize(("text", "line", "words"), BROKEN)
def test_a_broken_toml_file_is_reported_with_its_line(
    write: Write, text: str, line: int | None, words: str
) -> None:
    sentences = problems_at(write("x.toml", text))
    prefix = f"x.toml:{line}: " if line else "x.toml: "
    assert [one for one in sentences if one.startswith(prefix) and words in one], (
        sentences
    )


def test_an_unusable_file_is_refused(write: Write) -> None:
    write("health.toml", GOOD)
    assert problems_at(Path("helth.toml")) == [
        "there is no file 'helth.toml'; did you mean 'health.toml'?; give the path of one"
    ]
    assert "there is no file" in problems_at(Path("nowhere/health.toml"))[0]
    assert problems_at(write("health.yaml", "")) == [
        "health.yaml: a pipeline is written in a file that ends in .toml or .py"
    ]
    Path("latin.toml").write_bytes(b'name = "\xe9"')
    assert problems_at(Path("latin.toml")) == [
        "latin.toml: it is not UTF-8 text; save it as UTF-8"
    ]
    assert "more than" in problems_at(write("large.toml", "#" * (5 * 1024 * 1024)))[0]


PYTHON = """
from tasklore.contracts.pipelines import Input, Phase, Pipeline
from names import AGENT

FIRST = Phase(name="a", agent=AGENT, task="t")

{name} = Pipeline(
    name="x",
    inputs={{
        "n": Input(type="number"),
    }},
    phases=(
        FIRST,
        Phase(
            name="b",
            agent=AGENT,
            task="t",
            reads=("c:results",),
        ),
        *(Phase(name=name, agent=AGENT, task="t", after=("e",)) for name in ("c", "d")),
    ),
)
"""


def test_a_python_file_declares_its_pipeline(write: Write) -> None:
    write("names.py", 'AGENT = "A"\n')
    for name in ("pipeline", "other"):
        source = read_pipeline(write(f"{name}_file.py", PYTHON.format(name=name)))
        assert [phase.name for phase in source.pipeline.phases] == ["a", "b", "c", "d"]
    both = (
        PYTHON.format(name="pipeline")
        + "second = pipeline.model_copy(update={'name': 'y'})\n"
    )
    assert read_pipeline(write("both.py", both)).pipeline.name == "x"
    twice = PYTHON.format(name="one") + "second = one\n"
    assert read_pipeline(write("twice.py", twice)).pipeline.name == "x"


def test_phases_of_a_python_file_have_the_lines_where_they_are_made(
    write: Write,
) -> None:
    write(
        "names.py",
        'from tasklore.contracts.pipelines import Phase\nAGENT = "A"\nOTHER = Phase(name="o", agent="A", task="t")\n',
    )
    source = read_pipeline(write("x.py", PYTHON.format(name="pipeline")))

    assert source.line_of(("phases", 0, "agent")) == 5
    assert source.line_of(("phases", 1, "reads", 0)) == 14
    assert source.line_of(("phases", 3)) == 20
    assert source.line_of(("inputs", "n")) == 10
    assert source.line_of(("result",)) == 7
    sentences = describe_problems(problems_of(source.pipeline), source)
    assert sentences[0].startswith(
        "x.py:20: phase c: runs after 'e', but there is no phase 'e'"
    )

    borrowed = PYTHON.replace("import AGENT", "import AGENT, OTHER").replace(
        "FIRST,", "FIRST, OTHER,"
    )
    source = read_pipeline(write("y.py", borrowed.format(name="pipeline")))
    assert source.line_of(("phases", 1, "after")) == source.line_of(()) == 7


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "x = 1\n",
            [
                "x.py: it declares no pipeline; write `pipeline = Pipeline(...)` at its top level"
            ],
        ),
        ("\nx = (\n", ["x.py:2: this is not valid Python: '(' was never closed"]),
        ("\nx = 1 / 0\n", ["x.py:2: it raised ZeroDivisionError: division by zero"]),
        (
            "import no_such_thing\n",
            ["x.py:1: it raised ModuleNotFoundError: No module named 'no_such_thing'"],
        ),
        ("raise SystemExit(3)\n", ["x.py:1: it raised SystemExit: 3"]),
        (
            "from tasklore.contracts.pipelines import Phase\n\nPhase(name='a', agent='A b', tsk='t')\n",
            [
                "x.py:3: task is missing; give it",
                "x.py:3: agent 'A b' must be 1 to 64 letters, digits, '_' or '-'",
                "x.py:3: 'tsk' is not known here; did you mean 'task'?",
            ],
        ),
        (
            "from tasklore.contracts.pipelines import Pipeline\npipeline = Pipeline(name='x', phases=())\n",
            ["x.py:2: phases is empty; give at least 1"],
        ),
        (
            PYTHON.format(name="one").replace("from names import AGENT", "AGENT = 'A'")
            + "two = one.model_copy()\n",
            ["x.py: it declares one, two; call the one that is meant `pipeline`"],
        ),
    ],
)
def test_a_broken_python_file_is_reported_with_its_line(
    write: Write, text: str, sentences: list[str]
) -> None:
    before = set(sys.modules)
    assert sorted(problems_at(write("x.py", text))) == sorted(sentences)
    assert "declares" in sentences[0] or set(sys.modules) <= before


@pytest.mark.parametrize(
    ("mapping", "problems"),
    [
        ({}, ["name is missing; give it", "phases is missing; give it"]),
        (
            {"name": "x", "phases": [{"name": "a", "agent": 5}]},
            ["phase a: agent", "phase a: task is missing; give it"],
        ),
        (
            {"name": "x", "phases": [{}, 5]},
            ["phase 1: name is missing", "phase 2: it must be"],
        ),
    ],
)
def test_an_invalid_pipeline_in_a_message_is_refused(
    mapping: dict[str, Any], problems: list[str]
) -> None:
    with pytest.raises(InvalidPipeline) as caught:
        pipeline_from(mapping)
    for words in problems:
        assert [one for one in caught.value.problems if one.startswith(words)], (
            words,
            caught.value.problems,
        )


def test_problems_from_a_supervisor_get_their_lines(write: Write) -> None:
    source = read_pipeline(write("health.toml", GOOD))

    assert with_lines(
        [
            "phase analysis: parameters.depth must be a text, not 3",
            "phase query: agent 'ContextAgent' is not known",
            "phase analysis: wait",
            "phase nobody: agent 'X' is not known",
            "the store is away",
        ],
        source,
    ) == [
        "health.toml:21: phase analysis: parameters.depth must be a text, not 3",
        "health.toml:9: phase query: agent 'ContextAgent' is not known",
        "health.toml:14: phase analysis: wait",
        "health.toml: phase nobody: agent 'X' is not known",
        "health.toml: the store is away",
    ]


def test_the_table_of_a_file_declares_what_its_json_does() -> None:
    """A client sends the tables of a file as they are, with its word for a phase."""
    block = {"name": "one", "agent": "NapAgent", "task": "take_nap"}
    as_file = pipeline_from({"name": "naps", "phase": [block]})
    assert as_file == pipeline_from({"name": "naps", "phases": [block]})
    with pytest.raises(InvalidPipeline, match="phase"):
        pipeline_from({"name": "naps", "phase": [block], "phases": [block]})
