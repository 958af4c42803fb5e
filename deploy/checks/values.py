"""The values for the charts of NATS and Valkey: what they must say for nothing to be lost and nobody to be let in.

The charts themselves cannot be had without their repositories; docs/deploy.md tells where each value leads.
"""

import yaml

from deploy.checks.finding import Problem
from deploy.checks.promises import Shape, some, unlike
from deploy.checks.tools import ROOT

FOLDER = ROOT / "k8s" / "values"
_CONFINED: Shape = {
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
}
_POD = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "runAsGroup": 1000,
    "fsGroup": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_TLS = {"enabled": True, "secretName": "tasklore-nats-tls"}


def _has_line(*lines: str) -> object:
    return lambda text: isinstance(text, str) and set(lines) <= set(text.splitlines())


NATS: Shape = {
    "config": {
        "cluster": {
            "enabled": True,
            "replicas": 3,
            "routeURLs": {"useFQDN": True},
            "tls": {**_TLS, "merge": {"ca_file": some, "verify": True}},
        },
        "jetstream": {
            "enabled": True,
            "fileStore": {"enabled": True, "pvc": {"enabled": True, "size": some}},
            "memoryStore": {"enabled": False},
            "merge": {"sync_interval": "1s"},
        },
        "nats": {"tls": _TLS},
        "monitor": {"enabled": True, "port": 8222},
        "merge": {
            "max_payload": 1048576,
            "lame_duck_duration": some,
            "lame_duck_grace_period": some,
            "zzz$include": "../nats-accounts/accounts.conf",
        },
    },
    "container": {
        "image": {"repository": some, "tag": some},
        "resources": {"requests": {"cpu": some, "memory": some}, "limits": {"memory": some}},
        "merge": {**_CONFINED, "envFrom": [{"configMapRef": {"name": "tasklore-nats-keys"}}]},  # type: ignore[dict-item]
        "patch": [
            {
                "op": "add",
                "path": "/volumeMounts/-",
                "value": {"name": "accounts", "mountPath": "/etc/nats-accounts", "readOnly": True},
            }
        ],
    },
    "reloader": {"enabled": True, "merge": _CONFINED},
    "podTemplate": {
        "topologySpreadConstraints": {"kubernetes.io/hostname": {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}},
        "merge": {"spec": {"automountServiceAccountToken": False, "securityContext": _POD}},
        "patch": [{"op": "add", "path": "/spec/volumes/-", "value": {"name": "accounts", "configMap": {"name": some}}}],
    },
    "podDisruptionBudget": {"enabled": True},
    "natsBox": {"enabled": False},
}
VALKEY: Shape = {
    "image": {"repository": some, "tag": some},
    "dataStorage": {"enabled": True, "requestedSize": some, "keepPvc": True},
    "deploymentStrategy": "Recreate",
    "valkeyConfig": _has_line(
        "appendonly yes",
        "appendfsync everysec",
        "maxmemory-policy noeviction",
        "maxmemory 1500mb",
        'save ""',
        "aclfile /etc/valkey-acl/users.acl",
    ),
    "extraValkeySecrets": [{"name": "tasklore-valkey-acl", "mountPath": "/etc/valkey-acl"}],
    "tls": {"enabled": True, "existingSecret": some, "serverPublicKey": some, "serverKey": some, "caPublicKey": some},
    "podSecurityContext": _POD,
    "securityContext": {**_CONFINED["securityContext"], "runAsUser": 1000},  # type: ignore[index]
    "serviceAccount": {"create": True, "automount": False},
    "resources": {"requests": {"cpu": some, "memory": some}, "limits": {"memory": some}},
    "startupProbe": {"enabled": True, "customProbe": {"tcpSocket": {"port": 6379}}},
    "livenessProbe": {"enabled": True, "customProbe": {"tcpSocket": {"port": 6379}, "failureThreshold": some}},
    "readinessProbe": {"enabled": True, "customProbe": {"tcpSocket": {"port": 6379}}},
}
SHAPES: dict[str, Shape] = {"nats": NATS, "valkey": VALKEY}


def problems() -> list[Problem]:
    """Return what the values of each chart lack."""
    return [
        Problem(f"k8s/values/{name}.yaml", what, "see deploy/checks/values.py")
        for name, shape in SHAPES.items()
        for what in unlike(yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8")), shape)
    ]
