"""A pipeline as a value of an operation: a file with those that it names, or an installed name."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasklore.commands.operations.entries import operations_of
from tasklore.commands.operations.values import make_request
from tasklore.contracts.errors import InvalidInput, InvalidPipeline

INNER = 'name = "inner"\n[[phase]]\nname = "look"\nagent = "A"\ntask = "t"\n'
OUTER = 'name = "outer"\n[[phase]]\nname = "all"\npipeline = "inner.toml"\n'
CODE = """from tasklore.contracts.pipelines import Phase, Pipeline

pipeline = Pipeline(name="coded", phases=(Phase(name="look", agent="A", task="t"),))
"""


def read_sent(noun: str, verb: str, **typed: str) -> Any:
    entry = next(one for one in operations_of(noun) if one["verb"] == verb)
    request = make_request(entry, typed)
    assert request.body is not None
    return json.loads(request.body)["pipeline"]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (
        ("inner.toml", INNER),
        ("outer.toml", OUTER),
        ("coded.py", CODE),
    ):
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("noun", "verb"), [("schedules", "add"), ("pipelines", "cost")]
)
def test_a_file_is_sent_with_those_that_it_names(noun: str, verb: str) -> None:
    """The server has none of them."""
    sent = read_sent(noun, verb, pipeline="outer.toml")
    inner = sent["phases"][0]["pipeline"]
    assert (sent["name"], inner["phases"][0]["task"]) == ("outer", "t")


def test_a_file_of_python_is_read_here() -> None:
    sent = read_sent("schedules", "add", pipeline="coded.py")
    assert (sent["name"], sent["phases"][0]["name"]) == ("coded", "look")


def test_an_installed_name_is_looked_up_here() -> None:
    sent = read_sent("schedules", "add", pipeline="code-report")
    assert sent["name"] == "code-report"
    with pytest.raises(InvalidInput, match="did you mean 'code-report'"):
        read_sent("schedules", "add", pipeline="code-reprot")


def test_a_file_that_is_no_pipeline_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "inner.toml").write_text(INNER.replace('"t"', "3"), "utf-8")
    with pytest.raises(InvalidPipeline, match=r"inner\.toml:5: "):
        read_sent("pipelines", "cost", pipeline="inner.toml")
