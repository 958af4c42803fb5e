"""`tasklore session`: the entries that the phases of a run left for each other."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(epilog=example("tasklore session list"), **SETTLED)

Session = Annotated[
    str,
    Argument(
        metavar="SESSION", help="Which session, as `tasklore session list` shows it."
    ),
]
Key = Annotated[
    str, Argument(metavar="KEY", help="An entry, such as analysis:dependencyMap.")
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Look into sessions, export and import them, drop stale entries."""
    show_help_alone(context)


@app.command(
    "list", cls=Command, epilog=example("tasklore session list --state failed")
)
def list_sessions(
    state: Annotated[
        str | None,
        Option(
            "--state",
            metavar="STATE",
            help="Only these: open, running, failed, completed or cancelled.",
        ),
    ] = None,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=10_000, help="At most so many.")
    ] = 50,
    before: Annotated[
        str | None,
        Option(
            "--before", metavar="SESSION", help="Only what was updated before this one."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the sessions, the last updated first."""
    from tasklore.commands.running import run
    from tasklore.commands.session.views import print_sessions

    run(print_sessions(state, limit, before=before, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore session show health-3f9a2c71d0"))
def show(session: Session, as_json: Json = False) -> None:
    """Show a session and its entries: age, time left, uses, what computing took, size."""
    from tasklore.commands.running import run
    from tasklore.commands.session.views import print_session

    run(print_session(session, as_json=as_json))


@app.command(
    cls=Command, epilog=example("tasklore session stats health-3f9a2c71d0 --json")
)
def stats(session: Session, as_json: Json = False) -> None:
    """Show how often entries were used, and how much time that saved.

    Lists entries that are not worth caching, as computing them took under a second, and phases of over 10 s that kept
    nothing.
    """
    from tasklore.commands.running import run
    from tasklore.commands.session.views import print_stats

    run(print_stats(session, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example("tasklore session get health-3f9a2c71d0 analysis:dependencyMap"),
)
def get(session: Session, key: Key) -> None:
    """Print the value of an entry as JSON; looking at it counts as no use of it."""
    from tasklore.commands.running import run
    from tasklore.commands.session.views import print_value

    run(print_value(session, key))


@app.command(
    "export", cls=Command, epilog=example("tasklore session export health-3f9a2c71d0")
)
def export_session(
    session: Session,
    file: Annotated[
        str | None,
        Argument(
            metavar="FILE",
            help="Where to; - is stdout, without it agentdb-SESSION.json.",
        ),
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Write over a file that is there.")
    ] = False,
) -> None:
    """Write a session as a JSON file that `import` reads."""
    from tasklore.commands.running import run
    from tasklore.commands.session.files import export_file

    run(export_file(session, file, is_forced=force))


@app.command(
    "import",
    cls=Command,
    epilog=example("tasklore session import agentdb-health-3f9a2c71d0.json"),
)
def import_session(
    file: Annotated[
        Path, Argument(metavar="FILE", help="What `export` wrote; - reads stdin.")
    ],
    session: Annotated[
        str | None,
        Option("--session", metavar="ID", help="Call it so instead of as in the file."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Put a file in as a session that is not there yet; entries whose time is over are left out.

    Ends with 2 when an entry cannot be taken; the others are.
    """
    from tasklore.commands.running import run
    from tasklore.commands.session.files import import_file

    return run(import_file(file, session, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example(
        "tasklore session invalidate health-3f9a2c71d0 --key analysis:results",
        "tasklore session invalidate health-3f9a2c71d0 --downstream analysis",
    ),
)
def invalidate(
    session: Session,
    key: Annotated[
        str | None, Option("--key", metavar="KEY", help="This entry.")
    ] = None,
    phase: Annotated[
        str | None,
        Option("--phase", metavar="PHASE", help="Every entry of this phase."),
    ] = None,
    downstream: Annotated[
        str | None,
        Option(
            "--downstream",
            metavar="PHASE",
            help="Every entry of what depends on this phase.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove entries, and print which.

    Of a run of a pipeline, `tasklore pipeline invalidate` also marks the phases, so that they run again.
    """
    from tasklore.commands.running import run
    from tasklore.commands.session.edits import invalidate_entries

    run(
        invalidate_entries(
            session, key=key, phase=phase, downstream=downstream, as_json=as_json
        )
    )


@app.command(cls=Command, epilog=example("tasklore session drop health-3f9a2c71d0"))
def drop(
    session: Session,
    force: Annotated[
        bool, Option("--force", help="Also one that runs, which ends its pipeline.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove a session with its entries; its evidence, and the project's memory, stay."""
    from tasklore.commands.running import run
    from tasklore.commands.session.edits import drop_session

    run(drop_session(session, is_forced=force, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore session sweep"))
def sweep(as_json: Json = False) -> None:
    """Remove expired entries and sessions; never one that runs."""
    from tasklore.commands.running import run
    from tasklore.commands.session.edits import sweep_sessions

    run(sweep_sessions(as_json=as_json))
