"""`tasklore doctor`: the unsafe things about the servers of a system, each with its cure."""

from typing import Annotated

from typer import Option

from tasklore.commands.options import Json
from tasklore.commands.running import run


def doctor(
    monitor: Annotated[
        str | None,
        Option(
            "--monitor",
            metavar="URL",
            help="HTTP monitoring of nats-server, such as http://127.0.0.1:8222.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        Option(
            "--strict",
            help="Exit with 1 on warnings and unknown results too.",
        ),
    ] = False,
    models: Annotated[
        bool,
        Option(
            "--models",
            help="Send a test prompt to each configured model, in one of its roles.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Check the servers and report problems, with their fixes.

    Checks NATS, Redis or Valkey, the supervisor and the workers of the system that runs
    here: whether they answer, how much a power failure would lose, streams and
    consumers, clock skew, tasks without a live worker. Nothing is changed. Each finding
    is ok, a note, unknown (it cannot be determined from here), a warning or a problem.

    Ends with 0 if there is no problem, with 1 if there is, with 3 if a server cannot be
    reached.
    """
    from tasklore.commands.doctor.examination import print_examination

    return run(
        print_examination(monitor, strict=strict, asks_models=models, as_json=as_json)
    )
