"""Makes what proves who is who in a deployment of one's own: `python -m deploy.credentials DIR`.

An authority and the certificates of both servers (openssl), an nkey and a password for each role. For development and
for trying things out: a real deployment has an authority of its own, and keeps seeds and passwords where secrets are
kept. DIR then holds:

| file | who needs it |
|---|---|
| `tls/ca.crt` | everybody: with it clients know the servers |
| `tls/nats.crt`, `tls/nats.key`, `tls/valkey.crt`, `tls/valkey.key` | each server its own |
| `nats.env` | nats-server: the public nkey of each role |
| `users.acl` | valkey-server |
| `ROLE/nats.nkey`, `ROLE/valkey.password`, `ROLE/ca.crt`, `ROLE/tasklore_redis_url` | the processes of that role |
| `tls/ca.key` | nobody: keep it away, or delete it |
"""

import importlib
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contracts.errors import ConfigurationError
from deploy.privileges.nats_accounts import SYSTEM_USER, key_variable
from deploy.privileges.roles import Cast, Role
from deploy.privileges.valkey_users import valkey_users, with_passwords

#: Days that a certificate of a development authority is good for.
_DAYS = "365"
#: Seconds for one run of openssl.
_OPENSSL_S = 30.0
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")

#: Names under which the servers are reached: in a compose network, in Kubernetes, and on this machine.
NATS_NAMES = ("nats", "nats-0", "nats-1", "nats-2", "*.nats-headless.tasklore.svc.cluster.local", "localhost")
VALKEY_NAMES = ("valkey", "localhost")
_IN_CLUSTER = ("{}.tasklore.svc", "{}.tasklore.svc.cluster.local")


def make_credentials(directory: Path, roles: Sequence[Role], valkey_address: str = "valkey:6379") -> None:
    """Make everything for *roles* in *directory*, which must be empty or absent.

    Raises:
        ConfigurationError: there is something in it already, or openssl or nkeys is missing.
    """
    if directory.exists() and any(directory.iterdir()):
        raise ConfigurationError(f"{str(directory)!r} is not empty; name a new directory, or remove what is in it")
    make_certificates(directory / "tls")
    make_keys(directory, [*(role.name for role in roles), SYSTEM_USER])
    passwords = {role.name: secrets.token_urlsafe(32) for role in roles}
    _write(directory / "users.acl", with_passwords(valkey_users(roles), passwords))
    for name, password in passwords.items():
        _write(directory / name / "valkey.password", password)
        _write(directory / name / "tasklore_redis_url", f"rediss://{name}:{password}@{valkey_address}/0")
        _write(directory / name / "ca.crt", (directory / "tls" / "ca.crt").read_text("utf-8"))


def make_certificates(directory: Path) -> None:
    """Make an authority in *directory*, and a certificate for each server that it vouches for.

    Raises:
        ConfigurationError: openssl is missing, or failed.
    """
    directory.mkdir(mode=0o700, parents=True)
    _openssl(
        *("req", "-x509", *_CURVE, "-days", _DAYS, "-subj", "/CN=Tasklore development authority"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        *("-keyout", str(directory / "ca.key"), "-out", str(directory / "ca.crt")),
    )
    for server, names in (("nats", NATS_NAMES), ("valkey", VALKEY_NAMES)):
        every = [*names, *(name.format(server) for name in _IN_CLUSTER)]
        # Routes between nodes of a cluster are made by servers that are clients of each other.
        _openssl(
            *("req", "-x509", *_CURVE, "-days", _DAYS, "-subj", f"/CN={server}"),
            *("-CA", str(directory / "ca.crt"), "-CAkey", str(directory / "ca.key")),
            *("-addext", f"subjectAltName={','.join(f'DNS:{name}' for name in every)},IP:127.0.0.1"),
            *("-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth,clientAuth"),
            *("-keyout", str(directory / f"{server}.key"), "-out", str(directory / f"{server}.crt")),
        )


def make_keys(directory: Path, names: Sequence[str]) -> None:
    """Make an nkey for each of *names*: its seed in a folder of that name, its public half in `nats.env`.

    Raises:
        ConfigurationError: the package nkeys is missing.
    """
    lines = []
    nkeys = _nkeys()
    for name in names:
        seed: bytes = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
        public: bytes = nkeys.from_seed(bytearray(seed)).public_key
        _write(directory / name / "nats.nkey", seed.decode())
        lines.append(f"{key_variable(name)}={public.decode()}\n")
    _write(directory / "nats.env", "".join(lines))


def _nkeys() -> Any:
    try:
        return importlib.import_module("nkeys")
    except ImportError as error:
        raise ConfigurationError("the package nkeys is missing; install nats-py[nkeys]") from error


def _openssl(*words: str) -> None:
    command = ["openssl", *words]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_OPENSSL_S)  # noqa: S603 - our words
    except FileNotFoundError as error:
        raise ConfigurationError("openssl is missing; install it") from error
    except subprocess.CalledProcessError as error:
        raise ConfigurationError(f"openssl {words[0]} failed: {error.stderr.strip()}") from error


def _write(path: Path, text: str) -> None:
    """Write *text* for this user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def main() -> int:
    """Make credentials in the one directory that is named."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m deploy.credentials DIR\n")
        return 2
    try:
        make_credentials(Path(sys.argv[1]), Cast().roles())
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
