"""Create the credentials of a deployment: `python -m deploy.credentials DIR`.

An authority and the certificates of both servers (openssl), an nkey and a password for each role. For development and
for trying things out: a real deployment has an authority of its own, and keeps seeds and passwords where secrets are
kept. DIR then holds:

| file | who needs it |
|---|---|
| `tls/ca.crt` | everybody: with it clients know the servers |
| `tls/nats.crt`, `tls/nats.key`, `tls/valkey.crt`, `tls/valkey.key` | each server its own |
| `tls/api.crt`, `tls/api.key` | supervisors, where the API speaks TLS itself; made by `--api-tls` |
| `nats.env` | nats-server: the public nkey of each role |
| `accounts.conf` | nats-server: what each role may do |
| `users.acl` | valkey-server |
| `ROLE/nats.nkey`, `ROLE/valkey.password`, `ROLE/ca.crt`, `ROLE/tasklore_redis_url` | the processes of that role |
| `publishers.json` of supervisor, memory and workers | these: whose turns, facts, messages and answers they take in |
| `tls/ca.key` | nobody: keep it away, or delete it |

`--worker NAME=AGENT[,AGENT]` and `--program NAME=SPEAKER[,SPEAKER]` add a role to what is there, and leave every other
key and password as it is; `cast.json` then says who was added. Programs are no users of Valkey. `--renew` writes the
rights that this version declares into what is there, after an upgrade. `--print-secrets` prints what of it a cluster
reads.
"""

import argparse
import importlib
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deploy.privileges.cast_file import (
    public_keys,
    read_cast,
    replace_text,
    write_cast,
    write_private,
)
from deploy.privileges.nats_accounts import (
    SYSTEM_USER,
    key_variable,
    nats_accounts,
    publishers,
)
from deploy.privileges.roles import Cast, ServerRole, named
from deploy.privileges.valkey_users import renewed, valkey_users, with_passwords
from deploy.secret_manifests import secret_manifests
from tasklore.commands.k8s.printing import as_yaml
from tasklore.contracts.errors import ConfigurationError, TaskloreError
from tasklore.runtime.messaging.signatures import reads_signed

#: Days that a certificate of a development authority is good for.
_DAYS = "365"
#: Seconds for one run of openssl.
_OPENSSL_S = 30.0
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")

#: Names under which the servers are reached: in a compose network, in Kubernetes, and on this machine.
NATS_NAMES = (
    "nats",
    "nats-0",
    "nats-1",
    "nats-2",
    "*.nats-headless.tasklore.svc.cluster.local",
    "localhost",
)
VALKEY_NAMES = ("valkey", "localhost")
API_NAMES = ("tasklore-api", "supervisor", "localhost")
_IN_CLUSTER = ("{}.tasklore", "{}.tasklore.svc", "{}.tasklore.svc.cluster.local")


def make_credentials(
    directory: Path, roles: Sequence[ServerRole], valkey_address: str = "valkey:6379"
) -> None:
    """Make everything for *roles* in *directory*, which must be empty or absent.

    Raises:
        ConfigurationError: there is something in it already, or openssl or nkeys is missing.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigurationError(
            f"{str(directory)!r} is not an empty directory; name a new one, or empty it"
        )
    make_certificates(directory / "tls")
    make_keys(directory, [*(role.name for role in roles), SYSTEM_USER])
    passwords = _new_passwords(roles)
    write_private(
        directory / "users.acl", with_passwords(valkey_users(roles), passwords)
    )
    write_private(directory / "accounts.conf", nats_accounts(roles))
    for role in roles:
        _write_role(directory, role.name, passwords.get(role.name), valkey_address)
    _write_publishers(directory, roles)


def add_roles(
    directory: Path, added: Cast, valkey_address: str = "valkey:6379"
) -> None:
    """Make credentials for the workers and programs of *added* alone, in a *directory* that has others'.

    No other key or password changes. `nats.env`, `accounts.conf` and `users.acl` are written anew with the new roles,
    so that both servers have to be given them.

    Raises:
        ConfigurationError: it holds no credentials, a name is taken or cannot be used, or nkeys is missing; nothing
            was written then.
        InvalidInput: what an agent or a program is called cannot stand in a subject.
    """
    there = read_cast(directory)
    known = {role.name for role in there.roles()} | {SYSTEM_USER}
    new = [f"worker-{name}" for name in added.workers] + list(added.programs)
    for name in new:
        if name in known or (directory / name).exists():
            cure = "choose another name, or remove its folder if it was never used"
            raise ConfigurationError(
                f"{str(directory)!r} has credentials for {name!r} already; {cure}"
            )
    for name in added.workers:
        if not re.fullmatch(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", name):
            raise ConfigurationError(
                f"--worker {name!r} is not a valid Kubernetes name; use up to 40 of "
                "a-z, 0-9 and '-'"
            )
    cast = Cast(
        there.workers | added.workers,
        there.programs | added.programs,
        there.calls | added.calls,
        approvers=there.approvers | added.approvers,
        # Rights are never widened behind a migration that is done.
        ledger=max(there.ledger, added.ledger),
    )
    passwords = _new_passwords(role for role in cast.roles() if role.name in new)
    try:
        accounts = nats_accounts(cast.roles())
        users = renewed(
            (directory / "users.acl").read_text("utf-8"), cast.roles(), passwords
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"nobody can be added to {str(directory)!r}: {error}"
        ) from error
    keys = (directory / "nats.env").read_text("utf-8")
    nkeys = _nkeys()
    for name in new:
        keys += _make_key(nkeys, directory, name)
        _write_role(directory, name, passwords.get(name), valkey_address)
    replace_text(directory / "nats.env", keys)
    replace_text(directory / "users.acl", users)
    replace_text(directory / "accounts.conf", accounts)
    _write_publishers(directory, cast.roles())
    write_cast(directory, cast)


def _write_publishers(directory: Path, roles: Sequence[ServerRole]) -> None:
    text = publishers(roles, public_keys(directory))
    for role in roles:
        if reads_signed(role.name):
            replace_text(directory / role.name / "publishers.json", text)


def _new_passwords(roles: Iterable[ServerRole]) -> dict[str, str]:
    """Return a password for each of *roles* that is a user of Valkey, by its name."""
    return {role.name: secrets.token_urlsafe(32) for role in roles if role.has_store}


def _write_role(
    directory: Path, name: str, password: str | None, valkey_address: str
) -> None:
    """Write what *name* needs beside its nkey; without a *password* it is no user of Valkey."""
    if password is not None:
        write_private(directory / name / "valkey.password", password)
        write_private(
            directory / name / "tasklore_redis_url",
            f"rediss://{name}:{password}@{valkey_address}/0",
        )
    write_private(
        directory / name / "ca.crt", (directory / "tls" / "ca.crt").read_text("utf-8")
    )


def make_certificates(directory: Path) -> None:
    """Make an authority in *directory*, and a certificate for each server that it vouches for.

    Raises:
        ConfigurationError: openssl is missing, or failed.
    """
    directory.mkdir(mode=0o700, parents=True)
    _openssl(
        *(
            "req",
            "-x509",
            *_CURVE,
            "-days",
            _DAYS,
            "-subj",
            "/CN=Tasklore development authority",
        ),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        *("-keyout", str(directory / "ca.key"), "-out", str(directory / "ca.crt")),
    )
    for server, names in (("nats", NATS_NAMES), ("valkey", VALKEY_NAMES)):
        _make_certificate(directory, server, names)


def make_api_certificate(directory: Path) -> None:
    """Make a certificate for the API in *directory*, which holds credentials; one that is there is made anew.

    Raises:
        ConfigurationError: the authority's key is not there any more, or openssl is missing, or failed.
    """
    if not (directory / "tls" / "ca.key").is_file():
        cure = "take it from a backup, or put a certificate of your own into the secret tasklore-api-tls"
        raise ConfigurationError(
            f"{str(directory / 'tls' / 'ca.key')!r} is not there; {cure}"
        )
    _make_certificate(directory / "tls", "api", API_NAMES)


def _make_certificate(directory: Path, server: str, names: Sequence[str]) -> None:
    every = [*names, *(name.format(names[0]) for name in _IN_CLUSTER)]
    # Routes between nodes of a cluster are made by servers that are clients of each other.
    _openssl(
        *("req", "-x509", *_CURVE, "-days", _DAYS, "-subj", f"/CN={server}"),
        *("-CA", str(directory / "ca.crt"), "-CAkey", str(directory / "ca.key")),
        *(
            "-addext",
            f"subjectAltName={','.join(f'DNS:{name}' for name in every)},IP:127.0.0.1",
        ),
        *(
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "extendedKeyUsage=serverAuth,clientAuth",
        ),
        *(
            "-keyout",
            str(directory / f"{server}.key"),
            "-out",
            str(directory / f"{server}.crt"),
        ),
    )


def make_keys(directory: Path, names: Sequence[str]) -> None:
    """Make an nkey for each of *names*: its seed in a folder of that name, its public half in `nats.env`.

    Raises:
        ConfigurationError: the package nkeys is missing.
    """
    nkeys = _nkeys()
    write_private(
        directory / "nats.env",
        "".join([_make_key(nkeys, directory, name) for name in names]),
    )


def _make_key(nkeys: Any, directory: Path, name: str) -> str:
    """Write the seed of *name*, and return its line for the configuration of nats-server."""
    seed: bytes = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    public: bytes = nkeys.from_seed(bytearray(seed)).public_key
    write_private(directory / name / "nats.nkey", seed.decode())
    return f"{key_variable(name)}={public.decode()}\n"


def _nkeys() -> Any:
    try:
        return importlib.import_module("nkeys")
    except ImportError as error:
        raise ConfigurationError(
            "the package nkeys is missing; install nats-py[nkeys]"
        ) from error


def _openssl(*words: str) -> None:
    command = ["openssl", *words]
    try:
        subprocess.run(  # noqa: S603 - our words
            command, check=True, capture_output=True, text=True, timeout=_OPENSSL_S
        )
    except FileNotFoundError as error:
        raise ConfigurationError("openssl is missing; install it") from error
    except subprocess.CalledProcessError as error:
        raise ConfigurationError(
            f"openssl {words[0]} failed: {error.stderr.strip()}"
        ) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Make credentials in the one directory that is named, add to them, or print what a cluster reads of them."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.credentials",
        description="Make what proves who is who in a deployment of one's own.",
    )
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="new, or made by this command"
    )
    parser.add_argument(
        "--worker",
        action="append",
        default=[],
        metavar="NAME=AGENT[,AGENT]",
        help="add a worker",
    )
    parser.add_argument(
        "--program",
        action="append",
        default=[],
        metavar="NAME=SPEAKER[,SPEAKER]",
        help="add one",
    )
    parser.add_argument(
        "--calls",
        action="append",
        default=[],
        metavar="NAME=AGENT[,AGENT]",
        help="let a worker's tasks call agents",
    )
    parser.add_argument(
        "--approver",
        action="append",
        default=[],
        metavar="NAME=WHO[,WHO]",
        help="let a program answer questions",
    )
    parser.add_argument(
        "--api-tls",
        action="store_true",
        help="make a certificate for the API, see k8s/components",
    )
    parser.add_argument(
        "--renew", action="store_true", help="write what this version lets each role do"
    )
    parser.add_argument(
        "--ledger",
        type=int,
        choices=(1, 2),
        default=1,
        help="2, with --renew: hold workers to the ledger's entries of their own agents",
    )
    parser.add_argument(
        "--print-secrets",
        action="store_true",
        help="print Secrets and ConfigMaps for kubectl",
    )
    given = parser.parse_args(arguments)
    has_roles = bool(
        given.worker or given.program or given.calls or given.approver or given.renew
    )
    if given.ledger == 2 and not given.renew:
        parser.error("--ledger 2 goes with --renew")
    if given.print_secrets and (has_roles or given.api_tls):
        parser.error("--print-secrets prints what is there; add to it first")
    try:
        if given.print_secrets:
            sys.stdout.write(as_yaml(secret_manifests(given.directory)))
        elif has_roles or given.api_tls:
            if has_roles:
                workers = named(given.worker, "--worker")
                programs = named(given.program, "--program")
                calls = named(given.calls, "--calls")
                approvers = named(given.approver, "--approver")
                added = Cast(workers, programs, calls, approvers, ledger=given.ledger)
                add_roles(given.directory, added)
            if given.api_tls:
                make_api_certificate(given.directory)
        else:
            make_credentials(given.directory, Cast().roles())
    except TaskloreError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
