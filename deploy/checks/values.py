"""The values for the charts of NATS and Valkey, without which data is lost or a server is open to anybody."""

import yaml

from deploy.checks.problem import CheckProblem, at
from deploy.checks.tools import ROOT

_CONTAINER = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities.drop": ["ALL"],
}
#: The value at each path, by file.
REQUIRED: dict[str, dict[str, object]] = {
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
        "valkeyConfig.appendonly": "yes",
        "valkeyConfig.appendfsync": "everysec",
        "valkeyConfig.maxmemory-policy": "noeviction",
        "valkeyConfig.aclfile": "/etc/valkey-acl/users.acl",
    },
}


def problems() -> list[CheckProblem]:
    """Return each value that is missing or differs from `REQUIRED`."""
    return [one for name in REQUIRED for one in find_unlike(name, read(name))]


def read(name: str) -> dict[str, object]:
    """Return the values for the chart *name*, with Valkey's own configuration as a mapping: its last line counts."""
    values: dict[str, object] = yaml.safe_load(
        (ROOT / "k8s" / "values" / f"{name}.yaml").read_text("utf-8")
    )
    lines = [
        line.partition(" ") for line in str(values.get("valkeyConfig", "")).splitlines()
    ]
    return values | {"valkeyConfig": {word: rest for word, _, rest in lines}}


def find_unlike(name: str, values: object) -> list[CheckProblem]:
    """Return where *values* for the chart *name* differ from `REQUIRED`."""
    place = f"k8s/values/{name}.yaml"
    cure = "correct it; see deploy/checks/values.py"
    return [
        CheckProblem(place, f"{path} is {found!r}, not {required!r}", cure)
        for path, required in REQUIRED[name].items()
        if (found := at(values, *path.split("."))) != required
    ]
