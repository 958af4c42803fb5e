"""The values for the charts of NATS and Valkey: what they must say to lose nothing and to let in roles alone."""

import yaml

from deploy.checks.problem import Problem, at
from deploy.checks.tools import ROOT

FOLDER = ROOT / "k8s" / "values"
_CONTAINER = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities.drop": ["ALL"],
}
#: The value at each path, by file.
WANTED: dict[str, dict[str, object]] = {
    "nats": {
        "config.cluster.enabled": True,
        "config.cluster.replicas": 3,
        "config.cluster.tls.enabled": True,
        "config.cluster.tls.merge.verify": True,
        "config.jetstream.fileStore.enabled": True,
        "config.jetstream.fileStore.pvc.enabled": True,
        "config.jetstream.memoryStore.enabled": False,
        "config.jetstream.merge.sync_interval": "1s",
        "config.nats.tls.enabled": True,
        "config.merge.zzz$include": "../nats-accounts/accounts.conf",
        "podTemplate.merge.spec.automountServiceAccountToken": False,
        "podTemplate.merge.spec.securityContext.runAsNonRoot": True,
        "podDisruptionBudget.enabled": True,
        **{
            f"{one}.merge.securityContext.{key}": value
            for one in ("container", "reloader")
            for key, value in _CONTAINER.items()
        },
    },
    "valkey": {
        "dataStorage.enabled": True,
        "dataStorage.keepPvc": True,
        "deploymentStrategy": "Recreate",
        "tls.enabled": True,
        "podSecurityContext.runAsNonRoot": True,
        "serviceAccount.automount": False,
        **{f"securityContext.{key}": value for key, value in _CONTAINER.items()},
    },
}
#: Lines of Valkey's own configuration.
VALKEY_LINES = (
    "appendonly yes",
    "appendfsync everysec",
    "maxmemory-policy noeviction",
    "aclfile /etc/valkey-acl/users.acl",
)


def problems() -> list[Problem]:
    """Return which values do not say what they must."""
    return [
        one for name in WANTED for one in unlike(name, yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8")))
    ]


def unlike(name: str, values: object) -> list[Problem]:
    """Return where *values* for the chart *name* differ from what they must say."""
    place, cure = f"k8s/values/{name}.yaml", "correct it; see deploy/checks/values.py"
    found = [
        Problem(place, f"{path} is {at(values, *path.split('.'))!r}, not {wanted!r}", cure)
        for path, wanted in WANTED[name].items()
        if at(values, *path.split(".")) != wanted
    ]
    if name == "valkey":
        lines = str(at(values, "valkeyConfig")).splitlines()
        found += [Problem(place, f"valkeyConfig lacks {line!r}", cure) for line in VALKEY_LINES if line not in lines]
    return found
