"""`tasklore pipeline`: run phases that make one result together, and go on where they stopped."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(
    epilog=example(
        "tasklore pipeline run repository-health --input folder=$PWD",
        "tasklore pipeline list",
    ),
    **SETTLED,
)

Source = Annotated[
    str,
    Argument(
        metavar="FILE|NAME",
        help="A .toml or .py file, or the name of one that is installed.",
    ),
]
Session = Annotated[
    str,
    Argument(metavar="SESSION", help="Which run; `tasklore pipeline list` shows them."),
]
Inputs = Annotated[
    list[str] | None,
    Option(
        "--input",
        metavar="NAME=VALUE",
        help="An input, repeatable; @FILE as the value reads a file.",
    ),
]
File = Annotated[
    str | None,
    Option(
        "--file",
        metavar="FILE",
        help="Go on by this declaration; without it as declared when the run began.",
    ),
]
NoWait = Annotated[
    bool,
    Option("--no-wait", help="Print the id of the session and end; the run goes on."),
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Run pipelines, look at their runs, resume what failed."""
    show_help_alone(context)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore pipeline run health.toml --input folder=$PWD",
        "tasklore pipeline run health.toml --keep",
    ),
)
def run(
    source: Source,
    inputs: Inputs = None,
    keep: Annotated[
        bool,
        Option("--keep", help="Keep the session after success, for its time to live."),
    ] = False,
    session: Annotated[
        str | None,
        Option(
            "--session",
            metavar="ID",
            help="Call the session so; a repeat starts nothing twice.",
        ),
    ] = None,
    user: Annotated[
        str | None, Option("--user", metavar="ID", help="Run as this user.")
    ] = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> int:
    """Check a pipeline, run it, and show each phase as it goes.

    A pipeline with problems does not run; each is printed with its line and its cure. Ctrl-C leaves the run going.
    Ends with 1 when a phase failed: `tasklore pipeline resume` then goes on from there.
    """
    from tasklore.commands import running
    from tasklore.commands.pipeline.run import RunOptions, run_pipeline

    options = RunOptions(
        source=source,
        inputs=tuple(inputs or ()),
        keep=keep,
        session=session,
        user=user,
        no_wait=no_wait,
        as_json=as_json,
    )
    return running.run(run_pipeline(options))


@app.command(
    cls=Command,
    epilog=example(
        "tasklore pipeline check health.toml",
        "tasklore pipeline check health.toml --cost",
    ),
)
def check(
    source: Source,
    inputs: Inputs = None,
    cost: Annotated[
        bool,
        Option(
            "--cost",
            help="Estimate the next run by what the last reports of its tasks had cost.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Print the problems of a pipeline, each with its line and its cure, and run nothing.

    Agents and their tasks are compared when a system runs here. Inputs are checked when any is given. Ends with 2
    when there are problems.
    """
    from tasklore.commands import running
    from tasklore.commands.pipeline.check import print_check

    return running.run(
        print_check(source, tuple(inputs or ()), has_cost=cost, as_json=as_json)
    )


@app.command(
    cls=Command, epilog=example("tasklore pipeline status health-3f9a2c71d0 --follow")
)
def status(
    session: Session,
    follow: Annotated[
        bool, Option("--follow", help="Stay until the run is over.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Show how far a run is, or how it ended; for a day also when its session is gone.

    Ends with 1 when it failed or was cancelled.
    """
    from tasklore.commands import running
    from tasklore.commands.pipeline.run import follow_run
    from tasklore.commands.pipeline.views import print_status

    return running.run(
        (follow_run if follow else print_status)(session, as_json=as_json)
    )


@app.command(
    cls=Command,
    epilog=example(
        "tasklore pipeline resume health-3f9a2c71d0",
        "tasklore pipeline resume health-3f9a2c71d0 --file health.toml",
        "tasklore pipeline resume --evidence evidence/health-3f9a2c71d0-failed.json",
    ),
)
def resume(
    session: Annotated[
        str | None,
        Argument(
            metavar="SESSION", help="Which run; with --evidence the one in the file."
        ),
    ] = None,
    evidence: Annotated[
        Path | None,
        Option(
            "--evidence",
            metavar="FILE",
            help="First restore the session from what a failure left.",
        ),
    ] = None,
    inputs: Inputs = None,
    file: File = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> int:
    """Resume a run after a failure: run only failed and missing phases, and their dependents.

    Prints first which phases run again and why, and which are reused. --input stands for inputs that are not kept, such
    as secret ones after a restore. With --file a corrected declaration counts: phases whose declaration changed run
    again.
    """
    from tasklore.commands import running
    from tasklore.commands.pipeline.run import ResumeOptions, resume_run

    options = ResumeOptions(file, no_wait, as_json)
    return running.run(
        resume_run(session, options, evidence=evidence, inputs=tuple(inputs or ()))
    )


@app.command(
    cls=Command,
    epilog=example("tasklore pipeline rerun health-3f9a2c71d0 --from analysis"),
)
def rerun(
    session: Session,
    phase: Annotated[
        str, Option("--from", metavar="PHASE", help="Where to begin again.")
    ],
    file: File = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> int:
    """Run a phase again with its dependents; everything else is reused.

    The session must still be there: one that was kept, or that failed.
    """
    from tasklore.commands import running
    from tasklore.commands.pipeline.run import ResumeOptions, rerun_phase

    return running.run(
        rerun_phase(session, phase, ResumeOptions(file, no_wait, as_json))
    )


@app.command(
    cls=Command,
    epilog=example(
        "tasklore pipeline invalidate health-3f9a2c71d0",
        "tasklore pipeline invalidate health-3f9a2c71d0 --changed workers/agent.py",
        "tasklore pipeline invalidate health-3f9a2c71d0 --standard naming",
    ),
)
def invalidate(
    session: Session,
    phase: Annotated[
        str | None, Option("--phase", metavar="PHASE", help="What this phase wrote.")
    ] = None,
    keys: Annotated[
        list[str] | None,
        Option("--key", metavar="KEY", help="What wrote this entry; repeatable."),
    ] = None,
    changed: Annotated[
        list[str] | None,
        Option("--changed", metavar="FILE", help="What reads this file; repeatable."),
    ] = None,
    standards: Annotated[
        list[str] | None,
        Option(
            "--standard",
            metavar="TAG",
            help="What reads standards with this tag; repeatable.",
        ),
    ] = None,
    design: Annotated[
        list[str] | None,
        Option(
            "--design",
            metavar="TAG",
            help="What reads decisions with this tag; repeatable.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Mark phases stale, with their dependents, and print which and why; the next resume runs them again.

    Without options those whose files, standards or decisions have changed since they read them.
    """
    from tasklore.commands import running
    from tasklore.commands.pipeline.edits import invalidate_run

    marks = {
        "keys": keys or (),
        "changed": changed or (),
        "standards": standards or (),
        "design": design or (),
    }
    return running.run(invalidate_run(session, phase=phase, **marks, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example(
        'tasklore pipeline cancel health-3f9a2c71d0 --reason "wrong folder"'
    ),
)
def cancel(
    session: Session,
    reason: Annotated[
        str, Option("--reason", metavar="TEXT", help="Why; it is kept with the run.")
    ] = "",
    as_json: Json = False,
) -> int:
    """End a run: its running tasks are cancelled, and no phase starts any more.

    Results are kept: `tasklore pipeline resume` goes on from there. Ends with 1 when it came too late.
    """
    from tasklore.commands import running
    from tasklore.commands.pipeline.edits import cancel_run

    return running.run(cancel_run(session, reason, as_json=as_json))


@app.command("list", cls=Command, epilog=example("tasklore pipeline list"))
def list_pipelines(
    limit: Annotated[
        int,
        Option("--limit", metavar="N", min=1, max=10_000, help="At most so many runs."),
    ] = 20,
    as_json: Json = False,
) -> None:
    """List the pipelines that are installed, and the runs whose sessions are there, the newest first."""
    from tasklore.commands import running
    from tasklore.commands.pipeline.views import print_list

    running.run(print_list(limit, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example("tasklore pipeline evidence health-3f9a2c71d0 evidence.json"),
)
def evidence(
    session: Session,
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="Where to; without it stdout.")
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Write over a file that is there.")
    ] = False,
) -> int:
    """Write a run as one file: inputs, entries, reports, errors and times, secrets masked.

    A failed run leaves such a file by itself; `tasklore pipeline resume --evidence FILE` goes on from it.
    """
    from tasklore.commands import running
    from tasklore.commands.pipeline.views import write_evidence

    return running.run(write_evidence(session, file, is_forced=force))
