"""`tasklore limits`: how much a deployment may ask models and spend on them, and run at once."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone
from tasklore.commands.running import run

app = Typer(
    epilog=example("tasklore limits set acme --tenant acme --usd 20 --every day"),
    **SETTLED,
)

LimitName = Annotated[
    str,
    Argument(metavar="NAME", help="Which limit, as `tasklore limits show` lists it."),
]
LimitsFile = Annotated[Path, Argument(metavar="FILE", help="Limits in TOML.")]
Who = Annotated[
    str | None,
    Option(
        "--who",
        metavar="NAME",
        help="Who changes it; without it the user of this shell.",
    ),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
_Value = "; '' covers all, '*' counts each apart."


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """See and change limits on models and on runs; every change holds within a second, and nothing is started again."""
    show_help_alone(context)


@app.command(cls=Command, epilog=example("tasklore limits show"))
def show(as_json: Json = False) -> None:
    """Show the limits that hold, their version, who set it and when."""
    from tasklore.commands.limits.views import print_limits

    run(print_limits(as_json=as_json))


@app.command(
    "set",
    cls=Command,
    epilog=example(
        "tasklore limits set openai --model 'gpt-*' --tokens 200000 --every minute",
        "tasklore limits set run --agent Research --usd 0.50 --every tree --at-limit refuse",
        "tasklore limits set tenants --tenant '*' --agent Research --at-most 2",
    ),
)
def set_one(
    name: LimitName,
    model: Annotated[
        str | None,
        Option("--model", metavar="MODEL", help="Of this model, or gpt-*" + _Value),
    ] = None,
    tenant: Annotated[
        str | None,
        Option("--tenant", metavar="TENANT", help="For this tenant" + _Value),
    ] = None,
    user: Annotated[
        str | None, Option("--user", metavar="ID", help="For this user" + _Value)
    ] = None,
    agent: Annotated[
        str | None,
        Option("--agent", metavar="AGENT", help="For tasks of this agent" + _Value),
    ] = None,
    task: Annotated[
        str | None,
        Option("--task", metavar="TASK", help="For tasks of this name" + _Value),
    ] = None,
    requests: Annotated[
        int | None, Option("--requests", metavar="N", help="So many requests.")
    ] = None,
    tokens: Annotated[
        int | None, Option("--tokens", metavar="N", help="So many tokens.")
    ] = None,
    usd: Annotated[
        str | None, Option("--usd", metavar="AMOUNT", help="So many US dollars.")
    ] = None,
    at_once: Annotated[
        int | None, Option("--at-once", metavar="N", help="So many requests under way.")
    ] = None,
    at_most: Annotated[
        int | None,
        Option("--at-most", metavar="N", help="So many tasks that run at once."),
    ] = None,
    every: Annotated[
        str | None,
        Option(
            "--every",
            metavar="SPAN",
            help="In each minute, day, month, task or tree of tasks.",
        ),
    ] = None,
    at_limit: Annotated[
        str | None,
        Option(
            "--at-limit",
            metavar="DO",
            help="park (wait without a slot), next (another model) or refuse.",
        ),
    ] = None,
    who: Who = None,
) -> None:
    """Set a limit: a new one, or what the options say of one that is there."""
    from tasklore.commands.limits.edits import set_limit

    covers = {
        "model": model,
        "tenant": tenant,
        "user": user,
        "agent": agent,
        "task": task,
    }
    sizes = {
        "requests": requests,
        "tokens": tokens,
        "usd": usd,
        "at_once": at_once,
        "at_most": at_most,
    }
    run(set_limit(name, covers | {"every": every, "at_limit": at_limit}, sizes, who))


@app.command(cls=Command, epilog=example("tasklore limits remove acme"))
def remove(name: LimitName, who: Who = None) -> None:
    """Remove a limit; its spending stays in the books."""
    from tasklore.commands.limits.edits import remove_limit

    run(remove_limit(name, who))


@app.command(cls=Command, epilog=example("tasklore limits apply limits.toml"))
def apply(file: LimitsFile, who: Who = None, yes: Yes = False) -> None:
    """Replace all limits by those of a file; print what changes, and ask first."""
    from tasklore.commands.limits.edits import apply_limits

    run(apply_limits(file, who, is_sure=yes))


@app.command(cls=Command, epilog=example("tasklore limits check limits.toml"))
def check(file: LimitsFile) -> None:
    """Check a file of limits, without a server; ends with 2 when a field is wrong."""
    from tasklore.commands.limits.views import print_check

    print_check(file)


@app.command(cls=Command, epilog=example("tasklore limits history"))
def history(as_json: Json = False) -> None:
    """List the last 100 versions of the limits, the newest first: who, when, and what changed."""
    from tasklore.commands.limits.views import print_history

    run(print_history(as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore limits restore 3"))
def restore(
    version: Annotated[
        int,
        Argument(
            metavar="VERSION", min=1, help="A version of `tasklore limits history`."
        ),
    ],
    who: Who = None,
    yes: Yes = False,
) -> None:
    """Set the limits of an earlier version again, as a new version; print what changes, and ask first."""
    from tasklore.commands.limits.edits import restore_version

    run(restore_version(version, who, is_sure=yes))
