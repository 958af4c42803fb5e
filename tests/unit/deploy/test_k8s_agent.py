"""Manifests that `tasklore k8s agent` prints for a user's agent."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deploy import manifests as base
from deploy.checks.problem import at, listed
from tasklore.commands.k8s.app import app
from tasklore.commands.k8s.printing import agent_text
from tasklore.commands.k8s.workers import Wanted, worker_name
from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.identifiers import PARTITIONS
from tasklore.workers.agent import Agent
from tasklore.workers.loading import load_agents
from tests.unit.deploy.documents import documents

GREETER = '''
from tasklore import Agent, Parameters

agent = Agent("GreeterAgent")

class Name(Parameters):
    name: str

@agent.task
async def greet(parameters: Name) -> str:
    """Greet somebody."""
    return f"Hello {parameters.name}"
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with an agent of one's own in it."""
    (tmp_path / "greeter.py").write_text(GREETER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(**wanted: Any) -> dict[str, Any]:
    """Return the manifests for the greeter by kind and name."""
    text = agent_text(
        Wanted(
            references=("./greeter.py",), image="registry.example/greeter:1.0", **wanted
        )
    )
    return {f"{one['kind']} {one['metadata']['name']}": one for one in documents(text)}


def test_a_users_agent_gets_what_a_shipped_one_has(here: Path) -> None:
    found = printed()
    own = {
        key.partition(" ")[0]: one
        for key, one in found.items()
        if "bootstrap" not in key
    }
    shipped = {
        str(one["kind"]): one for one in documents(base.generated()["budget.yaml"])
    }
    assert set(own) == set(shipped)
    pod, theirs = (
        at(one["Deployment"], "spec", "template", "spec") for one in (own, shipped)
    )
    for place in (
        ("securityContext",),
        ("automountServiceAccountToken",),
        ("topologySpreadConstraints", 0, "maxSkew"),
    ):
        assert at(pod, *place) == at(theirs, *place) is not None
    for field in (
        "securityContext",
        "resources",
        "startupProbe",
        "livenessProbe",
        "readinessProbe",
        "volumeMounts",
    ):
        assert (
            at(pod, "containers", 0, field)
            == at(theirs, "containers", 0, field)
            is not None
        )
    assert at(
        found["Job tasklore-bootstrap-greeter-agent"],
        "spec",
        "template",
        "spec",
        "containers",
        0,
        "args",
    ) == [
        "bootstrap",
        "./greeter.py",
    ]


def test_it_is_scaled_by_its_own_queue_and_what_waits_for_a_turn(here: Path) -> None:
    scaler = printed(slots=7, most=3)["ScaledObject tasklore-greeter-agent"]["spec"]
    trigger, waiting = scaler["triggers"]
    assert (trigger["metadata"]["stream"], trigger["metadata"]["consumer"]) == (
        "TASKS",
        "GreeterAgent",
    )
    assert waiting["metadata"] == trigger["metadata"] | {"stream": "WAITING"}
    assert (
        trigger["metadata"]["lagThreshold"],
        scaler["minReplicaCount"],
        scaler["maxReplicaCount"],
    ) == ("7", 0, 3)


@pytest.mark.parametrize("name", ["supervisor", "bootstrap-greeter", "api"])
def test_names_of_the_base_are_refused(name: str, here: Path) -> None:
    with pytest.raises(ConfigurationError, match="choose another"):
        printed(name=name)


@pytest.mark.parametrize("namespace", ["UP", "-x", ""])
def test_an_invalid_namespace_is_refused(namespace: str, here: Path) -> None:
    with pytest.raises(ConfigurationError, match="--namespace"):
        printed(namespace=namespace)


def test_a_pod_outlives_the_longest_task(here: Path) -> None:
    found = printed(longest_s=1800)
    spec = found["Deployment tasklore-greeter-agent"]["spec"]["template"]["spec"]
    assert (
        found["ConfigMap tasklore-greeter-agent"]["data"]["TASKLORE_GRACE_S"] == "1800"
    )
    assert spec["terminationGracePeriodSeconds"] > 1800


def test_a_listener_is_scaled_by_every_partition_and_table() -> None:
    text = base.generated()["memory.yaml"]
    (scaler,) = (one for one in documents(text) if one["kind"] == "ScaledObject")
    consumers = [
        at(one, "metadata", "consumer") for one in listed(scaler, "spec", "triggers")
    ]
    partitions = {
        f"{queue}-{number}"
        for queue in ("turns", "facts")
        for number in range(PARTITIONS)
    }
    assert partitions <= set(consumers)
    assert consumers.count(None) == 3
    window = {
        "timezone": "Etc/UTC",
        "start": "0 * * * *",
        "end": "5 * * * *",
        "desiredReplicas": "1",
    }
    assert listed(scaler, "spec", "triggers")[-1] == {
        "type": "cron",
        "metricType": "AverageValue",
        "metadata": window,
    }


@pytest.mark.parametrize(
    ("agent_id", "name"),
    [
        ("GreeterAgent", "greeter-agent"),
        ("HTTPAgent", "http-agent"),
        ("my_agent", "my-agent"),
        ("x" * 64, "x" * 40),
    ],
)
def test_names_are_spelled_for_kubernetes(agent_id: str, name: str) -> None:
    assert (
        worker_name(Wanted(references=("x",), image="x:1"), [Agent(agent_id)]) == name
    )


@pytest.mark.parametrize(
    ("wanted", "cure"),
    [
        ({"image": "greeter"}, "greeter:1.0"),
        (
            {"image": "registry.example:5000/greeter:latest"},
            "a tag other than 'latest'",
        ),
        ({"name": "Greeter_1"}, "use up to 40 of a-z, 0-9 and '-'"),
        ({"references": ("../elsewhere/greeter.py",)}, "./greeter.py"),
        ({"references": ("./nobody.py",)}, "nobody.py"),
    ],
)
def test_invalid_options_are_refused(
    here: Path, wanted: dict[str, Any], cure: str
) -> None:
    (here.parent / "elsewhere").mkdir(exist_ok=True)
    (here.parent / "elsewhere" / "greeter.py").write_text(GREETER)
    plain: dict[str, Any] = {"references": ("./greeter.py",), "image": "greeter:1.0"}
    with pytest.raises(ConfigurationError, match=cure.replace("(", "[(]")):
        agent_text(Wanted(**(plain | wanted)))


def test_the_command_prints_yaml_with_advice_above(here: Path) -> None:
    done = CliRunner().invoke(
        app,
        ["agent", "./greeter.py", "--image", "greeter:1.0", "--longest-s", "60"],
    )
    assert done.exit_code == 0, done.output
    assert done.output.startswith("# A worker for GreeterAgent")
    assert "COPY ./greeter.py /app/" in done.output
    assert len(documents(done.output)) == 8


def test_the_shipped_base_is_generated() -> None:
    assert base.stale() == []
    assert {
        agent.agent_id for reference in base.OURS for agent in load_agents(reference)
    } == {
        "BudgetTrackerAgent",
        "MemoryAgent",
        "SwitchboardAgent",
    }
