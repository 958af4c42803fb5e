"""Who this process is to the servers: its role, the key that proves it, and the authority it trusts.

From the environment alone, since every command connects: a setting of the same name documents each variable. Standard
library only.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.identifiers import checked_name
from tasklore.runtime.secret_sources import SECRETS_VARIABLE

ROLE_VARIABLE = "TASKLORE_ROLE"
SEED_VARIABLE = "TASKLORE_NATS_SEED_FILE"
NATS_CA_VARIABLE = "TASKLORE_NATS_CA_FILE"
REDIS_CA_VARIABLE = "TASKLORE_REDIS_CA_FILE"
#: A file that says who publishes what this process reads; see `tasklore.runtime.messaging.signatures`.
PUBLISHERS_VARIABLE = "TASKLORE_NATS_PUBLISHERS_FILE"
PASSWORD_VARIABLE = "TASKLORE_REDIS_PASSWORD_FILE"  # noqa: S105 - where one lies, not what it is

#: What a directory of secrets holds, by the variable that would name the file otherwise.
_IN_SECRETS = {
    SEED_VARIABLE: "nats.nkey",
    PUBLISHERS_VARIABLE: "publishers.json",
    NATS_CA_VARIABLE: "ca.crt",
    REDIS_CA_VARIABLE: "ca.crt",
    PASSWORD_VARIABLE: "valkey.password",
}


@dataclass(frozen=True, slots=True)
class ServerCredentials:
    """What servers are shown; with everything None they have to be open to anybody.

    `role` names the user of Redis where its address names none, and the prefix of the inboxes on NATS. `seed_file`
    holds the seed of an nkey.
    """

    role: str | None = None
    seed_file: Path | None = None
    nats_ca_file: Path | None = None
    redis_ca_file: Path | None = None
    password_file: Path | None = None
    publishers_file: Path | None = None

    def nats_options(self) -> dict[str, Any]:
        """Return the authentication options for `nats.connect`.

        Raises:
            ConfigurationError: a file cannot be read.
        """
        options: dict[str, Any] = (
            {"inbox_prefix": inbox_prefix(self.role)} if self.role else {}
        )
        if self.seed_file is not None:
            options["nkeys_seed_str"] = _text_in(self.seed_file, SEED_VARIABLE)
        if self.nats_ca_file is not None:
            options["tls"] = self.nats_tls()
        return options

    def nats_tls(self) -> ssl.SSLContext | None:
        """Return how a NATS server proves who it is; None leaves that to its address and the system's authorities.

        Raises:
            ConfigurationError: the file of the authority cannot be read.
        """
        if self.nats_ca_file is None:
            return None
        return _context(self.nats_ca_file, NATS_CA_VARIABLE)

    def redis_options(self, url: str) -> dict[str, Any]:
        """Return the authentication options for redis-py; user and password of *url* come first.

        Raises:
            ConfigurationError: a file cannot be read.
        """
        options: dict[str, Any] = {}
        parts = urlsplit(url)
        if self.password_file is not None and parts.password is None:
            options["password"] = _text_in(self.password_file, PASSWORD_VARIABLE)
            if self.role is not None and not parts.username:
                options["username"] = self.role
        return options

    def redis_tls(self, url: str) -> ssl.SSLContext | None:
        """Return how the server at *url* proves who it is; None when it is spoken to in the clear.

        To be made once for many connections: without a file of our own it takes 40 ms to read the system's authorities.

        Raises:
            ConfigurationError: the file of the authority cannot be read.
        """
        if not url.startswith("rediss://"):
            return None
        return _context(self.redis_ca_file, REDIS_CA_VARIABLE)


def access_of(environ: Mapping[str, str] = os.environ) -> ServerCredentials:
    """Return what *environ* says: each file by its own variable, else as it is called in TASKLORE_SECRETS_DIR.

    Raises:
        InvalidInput: the role is no name.
    """
    role = environ.get(ROLE_VARIABLE) or None
    return ServerCredentials(
        role=checked_name(role, ROLE_VARIABLE) if role is not None else None,
        seed_file=_path(environ, SEED_VARIABLE),
        nats_ca_file=_path(environ, NATS_CA_VARIABLE),
        redis_ca_file=_path(environ, REDIS_CA_VARIABLE),
        password_file=_path(environ, PASSWORD_VARIABLE),
        publishers_file=_path(environ, PUBLISHERS_VARIABLE),
    )


def inbox_prefix(role: str) -> str:
    """Return the inbox prefix of *role*, of its own, so that no other role can listen to its answers."""
    return f"_INBOX_{role}"


def _path(environ: Mapping[str, str], variable: str) -> Path | None:
    value = environ.get(variable)
    if value:
        return Path(value)
    directory = environ.get(SECRETS_VARIABLE)
    path = Path(directory, _IN_SECRETS[variable]) if directory else None
    return path if path is not None and path.is_file() else None


def _context(authority: Path | None, variable: str) -> ssl.SSLContext:
    """Return a context that trusts *authority* alone, for None those of the system."""
    try:
        context = ssl.create_default_context(
            cafile=None if authority is None else str(authority)
        )
    except OSError as error:
        raise _unreadable(authority or Path(), variable, error) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _text_in(path: Path, variable: str) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, variable, error) from error


def _unreadable(path: Path, variable: str, error: Exception) -> ConfigurationError:
    words = getattr(error, "strerror", None) or str(error)
    return ConfigurationError(
        f"{variable} names {str(path)!r}, which cannot be read: {words}; correct it"
    )
