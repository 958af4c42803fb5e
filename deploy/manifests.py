"""Generate the manifests in `k8s`: `python -m deploy.manifests`.

The manifests are made of the same parts that `tasklore k8s agent` prints for agents of other people.
"""

from collections.abc import Sequence
from pathlib import Path

import yaml

from tasklore.commands.k8s.pods import (
    API_PORT,
    SECRETS,
    Manifest,
    PodRole,
    deployment,
    job,
    labels_of,
    selector_of,
)
from tasklore.commands.k8s.printing import as_yaml
from tasklore.commands.k8s.scaling import Scale, ScaledConsumer, scaled_object
from tasklore.commands.k8s.workers import Wanted, bootstrap_manifests, worker_manifests
from tasklore.contracts import subjects
from tasklore.contracts.identifiers import PARTITIONS
from tasklore.workers.loading import load_agents

ROOT = Path(__file__).resolve().parents[1]
BASE = ROOT / "k8s" / "base"
#: Rules and alerts as Prometheus reads them; its operator gets the same ones as a PrometheusRule.
RULES = ROOT / "deploy" / "prometheus" / "rules"

#: Agents of the deployment as it is; agents of other people come beside them.
OURS = ("budget", "switchboard", "memory")
#: Agents of the component `decision`.
_DECISION = ("tasklore.workers.agents.decision",)
#: Reports that wait for one supervisor more.
_REPORTS_A_POD = 256
#: Messages to agents that wait in one partition, likewise.
_MESSAGES_A_POD = 500
_HEADING = "# Made by `python -m deploy.manifests`; change tasklore/k8s or deploy/manifests.py instead.\n"

_SUPERVISOR = PodRole(
    name="supervisor",
    rights="supervisor",
    arguments=("supervisor",),
    grace_s=60,
    has_api=True,
    asks_models=True,
    signs_links=True,
    memory="1Gi",
    settings={
        "TASKLORE_API_HOST": "0.0.0.0",  # noqa: S104 - in a pod everybody comes from outside
        "TASKLORE_API_PORT": str(API_PORT),
        "TASKLORE_API_KEYS_FILE": f"{SECRETS}/api.keys",
        "TASKLORE_EVIDENCE_DIR": "/tmp/evidence",  # noqa: S108 - a pod's own, and gone with it
    },
)
#: On loopback, so that no pod reaches it and it needs no keys: `kubectl port-forward` does, for who may use that.
_OPERATIONS = PodRole(
    name="operations",
    rights="operator",
    arguments=("supervisor", "--operations"),
    grace_s=60,
    signs_links=True,
    settings={"TASKLORE_OPERATIONS_PORT": str(API_PORT)},
)


def generated() -> dict[str, str]:
    """Return every generated file by its path from `k8s/base`."""
    return {
        "supervisor.yaml": _text(_supervisor()),
        "operations.yaml": _text(deployment(_OPERATIONS, replicas=1)),
        "bootstrap.yaml": _text(
            job(
                PodRole(
                    name="bootstrap",
                    rights="bootstrap",
                    arguments=("bootstrap", *OURS),
                    grace_s=30,
                )
            )
        ),
        "budget.yaml": _text(_worker("budget", OURS[:1])),
        "memory.yaml": _text(_worker("memory", OURS[1:])),
        "rules.yaml": _text([_rules()]),
        "../components/decision/decision.yaml": _text(
            _worker("decision-agent", _DECISION, has_job=True)
        ),
    }


def stale() -> list[str]:
    """Return the names of generated files that are missing or not as they would be made now."""
    files = {name: (BASE / name, text) for name, text in generated().items()}
    return [
        name
        for name, (file, text) in files.items()
        if not file.is_file() or file.read_text("utf-8") != text
    ]


def main() -> None:
    """Write every file."""
    for name, text in generated().items():
        (BASE / name).parent.mkdir(parents=True, exist_ok=True)
        (BASE / name).write_text(text, "utf-8")


def _supervisor() -> list[Manifest]:
    """Return the supervisor: two at least, for what people ask is stored nowhere that could be counted."""
    service: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "tasklore-api",
            "namespace": _SUPERVISOR.namespace,
            "labels": labels_of(_SUPERVISOR),
        },
        "spec": {
            "selector": selector_of(_SUPERVISOR),
            "ports": [
                {"name": "api", "port": 80, "targetPort": "api", "protocol": "TCP"}
            ],
        },
    }
    inboxes = [
        ScaledConsumer(subjects.MESSAGES, f"inbox-{number}", _MESSAGES_A_POD)
        for number in range(PARTITIONS)
    ]
    consumers = [
        ScaledConsumer(subjects.REPORTS, "SupervisorAgent", _REPORTS_A_POD),
        *inboxes,
    ]
    return [
        *deployment(_SUPERVISOR),
        service,
        scaled_object(_SUPERVISOR, Scale(fewest=2, most=6), consumers),
    ]


def _worker(
    name: str, references: tuple[str, ...], *, has_job: bool = False
) -> list[Manifest]:
    agents = [agent for reference in references for agent in load_agents(reference)]
    wanted = Wanted(references=references, image="tasklore", name=name)
    return worker_manifests(wanted, agents) + (
        bootstrap_manifests(wanted, agents) if has_job else []
    )


def _rules() -> Manifest:
    """Return the rules of `deploy/prometheus/rules` for Prometheus' operator."""
    groups = [
        group
        for file in sorted(RULES.glob("*.yml"))
        for group in yaml.safe_load(file.read_text())["groups"]
    ]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "tasklore",
            "namespace": "tasklore",
            "labels": {
                "app.kubernetes.io/name": "tasklore",
                "app.kubernetes.io/part-of": "tasklore",
            },
        },
        "spec": {"groups": groups},
    }


def _text(manifests: Sequence[Manifest]) -> str:
    return _HEADING + as_yaml(manifests)


if __name__ == "__main__":
    main()
