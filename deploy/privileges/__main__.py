"""`python -m deploy.privileges`: write the rights of each role into the configuration of NATS and Valkey.

`--worker NAME=AGENT[,AGENT]` and `--program NAME=SPEAKER[,SPEAKER]` add users beside the shipped ones; `--calls
NAME=AGENT[,AGENT]` lets tasks of the worker NAME call those agents, and `--approver NAME=WHO[,WHO]` the program NAME
answer questions of tasks as `user:ana` or `role:finance`. `--ledger 2`, once `tasklore bootstrap --ledger 2` has ended,
holds each worker to the entries of its own agents, and of those that it calls.
"""

import argparse
import sys
from pathlib import Path

from deploy.privileges.nats_accounts import nats_accounts
from deploy.privileges.roles import Cast, named
from deploy.privileges.valkey_users import valkey_users
from tasklore.contracts.errors import TaskloreError

DEPLOY = Path(__file__).resolve().parents[1]
ACCOUNTS = Path("nats", "accounts.conf")
USERS = Path("valkey", "users.acl.template")


def generated(cast: Cast) -> dict[Path, str]:
    """Return each file, by its place below deploy/."""
    roles = cast.roles()
    return {ACCOUNTS: nats_accounts(roles), USERS: valkey_users(roles)}


def stale(cast: Cast, into: Path = DEPLOY) -> dict[Path, str]:
    """Return the text of each file, by its place below *into*, that is missing or not as it would be written now."""
    files = {path: (into / path, text) for path, text in generated(cast).items()}
    return {
        path: text
        for path, (file, text) in files.items()
        if not file.exists() or file.read_text("utf-8") != text
    }


def main() -> None:
    """Write the files that are stale."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.privileges", description=__doc__
    )
    parser.add_argument(
        "--into",
        type=Path,
        default=DEPLOY,
        metavar="DIR",
        help="where nats/ and valkey/ lie",
    )
    parser.add_argument(
        "--worker", action="append", default=[], metavar="NAME=AGENT[,AGENT]"
    )
    parser.add_argument(
        "--program", action="append", default=[], metavar="NAME=SPEAKER[,SPEAKER]"
    )
    parser.add_argument(
        "--calls", action="append", default=[], metavar="NAME=AGENT[,AGENT]"
    )
    parser.add_argument(
        "--approver", action="append", default=[], metavar="NAME=WHO[,WHO]"
    )
    parser.add_argument("--ledger", type=int, choices=(1, 2), default=1)
    given = parser.parse_args()
    cast = Cast()
    try:
        workers = named(given.worker, "--worker")
        programs = named(given.program, "--program")
        calls = named(given.calls, "--calls")
        approvers = named(given.approver, "--approver")
        files = stale(
            Cast(
                cast.workers | workers,
                cast.programs | programs,
                calls=calls,
                approvers=approvers,
                ledger=given.ledger,
            ),
            given.into,
        )
    except (TaskloreError, ValueError) as error:
        parser.error(str(error))
    for path, text in files.items():
        (given.into / path).parent.mkdir(parents=True, exist_ok=True)
        (given.into / path).write_text(text, "utf-8")
        sys.stdout.write(f"written: {given.into / path}\n")


if __name__ == "__main__":
    main()
