"""`tasklore agents check|try`: what cards understand, read here without a server."""

from typing import Annotated

from typer import Argument, Typer

from tasklore.commands.options import SETTLED, Command, Json, example

app = Typer(epilog=example("tasklore agents list"), **SETTLED)

References = Annotated[
    list[str],
    Argument(
        metavar="REF...",
        help="A module (my_agents.greeter), a file (./greeter.py), an installed agent.",
    ),
]


@app.callback()
def front() -> None:
    """Stand beside the operations of the noun, whose sentence is in `tasklore.commands.app`."""


@app.command(
    cls=Command,
    epilog=example(
        "tasklore agents check ./greeter.py", "tasklore agents check budget"
    ),
)
def check(references: References, as_json: Json = False) -> int:
    """Check that every example of every card is understood as its task; needs no server.

    An example is right if it starts its task, or shows one to confirm. Ends with 1 if
    an example is not read: it is only asked about, is wrong (matches another task of
    the agent), collides (with another given agent) or matches nothing. If a model is
    configured (TASKLORE_LLM_BASE_URL), each is checked a second time, with it.
    """
    from tasklore.commands.agents.check import check_examples

    return check_examples(references, as_json=as_json)


@app.command("try", cls=Command, epilog=example("tasklore agents try ./greeter.py"))
def try_lines(references: References) -> int:
    """Show how each line you type is understood: the task, its values, and the words they came from; starts nothing.

    Lines are one conversation, so "the same with 45k" can be tried. Ctrl-D ends. Needs no server.
    """
    from tasklore.commands.agents import trial

    return trial.try_lines(references)
