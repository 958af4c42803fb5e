"""What every pod of the house has, whatever it runs: no rights, no place to write, probes, and time to finish."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tasklore.runtime.messaging.signatures import reads_signed

Manifest = dict[str, object]

PART_OF = "tasklore"
#: The user that the image runs as; it owns no file in it.
USER_ID = 10001
#: Where health and metrics, and the API of a supervisor, are served.
METRICS_PORT = 9464
API_PORT = 8080
#: Seconds beyond the grace period of tasks that a process may need to hand back, flush and leave.
LEAVE_S = 30
#: Seconds that whoever routes to a pod has to notice that it ends, before it hears of that itself.
UNROUTE_S = 5
#: Where secrets lie, each as a file.
SECRETS = "/run/secrets/tasklore"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRole:
    """The part of a Deployment or Job that differs from the others.

    *rights* is the user that it is at NATS and Valkey (`deploy/privileges`): `supervisor`, `memory`, `operator`,
    `bootstrap`, or `worker-NAME`. *settings* are variables of the ConfigMap beyond those that all have. *grace_s* is
    what running tasks have to finish. One that `signs_links` has the secret of links and of sessions of the console.
    """

    name: str
    rights: str
    arguments: tuple[str, ...]
    image: str = PART_OF
    namespace: str = PART_OF
    grace_s: int = 300
    has_api: bool = False
    asks_models: bool = False
    signs_links: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    memory: str = "512Mi"

    @property
    def full_name(self) -> str:
        """The name of its ConfigMap, ServiceAccount and the like."""
        return f"{PART_OF}-{self.name}"


def labels_of(role: PodRole) -> dict[str, str]:
    """Return the labels of everything that belongs to *role*."""
    return {
        "app.kubernetes.io/name": PART_OF,
        "app.kubernetes.io/component": role.name,
        "app.kubernetes.io/part-of": PART_OF,
        **role.labels,
    }


def selector_of(role: PodRole) -> dict[str, str]:
    """Return the labels that choose the pods of *role* and no others; they can never change."""
    return {"app.kubernetes.io/name": PART_OF, "app.kubernetes.io/component": role.name}


def metadata(role: PodRole, **more: object) -> Manifest:
    """Return the metadata of a manifest of *role*."""
    return {
        "name": role.full_name,
        "namespace": role.namespace,
        "labels": labels_of(role),
        **more,
    }


def deployment(role: PodRole, replicas: int | None = None) -> list[Manifest]:
    """Return *role* as a Deployment of *replicas* pods with all that it needs; None leaves their number to a scaler."""
    return [
        _account(role),
        _config(role),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(role),
            "spec": {
                **({} if replicas is None else {"replicas": replicas}),
                "revisionHistoryLimit": 5,
                "selector": {"matchLabels": selector_of(role)},
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
                },
                "template": _template(role),
            },
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata(role),
            "spec": {
                "maxUnavailable": 1,
                "selector": {"matchLabels": selector_of(role)},
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        },
    ]


def job(role: PodRole) -> list[Manifest]:
    """Return *role* as a Job that ends by itself, is tried again, and is gone ten minutes after it is done."""
    template = _template(role, ends=True)
    spec: Manifest = {
        "backoffLimit": 10,
        "activeDeadlineSeconds": 600,
        "ttlSecondsAfterFinished": 600,
        "template": template,
    }
    return [
        _account(role),
        _config(role),
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata(role),
            "spec": spec,
        },
    ]


def _account(role: PodRole) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(role),
        "automountServiceAccountToken": False,
    }


def _config(role: PodRole) -> Manifest:
    data = {
        "TASKLORE_NATS_URL": f"tls://nats.{role.namespace}.svc.cluster.local:4222",
        "TASKLORE_REDIS_URL": f"rediss://valkey.{role.namespace}.svc.cluster.local:6379/0",
        "TASKLORE_SECRETS_DIR": SECRETS,
        "TASKLORE_ROLE": role.rights,
        "TASKLORE_PROVISION": "auto" if role.rights == "bootstrap" else "never",
        "TASKLORE_REPLICAS": "3",
        "TASKLORE_HTTP_HOST": "0.0.0.0",  # noqa: S104 - probes come from outside the pod
        "TASKLORE_HTTP_PORT": str(METRICS_PORT),
        "TASKLORE_GRACE_S": str(role.grace_s),
        "TASKLORE_LOG_FORMAT": "json",
        "TASKLORE_LOG_LEVEL": "info",
        **role.settings,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(role),
        "data": dict(sorted(data.items())),
    }


def _template(role: PodRole, *, ends: bool = False) -> Manifest:
    asks = {"tasklore.dev/asks-models": "true"} if role.asks_models else {}
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector_of(role)},
            "matchLabelKeys": ["pod-template-hash"],
        }
        for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    ]
    return {
        "metadata": {"labels": labels_of(role) | asks},
        "spec": {
            "serviceAccountName": role.full_name,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "OnFailure" if ends else "Always",
            "terminationGracePeriodSeconds": role.grace_s
            + LEAVE_S
            + (UNROUTE_S if role.has_api else 0),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER_ID,
                "runAsGroup": USER_ID,
                "fsGroup": USER_ID,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            **({} if ends else {"topologySpreadConstraints": spread}),
            "containers": [_container(role, ends=ends)],
            "volumes": _volumes(role),
        },
    }


def _container(role: PodRole, *, ends: bool) -> Manifest:
    container: Manifest = {
        "name": PART_OF,
        "image": role.image,
        "imagePullPolicy": "Always",
        "args": list(role.arguments),
        "envFrom": [{"configMapRef": {"name": role.full_name}}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "192Mi", "ephemeral-storage": "64Mi"},
            "limits": {"cpu": "2", "memory": role.memory, "ephemeral-storage": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - where Python looks for one
            {"name": "secrets", "mountPath": SECRETS, "readOnly": True},
        ],
    }
    if not ends:
        container |= _serving(role)
    return container


def _serving(role: PodRole) -> Manifest:
    """Return the ports and probes of a container that serves.

    Liveness knows the process alone: pods that die because NATS is away would only make it worse.
    """
    ports = [("metrics", METRICS_PORT), *([("api", API_PORT)] if role.has_api else [])]
    serving: Manifest = {
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"}
            for name, port in ports
        ],
        "startupProbe": _probe("/healthz", every_s=2, failures=60),
        "livenessProbe": _probe("/healthz", every_s=10, failures=3),
        "readinessProbe": _probe("/readyz", every_s=5, failures=2),
    }
    if role.has_api:
        serving["lifecycle"] = {"preStop": {"sleep": {"seconds": UNROUTE_S}}}
    return serving


def _probe(path: str, *, every_s: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "metrics"},
        "periodSeconds": every_s,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


def _volumes(role: PodRole) -> list[Manifest]:
    """Return where a pod may write, and its secrets: those of its rights alone, all in one folder."""
    nats = f"{PART_OF}-nats-{role.rights}"
    valkey = f"{PART_OF}-valkey-{role.rights}"
    known = ("publishers.json",) if reads_signed(role.rights) else ()
    sources = [
        _secret(nats, "nats.nkey", "ca.crt", *known),
        _secret(valkey, "valkey.password"),
    ]
    if role.asks_models:
        sources.append(
            _secret(f"{PART_OF}-llm", "tasklore_llm_api_key", is_optional=True)
        )
    if role.has_api:
        sources.append(_secret(f"{PART_OF}-api", "api.keys"))
    if role.signs_links:
        links = _secret(
            f"{PART_OF}-links", "tasklore_approval_secret", is_optional=True
        )
        sources.append(links)
    return [
        {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}},
        {"name": "secrets", "projected": {"defaultMode": 0o440, "sources": sources}},
    ]


def _secret(name: str, *keys: str, is_optional: bool = False) -> Manifest:
    items = [{"key": key, "path": key} for key in keys]
    return {
        "secret": {
            "name": name,
            "items": items,
            **({"optional": True} if is_optional else {}),
        }
    }
