"""`tasklore k8s agent` prints what a worker for somebody's agent needs, made of the parts that the shipped base has."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from contracts.errors import ConfigurationError
from contracts.identifiers import PARTITIONS
from deploy import manifests as base
from deploy.checks.problem import at, listed
from tasklore.app import load_groups
from tasklore.k8s.printing import agent_text
from tasklore.k8s.workers import Wanted, worker_name
from workers.agent import Agent
from workers.loading import load_agents

GREETER = '''
from workers import Agent, Parameters

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
    text = agent_text(Wanted(("./greeter.py",), "registry.example/greeter:1.0", **wanted))
    return {f"{one['kind']} {one['metadata']['name']}": one for one in yaml.safe_load_all(text)}


def test_an_agent_of_ones_own_gets_everything_a_shipped_one_has(here: Path) -> None:
    """The same kinds, the same promises, other names: and a job that makes the consumer it reads."""
    found = printed()

    own = {key.partition(" ")[0]: one for key, one in found.items() if "bootstrap" not in key}
    shipped = {str(one["kind"]): one for one in yaml.safe_load_all(base.generated()["budget.yaml"])}
    assert set(own) == set(shipped)
    pod, theirs = (at(one["Deployment"], "spec", "template", "spec") for one in (own, shipped))
    for place in (("securityContext",), ("automountServiceAccountToken",), ("topologySpreadConstraints", 0, "maxSkew")):
        assert at(pod, *place) == at(theirs, *place) is not None
    for field in ("securityContext", "resources", "startupProbe", "livenessProbe", "readinessProbe", "volumeMounts"):
        assert at(pod, "containers", 0, field) == at(theirs, "containers", 0, field) is not None
    assert at(found["Job tasklore-bootstrap-greeter-agent"], "spec", "template", "spec", "containers", 0, "args") == [
        "bootstrap",
        "./greeter.py",
    ]


def test_it_is_scaled_by_its_own_queue_from_none(here: Path) -> None:
    """One trigger: the durable that the worker pulls from, a pod for as many tasks as it has slots."""
    scaler = printed(slots=7, most=3)["ScaledObject tasklore-greeter-agent"]["spec"]

    (trigger,) = scaler["triggers"]
    assert (trigger["metadata"]["stream"], trigger["metadata"]["consumer"]) == ("TASKS", "GreeterAgent")
    assert (trigger["metadata"]["lagThreshold"], scaler["minReplicaCount"], scaler["maxReplicaCount"]) == ("7", 0, 3)


@pytest.mark.parametrize("name", ["supervisor", "bootstrap", "bootstrap-greeter", "api"])
def test_no_agent_takes_the_place_of_a_part_of_the_base(name: str, here: Path) -> None:
    """Applied, its manifests would be those of the supervisor from then on."""
    with pytest.raises(ConfigurationError, match="choose another"):
        printed(name=name)


@pytest.mark.parametrize("namespace", ["UP", "a b", "-x", ""])
def test_a_namespace_is_a_name_of_kubernetes(namespace: str, here: Path) -> None:
    """A cluster would refuse it after half of the manifests, and YAML might read it as something else."""
    with pytest.raises(ConfigurationError, match="--namespace"):
        printed(namespace=namespace)


def test_a_pod_outlives_the_longest_task(here: Path) -> None:
    """What tasks may take to finish is the process's grace period, and Kubernetes waits longer than that."""
    found = printed(longest_s=1800)

    spec = found["Deployment tasklore-greeter-agent"]["spec"]["template"]["spec"]
    assert found["ConfigMap tasklore-greeter-agent"]["data"]["TASKLORE_GRACE_S"] == "1800"
    assert spec["terminationGracePeriodSeconds"] > 1800


def test_it_has_rights_and_secrets_of_its_own(here: Path) -> None:
    """A user of its name at NATS and Valkey; no pod is given the secret of another role."""
    found = printed(name="hello")

    pod = found["Deployment tasklore-hello"]["spec"]["template"]["spec"]
    sources = [one["secret"]["name"] for one in pod["volumes"][1]["projected"]["sources"]]
    assert sources == ["tasklore-nats-worker-hello", "tasklore-valkey-worker-hello"]
    assert found["ConfigMap tasklore-hello"]["data"]["TASKLORE_ROLE"] == "worker-hello"
    assert "--worker hello=GreeterAgent" in agent_text(Wanted(("./greeter.py",), "greeter:1.0", name="hello"))


def test_whoever_listens_is_scaled_by_every_partition_and_by_what_waits_in_valkey() -> None:
    """Turns and facts lie in 16 partitions, and then in a table that no consumer counts; once an hour it is there."""
    text = base.generated()["memory.yaml"]
    (scaler,) = (one for one in yaml.safe_load_all(text) if one["kind"] == "ScaledObject")

    consumers = [at(one, "metadata", "consumer") for one in listed(scaler, "spec", "triggers")]
    partitions = {f"{queue}-{number}" for queue in ("turns", "facts") for number in range(PARTITIONS)}
    assert partitions <= set(consumers)
    assert consumers.count(None) == 3
    window = {"timezone": "Etc/UTC", "start": "0 * * * *", "end": "5 * * * *", "desiredReplicas": "1"}
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
        ("A1", "a1"),
        ("x" * 64, "x" * 40),
    ],
)
def test_a_name_is_spelled_as_kubernetes_wants_it(agent_id: str, name: str) -> None:
    """Small letters, digits and dashes, short enough for a prefix."""
    assert worker_name(Wanted(("x",), "x:1"), [Agent(agent_id)]) == name


@pytest.mark.parametrize(
    ("wanted", "cure"),
    [
        ({"image": "greeter"}, "greeter:1.0"),
        ({"image": "registry.example:5000/greeter:latest"}, "a tag other than 'latest'"),
        ({"name": "Greeter_1"}, "use up to 40 of a-z, 0-9 and '-'"),
        ({"references": ("../elsewhere/greeter.py",)}, "./greeter.py"),
        ({"references": ("./nobody.py",)}, "nobody.py"),
    ],
)
def test_what_cannot_be_had_is_refused_with_a_cure(here: Path, wanted: dict[str, Any], cure: str) -> None:
    """Before anything is printed: half a list of manifests would be applied."""
    (here.parent / "elsewhere").mkdir(exist_ok=True)
    (here.parent / "elsewhere" / "greeter.py").write_text(GREETER)
    plain: dict[str, Any] = {"references": ("./greeter.py",), "image": "greeter:1.0"}

    with pytest.raises(ConfigurationError, match=cure.replace("(", "[(]")):
        agent_text(Wanted(**(plain | wanted)))


def test_the_command_prints_yaml_with_advice_above(here: Path) -> None:
    """As it would be piped into kubectl."""
    done = CliRunner().invoke(
        load_groups(), ["k8s", "agent", "./greeter.py", "--image", "greeter:1.0", "--longest-s", "60"]
    )

    assert done.exit_code == 0, done.output
    assert done.output.startswith("# A worker for GreeterAgent")
    assert "COPY ./greeter.py /app/" in done.output
    assert len(list(yaml.safe_load_all(done.output))) == 8


def test_the_shipped_base_is_what_its_parts_make() -> None:
    """After a change: `python -m deploy.manifests`."""
    assert base.stale() == []
    assert {agent.agent_id for reference in base.OURS for agent in load_agents(reference)} == {
        "BudgetTrackerAgent",
        "MemoryAgent",
        "SwitchboardAgent",
    }
