"""The checks of what is deployed miss what is taken away; `make deploy-check` takes away everything there is."""

import copy
import functools
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts import subjects
from deploy.checks import compose, custom, network, pins, promises, values, whole
from deploy.checks.finding import Manifest, name_of
from deploy.checks.mutations import is_free, paths, without
from deploy.manifests import OURS
from runtime.settings import Settings
from tasklore.bootstrap import wanted_sources
from workers.loading import load_agents

BASE = Path(__file__).resolve().parents[3] / "k8s" / "base"


def of_base() -> list[Manifest]:
    """Return the manifests that both overlays share, with an image that has a version."""
    return copy.deepcopy(_read())


@functools.cache
def _read() -> list[Manifest]:
    files = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    texts = [(BASE / file).read_text().replace("image: tasklore\n", "image: tasklore:0.1.0\n") for file in files]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def complaints(manifests: list[Manifest]) -> list[str]:
    """Return what any check has to say."""
    found = promises.problems(manifests) + whole.problems(manifests, is_production=True)
    return [str(one) for one in found + custom.problems(manifests) + network.problems(manifests)]


def test_the_manifests_as_they_are_please_every_check() -> None:
    """Otherwise every removal below would be missed for another reason."""
    assert complaints(of_base()) == []


POD = "spec.template.spec"
REMOVALS = [
    ("Namespace tasklore", "metadata.labels.pod-security~kubernetes~io/enforce"),
    ("Deployment tasklore-budget", f"{POD}.automountServiceAccountToken"),
    ("Deployment tasklore-budget", f"{POD}.terminationGracePeriodSeconds"),
    ("Deployment tasklore-budget", f"{POD}.securityContext.seccompProfile"),
    ("Deployment tasklore-memory", f"{POD}.containers.0.securityContext.readOnlyRootFilesystem"),
    ("Deployment tasklore-memory", f"{POD}.containers.0.securityContext.capabilities.drop.0"),
    ("Deployment tasklore-memory", f"{POD}.containers.0.readinessProbe"),
    ("Deployment tasklore-supervisor", f"{POD}.containers.0.lifecycle"),
    ("Deployment tasklore-supervisor", f"{POD}.topologySpreadConstraints.1"),
    ("Deployment tasklore-supervisor", f"{POD}.volumes.1.projected.sources.0"),
    ("Job tasklore-bootstrap", f"{POD}.securityContext.runAsNonRoot"),
    ("ConfigMap tasklore-budget", "data.TASKLORE_PROVISION"),
    ("ConfigMap tasklore-budget", "data.TASKLORE_SECRETS_DIR"),
    ("ConfigMap tasklore-memory", "data.TASKLORE_REPLICAS"),
    ("ScaledObject tasklore-memory", "spec.triggers.17"),
    ("ScaledObject tasklore-memory", "spec.triggers.35"),
    ("ScaledObject tasklore-budget", "spec.fallback"),
    ("ScaledObject tasklore-supervisor", "spec.minReplicaCount"),
    ("NetworkPolicy default-deny", "spec.policyTypes.1"),
    ("NetworkPolicy nats", "spec.ingress.0.from"),
    ("NetworkPolicy valkey", "spec.ingress.0.ports"),
    ("NetworkPolicy tasklore-to-models", "spec.egress.0.to.0.ipBlock.except.2"),
    ("PodMonitor tasklore", "spec.sampleLimit"),
]


@pytest.mark.parametrize(("name", "place"), REMOVALS)
def test_a_promise_that_is_taken_away_is_missed(name: str, place: str) -> None:
    """One of each sort; `~` stands for a dot within a name."""
    steps = [int(step) if step.isdigit() else step.replace("~", ".") for step in place.split(".")]
    changed = [without(one, tuple(steps)) if name_of(one) == name else one for one in of_base()]

    assert changed != _read()
    assert complaints(changed)


def with_tls() -> list[Manifest]:
    """Return the base with what the component `api-tls` changes."""
    found = {name_of(one): one for one in of_base()}
    component = BASE.parent / "components" / "api-tls" / "kustomization.yaml"
    for patch in yaml.safe_load(component.read_text())["patches"]:
        for step in yaml.safe_load(patch["patch"]):
            *parents, last = step["path"].split("/")[1:]
            around: Any = found[f"{patch['target']['kind']} {patch['target']['name']}"]
            for part in parents:
                around = around[int(part) if part.isdigit() else part]
            if step["op"] == "test":
                assert around[last] == step["value"]
            elif last == "-":
                around.append(step["value"])
            else:
                assert (last in around) == (step["op"] == "replace")
                around[last] = step["value"]
    return list(found.values())


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("ConfigMap tasklore-supervisor", "data.TASKLORE_API_TLS_CERT_FILE"),
        ("ConfigMap tasklore-supervisor", "data.TASKLORE_API_TLS_KEY_FILE"),
        ("Deployment tasklore-supervisor", f"{POD}.volumes.1.projected.sources.4"),
        ("Deployment tasklore-supervisor", f"{POD}.volumes.1.projected.sources.4.secret.items.1"),
        ("Service tasklore-api", "spec.ports.0.appProtocol"),
    ],
)
def test_an_api_with_tls_lacks_none_of_its_parts(name: str, place: str) -> None:
    """A certificate without its key, files that no secret brings, a service that says it is plain HTTP."""
    whole_of_it = with_tls()
    assert (complaints(whole_of_it), whole.has_tls(whole_of_it), whole.has_tls(of_base())) == ([], True, False)
    path = tuple(int(step) if step.isdigit() else step for step in place.split("."))
    assert not is_free(name.partition(" ")[0], path)
    assert complaints([without(one, path) if name_of(one) == name else one for one in whole_of_it])


@pytest.mark.parametrize(
    "kind", ["NetworkPolicy", "PodDisruptionBudget", "ScaledObject", "ServiceAccount", "PodMonitor"]
)
def test_a_whole_manifest_that_is_gone_is_missed(kind: str) -> None:
    """The first of its kind, and nothing else."""
    found = of_base()
    found.remove(next(one for one in found if one.get("kind") == kind))

    assert complaints(found)


def test_a_weaker_value_is_missed_like_a_missing_one() -> None:
    """True where False is promised, a grace period below the tasks', a secret of somebody else."""
    weaker: list[tuple[str, list[Any], Any]] = [
        ("containers", [0, "securityContext", "privileged"], True),
        ("terminationGracePeriodSeconds", [], 299),
        ("volumes", [1, "projected", "sources", 0, "secret", "name"], "tasklore-nats-supervisor"),
    ]
    for field, steps, value in weaker:
        found = of_base()
        pod: Any = next(one for one in found if name_of(one) == "Deployment tasklore-budget")
        around: Any = pod["spec"]["template"]["spec"]
        *within, last = [field, *steps]
        for step in within:
            around = around[step]
        around[last] = value

        assert complaints(found), field


def test_a_misspelt_field_of_a_custom_resource_is_found() -> None:
    """A cluster without strict validation would take the default without a word."""
    found = of_base()
    scaler: Any = next(one for one in found if one.get("kind") == "ScaledObject")
    scaler["spec"]["triggers"][0]["metadata"]["lagTreshold"] = "5"

    assert any("lagTreshold" in str(one) for one in custom.problems(found))


def test_network_policies_are_worked_out_as_kubernetes_does() -> None:
    """Who is chosen by none is open, who is chosen is closed but for its rules, and outwards is not inwards."""
    policies = [one for one in of_base() if one.get("kind") == "NetworkPolicy"]
    out = [one for one in policies if name_of(one) == "NetworkPolicy tasklore-to-stores"]

    assert network.passes([], network.WORKER, network.NATS, "TCP 1", "Egress")
    assert network.passes(out, network.WORKER, network.NATS, "TCP 4222", "Egress")
    assert not network.passes(out, network.WORKER, network.NATS, "TCP 8222", "Egress")
    assert network.passes(out, network.WORKER, network.NATS, "TCP 8222", "Ingress")
    assert not network.passes(policies, network.WORKER, network.METADATA, "TCP 80", "Egress")


def test_a_worker_is_not_ready_without_a_job_that_makes_its_consumers() -> None:
    """Neither one of the base nor the one that the component for worlds adds."""
    added = BASE.parent / "components" / "decision" / "decision.yaml"
    manifests = [*of_base(), *yaml.safe_load_all(added.read_text())]
    assert whole.unprepared(manifests) == []
    for name in ("tasklore-bootstrap", "tasklore-bootstrap-decision-agent"):
        rest = [one for one in manifests if name_of(one) != f"Job {name}"]
        assert len(rest) == len(manifests) - 1
        assert whole.unprepared(rest) != []


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


@pytest.mark.parametrize("chart", sorted(values.SHAPES))
def test_no_value_for_a_chart_can_be_left_out_unnoticed(chart: str) -> None:
    """Copies, disks, TLS, users and confinement; what is left over is named here."""
    free = {
        "nats": {"container.patch.0", "podTemplate.patch.0.value.name"},
        "valkey": {"tls.requireClientCertificate", "startupProbe.customProbe.", "livenessProbe.customProbe."},
    }[chart]
    given = yaml.safe_load((values.FOLDER / f"{chart}.yaml").read_text())
    assert promises.unlike(given, values.SHAPES[chart]) == []
    missed = [
        ".".join(map(str, path))
        for path in paths(given)
        if not promises.unlike(without(given, path), values.SHAPES[chart])
    ]

    assert [
        one for one in missed if not any(one.startswith(word) for word in (*free, "readinessProbe.customProbe."))
    ] == []


def test_what_is_free_to_go_is_free_for_a_reason() -> None:
    """Nothing of security is among it, however the patterns read."""
    guarded = [
        "spec.template.spec.securityContext.runAsNonRoot",
        "spec.template.spec.containers.0.securityContext.privileged",
        "spec.template.spec.containers.0.livenessProbe",
        "spec.template.spec.volumes.1",
    ]

    assert not any(is_free("Deployment", tuple(place.split("."))) for place in guarded)


def test_the_image_installs_what_the_tests_ran_with() -> None:
    """Every dependency of the wheel, in the tested version, with a hash."""
    assert [str(one) for one in pins.problems()] == []


def test_scalers_count_every_consumer_that_the_bootstrap_makes() -> None:
    """One that is made and not counted would wake nobody; one that is counted and not made keeps the scaler silent.

    Comparisons are left out: any supervisor reads them, and at least one of these always runs.
    """
    agents = [agent for reference in OURS for agent in load_agents(reference)]
    made = {(source.stream, source.durable) for source in wanted_sources(Settings(), agents)}

    assert set().union(*whole.CONSUMERS.values()) == made - {(subjects.REPORTS, subjects.COMPARISONS)}
