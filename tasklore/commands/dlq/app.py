"""`tasklore dlq`: dead letters, their reasons, and another try."""

from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import (
    SETTLED,
    AgentId,
    Command,
    Json,
    Tenant,
    User,
    example,
    show_help_alone,
)
from tasklore.commands.running import run

app = Typer(epilog=example("tasklore dlq list"), **SETTLED)

Sequences = Annotated[
    list[int] | None,
    Argument(metavar="SEQUENCE", min=1, help="Numbers of `tasklore dlq list`."),
]
TaskName = Annotated[
    str | None, Option("--task", metavar="TASK", help="Only of this task.")
]
Reason = Annotated[
    str | None,
    Option(
        "--reason",
        metavar="REASON",
        help="Only these: attempts, code_error, gave_up, crashes, deadline, unreadable or unproven.",
    ),
]
ErrorType = Annotated[
    str | None,
    Option("--error", metavar="ERROR", help="Only of this class of error."),
]
Since = Annotated[
    str | None,
    Option(
        "--since",
        metavar="WHEN",
        help="Only what died since then: 2h or 7d ago, or 2026-11-21T10:00:00Z.",
    ),
]
Until = Annotated[
    str | None,
    Option("--until", metavar="WHEN", help="Only what died before then."),
]
Everything = Annotated[bool, Option("--all", help="All of them.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """See which tasks were given up, send them again, or delete them."""
    show_help_alone(context)


@app.command(
    "list",
    cls=Command,
    epilog=example("tasklore dlq list --agent BudgetTrackerAgent --since 2h"),
)
def list_letters(
    agent: AgentId = None,
    task: TaskName = None,
    error: ErrorType = None,
    reason: Reason = None,
    tenant: Tenant = None,
    user: User = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, help="At most so many.")
    ] = 50,
    before: Annotated[
        int | None,
        Option(
            "--before",
            metavar="SEQUENCE",
            min=1,
            help="Only what lies before this one.",
        ),
    ] = None,
    after: Annotated[
        int | None,
        Option(
            "--after",
            metavar="SEQUENCE",
            min=1,
            help="Only what lies behind this one, with --oldest.",
        ),
    ] = None,
    oldest: Annotated[bool, Option("--oldest", help="The oldest first.")] = False,
    as_json: Json = False,
) -> None:
    """List the dead letters, the newest first."""
    from tasklore.commands.dlq.selection import Filter
    from tasklore.commands.dlq.views import print_letters

    wanted = Filter(
        agent=agent,
        task=task,
        error=error,
        reason=reason,
        tenant=tenant,
        user=user,
        since=since,
        until=until,
    )
    run(
        print_letters(
            wanted,
            limit,
            before=before,
            after=after,
            oldest_first=oldest,
            as_json=as_json,
        )
    )


@app.command(cls=Command, epilog=example("tasklore dlq groups --since 1d"))
def groups(
    agent: AgentId = None,
    task: TaskName = None,
    error: ErrorType = None,
    reason: Reason = None,
    tenant: Tenant = None,
    user: User = None,
    since: Since = None,
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Count the dead letters of each agent and error, the most frequent first."""
    from tasklore.commands.dlq.selection import Filter
    from tasklore.commands.dlq.views import print_letter_groups

    wanted = Filter(
        agent=agent,
        task=task,
        error=error,
        reason=reason,
        tenant=tenant,
        user=user,
        since=since,
        until=until,
    )
    run(print_letter_groups(wanted, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore dlq show 7"))
def show(
    which: Annotated[
        str,
        Argument(
            metavar="SEQUENCE",
            help="A number of `tasklore dlq list`, or the id of a task.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Show why and where one was given up, the commands for it, its cost and its content."""
    from tasklore.commands.dlq.views import print_letter

    run(print_letter(which, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example(
        "tasklore dlq redrive 7 8", "tasklore dlq redrive --agent BudgetTrackerAgent"
    ),
)
def redrive(
    sequences: Sequences = None,
    agent: AgentId = None,
    task: TaskName = None,
    error: ErrorType = None,
    reason: Reason = None,
    tenant: Tenant = None,
    user: User = None,
    since: Since = None,
    until: Until = None,
    everything: Everything = False,
    new_deadline: Annotated[
        str | None,
        Option(
            "--new-deadline",
            metavar="SPAN",
            help="Allow them so long from now: 90s, 15m, 2h.",
        ),
    ] = None,
    no_deadline: Annotated[
        bool,
        Option("--no-deadline", help="Drop the deadline that their sender had set."),
    ] = False,
    force: Annotated[
        bool,
        Option(
            "--force",
            help="Also those whose task was completed or cancelled since, and those that carry no readable task.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only say what would be done.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> int:
    """Send them again, as new generations of the same tasks.

    On a terminal it first shows how many of which agent and error those are, and asks. Each is deleted once its task is
    stored; repeating a redrive that was interrupted runs nothing twice. One whose deadline has passed stays, unless it
    is given another, and so does one whose task was done with after it was written, which carries no readable task, or
    whose agent was retired. Ends with 1 when any stays.
    """
    from tasklore.commands.dlq.redrive import redrive_letters
    from tasklore.commands.dlq.selection import Filter

    wanted = Filter(
        sequences=tuple(sequences or ()),
        agent=agent,
        task=task,
        error=error,
        reason=reason,
        tenant=tenant,
        user=user,
        since=since,
        until=until,
        everything=everything,
    )
    return run(
        redrive_letters(
            wanted,
            new_deadline=new_deadline,
            no_deadline=no_deadline,
            is_trial=dry_run,
            is_forced=force,
            is_sure=yes,
            as_json=as_json,
        )
    )


@app.command(
    cls=Command,
    epilog=example(
        "tasklore dlq purge 7", "tasklore dlq purge --reason unreadable --since 7d"
    ),
)
def purge(
    sequences: Sequences = None,
    agent: AgentId = None,
    task: TaskName = None,
    error: ErrorType = None,
    reason: Reason = None,
    tenant: Tenant = None,
    user: User = None,
    since: Since = None,
    until: Until = None,
    everything: Annotated[
        bool, Option("--all", help="All of them; asks first.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only say what would be done.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete them for good, also from the server's files.

    On a terminal it first shows how many of which agent and error those are, and asks. Overwriting takes about 5 ms for
    each; --all drops the files at once.
    """
    from tasklore.commands.dlq.redrive import purge_letters
    from tasklore.commands.dlq.selection import Filter

    wanted = Filter(
        sequences=tuple(sequences or ()),
        agent=agent,
        task=task,
        error=error,
        reason=reason,
        tenant=tenant,
        user=user,
        since=since,
        until=until,
        everything=everything,
    )
    run(purge_letters(wanted, is_trial=dry_run, is_sure=yes, as_json=as_json))
