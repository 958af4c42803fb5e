"""Inputs of a pipeline on the command line."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from tasklore.commands.pipelines.sources import MAX_FILE, read_inputs
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.pipelines import Input, Phase, Pipeline

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
        ("folder=a=b", "a=b"),
        ("folder=@@home", "@home"),
        ("thing=4", 4),
        ("thing=some words", "some words"),
    ],
)
def test_inputs_are_read_by_type(typed: str, value: JsonValue) -> None:
    name = typed.partition("=")[0]
    assert read_inputs(PIPELINE, [typed]) == {name: value}
    assert type(read_inputs(PIPELINE, [typed])[name]) is type(value)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["folder"], r"'folder' has no '='; write NAME=VALUE, such as folder="),
        (["foldr=x"], r"--input foldr: .*no input 'foldr'.*folder"),
        (["folder=a", "folder=b"], "folder is given twice"),
        (["depth=" + "[" * 100_000], "must be a number"),
        (["folder=@nowhere.txt"], r"folder: 'nowhere.txt' cannot be read .*@@"),
        (["folder=\udc80"], "folder is not valid Unicode"),
    ],
)
def test_an_invalid_input_is_refused_by_name(typed: list[str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_inputs(PIPELINE, typed)


def test_an_input_may_come_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.json").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    Path("big.txt").write_bytes(b"x" * (MAX_FILE + 1))
    Path("bytes.bin").write_bytes(b"\xff\xfe\xff")
    assert read_inputs(PIPELINE, ["rules=@rules.json"]) == {"rules": {"a": 1}}
    with pytest.raises(InvalidInput, match="larger than 512 KiB; give its path"):
        read_inputs(PIPELINE, ["folder=@big.txt"])
    with pytest.raises(InvalidInput, match="not UTF-8 text"):
        read_inputs(PIPELINE, ["folder=@bytes.bin"])


def test_a_secret_that_is_mistyped_is_not_repeated() -> None:
    with pytest.raises(InvalidInput, match="token") as refusal:
        read_inputs(PIPELINE, ["token=hunter2"])
    assert "hunter2" not in str(refusal.value)
