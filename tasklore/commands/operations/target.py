"""Where the API is, and with which key: from options and variables, else from what `tasklore up` left."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from tasklore.commands.endpoints import STARTS_WITHIN_S, endpoints_dir, is_starting
from tasklore.commands.render.spinner import show_patience
from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.runtime.servers.endpoints import (
    FILE_NAME,
    masked_url,
    read_endpoints,
    read_variable,
)

API_VARIABLE = "TASKLORE_API_URL"
KEY_VARIABLE = "TASKLORE_API_KEY"
OPERATIONS_VARIABLE = "TASKLORE_OPERATIONS_URL"
#: A key for operations alone; without it the other one is shown there too.
OPERATIONS_KEY_VARIABLE = "TASKLORE_OPERATIONS_KEY"
CA_VARIABLE = "TASKLORE_API_CA_FILE"
DIRECT_VARIABLE = "TASKLORE_DIRECT"

#: Seconds between two looks whether a system has started.
_LOOK_S = 0.05
#: Hosts that are this machine, whoever wrote their names into a file.
_OURSELVES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Target:
    """An address of the API: *source* is the option, variable or file that names it; *path* a proxy's prefix, or "".

    *key_variable* is the variable of its key.

    That of `--direct` is this process, with the scheme `direct`, and nothing else.
    """

    scheme: Literal["http", "https", "direct"]
    host: str
    port: int
    path: str
    key: str | None
    source: str
    key_variable: str = KEY_VARIABLE

    @property
    def url(self) -> str:
        """The address, without a password that may have stood in it."""
        if self.scheme == "direct":
            return "this process (--direct)"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def find_target(mounted: str, given: str | None = None) -> Target:
    """Return where operations *mounted* so are served; *given* is what `--api` says.

    Raises:
        Unreachable: nothing says where; the message names the cure.
        ConfigurationError: what says it is no address, or two say it.
    """
    if os.environ.get(DIRECT_VARIABLE):
        if given:
            raise ConfigurationError(
                f"--api {masked_url(given)} and --direct ({DIRECT_VARIABLE}) contradict each other; leave one out"
            )
        return Target(
            scheme="direct", host="", port=0, path="", key=None, source="--direct"
        )
    key_variable = KEY_VARIABLE
    if mounted == "operations" and read_variable(os.environ, OPERATIONS_KEY_VARIABLE):
        key_variable = OPERATIONS_KEY_VARIABLE
    variable = OPERATIONS_VARIABLE if mounted == "operations" else API_VARIABLE
    if given:
        return read_target(given, key_variable, "--api")
    if url := read_variable(os.environ, variable):
        return read_target(url, key_variable, variable)
    if mounted == "operations" and read_variable(os.environ, API_VARIABLE):
        raise Unreachable(
            f"{API_VARIABLE} is a supervisor's, which does not serve this: set {OPERATIONS_VARIABLE} to the address of "
            "a supervisor that runs with --operations"
        )
    return _read_file(mounted, variable, key_variable)


def _read_file(mounted: str, variable: str, key_variable: str) -> Target:
    place = endpoints_dir()
    _wait_for_start(place)
    found = read_endpoints(place)
    url = (
        None
        if found is None
        else (found.operations if mounted == "operations" else found.api)
    )
    file = str(place / FILE_NAME)
    if url is None:
        if is_starting(place):
            raise Unreachable(
                f"the system in {str(place)!r} is starting; try again in a few seconds"
            )
        said = (
            f"there is no {file!r}" if found is None else f"{file!r} names no such API"
        )
        raise Unreachable(
            f"no API is known here: start a system with `tasklore up`, or set {variable} ({said})"
        )
    target = read_target(url, key_variable, file)
    # Whoever can write a file into the current directory must not be sent the key by it.
    if target.host in _OURSELVES:
        return target
    return read_target(url, None, file)


def _wait_for_start(place: Path) -> None:
    """Return when no system is starting in *place*, or when it takes too long."""
    if not is_starting(place):
        return
    ends_at = time.monotonic() + STARTS_WITHIN_S
    with show_patience("waiting for the system to start"):
        while is_starting(place) and time.monotonic() < ends_at:
            time.sleep(_LOOK_S)


def read_target(url: str, key_variable: str | None, source: str) -> Target:
    """Return the address *url*, which *source* names, with the key of *key_variable*, or with none.

    Raises:
        ConfigurationError: it is no address of HTTP, or holds a user, a query or a fragment; or the key is no key.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
        host = parts.hostname
    except ValueError:
        host = None
        port = None
    if host is None or parts.scheme not in ("http", "https") or not _is_plain(url):
        raise ConfigurationError(
            f"{source} {masked_url(url)!r} is not a valid URL such as "
            "https://tasklore.example:8443; correct it"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            f"{source} {masked_url(url)!r} holds more than an address; leave it out, and set "
            f"{key_variable or KEY_VARIABLE} to the key"
        )
    key = None if key_variable is None else read_variable(os.environ, key_variable)
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ConfigurationError(
            f"{key_variable} holds what no key has, such as a line break; set it to the key alone"
        )
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    return Target(
        scheme=scheme,
        host=host,
        port=port or (443 if scheme == "https" else 80),
        path=parts.path.rstrip("/"),
        key=key,
        source=source,
        key_variable=key_variable or KEY_VARIABLE,
    )


def _is_plain(text: str) -> bool:
    """Return whether *text* can stand in the first line of a request."""
    return text.strip().isascii() and " " not in text.strip() and text.isprintable()
