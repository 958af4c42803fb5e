"""The configurations of NATS and Valkey, read by the servers themselves; tests try rights out at greater length."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from deploy.checks.problem import CannotCheck, CheckProblem
from deploy.checks.tools import DEADLINE_S, ROOT, find
from deploy.credentials import make_credentials
from deploy.privileges.cast_file import public_keys
from deploy.privileges.roles import Cast
from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.servers.embedded import ValkeyServer

NATS = ROOT / "deploy" / "nats"
VALKEY = ROOT / "deploy" / "valkey"
#: Commands that no role may call; each is refused by name.
FORBIDDEN: tuple[tuple[str, ...], ...] = (
    ("FLUSHALL",),
    ("KEYS", "*"),
    ("CONFIG", "SET", "maxmemory", "1"),
    ("ACL", "SETUSER", "x", "on"),
    ("SHUTDOWN",),
    ("DEBUG", "SLEEP", "0"),
    ("EVAL", "return 1", "0"),
    ("REPLICAOF", "h", "1"),
    ("GET", "not-ours"),
)
#: Seconds until a Valkey that was just started answers.
_START_S = 60.0


def nats_problems() -> list[CheckProblem]:
    """Return which shipped configuration nats-server refuses."""
    found = []
    with _credentials() as folder:
        for file in ("nats.conf", "cluster.conf"):
            done = subprocess.run(  # noqa: S603 - a program that was found
                [find("nats-server"), "-t", "-c", NATS / file],
                env={**os.environ, **_nats_environment(folder)},
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
            if done.returncode != 0:
                words = (done.stdout + done.stderr).strip().replace(str(folder), "DIR")
                found.append(CheckProblem(f"deploy/nats/{file}", words, "correct it"))
    return found


def valkey_problems() -> list[CheckProblem]:
    """Return each command of `FORBIDDEN` that a dry run lets a role call; users that do not load end the check."""
    found = []
    with _credentials() as folder, _valkey(folder) as client:
        for role in Cast().roles():
            # One without a user there is let in by nobody.
            for command in FORBIDDEN if role.has_store else ():
                answer = client.execute_command("ACL", "DRYRUN", role.name, *command)  # type: ignore[no-untyped-call]
                if answer == b"OK":
                    found.append(
                        CheckProblem(
                            f"role {role.name}",
                            f"may {' '.join(command)}",
                            "see deploy/privileges/roles.py",
                        )
                    )
    return found


@contextmanager
def _credentials() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "credentials")
        try:
            make_credentials(folder, Cast().roles())
        except ConfigurationError as error:
            raise CannotCheck(str(error)) from error
        yield folder


def _nats_environment(folder: Path) -> dict[str, str]:
    return public_keys(folder) | {
        "TASKLORE_NATS_NAME": "nats-0",
        "TASKLORE_NATS_LISTEN": "127.0.0.1:4222",
        "TASKLORE_NATS_MONITOR": "127.0.0.1:8222",
        "TASKLORE_NATS_ROUTES_LISTEN": "127.0.0.1:6222",
        "TASKLORE_NATS_STORE": str(folder / "store"),
        "TASKLORE_NATS_CERT": str(folder / "tls" / "nats.crt"),
        "TASKLORE_NATS_KEY": str(folder / "tls" / "nats.key"),
        "TASKLORE_NATS_CA": str(folder / "tls" / "ca.crt"),
    }


@contextmanager
def _valkey(folder: Path) -> Iterator["redis.Redis"]:
    """Run Valkey with the shipped configuration and users, reached by a socket and a user who may look."""
    try:
        binary = ValkeyServer(folder).find_binary()
    except ConfigurationError as error:
        raise CannotCheck(str(error)) from error
    users = folder / "users-and-judge.acl"
    users.write_text(
        (folder / "users.acl").read_text("utf-8")
        + "user judge on nopass ~* &* +@all\n",
        "utf-8",
    )
    socket = folder / "valkey.sock"
    settings = (
        "--port",
        "0",
        "--unixsocket",
        socket,
        "--aclfile",
        users,
        "--dir",
        folder,
        "--appendonly",
        "no",
    )
    process = subprocess.Popen(  # noqa: S603 - a program that was found
        [binary, VALKEY / "valkey.conf", *settings],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _judge(process, socket)
    finally:
        process.terminate()
        process.wait(_START_S)


def _judge(process: "subprocess.Popen[str]", socket: Path) -> "redis.Redis":
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    said = []
    for line in process.stdout:
        said.append(line.strip())
        if (
            "Ready to accept connections" in line
            or "server is now ready" in line.lower()
        ):
            return redis.Redis(
                unix_socket_path=str(socket),
                username="judge",
                password="any",  # noqa: S106
                socket_timeout=_START_S,
            )
    raise CannotCheck(f"valkey-server ended: {' '.join(said)[-400:]}")
