"""Where the servers are: from the environment, else from the file that `tasklore up` leaves in its data directory.

Standard library only: clients of the API read this, and load nothing heavier.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.secret_sources import read_secret

NATS_VARIABLE = "TASKLORE_NATS_URL"
REDIS_VARIABLE = "TASKLORE_REDIS_URL"
DATA_DIR_VARIABLE = "TASKLORE_DATA_DIR"

#: Where `tasklore up` keeps its data unless told otherwise, below the current directory.
DEFAULT_DATA_DIR = ".tasklore"
#: The file in a data directory that names the servers which use it.
FILE_NAME = "endpoints.json"

_NEXT_URL = re.compile(r",(?=[a-z+]+://)")
_USERINFO = re.compile(r"(?:(?<=://)|^(?![a-z+]+://))([^:@]*)(:?).*@")
_SECRET_QUERY = re.compile(r"(?<=[?&])([a-z_]*(?:password|token)[a-z_]*=)[^&]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Addresses of one running system; None is not known, `workers` maps the id of a worker to its HTTP address.

    `monitor` is the monitoring address of its nats-server, known only for a server of ours; `api`
    is the HTTP API of the supervisor, `http` its health and metrics, `operations` the API with an operator's rights.
    """

    nats: str
    redis: str | None = None
    http: str | None = None
    workers: Mapping[str, str] = field(default_factory=dict)
    monitor: str | None = None
    api: str | None = None
    operations: str | None = None

    @property
    def redis_url(self) -> str:
        """The Redis address; raises ConfigurationError when it is not known."""
        if self.redis is None:
            raise ConfigurationError(
                f"set {REDIS_VARIABLE}: {NATS_VARIABLE} is set, and nothing says which Redis goes with it"
            )
        return self.redis


def find_endpoints(
    environ: Mapping[str, str], data_dir: Path | None = None
) -> Endpoints:
    """Return the servers that the environment names, completed from `endpoints.json` where the two agree.

    The file is that of *data_dir*, else of `TASKLORE_DATA_DIR`, else of `.tasklore` in the current directory. A file
    that names another server than the environment belongs to another system and is not read.

    Raises:
        ConfigurationError: neither says where NATS is, or the file cannot be read.
    """
    nats = read_variable(environ, NATS_VARIABLE)
    redis = read_variable(environ, REDIS_VARIABLE)
    directory = data_dir or Path(environ.get(DATA_DIR_VARIABLE) or DEFAULT_DATA_DIR)
    if nats and redis:
        return Endpoints(nats=nats, redis=redis)
    written = read_endpoints(directory)
    if written and nats in (None, written.nats) and redis in (None, written.redis):
        return written
    if nats:
        return Endpoints(nats=nats)
    raise ConfigurationError(
        f"no system is known here: start one with `tasklore up`, or set {NATS_VARIABLE} and {REDIS_VARIABLE} "
        f"(there is no fitting {str(directory / FILE_NAME)!r}; after `tasklore up --data-dir DIR` set "
        f"{DATA_DIR_VARIABLE} to DIR)"
    )


def read_variable(environ: Mapping[str, str], variable: str) -> str | None:
    """Return *variable*, else the secret of its name in small letters; None when there is neither.

    Raises:
        ConfigurationError: secrets cannot be read.
    """
    return environ.get(variable) or read_secret(environ, variable.lower())


def read_endpoints(data_dir: Path) -> Endpoints | None:
    """Return what *data_dir* names, or None when it holds no such file.

    Raises:
        ConfigurationError: the file is not readable or not ours.
    """
    path = data_dir / FILE_NAME
    try:
        content = json.loads(path.read_text("utf-8"))
        workers = content.get("workers") or {}
        monitor = content.get("monitor")
        return Endpoints(
            nats=content["nats"],
            redis=content["redis"],
            http=content.get("http"),
            workers=workers,
            monitor=monitor,
            api=content.get("api"),
            operations=content.get("operations"),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"cannot read {str(path)!r} ({type(error).__name__}); remove it, or start `tasklore up` again"
        raise ConfigurationError(msg) from error


def write_endpoints(data_dir: Path, endpoints: Endpoints) -> Path:
    """Write *endpoints* into *data_dir* for this user alone, at once or not at all; return the file.

    Raises:
        ConfigurationError: the directory cannot be written to.
    """
    # Imported here: who only reads the file needs no random numbers.
    import secrets

    path = data_dir / FILE_NAME
    draft = data_dir / f".{FILE_NAME}.{secrets.token_hex(4)}"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
            "w",
            encoding="utf-8",
        ) as file:
            json.dump(asdict(endpoints), file, indent=1)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigurationError(
            f"cannot write {str(path)!r}: {error.strerror or error}"
        ) from error
    return path


def remove_endpoints(data_dir: Path) -> None:
    """Remove the file, when there is one: those addresses serve no more."""
    (data_dir / FILE_NAME).unlink(missing_ok=True)


def addresses_in(url: str) -> list[str]:
    """Return each address in *url*, where several are joined by commas."""
    return _NEXT_URL.split(url)


def masked_url(url: str) -> str:
    """Return *url*, or several joined by commas, with every password and token as `***`; user names stay."""
    return ",".join(_masked(one) for one in addresses_in(url))


def _masked(url: str) -> str:
    # Greedy up to the last "@": a password with an unescaped "@" or "/" in it is masked whole too.
    hidden = _USERINFO.sub(
        lambda match: f"{match[1]}:***@" if match[2] else "***@", url
    )
    return _SECRET_QUERY.sub(r"\1***", hidden)
