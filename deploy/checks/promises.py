"""What the manifests promise, as data: a shape for each kind, in which every value has to be as it stands here.

A value that is a function is asked instead. `mutations.py` takes each promised thing away and sees that it is missed.
"""

from collections.abc import Callable, Iterable

from deploy.checks.finding import Manifest, Problem, name_of

Shape = object
Question = Callable[[object], bool]

_CURE = "see tasklore/k8s and the overlay"


def some(value: object) -> bool:
    """Tell whether *value* says anything."""
    return value not in (None, "", {}, [])


def number(fewest: float, most: float = float("inf")) -> Question:
    """Ask for a number between *fewest* and *most*, which a string may spell."""

    def holds(value: object) -> bool:
        try:
            return fewest <= float(str(value)) <= most
        except ValueError:
            return False

    return holds


def starts(*words: str) -> Question:
    """Ask for a text that begins with one of *words*."""
    return lambda value: isinstance(value, str) and value.startswith(words)


def _versioned(image: object) -> bool:
    name, _, tag = str(image).rpartition("/")[2].partition(":")
    return "@sha256:" in str(image) or (bool(name) and tag not in ("", "latest"))


_PROBE = {
    "httpGet": {"port": "metrics"},
    "periodSeconds": number(1),
    "timeoutSeconds": number(2),
    "failureThreshold": number(2),
}
_LIVE, _READY = (
    _PROBE | {"httpGet": {"path": "/healthz", "port": "metrics"}},
    _PROBE | {"httpGet": {"path": "/readyz", "port": "metrics"}},
)
_AMOUNTS = {"cpu": some, "memory": some, "ephemeral-storage": some}

#: Of every container of ours.
CONTAINER: Shape = {
    "image": _versioned,
    "imagePullPolicy": some,
    "args": some,
    "envFrom": some,
    "resources": {"requests": _AMOUNTS, "limits": _AMOUNTS},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    },
    "volumeMounts": [
        {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - a place in a pod
        {"name": "secrets", "mountPath": "/run/secrets/tasklore", "readOnly": True},
    ],
}
#: Of every container that goes on until it is stopped.
SERVING: Shape = {
    "ports": lambda ports: {"name": "metrics", "containerPort": 9464, "protocol": "TCP"} in (ports or []),
    "startupProbe": _LIVE,
    "livenessProbe": _LIVE,
    "readinessProbe": _READY,
}
#: Of every pod.
POD: Shape = {
    "serviceAccountName": some,
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
    "hostNetwork": lambda value: value is None,
    "hostPID": lambda value: value is None,
    "securityContext": {
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "fsGroup": 10001,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "containers": [CONTAINER],
    "volumes": [
        {"name": "scratch", "emptyDir": {"sizeLimit": some}},
        {"name": "secrets", "projected": {"defaultMode": 0o440}},
    ],
}
_SPREAD = {
    "maxSkew": 1,
    "whenUnsatisfiable": some,
    "labelSelector": {"matchLabels": some},
    "matchLabelKeys": ["pod-template-hash"],
}
_DEPLOYMENT = {
    "spec": {
        "replicas": lambda value: value is None,  # the scaler's business
        "selector": {"matchLabels": some},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "spec": {
                "topologySpreadConstraints": [
                    {"topologyKey": "topology.kubernetes.io/zone", **_SPREAD},
                    {"topologyKey": "kubernetes.io/hostname", **_SPREAD},
                ],
                "terminationGracePeriodSeconds": number(60),
                "containers": [SERVING],
            }
        },
    }
}
_JOB = {
    "spec": {
        "backoffLimit": number(3),
        "activeDeadlineSeconds": number(60),
        "ttlSecondsAfterFinished": number(0),
        # By it the network policies know the pod.
        "template": {
            "metadata": {"labels": {"app.kubernetes.io/name": "tasklore"}},
            "spec": {"restartPolicy": "OnFailure", "terminationGracePeriodSeconds": number(1)},
        },
    }
}
_SCALER = {
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": some},
        "pollingInterval": number(1, 30),
        "cooldownPeriod": number(30),
        "minReplicaCount": number(0),
        "maxReplicaCount": number(2),
        "fallback": {"failureThreshold": number(1, 10), "replicas": number(1), "behavior": "currentReplicasIfHigher"},
        "advanced": {
            "horizontalPodAutoscalerConfig": {
                "behavior": {
                    "scaleUp": {
                        "stabilizationWindowSeconds": 0,
                        "selectPolicy": "Max",
                        "policies": [
                            {"type": "Percent", "value": number(100), "periodSeconds": number(1, 30)},
                            {"type": "Pods", "value": number(2), "periodSeconds": number(1, 30)},
                        ],
                    },
                    "scaleDown": {
                        "stabilizationWindowSeconds": number(60),
                        "selectPolicy": "Min",
                        "policies": [{"type": "Pods", "value": number(1, 2), "periodSeconds": number(30)}],
                    },
                }
            }
        },
    }
}
_CONFIG = {
    "data": {
        "TASKLORE_NATS_URL": starts("tls://"),
        "TASKLORE_REDIS_URL": starts("rediss://"),
        "TASKLORE_SECRETS_DIR": "/run/secrets/tasklore",
        "TASKLORE_ROLE": some,
        "TASKLORE_PROVISION": some,
        "TASKLORE_HTTP_HOST": "0.0.0.0",  # noqa: S104 - as probes need it
        "TASKLORE_HTTP_PORT": "9464",
        "TASKLORE_GRACE_S": number(1),
        "TASKLORE_LOG_FORMAT": "json",
    }
}

#: What each kind has to be; what stands in lists is looked for at its own place.
SHAPES: dict[str, list[Shape]] = {
    "Namespace": [
        {
            "metadata": {
                "labels": {
                    "pod-security.kubernetes.io/enforce": "restricted",
                    "pod-security.kubernetes.io/enforce-version": some,
                    "pod-security.kubernetes.io/audit": "restricted",
                    "pod-security.kubernetes.io/warn": "restricted",
                }
            }
        }
    ],
    "ServiceAccount": [{"automountServiceAccountToken": False}],
    "ConfigMap": [_CONFIG],
    "Deployment": [_DEPLOYMENT, {"spec": {"template": {"spec": POD}}}],
    "Job": [_JOB, {"spec": {"template": {"spec": POD}}}],
    "PodDisruptionBudget": [
        {"spec": {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"matchLabels": some}}}
    ],
    "ScaledObject": [_SCALER],
    "PodMonitor": [
        {
            "spec": {
                "selector": {"matchLabels": {"app.kubernetes.io/name": "tasklore"}},
                "namespaceSelector": {"matchNames": ["tasklore"]},
                "sampleLimit": number(2000),
                "podTargetLabels": ["app.kubernetes.io/component"],
                "podMetricsEndpoints": [
                    {"port": "metrics", "path": "/metrics", "interval": some, "scrapeTimeout": some}
                ],
            }
        }
    ],
}


def problems(manifests: Iterable[Manifest]) -> list[Problem]:
    """Return what each of *manifests* lacks of the shapes of its kind."""
    return [
        Problem(name_of(manifest), what, _CURE)
        for manifest in manifests
        for shape in SHAPES.get(str(manifest.get("kind")), [])
        for what in unlike(manifest, shape)
    ]


def unlike(found: object, shape: Shape, place: str = "") -> list[str]:
    """Return where *found* is not as *shape* has it; more than that may be there."""
    if callable(shape):
        return [] if shape(found) else [f"{place} is {_shown(found)}"]
    if isinstance(shape, dict):
        inner = found if isinstance(found, dict) else {}
        return [
            line
            for key, wanted in shape.items()
            for line in unlike(inner.get(key), wanted, f"{place}.{key}".strip("."))
        ]
    if isinstance(shape, list):
        items = found if isinstance(found, list) else []
        if len(items) < len(shape):
            return [f"{place} has {len(items)} entries, wanted {len(shape)}"]
        return [line for index, wanted in enumerate(shape) for line in unlike(items[index], wanted, f"{place}.{index}")]
    return [] if found == shape and type(found) is type(shape) else [f"{place} is {_shown(found)}, wanted {shape!r}"]


def _shown(found: object) -> str:
    return "missing" if found is None else repr(found)[:60]
