"""The ports of a system that runs from a folder: the same ones at each start, unless another program takes one."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path

from tasklore.commands.render.screen import say
from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.servers.claims import HOST, free_port

#: Whose ports are kept, in the folder of the data.
NAMES = ("nats", "valkey", "http", "api", "operations")
_FILE = "ports.json"
_HIGHEST = 65_535


def choose_ports(directory: Path | None) -> Mapping[str, int]:
    """Return a free port for each of `NAMES`: that of the last start in *directory*, or a new one, which is kept there.

    Without a directory all are new. A port that another program has taken meanwhile is replaced, and that is said.

    Raises:
        ConfigurationError: the directory cannot be written to, or no port is free.
    """
    known = {} if directory is None else _read(directory)
    taken = {name: port for name, port in known.items() if not _is_free(port)}
    for name, port in taken.items():
        say(f"port {port} of {name} is taken by another program; another one is used")
    chosen = {name: port for name, port in known.items() if name not in taken}
    for name in NAMES:
        if name not in chosen:
            chosen[name] = _new_port(chosen)
    if directory is not None and chosen != known:
        _write(directory, chosen)
    return chosen


def _read(directory: Path) -> dict[str, int]:
    """Return the ports that are kept; a file that is none of ours is as good as none."""
    try:
        kept = json.loads((directory / _FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(kept, dict):
        return {}
    ports: dict[str, int] = {}
    for name in NAMES:
        port = kept.get(name)
        # `true` is a number to Python, and a port serves one.
        if type(port) is int and 0 < port <= _HIGHEST and port not in ports.values():
            ports[name] = port
    return ports


def _write(directory: Path, ports: Mapping[str, int]) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (directory / _FILE).write_text(json.dumps(ports, indent=1), "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to the data directory {str(directory)!r}: {error}"
        ) from error


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: what was closed a moment ago does not hold it.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _new_port(chosen: Mapping[str, int]) -> int:
    while (port := free_port()) in chosen.values():
        continue
    return port
