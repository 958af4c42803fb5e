"""`python -m tasklore.commands.up worker|supervisor`: a process that serves, without the extra `cli`."""

from argparse import ArgumentParser
from pathlib import Path

from tasklore.__main__ import main


def serve() -> None:
    """Serve as the command line says, until SIGTERM or SIGINT."""
    from tasklore.commands.up.serve import (
        serve_operations,
        serve_supervisor,
        serve_worker,
    )

    parser = ArgumentParser(prog="python -m tasklore.commands.up", description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    supervisor = roles.add_parser("supervisor")
    supervisor.add_argument("--operations", action="store_true")
    worker = roles.add_parser("worker")
    worker.add_argument("references", nargs="*", metavar="REF")
    worker.add_argument("--config", type=Path)
    worker.add_argument("--slots", type=int)
    given = parser.parse_args()
    if given.role == "supervisor" and given.operations:
        serve_operations()
    elif given.role == "supervisor":
        serve_supervisor()
    else:
        serve_worker(given.references, given.config, given.slots)


if __name__ == "__main__":
    main(serve)
