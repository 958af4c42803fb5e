"""`tasklore pipelines run|check|status|resume|restore|rerun|evidence|installed`: what reads a file, or follows a run.

All else is an operation of its name.
"""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import (
    SETTLED,
    Api,
    Command,
    Json,
    example,
    show_help_alone,
)

app = Typer(
    epilog=example(
        "tasklore pipelines run code-report --input folder=$PWD",
        "tasklore pipelines list",
    ),
    **SETTLED,
)

Source = Annotated[
    str,
    Argument(
        metavar="FILE|NAME",
        help="A .toml or .py file, or the name of an installed pipeline.",
    ),
]
Session = Annotated[
    str,
    Argument(
        metavar="SESSION",
        help="Session id of the run; `tasklore pipelines list` shows them.",
    ),
]
Inputs = Annotated[
    list[str] | None,
    Option(
        "--input",
        metavar="NAME=VALUE",
        help="An input, repeatable; the value @FILE reads a file.",
    ),
]
File = Annotated[
    str | None,
    Option(
        "--file",
        metavar="FILE",
        help="Resume with this declaration; default: the one the run began with.",
    ),
]
NoWait = Annotated[
    bool,
    Option(
        "--no-wait", help="Print the id of the session and exit; the run continues."
    ),
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Run pipelines, show their runs, resume failed ones."""
    show_help_alone(context)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore pipelines run health.toml --input folder=$PWD",
        "tasklore pipelines run health.toml --keep",
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
            help="Id of the session; repeating it does not start a second run.",
        ),
    ] = None,
    user: Annotated[
        str | None, Option("--user", metavar="ID", help="Run as this user.")
    ] = None,
    no_wait: NoWait = False,
    api: Api = None,
    as_json: Json = False,
) -> int:
    """Check a pipeline, run it, and show the progress of each phase.

    A pipeline with problems does not run; each is printed with its line and its fix.
    The run continues after Ctrl-C. Ends with 1 if a phase failed: `tasklore pipelines
    resume` then continues from there.
    """
    from tasklore.commands.pipelines.run import RunOptions, run_pipeline

    options = RunOptions(
        source=source,
        inputs=tuple(inputs or ()),
        keep=keep,
        session=session,
        user=user,
        no_wait=no_wait,
        as_json=as_json,
        api=api,
    )
    return run_pipeline(options)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore pipelines check health.toml",
        "tasklore pipelines check health.toml --cost",
    ),
)
def check(
    source: Source,
    inputs: Inputs = None,
    cost: Annotated[
        bool,
        Option(
            "--cost",
            help="Estimate the next run by the cost in the last reports of its tasks; "
            "requires the role operate.",
        ),
    ] = False,
    api: Api = None,
    as_json: Json = False,
) -> int:
    """Print the problems of a pipeline, each with its line and its fix; runs nothing.

    Agents and their tasks are checked if a system runs here. Inputs are checked if any
    is given. Ends with 2 if there are problems.
    """
    from tasklore.commands.pipelines.check import print_check

    return print_check(
        source, tuple(inputs or ()), has_cost=cost, as_json=as_json, api=api
    )


@app.command(
    cls=Command, epilog=example("tasklore pipelines status health-3f9a2c71d0 --follow")
)
def status(
    session: Session,
    follow: Annotated[
        bool, Option("--follow", help="Wait until the run has ended.")
    ] = False,
    api: Api = None,
    as_json: Json = False,
) -> int:
    """Show the progress or the end of a run; for a day even after its session is gone.

    Ends with 1 if it failed or was cancelled.
    """
    from tasklore.commands.pipelines.ends import print_status

    return print_status(session, is_followed=follow, as_json=as_json, api=api)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore pipelines resume health-3f9a2c71d0",
        "tasklore pipelines resume health-3f9a2c71d0 --file health.toml",
    ),
)
def resume(
    session: Session,
    inputs: Inputs = None,
    file: File = None,
    no_wait: NoWait = False,
    api: Api = None,
    as_json: Json = False,
) -> int:
    """Resume a run after a failure: run only failed and missing phases, and their dependents.

    Prints first which phases run again and why, and which are reused. --input replaces
    inputs that are not kept, such as secret ones after a restore. With --file a
    corrected declaration is used: phases whose declaration changed run again.
    """
    from tasklore.commands.pipelines.run import ResumeOptions, resume_run

    options = ResumeOptions(
        file=file,
        inputs=tuple(inputs or ()),
        no_wait=no_wait,
        as_json=as_json,
        api=api,
    )
    return resume_run(session, options)


@app.command(
    cls=Command,
    epilog=example("tasklore pipelines restore evidence/health-3f9a2c71d0-failed.json"),
)
def restore(
    evidence: Annotated[
        Path, Argument(metavar="FILE", help="The evidence file of a failed run.")
    ],
    inputs: Inputs = None,
    file: File = None,
    no_wait: NoWait = False,
    api: Api = None,
    as_json: Json = False,
) -> int:
    """Restore a run whose session is gone from its evidence, and resume it.

    --input gives inputs that are masked in the evidence. Requires an API key with the
    role operate if API keys are enabled.
    """
    from tasklore.commands.pipelines.restore import restore_run
    from tasklore.commands.pipelines.run import ResumeOptions

    options = ResumeOptions(
        file=file,
        inputs=tuple(inputs or ()),
        no_wait=no_wait,
        as_json=as_json,
        api=api,
    )
    return restore_run(evidence, options)


@app.command(
    cls=Command,
    epilog=example("tasklore pipelines rerun health-3f9a2c71d0 --from analysis"),
)
def rerun(
    session: Session,
    phase: Annotated[
        str, Option("--from", metavar="PHASE", help="The phase to begin with.")
    ],
    file: File = None,
    no_wait: NoWait = False,
    api: Api = None,
    as_json: Json = False,
) -> int:
    """Run a phase again with its dependents; everything else is reused.

    The session must still exist: it was kept, or the run failed.
    """
    from tasklore.commands.pipelines.run import ResumeOptions, rerun_phase

    options = ResumeOptions(file=file, no_wait=no_wait, as_json=as_json, api=api)
    return rerun_phase(session, phase, options)


@app.command(cls=Command, epilog=example("tasklore pipelines installed"))
def installed(as_json: Json = False) -> None:
    """List the pipelines that are installed here, and those in TASKLORE_PIPELINES_DIR; needs no server."""
    from tasklore.commands.pipelines.sources import print_installed

    print_installed(as_json=as_json)


@app.command(
    cls=Command,
    epilog=example("tasklore pipelines evidence health-3f9a2c71d0 evidence.json"),
)
def evidence(
    session: Session,
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="Output file; default: stdout.")
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Overwrite an existing file.")
    ] = False,
    api: Api = None,
) -> int:
    """Write a run as one file: inputs, entries, reports, errors and times, secrets masked.

    A failed run writes such a file too; `tasklore pipelines restore FILE` resumes from
    it. Requires an API key with the role operate if API keys are enabled.
    """
    from tasklore.commands.pipelines.restore import write_evidence

    return write_evidence(session, file, is_forced=force, api=api)
