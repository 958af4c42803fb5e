"""Checks of manifests: golden files, consumers, network policies, and the compose file."""

import copy
from importlib.metadata import version

import pytest

from deploy.checks import compose, golden, network, pins, values
from deploy.checks.problem import Manifest, mapped, name_of
from deploy.manifests import OURS
from tasklore.commands.bootstrap import sources_to_declare
from tasklore.contracts import subjects
from tasklore.runtime.settings import Settings
from tasklore.workers.loading import load_agents
from tests.unit.deploy.documents import ROOT, documents


def production() -> list[Manifest]:
    """Return the manifests of production as they were reviewed."""
    return documents((ROOT / "deploy" / "golden" / "prod.yaml").read_text())


#: What the overlay of production patches: how many workers there may be.
PATCHED = {"ScaledObject tasklore-budget", "ScaledObject tasklore-memory"}


def test_the_golden_file_of_production_contains_the_base() -> None:
    folder = ROOT / "k8s" / "base"
    files = [
        folder / name
        for name in documents((folder / "kustomization.yaml").read_text())[0][
            "resources"
        ]
    ]
    base = {name_of(one): one for file in files for one in documents(file.read_text())}
    text = (
        (ROOT / "deploy" / "golden" / "prod.yaml")
        .read_text()
        .replace(f"registry.example/tasklore:{version('tasklore')}", "tasklore")
    )
    reviewed = {name_of(one): one for one in documents(text)}
    assert reviewed.keys() == base.keys() >= PATCHED
    for one in (*base.values(), *reviewed.values()):
        labels = mapped(one, "metadata", "labels")
        for added in ("app.kubernetes.io/managed-by", "tasklore.dev/overlay"):
            labels.pop(added, None)
        if not labels:
            mapped(one, "metadata").pop("labels", None)
    assert [
        name for name in base if name not in PATCHED and base[name] != reviewed[name]
    ] == []


@pytest.mark.parametrize("name", sorted(values.REQUIRED))
def test_a_lost_value_of_a_chart_is_reported(name: str) -> None:
    whole = values.read(name)
    assert values.find_unlike(name, whole) == []
    for path in values.REQUIRED[name]:
        changed = copy.deepcopy(whole)
        *parents, last = path.split(".")
        del mapped(changed, *parents)[last]
        assert [path in one.what for one in values.find_unlike(name, changed)] == [
            True
        ], path


def test_network_policies_are_evaluated_as_in_kubernetes() -> None:
    policies = [one for one in production() if one.get("kind") == "NetworkPolicy"]
    out = [
        one for one in policies if name_of(one) == "NetworkPolicy tasklore-to-stores"
    ]
    assert network.passes([], network.WORKER, network.NATS, "TCP 1", "Egress")
    assert network.passes(out, network.WORKER, network.NATS, "TCP 4222", "Egress")
    assert not network.passes(out, network.WORKER, network.NATS, "TCP 8222", "Egress")
    assert network.passes(out, network.WORKER, network.NATS, "TCP 8222", "Ingress")
    assert not network.passes(
        policies, network.WORKER, network.METADATA, "TCP 80", "Egress"
    )


def test_a_worker_without_a_bootstrap_job_is_reported() -> None:
    added = ROOT / "k8s" / "components" / "decision" / "decision.yaml"
    manifests = [*production(), *documents(added.read_text())]
    assert golden.unprepared(manifests) == []
    for name in ("tasklore-bootstrap", "tasklore-bootstrap-decision-agent"):
        rest = [one for one in manifests if name_of(one) != f"Job {name}"]
        assert len(rest) == len(manifests) - 1
        assert golden.unprepared(rest) != []


#: What the compose file may lack of each service, since a check of the whole names it, or it only serves people.
COMPOSE_FREE = (
    "init",
    "logging",
    "tmpfs",
    "volumes",
    "command",
    "env_file",
    "deploy",
    "depends_on",
    "ports",
    "networks",
)


@pytest.mark.parametrize("service", sorted(compose.SERVICES))
def test_lost_confinement_in_the_compose_file_is_reported(service: str) -> None:
    [stack] = documents(compose.FILE.read_text())
    assert compose.unconfined(stack) == []
    missed = []
    for field in stack["services"][service]:
        changed = copy.deepcopy(stack)
        del changed["services"][service][field]
        if not compose.unconfined(changed):
            missed.append(field)
    assert set(missed) <= {
        *COMPOSE_FREE,
        "stop_grace_period",
        "environment",
        "secrets",
        "<<",
    }
    assert {
        "read_only",
        "cap_drop",
        "security_opt",
        "user",
        "mem_limit",
        "pids_limit",
        "restart",
    }.isdisjoint(missed)


def test_the_image_installs_the_tested_versions() -> None:
    assert [str(one) for one in pins.problems()] == []


def test_scalers_count_every_consumer_of_the_bootstrap() -> None:
    """One that is made and not counted wakes no pod; one that is counted and not made keeps the scaler silent.

    Comparisons are left out: any supervisor reads them, and at least one of these always runs.
    """
    agents = [agent for reference in OURS for agent in load_agents(reference)]
    made = {
        (source.stream, source.durable)
        for source in sources_to_declare(Settings(), agents)
    }
    assert golden.counted(production()) == made - {
        (subjects.REPORTS, subjects.COMPARISONS)
    }
