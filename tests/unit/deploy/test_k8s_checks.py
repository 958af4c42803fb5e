"""The checks of manifests: golden files, consumers that a bootstrap makes, who may reach whom, the compose file."""

import copy
from pathlib import Path

import pytest
import yaml

from contracts import subjects
from deploy.checks import compose, golden, network, pins, values
from deploy.checks.problem import Manifest, mapped, name_of
from deploy.manifests import OURS
from runtime.settings import Settings
from tasklore.bootstrap import sources_to_declare
from workers.loading import load_agents

ROOT = Path(__file__).resolve().parents[3]


def production() -> list[Manifest]:
    """Return the manifests of production as they were reviewed."""
    return [one for one in yaml.safe_load_all((ROOT / "deploy" / "golden" / "prod.yaml").read_text()) if one]


#: What the overlay of production patches: how many workers there may be.
PATCHED = {"ScaledObject tasklore-budget", "ScaledObject tasklore-memory"}


def test_the_golden_file_of_production_has_the_base() -> None:
    """Whoever changes a manifest of the base reviews it in golden: this needs no kustomize."""
    folder = ROOT / "k8s" / "base"
    files = [folder / name for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]]
    base = {name_of(one): one for file in files for one in yaml.safe_load_all(file.read_text()) if one}
    text = (ROOT / "deploy" / "golden" / "prod.yaml").read_text().replace("registry.example/tasklore:0.1.0", "tasklore")
    reviewed = {name_of(one): one for one in yaml.safe_load_all(text) if one}
    assert reviewed.keys() == base.keys() >= PATCHED
    for one in (*base.values(), *reviewed.values()):
        labels = mapped(one, "metadata", "labels")
        for added in ("app.kubernetes.io/managed-by", "tasklore.dev/overlay"):
            labels.pop(added, None)
        if not labels:
            mapped(one, "metadata").pop("labels", None)

    assert [name for name in base if name not in PATCHED and base[name] != reviewed[name]] == []


@pytest.mark.parametrize("name", sorted(values.REQUIRED))
def test_a_value_of_a_chart_that_keeps_data_or_confines_cannot_be_lost(name: str) -> None:
    """Each of them."""
    whole = values.read(name)
    assert values.find_unlike(name, whole) == []
    for path in values.REQUIRED[name]:
        changed = copy.deepcopy(whole)
        *parents, last = path.split(".")
        del mapped(changed, *parents)[last]
        assert [path in one.what for one in values.find_unlike(name, changed)] == [True], path


def test_network_policies_are_worked_out_as_kubernetes_does() -> None:
    """Who is chosen by none is open, who is chosen is closed but for its rules, and outwards is not inwards."""
    policies = [one for one in production() if one.get("kind") == "NetworkPolicy"]
    out = [one for one in policies if name_of(one) == "NetworkPolicy tasklore-to-stores"]

    assert network.passes([], network.WORKER, network.NATS, "TCP 1", "Egress")
    assert network.passes(out, network.WORKER, network.NATS, "TCP 4222", "Egress")
    assert not network.passes(out, network.WORKER, network.NATS, "TCP 8222", "Egress")
    assert network.passes(out, network.WORKER, network.NATS, "TCP 8222", "Ingress")
    assert not network.passes(policies, network.WORKER, network.METADATA, "TCP 80", "Egress")


def test_a_worker_without_a_job_that_makes_its_consumers_is_reported() -> None:
    """It may not make them itself, and is never ready without."""
    added = ROOT / "k8s" / "components" / "decision" / "decision.yaml"
    manifests = [*production(), *yaml.safe_load_all(added.read_text())]
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
def test_a_service_of_the_compose_file_cannot_lose_its_confinement(service: str) -> None:
    """Each field of it, and each service as a whole."""
    stack = yaml.safe_load(compose.FILE.read_text())
    assert compose.unconfined(stack) == []
    missed = []
    for field in stack["services"][service]:
        changed = copy.deepcopy(stack)
        del changed["services"][service][field]
        if not compose.unconfined(changed):
            missed.append(field)

    assert set(missed) <= {*COMPOSE_FREE, "stop_grace_period", "environment", "secrets", "<<"}
    assert {"read_only", "cap_drop", "security_opt", "user", "mem_limit", "pids_limit", "restart"}.isdisjoint(missed)


def test_the_image_installs_what_the_tests_ran_with() -> None:
    """Every dependency of the wheel, in the tested version, with a hash."""
    assert [str(one) for one in pins.problems()] == []


def test_scalers_count_every_consumer_that_the_bootstrap_makes() -> None:
    """One that is made and not counted wakes no pod; one that is counted and not made keeps the scaler silent.

    Comparisons are left out: any supervisor reads them, and at least one of these always runs.
    """
    agents = [agent for reference in OURS for agent in load_agents(reference)]
    made = {(source.stream, source.durable) for source in sources_to_declare(Settings(), agents)}

    assert golden.counted(production()) == made - {(subjects.REPORTS, subjects.COMPARISONS)}
