"""`tasklore ltm`: the long-term memory, how much it saves, and forgetting."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import (
    SETTLED,
    AgentId,
    Command,
    Json,
    example,
    show_help_alone,
)
from tasklore.commands.running import run

app = Typer(epilog=example("tasklore ltm stats"), **SETTLED)

Key = Annotated[
    str,
    Argument(
        metavar="KEY",
        help="A whole key, or the question in it (analyze_budget:50000:42000:no_history).",
    ),
]
TaskName = Annotated[
    str | None, Option("--task", metavar="TASK", help="Only of this task.")
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Look into the long-term memory, mend it, forget."""
    show_help_alone(context)


@app.command("list", cls=Command, epilog=example("tasklore ltm list --since 1h"))
def list_entries(
    since: Annotated[
        str | None,
        Option(
            "--since",
            metavar="SPAN",
            help="Only what was remembered within this span: 90s, 1h, 30d.",
        ),
    ] = None,
    agent: AgentId = None,
    task: TaskName = None,
    as_json: Json = False,
) -> None:
    """List the remembered answers, the newest first."""
    from tasklore.commands.ltm.views import print_entries

    run(print_entries(since=since, agent=agent, task=task, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example("tasklore ltm show analyze_budget:50000:42000:no_history"),
)
def show(key: Key, as_json: Json = False) -> None:
    """Show one remembered answer."""
    from tasklore.commands.ltm.views import print_entry

    run(print_entry(key, as_json=as_json))


@app.command(
    cls=Command, epilog=example("tasklore ltm stats --agent BudgetTrackerAgent")
)
def stats(agent: AgentId = None, as_json: Json = False) -> None:
    """Tell how much is remembered, and how much time that saved."""
    from tasklore.commands.ltm.views import print_stats

    run(print_stats(agent=agent, as_json=as_json))


@app.command(
    "set",
    cls=Command,
    epilog=example(
        "tasklore ltm set analyze_budget:50000:42000:no_history result.json"
    ),
)
def set_entry(
    key: Key,
    file: Annotated[
        str, Argument(metavar="FILE", help="JSON file with the result; - reads stdin.")
    ],
) -> None:
    """Replace a remembered answer, or remember one under a whole key."""
    from tasklore.commands.ltm.edits import set_answer

    run(set_answer(key, file))


@app.command(
    cls=Command,
    epilog=example("tasklore ltm forget --agent BudgetTrackerAgent --older-than 30d"),
)
def forget(
    question: Annotated[
        str | None,
        Argument(metavar="KEY", help="What to forget, as in `tasklore ltm list`."),
    ] = None,
    key: Annotated[str | None, Option("--key", metavar="KEY", help="The same.")] = None,
    task: TaskName = None,
    agent: AgentId = None,
    older_than: Annotated[
        str | None,
        Option(
            "--older-than",
            metavar="SPAN",
            help="Only what is older than this span: 1h, 30d.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        Option("--user", metavar="ID", help="Only what this user's tasks stored."),
    ] = None,
    stale: Annotated[
        bool,
        Option(
            "--stale",
            help="Only what edits of an agent's code, or another version, left behind.",
        ),
    ] = False,
    everything: Annotated[bool, Option("--all", help="All of it; asks first.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Forget what fits every given condition."""
    from tasklore.commands.ltm.edits import Filter, forget_answers

    wanted = Filter(
        question,
        key=key,
        task=task,
        agent=agent,
        older_than=older_than,
        user=user,
        stale=stale,
        everything=everything,
    )
    run(forget_answers(wanted, is_sure=yes))


@app.command(
    "import",
    cls=Command,
    epilog=example(
        "tasklore ltm import LTM/BudgetTrackerAgent/memory.json --agent BudgetTrackerAgent"
    ),
)
def import_entries(
    file: Annotated[
        Path, Argument(metavar="FILE", help='A memory file: {"tasks": {key: result}}.')
    ],
    agent: Annotated[
        str,
        Option(
            "--agent",
            metavar="AGENT",
            help="Whose memory it is; it must have been started once.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Remember the answers in a memory file.

    Known answers stay as they are. An entry with exactly five values in a list may have been cut there by another
    program and would answer another question: it is put in quarantine, listed here, and never served.
    """
    from tasklore.commands.ltm.edits import import_answers

    run(import_answers(file, agent, as_json=as_json))


@app.command(
    "export",
    cls=Command,
    epilog=example("tasklore ltm export --agent BudgetTrackerAgent memory.json"),
)
def export_entries(
    agent: Annotated[str, Option("--agent", metavar="AGENT", help="Whose memory.")],
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="Where to; without it stdout.")
    ] = None,
) -> None:
    """Write an agent's shared memory as a file that `ltm import` reads."""
    from tasklore.commands.ltm.edits import export_answers

    run(export_answers(agent, file))
