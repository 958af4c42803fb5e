"""`tasklore schedule`: run tasks and pipelines later, and again and again."""

from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(
    epilog=example(
        'tasklore schedule add ReportAgent.write --cron "0 9 * * mon-fri" --time-zone Europe/Berlin'
    ),
    **SETTLED,
)

ScheduleId = Annotated[
    str,
    Argument(metavar="ID", help="Which schedule; `tasklore schedule list` shows them."),
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Run tasks and pipelines later, and again and again."""
    show_help_alone(context)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore schedule add ReportAgent.write --every 6h --parameter kind=sales",
        'tasklore schedule add --pipeline health.toml --input folder=$PWD --cron "0 3 * * *" --missed skip',
        "tasklore schedule add ReportAgent.write --after 2h --yes",
    ),
)
def add(
    task: Annotated[
        str | None, Argument(metavar="AGENT.TASK", help="What to run; or --pipeline.")
    ] = None,
    pipeline: Annotated[
        str | None,
        Option(
            "--pipeline",
            metavar="FILE|NAME",
            help="A pipeline instead, as it is declared now.",
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        Option(
            "--parameter",
            "--input",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter or input, repeatable.",
        ),
    ] = None,
    cron: Annotated[
        str | None,
        Option("--cron", metavar="FIELDS", help='Such as "0 9 * * mon-fri".'),
    ] = None,
    every: Annotated[
        str | None, Option("--every", metavar="SPAN", help="Such as 90s, 15m, 6h, 7d.")
    ] = None,
    at: Annotated[
        str | None,
        Option("--at", metavar="TIME", help="Once, such as 2026-12-24T18:00."),
    ] = None,
    after: Annotated[
        str | None, Option("--after", metavar="SPAN", help="Once, so long from now.")
    ] = None,
    time_zone: Annotated[
        str, Option("--time-zone", metavar="NAME", help="By whose clocks.")
    ] = "UTC",
    missed: Annotated[
        str,
        Option(
            "--missed",
            metavar="POLICY",
            help="Ticks missed while nothing ran: skip, once or all.",
        ),
    ] = "once",
    schedule_id: Annotated[
        str | None, Option("--id", metavar="ID", help="What to call it.")
    ] = None,
    user: Annotated[
        str | None, Option("--user", metavar="ID", help="Run as this user.")
    ] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Show the next five times, and keep the schedule when you say yes."""
    from tasklore.commands.running import run
    from tasklore.commands.schedule.edits import Wanted, add_schedule

    wanted = Wanted(
        task,
        pipeline=pipeline,
        values=tuple(values or ()),
        cron=cron,
        every=every,
        at=at,
        after=after,
        time_zone=time_zone,
        missed=missed,
        schedule_id=schedule_id,
        user=user,
    )
    run(add_schedule(wanted, is_sure=yes, as_json=as_json))


@app.command("list", cls=Command, epilog=example("tasklore schedule list --user ann"))
def list_schedules(
    user: Annotated[
        str | None, Option("--user", metavar="ID", help="Only of this user.")
    ] = None,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=5_000, help="At most so many.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """List schedules with their next times."""
    from tasklore.commands.running import run
    from tasklore.commands.schedule.views import print_schedules

    run(print_schedules(user, limit, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore schedule show nightly"))
def show(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Show a schedule, its next five times, and its last run."""
    from tasklore.commands.running import run
    from tasklore.commands.schedule.views import print_schedule

    run(print_schedule(schedule_id, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore schedule pause nightly"))
def pause(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Let no tick come until it is resumed; one in the code of an agent stays paused when that is deployed."""
    from tasklore.commands.running import run
    from tasklore.commands.schedule.edits import set_paused

    run(set_paused(schedule_id, paused=True, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore schedule resume nightly"))
def resume(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Let ticks come again; those of the pause are not made up for."""
    from tasklore.commands.running import run
    from tasklore.commands.schedule.edits import set_paused

    run(set_paused(schedule_id, paused=False, as_json=as_json))


@app.command("run", cls=Command, epilog=example("tasklore schedule run nightly"))
def run_now(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Run it once more, now, and print the id of the task or session."""
    from tasklore.commands.running import run
    from tasklore.commands.schedule.edits import run_once_more

    run(run_once_more(schedule_id, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore schedule remove nightly"))
def remove(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Remove a schedule, and the task of its next tick if that waits already."""
    from tasklore.commands.running import run
    from tasklore.commands.schedule.edits import remove_schedule

    run(remove_schedule(schedule_id, as_json=as_json))
