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
            help="Also end with 1 for warnings, and for what could not be told.",
        ),
    ] = False,
    models: Annotated[
        bool,
        Option(
            "--models",
            help="Ask each model of the settings one small question, as one of its roles.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Examine the servers and flag what is unsafe, with the cure.

    That is NATS, Redis or Valkey, supervisor and workers of the system that runs here: whether they answer, how much a
    power cut would take, streams and consumers, clocks, tasks that nobody takes. Nothing is changed. Each finding is
    ok, a note, unknown (it cannot be told from here), a warning or a problem.

    Ends with 0 when there is no problem, with 1 when there is, with 3 when a server cannot be reached.
    """
    from tasklore.commands.doctor.examination import print_examination

    return run(
        print_examination(monitor, strict=strict, asks_models=models, as_json=as_json)
    )
