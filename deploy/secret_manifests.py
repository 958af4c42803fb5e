"""The Secrets and ConfigMaps that the cluster reads, out of a folder of credentials; `--print-secrets` prints them.

Only what a pod or a server mounts: programs' credentials stay in the folder. Rights are those that
this version declares, so after an upgrade it is printed and applied once more.
"""

import base64
from collections.abc import Mapping
from pathlib import Path

from deploy.privileges.cast_file import public_keys, read_cast, read_kept
from deploy.privileges.nats_accounts import nats_accounts, publishers
from deploy.privileges.valkey_users import renewed
from tasklore.commands.k8s.pods import PART_OF, Manifest
from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.messaging.signatures import reads_signed

#: Where namespace, and with it the names in the servers' certificates, are fixed: k8s/base.
_NAMESPACE = PART_OF
#: Roles that pods have beside workers.
_FIXED = ("supervisor", "memory", "operator", "bootstrap")
_API_KEYS_CURE = "make it with `tasklore api-key NAME --role ask --file DIR/api.keys`"


def secret_manifests(directory: Path) -> list[Manifest]:
    """Return every Secret and ConfigMap.

    Raises:
        ConfigurationError: a file is missing in *directory*; says which, and how it is made.
    """
    cast = read_cast(directory)
    roles = cast.roles()
    try:
        users = renewed(read_kept(directory, "users.acl"), roles)
    except ValueError as error:
        raise ConfigurationError(
            f"users.acl in {str(directory)!r}: {error}; take it from a backup"
        ) from error
    pods = [*_FIXED, *(f"worker-{name}" for name in cast.workers)]
    keys = public_keys(directory)
    known = {"publishers.json": publishers(roles, keys)}
    return [
        *(
            manifest
            for role in pods
            for manifest in _of_role(
                directory, role, known if reads_signed(role) else {}
            )
        ),
        *(_of_server(directory, server) for server in ("nats", "valkey")),
        _secret("api", {"api.keys": read_kept(directory, "api.keys", _API_KEYS_CURE)}),
        *_of_api(directory),
        *_of_models(directory),
        *_of_links(directory),
        _secret("valkey-acl", {"users.acl": users}),
        _config_map("nats-accounts", {"accounts.conf": nats_accounts(roles)}),
        _config_map("nats-keys", keys),
    ]


def _of_role(directory: Path, role: str, known: Mapping[str, str]) -> list[Manifest]:
    own = directory / role
    return [
        _secret(
            f"nats-{role}",
            {name: read_kept(own, name) for name in ("nats.nkey", "ca.crt")}
            | dict(known),
        ),
        _secret(
            f"valkey-{role}", {"valkey.password": read_kept(own, "valkey.password")}
        ),
    ]


def _of_server(directory: Path, server: str) -> Manifest:
    files = {"tls.crt": f"{server}.crt", "tls.key": f"{server}.key", "ca.crt": "ca.crt"}
    return _secret(
        f"{server}-tls",
        {key: read_kept(directory / "tls", file) for key, file in files.items()},
    )


def _of_api(directory: Path) -> list[Manifest]:
    """Return the API's own certificate, when there is one: only the component `api-tls` has it mounted."""
    files = {
        key: directory / "tls" / f"api.{key[4:]}" for key in ("tls.crt", "tls.key")
    }
    if not all(file.is_file() for file in files.values()):
        return []
    made = _secret(
        "api-tls", {key: file.read_text("utf-8") for key, file in files.items()}
    )
    return [{**made, "type": "kubernetes.io/tls"}]


def _of_models(directory: Path) -> list[Manifest]:
    """Return the key for a language model, when there is one: pods start without it."""
    file = directory / "llm.key"
    key = file.read_text("utf-8").strip() if file.is_file() else ""
    return [_secret("llm", {"tasklore_llm_api_key": key})] if key else []


def _of_links(directory: Path) -> list[Manifest]:
    """Return the secret that signs links and sessions of the console, when there is one: pods start without it."""
    file = directory / "approval.secret"
    secret = file.read_text("utf-8").strip() if file.is_file() else ""
    return [_secret("links", {"tasklore_approval_secret": secret})] if secret else []


def _secret(name: str, texts: Mapping[str, str]) -> Manifest:
    data = {
        key: base64.b64encode(text.encode()).decode() for key, text in texts.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(name),
        "type": "Opaque",
        "data": data,
    }


def _config_map(name: str, texts: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(name),
        "data": dict(texts),
    }


def _metadata(name: str) -> Manifest:
    return {
        "name": f"{PART_OF}-{name}",
        "namespace": _NAMESPACE,
        "labels": {
            "app.kubernetes.io/name": PART_OF,
            "app.kubernetes.io/part-of": PART_OF,
        },
    }
