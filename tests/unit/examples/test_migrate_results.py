"""The example that turns files of remembered results into lines of `results import`."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from examples.migrate_results.__main__ import find_code, main
from examples.migrate_results.memory_file import (
    Refusal,
    lines_by_code,
    lines_of,
    read_document,
)
from tasklore import Agent, Amount, Field, Parameters
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.memory import keys
from tasklore.memory.long_term.result_files import TaskForm, entry_of
from tasklore.workers.agents.budget import agent as budget_agent

FOUR = "analyze_budget:50000:42000:5000,7000,8000,6000"
FIVE = "analyze_budget:100000:30000:5000,6000,7000,5000,25000"
RESULT = {"remaining": 8000.0}


class Parcel(BaseModel):
    """What is sent."""

    kilograms: float


class Sending(Parameters):
    """Types that no card tells: a union and a model, beside a value that may be near."""

    to: int | str
    parcel: Parcel
    price: Amount = Field(unit="USD", tolerance="1%")


class Tariff(BaseModel):
    """Settings of the agent."""

    surcharge: int = 0


agent = Agent("SenderAgent", settings=Tariff)


@agent.task(remember="shared", remember_for=timedelta(hours=1))
def send(asked: Sending) -> str:
    """Send a parcel."""
    return f"sent for {asked.price}"


@agent.task(remember="user", remember_for=timedelta(hours=1))
def note(asked: Sending) -> str:
    """Note a parcel."""
    return f"noted for {asked.price}"


def by_code(
    tasks: dict[str, Any], whose: Agent = agent
) -> tuple[list[dict[str, Any]], list[Refusal]]:
    """Return the lines of a file, and what was not taken."""
    found = list(lines_by_code({"tasks": tasks}, whose))
    return (
        [one for one in found if isinstance(one, dict)],
        [one for one in found if isinstance(one, Refusal)],
    )


def test_results_keep_their_keys_and_their_marks_without_code() -> None:
    """A key with five values that a file calls complete is called so in its line."""
    document = {"tasks": {FOUR: RESULT, FIVE: 1}, "complete": {FIVE: "d1ge5t"}}
    assert list(lines_of(document)) == [
        {"key": FOUR, "result": RESULT},
        {"key": FIVE, "result": 1, "complete": "d1ge5t"},
    ]


def test_the_code_tells_keys_that_no_card_tells() -> None:
    """Those that a worker looks for, with the question, its place among near ones, and the time to live."""
    given = {"to": "Kiel", "parcel": {"kilograms": 2}, "price": "50k"}
    form = TaskForm(("to", "parcel", "price"))
    entry = entry_of("send", form, given, "sent")
    ([line], refused) = by_code({entry.key: "sent"})
    asked = Sending.read(given)
    version = agent.memory_version(agent.tasks["send"])
    assert line["key"] == keys.ltm("SenderAgent", version, asked.key("send"))
    assert line["parameters"] == json.loads(asked.model_dump_json())
    near = Parameters.neighbourhood(asked, "send")
    assert near is not None
    assert line["near"] == {"frame": near.frame, "place": near.place}
    assert (line["result"], line["keep_s"], refused) == ("sent", 3600, [])


def test_settings_of_its_own_make_keys_of_its_own() -> None:
    configured = budget_agent.configured({"anomaly_threshold_multiplier": "1.5"})
    versions = {
        keys.parse_ltm(line["key"]).version  # type: ignore[union-attr]  # a whole key
        for whose in (configured, budget_agent)
        for line in by_code({FOUR: RESULT}, whose)[0]
    }
    assert len(versions) == 2


def test_a_key_that_may_be_cut_stays_as_it_is_for_the_quarantine() -> None:
    lines, refused = by_code({FIVE: RESULT}, budget_agent)
    assert (lines, refused) == ([{"key": FIVE, "result": RESULT}], [])


def test_what_cannot_be_taken_over_is_named_with_its_reason() -> None:
    """Of no task, unreadable, and of a task that shares nothing."""
    lines, refused = by_code({"dance:1": 1, "send:1:2:3": 1, "note:1:2:3": 1})
    assert lines == []
    assert {one.key: one.why for one in refused}.keys() == {
        "dance:1",
        "send:1:2:3",
        "note:1:2:3",
    }
    whys = {one.key: one.why for one in refused}
    assert "not one of" in whys["dance:1"]
    assert "parcel" in whys["send:1:2:3"]
    assert "not shared" in whys["note:1:2:3"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"tasks": []}',
        b"{'tasks': {}}",
        b'{"tasks": {"greet:a": NaN}}',
        b"\xff",
    ],
)
def test_a_file_of_another_form_is_refused(text: bytes) -> None:
    """With a message that shows the form, or where JSON ends."""
    with pytest.raises(InvalidInput, match="the file"):
        read_document(text)


def run(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the script with *words*."""
    monkeypatch.setattr(sys, "argv", ["migrate_results", *words])
    return main()


def test_the_script_prints_lines_and_says_what_it_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A file of many lines; with the settings of a worker it finds the installed agent that they are for."""
    file = tmp_path / "memory.json"
    file.write_text(json.dumps({"tasks": {FOUR: RESULT, "dance:1": 1}}, indent=2))
    assert run(str(file), monkeypatch=monkeypatch) == 0
    plain = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["key"] for line in plain] == [FOUR, "dance:1"]
    config = tmp_path / "agent_config.json"
    config.write_text('{"agent_id": "BudgetTrackerAgent"}')
    words = (str(file), "--config", str(config))
    assert run(*words, monkeypatch=monkeypatch) == 1
    said = capsys.readouterr()
    [line] = said.out.splitlines()
    assert json.loads(line)["key"].startswith("tl:ltm:{BudgetTrackerAgent}:v")
    assert "dance:1 is not taken over: task 'dance'" in said.err
    assert run(str(tmp_path / "none.json"), monkeypatch=monkeypatch) == 1
    assert "none.json cannot be read" in capsys.readouterr().err


def test_code_of_several_agents_or_of_another_one_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "agent_config.json"
    config.write_text('{"agent_id": "OtherAgent"}')
    assert find_code(None, None) is None
    with pytest.raises(ConfigurationError, match="none that is configured"):
        find_code("budget", config)
    both = tmp_path / "both.py"
    both.write_text(
        "from tasklore import Agent, Parameters\n"
        "class P(Parameters):\n    x: int\n"
        "one = Agent('One')\ntwo = Agent('Two')\n"
        "@one.task\ndef f(p: P) -> int:\n    'Count.'\n    return p.x\n"
        "@two.task\ndef g(p: P) -> int:\n    'Count.'\n    return p.x\n"
    )
    with pytest.raises(ConfigurationError, match="One, Two; write MODULE:NAME"):
        find_code(str(both), None)
    assert getattr(find_code(f"{both}:two", None), "agent_id", None) == "Two"
