"""Loading agents from modules, files and entry points, and their configuration files."""

import os
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.errors import ConfigurationError
from tasklore.workers.agents.budget import BudgetSettings
from tasklore.workers.agents.budget import agent as budget_agent
from tasklore.workers.config import load_config
from tasklore.workers.loading import find_agent, load_agents
from tasklore.workers.testing import run_task

SOURCE = '''
from __future__ import annotations

from tasklore import Agent, Parameters

agent = Agent("{agent_id}")


class Greeting(Parameters):
    name: str


@agent.task(remember="shared")
async def greet(greeting: Greeting) -> str:
    """Greet somebody."""
    return f"Hello {{greeting.name}}"
'''

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write files of a user's into the working directory; whatever they load is unloaded afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def put(name: str, source: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    yield put
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def greeter(agent_id: str = "Greeter") -> str:
    """Return the source of a module with one agent."""
    return SOURCE.format(agent_id=agent_id)


def refusal(reference: str) -> str:
    """Return the message with which *reference* is refused."""
    with pytest.raises(ConfigurationError) as caught:
        load_agents(reference)
    return str(caught.value)


@pytest.mark.parametrize(
    "reference",
    ["mine/greeter.py", "./mine/greeter.py", "mine.greeter", "mine.greeter:agent"],
)
async def test_a_module_of_the_users_own_is_found_by_path_and_by_name(
    write: Write, reference: str
) -> None:
    """Nothing is installed and nothing of ours is edited; quoted annotations are read."""
    write("mine/greeter.py", greeter())
    (agent,) = load_agents(reference)
    assert agent.agent_id == "Greeter"
    assert (await run_task(agent, "greet", {"name": "Ann"})).result == "Hello Ann"


def test_a_file_may_import_what_lies_beside_it(write: Write) -> None:
    """Its folder is importable, also from another working directory."""
    path = write("elsewhere/greeter_beside.py", "from words_beside import agent")
    write("elsewhere/words_beside.py", greeter())
    os.chdir(path.parent.parent)
    assert [agent.agent_id for agent in load_agents(str(path))] == ["Greeter"]


def test_loading_twice_gives_the_same_agent(write: Write) -> None:
    """A file is run once a process."""
    path = write("twice_greeter.py", greeter())
    assert (
        load_agents(str(path))
        == load_agents("./twice_greeter.py")
        == load_agents("twice_greeter")
    )


def declare(write: Write, monkeypatch: pytest.MonkeyPatch, entries: str) -> None:
    """Install a distribution that declares *entries* in the group."""
    write(
        "site/acme-1.0.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n",
    )
    path = write(
        "site/acme-1.0.dist-info/entry_points.txt", f"[tasklore.agents]\n{entries}\n"
    )
    monkeypatch.syspath_prepend(str(path.parent.parent))


def test_an_installed_agent_is_found_by_the_name_of_its_entry_point(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And by its agent id, even when another installed agent is broken."""
    write("site/acme_agents.py", greeter("Acme"))
    write("site/acme_broken.py", "1 / 0")
    declare(write, monkeypatch, "acme = acme_agents:agent\nbroken = acme_broken:agent")
    (agent,) = load_agents("acme")
    assert agent.agent_id == "Acme"
    assert find_agent("Acme") is agent
    with pytest.raises(
        ConfigurationError,
        match=r"called 'Acne'; did you mean 'Acme'\?.*ZeroDivisionError",
    ):
        find_agent("Acne")


def test_a_name_with_two_meanings_is_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed agent and a file here share a name: the message says how to write each."""
    declare(write, monkeypatch, "acme_twice = acme_agents:agent")
    write("acme_twice.py", greeter())
    message = refusal("acme_twice")
    assert "'./acme_twice.py'" in message
    assert "'acme_agents:agent'" in message
    assert load_agents("./acme_twice.py")[0].agent_id == "Greeter"


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("", "no agent is named"),
        ("greter_near", "did you mean 'greeter_near'?"),
        (
            "near_pkg.greter",
            "no module 'near_pkg.greter' in 'near_pkg'; did you mean 'near_pkg.greeter'?",
        ),
        ("./greter_near.py", "did you mean 'greeter_near.py'?"),
        ("not a module", "is not a module path"),
        ("notes_near.md", "is not a Python file; name the .py file"),
        (
            "greeter_near:agnet",
            "no agent 'agnet'; did you mean 'agent'?; agents there are agent",
        ),
        ("empty_near", 'declares no agent; write `agent = Agent("MyAgent")`'),
        ("idle_near", "Idle has no task; decorate a function with @agent.task"),
        ("double_near", "two agents are called 'Same'; rename one"),
    ],
)
def test_what_cannot_be_found_is_named_with_the_nearest_and_the_cure(
    write: Write, reference: str, told: str
) -> None:
    write("greeter_near.py", greeter())
    write("near_pkg/__init__.py", "")
    write("near_pkg/greeter.py", greeter())
    write("empty_near.py", "")
    write("notes_near.md", "# Notes")
    write("idle_near.py", 'from tasklore import Agent\nagent = Agent("Idle")\n')
    write(
        "double_near.py",
        greeter("Same")
        + greeter("Same")
        .replace("agent", "other")
        .replace("from __future__ import annotations", ""),
    )
    assert told in refusal(reference)


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        (
            "import sys\n\nx = 1 / 0\n",
            'line 3: "x = 1 / 0"',
            "ZeroDivisionError: division by zero",
        ),
        ("x = (1,\n", "line 1", "SyntaxError: '(' was never closed"),
        (
            'from tasklore import Agent\nagent = Agent("A")\n\n@agent.task\ndef f(x: int) -> int:\n    return 1\n',
            'line 4: "@agent.task"',
            "ConfigurationError: A.f",
        ),
    ],
)
@pytest.mark.parametrize("reference", ["./broken_mine.py", "broken_mine"])
def test_an_error_in_the_users_file_shows_the_users_line(
    write: Write, source: str, line: str, said: str, reference: str
) -> None:
    """Not a line of ours, of pydantic or of the import system; and the broken module is not kept."""
    path = write("broken_mine.py", source)
    message = refusal(reference)
    assert f"{path}, {line}" in message
    assert said in message
    path.write_text(greeter())
    os.utime(path, (1, 1))
    assert load_agents(reference)[0].agent_id == "Greeter"


SEED_CONFIG = """{
  "agent_id": "BudgetTrackerAgent",
  "supervisor_id": "SupervisorAgent",
  // what it goes by
  "enable_ltm_cache": false,              // Enable/disable
  "sheet": "sheets//2026.csv",
  "anomaly_threshold_multiplier": 1.50
}"""


def test_a_configuration_with_comments_is_read(write: Write) -> None:
    """Two slashes inside a string are no comment; whatever is not the host's is a setting of the agent, exactly."""
    config = load_config(write("agent_config.json", SEED_CONFIG))
    assert (config.agent_id, config.supervisor_id) == (
        "BudgetTrackerAgent",
        "SupervisorAgent",
    )
    assert config.enable_ltm_cache is False
    assert config.settings == {
        "sheet": "sheets//2026.csv",
        "anomaly_threshold_multiplier": Decimal("1.50"),
    }


def test_a_configuration_changes_the_settings_of_its_agent(write: Write) -> None:
    text = '{"agent_id": "BudgetTrackerAgent", "anomaly_threshold_multiplier": 1.50}'
    configured = load_config(write("agent_config.json", text)).applied_to(budget_agent)
    assert configured.settings == BudgetSettings(
        anomaly_threshold_multiplier=Decimal("1.5")
    )


def test_a_field_that_is_none_any_more_is_refused_with_what_to_do_instead(
    write: Write,
) -> None:
    """A file of remembered results comes in by a command."""
    text = '{"agent_id": "BudgetTrackerAgent", "ltm_path": "LTM/memory.json"}'
    with pytest.raises(ConfigurationError) as refused:
        load_config(write("agent_config.json", text))
    assert "agent_config.json" in str(refused.value)
    assert "ltm_path is no field any more" in str(refused.value)
    assert "`tasklore results import`" in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"anomaly_treshold_multiplier": 2},
            "did you mean 'anomaly_threshold_multiplier'",
        ),
        (
            {"anomaly_threshold_multiplier": 0},
            "anomaly_threshold_multiplier: .*greater than 0",
        ),
        (
            {"agent_id": "OtherAgent"},
            "is for 'OtherAgent', not for 'BudgetTrackerAgent'",
        ),
        ({"settings": {}}, "no setting 'settings'"),
    ],
)
def test_an_unknown_or_unusable_field_is_named(
    write: Write, changes: dict[str, Any], told: str
) -> None:
    """A misspelt field of the file never passes silently."""
    import json

    path = write("c.json", json.dumps({"agent_id": "BudgetTrackerAgent"} | changes))
    with pytest.raises(ConfigurationError, match=told):
        load_config(path).applied_to(budget_agent)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "one JSON object"),
        ("{", "is not valid JSON"),
        ('{"agent_id": "A", "agent_id": "B"}', "agent_id is given twice"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(
    write: Write, text: str, told: str
) -> None:
    path = write("c.json", text)
    with pytest.raises(ConfigurationError, match=told) as caught:
        load_config(path)
    assert str(path) in str(caught.value)
