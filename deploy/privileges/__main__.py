"""`python -m deploy.privileges`: write the rights of each role into the configuration of NATS and Valkey.

With `--check` nothing is written, and what is stale is named. `--worker NAME=AGENT[,AGENT]` and
`--program NAME=SPEAKER[,SPEAKER]` add users beside the shipped ones.
"""

import argparse
import sys
from pathlib import Path

from contracts.errors import TaskloreError
from deploy.privileges.nats_accounts import nats_accounts
from deploy.privileges.roles import Cast, named
from deploy.privileges.valkey_users import valkey_users

DEPLOY = Path(__file__).resolve().parents[1]
ACCOUNTS, USERS = Path("nats", "accounts.conf"), Path("valkey", "users.acl.template")


def generated(cast: Cast) -> dict[Path, str]:
    """Return each file, by its place below deploy/."""
    roles = cast.roles()
    return {ACCOUNTS: nats_accounts(roles), USERS: valkey_users(roles)}


def main() -> int:
    """Write or check the files; returns 1 when one is stale."""
    parser = argparse.ArgumentParser(prog="python -m deploy.privileges", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 when a file is stale")
    parser.add_argument("--into", type=Path, default=DEPLOY, metavar="DIR", help="where nats/ and valkey/ lie")
    parser.add_argument("--worker", action="append", default=[], metavar="NAME=AGENT[,AGENT]")
    parser.add_argument("--program", action="append", default=[], metavar="NAME=SPEAKER[,SPEAKER]")
    given = parser.parse_args()
    cast = Cast()
    try:
        workers, programs = named(given.worker, "--worker"), named(given.program, "--program")
        texts = generated(Cast(cast.workers | workers, cast.programs | programs))
    except (TaskloreError, ValueError) as error:
        parser.error(str(error))
    files = {given.into / path: text for path, text in texts.items()}
    stale = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        sys.stdout.write(f"{'stale' if given.check else 'written'}: {path}\n")
        if not given.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], "utf-8")
    return int(given.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
