"""`tasklore api-key`: a new key for the HTTP API, shown once."""

import os
from collections.abc import Sequence
from pathlib import Path

from tasklore.commands.render.screen import say
from tasklore.contracts.callers import ROLES, Role
from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.http.admission.key_file import make_key

#: Where a supervisor looks for the keys, and where they are kept without it.
_VARIABLE = "TASKLORE_API_KEYS_FILE"
_DEFAULT = "api-keys.json"


def print_new_key(
    name: str,
    roles: Sequence[str],
    user: str | None,
    file: Path | None,
    approves: Sequence[str] = (),
    tenant: str | None = None,
) -> None:
    """Add a key to *file*, else to that of the environment, and print it, once: only its hash is kept."""
    path = file or Path(os.environ.get(_VARIABLE) or _DEFAULT)
    chosen = tuple(dict.fromkeys(_role(role) for role in roles or ("ask",)))
    key = make_key(
        path,
        name=name,
        roles=chosen,
        user=user,
        approves=tuple(approves),
        tenant=tenant,
    )
    print(key, flush=True)
    say(
        f"{name!r} may {', '.join(chosen)}{f' for {user!r}' if user else ''}; its hash is in {str(path)!r}"
    )
    if os.environ.get(_VARIABLE) != str(path):
        say(f"a supervisor uses it with {_VARIABLE}={path.absolute()}")


def _role(text: str) -> Role:
    for role in ROLES:
        if text == role:
            return role
    raise InvalidInput(f"--role {text!r} is not a role; choose {', '.join(ROLES)}")
