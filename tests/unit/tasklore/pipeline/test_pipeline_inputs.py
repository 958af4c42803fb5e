"""Inputs of a pipeline as they are typed."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from contracts.errors import InvalidInput
from contracts.pipelines import Input, Phase, Pipeline
from tasklore.pipeline.sources import MAX_FILE, mask, read_inputs

PIPELINE = Pipeline(
    name="report",
    inputs={
        "folder": Input(type="text"),
        "depth": Input(type="number", default=3),
        "deep": Input(type="flag", default=False),
        "tags": Input(type="list", default=[]),
        "rules": Input(type="object", default={}),
        "thing": Input(default=None),
        "token": Input(type="number", secret=True, default=0),
    },
    phases=(Phase(name="look", agent="A", task="t"),),
)


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("folder=src", "src"),
        ("folder=3", "3"),
        ("folder=a=b", "a=b"),
        ("folder=@@home", "@home"),
        ("depth=4", 4),
        ("deep=true", True),
        ('tags=["a"]', ["a"]),
        ('rules={"a": null}', {"a": None}),
        ("thing=4", 4),
        ("thing=some words", "some words"),
    ],
)
def test_an_input_is_read_by_its_type(typed: str, value: JsonValue) -> None:
    """Text as it is, anything else as JSON."""
    name = typed.partition("=")[0]
    assert read_inputs(PIPELINE, [typed]) == {name: value}
    assert type(read_inputs(PIPELINE, [typed])[name]) is type(value)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["folder"], r"'folder' has no '='; write NAME=VALUE, such as folder="),
        (["foldr=x"], r"--input foldr: .*no input 'foldr'.*folder"),
        (["folder=a", "folder=b"], "folder is given twice"),
        (["depth=three"], r"--input depth: .*number written as JSON, not 'three'"),
        (["depth=NaN"], "must be a number"),
        (["depth=" + "[" * 100_000], "must be a number"),
        (["deep=perhaps"], "true or false"),
        (["tags=a"], "must be a list"),
        (["folder=@nowhere.txt"], r"folder: 'nowhere.txt' cannot be read .*@@"),
        (["folder=\udc80"], "folder is no valid Unicode"),
        (['thing="\\ud800"'], "thing is no valid Unicode"),
    ],
)
def test_an_input_that_cannot_be_is_refused_by_its_name(typed: list[str], said: str) -> None:
    """With what to write instead."""
    with pytest.raises(InvalidInput, match=said):
        read_inputs(PIPELINE, typed)


def test_an_input_may_be_what_a_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by the same rules, without the mark that some editors put before it."""
    monkeypatch.chdir(tmp_path)
    Path("rules.json").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    Path("big.txt").write_bytes(b"x" * (MAX_FILE + 1))
    Path("bytes.bin").write_bytes(b"\xff\xfe\xff")
    assert read_inputs(PIPELINE, ["rules=@rules.json"]) == {"rules": {"a": 1}}
    with pytest.raises(InvalidInput, match="larger than 512 KiB; give its path"):
        read_inputs(PIPELINE, ["folder=@big.txt"])
    with pytest.raises(InvalidInput, match="no text in UTF-8"):
        read_inputs(PIPELINE, ["folder=@bytes.bin"])


def test_a_secret_is_neither_shown_nor_repeated_in_an_error() -> None:
    """Wherever a run is shown."""
    assert mask(PIPELINE, {"token": 7, "folder": "src"}) == {"token": "***", "folder": "src"}
    with pytest.raises(InvalidInput, match="token") as refusal:
        read_inputs(PIPELINE, ["token=hunter2"])
    assert "hunter2" not in str(refusal.value)
