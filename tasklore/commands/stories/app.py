"""`tasklore stories check|example|load`: folders of stories on this machine; everything else is an operation."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(
    epilog=example(
        "tasklore stories example lighthouse", "tasklore stories check lighthouse"
    ),
    **SETTLED,
)

Folder = Annotated[
    Path, Argument(metavar="DIR", help="The folder of a story, with its story.toml.")
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Check stories, load them, show their state."""
    show_help_alone(context)


@app.command(
    "example", cls=Command, epilog=example("tasklore stories example lighthouse")
)
def copy_example(
    folder: Annotated[
        Path, Argument(metavar="DIR", help="Target folder, new or empty.")
    ],
) -> None:
    """Write the example story into a folder: a beginning and thirty responses; needs no server."""
    from tasklore.commands.stories.example import copy_into

    copy_into(folder)


@app.command(cls=Command, epilog=example("tasklore stories check lighthouse"))
def check(folder: Folder, as_json: Json = False) -> int:
    """Print the problems of a story's folder, each with its file, position and fix; needs no server.

    Ends with 2 if there are any. Warnings, such as one about an unknown name, are
    printed too.
    """
    from tasklore.commands.stories.check import print_check

    return print_check(folder, as_json=as_json)


@app.command(cls=Command, epilog=example("tasklore stories load lighthouse"))
def load(folder: Folder, as_json: Json = False) -> int:
    """Load the initial state of a story from its folder, for the agents; changes by responses are kept.

    A story's folder contains its initial state: entities, memories, open threads. Ends
    with 2, and loads nothing, if the folder has problems. Responses are not loaded:
    `tasklore analyses run` processes them one by one, and loads the folder first.
    Requires an API key with the role operate if API keys are enabled.
    """
    from tasklore.commands.stories.load import load_folder

    return load_folder(folder, as_json=as_json)
