"""Who has credentials in a folder beside the fixed roles: kept there as `cast.json` from the first addition on."""

import json
import os
from pathlib import Path

from deploy.privileges.roles import Cast
from tasklore.contracts.errors import ConfigurationError

_NAME = "cast.json"


def read_cast(directory: Path) -> Cast:
    """Return the roles with credentials in *directory*: the shipped ones where none was added.

    Raises:
        ConfigurationError: it holds no credentials, or its list cannot be read.
    """
    if not (directory / "nats.env").is_file():
        cure = "make them with `python -m deploy.credentials DIR`"
        raise ConfigurationError(
            f"{str(directory)!r} holds no credentials (no nats.env); {cure}"
        )
    file = directory / _NAME
    if not file.exists():
        return Cast()
    try:
        kept = json.loads(file.read_text("utf-8"))
        workers, programs, calls, approvers = (
            {str(name): tuple(map(str, listed)) for name, listed in named.items()}
            for named in (
                kept["workers"],
                kept["programs"],
                kept.get("calls", {}),
                kept.get("approvers", {}),
            )
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigurationError(
            f"{str(file)!r} is not as it was written; take it from a backup"
        ) from error
    ledger = 2 if kept.get("ledger") == 2 else 1
    return Cast(workers, programs, calls, approvers, ledger=ledger)


def write_cast(directory: Path, cast: Cast) -> None:
    """Keep *cast* in *directory*."""
    kept = {
        "workers": cast.workers,
        "programs": cast.programs,
        "calls": cast.calls,
        "approvers": cast.approvers,
        **({"ledger": cast.ledger} if cast.ledger != 1 else {}),
    }
    replace_text(directory / _NAME, json.dumps(kept, indent=2) + "\n")


def public_keys(directory: Path) -> dict[str, str]:
    """Return the public nkey of each role in *directory*, by the variable in which nats-server finds it.

    Raises:
        ConfigurationError: the list of them is not there.
    """
    return dict(
        line.split("=", 1)
        for line in read_kept(directory, "nats.env").splitlines()
        if "=" in line
    )


def read_kept(
    directory: Path,
    name: str,
    cure: str = "take it from a backup, or create new credentials",
) -> str:
    """Return the text of the file *name* in *directory*.

    Raises:
        ConfigurationError: it cannot be read; names *cure*.
    """
    try:
        return (directory / name).read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{str(directory / name)!r} cannot be read: {error.strerror}; {cure}"
        ) from error


def write_private(path: Path, text: str) -> None:
    """Write *text* into *path*, which is new, for this user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
        "w",
        encoding="utf-8",
    ) as file:
        file.write(text)


def replace_text(path: Path, text: str) -> None:
    """Replace *path* by *text* atomically; only this user may read it."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    write_private(new, text)
    new.replace(path)
