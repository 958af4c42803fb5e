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
    Path, Argument(metavar="DIR", help="The folder of a story; story.toml is in it.")
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Check stories, load them, see how they stand."""
    show_help_alone(context)


@app.command(
    "example", cls=Command, epilog=example("tasklore stories example lighthouse")
)
def copy_example(
    folder: Annotated[
        Path, Argument(metavar="DIR", help="Where to; a folder that is new or empty.")
    ],
) -> None:
    """Write the example story into a folder: a beginning and thirty responses; needs no server."""
    from tasklore.commands.stories.example import copy_into

    copy_into(folder)


@app.command(cls=Command, epilog=example("tasklore stories check lighthouse"))
def check(folder: Folder, as_json: Json = False) -> int:
    """Print the problems of a story's folder, each with its file, its place and its cure; needs no server.

    Ends with 2 when there are any. Warnings, such as one about an unknown name, are printed too.
    """
    from tasklore.commands.stories.check import print_check

    return print_check(folder, as_json=as_json)


@app.command(cls=Command, epilog=example("tasklore stories load lighthouse"))
def load(folder: Folder, as_json: Json = False) -> int:
    """Load the beginning of a story from its folder, for the agents; changes of responses stay.

    A story's folder holds its beginning: entities, memories, open threads. Ends with 2, and loads nothing, when the
    folder has problems. Responses are not loaded: `tasklore analyses run` takes them one by one, and loads the folder
    before. Needs a key with the role operate, where keys are demanded.
    """
    from tasklore.commands.stories.load import load_folder

    return load_folder(folder, as_json=as_json)
