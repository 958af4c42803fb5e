"""`tasklore approvals`: questions that tasks ask persons, and their answers."""

from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone
from tasklore.commands.running import run

app = Typer(epilog=example("tasklore approvals list"), **SETTLED)

Id = Annotated[str, Argument(metavar="ID", help="An id of `tasklore approvals list`.")]
Note = Annotated[str, Option("--note", metavar="TEXT", help="Why; the task sees it.")]
As = Annotated[
    list[str] | None,
    Option(
        "--as",
        metavar="WHO",
        help="Who answers: user:ana or role:finance, repeatable; else your login as a user.",
    ),
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """See what tasks ask persons, and answer it."""
    show_help_alone(context)


@app.command("list", cls=Command, epilog=example("tasklore approvals list"))
def list_open(
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, help="At most so many.")
    ] = 50,
    task: Annotated[
        str | None, Option("--task", metavar="TASK", help="Those of this task alone.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List all open questions."""
    from tasklore.commands.approvals.views import print_questions

    run(print_questions(limit, task, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore approvals show 0199c1d2.1"))
def show(which: Id, as_json: Json = False) -> None:
    """Show a question, its answer, and the answers that did not count: who, when, and through which door."""
    from tasklore.commands.approvals.views import print_question

    run(print_question(which, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example("tasklore approvals approve 0199c1d2.1 --as role:finance"),
)
def approve(which: Id, note: Note = "", who: As = None) -> None:
    """Answer yes. The first answer counts; the task goes on at once."""
    from tasklore.commands.approvals.views import answer_question

    run(answer_question(which, {"approved": True, "note": note}, who or ()))


@app.command(
    cls=Command,
    epilog=example("tasklore approvals reject 0199c1d2.1 --note 'twice this month'"),
)
def reject(which: Id, note: Note = "", who: As = None) -> None:
    """Answer no. The first answer counts; the task goes on at once."""
    from tasklore.commands.approvals.views import answer_question

    run(answer_question(which, {"approved": False, "note": note}, who or ()))


@app.command(
    cls=Command,
    epilog=example("""tasklore approvals answer 0199c1d2.1 '{"account": "savings"}'"""),
)
def answer(
    which: Id,
    value: Annotated[
        str,
        Argument(metavar="JSON", help="The answer; `show` says which fields it has."),
    ],
    who: As = None,
) -> None:
    """Answer a question that asks for more than yes or no."""
    from tasklore.commands.approvals.views import answer_question, parse_answer

    run(answer_question(which, parse_answer(value), who or ()))
