"""`tasklore story`: load stories from folders into the store that agents read, and print them."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(
    epilog=example(
        "tasklore story example lighthouse", "tasklore story check lighthouse"
    ),
    **SETTLED,
)

Folder = Annotated[
    Path, Argument(metavar="DIR", help="The folder of a story; story.toml is in it.")
]
Story = Annotated[
    str,
    Argument(
        metavar="STORY",
        help="Which story, by its id; `tasklore story list` shows them.",
    ),
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Check stories, load them, see how they stand.

    A story's folder holds its beginning: entities, memories, open threads. Findings of agents in its responses are kept
    beside that, and `tasklore analysis run` asks the agents.
    """
    show_help_alone(context)


@app.command(
    "example", cls=Command, epilog=example("tasklore story example lighthouse")
)
def copy_example(
    folder: Annotated[
        Path, Argument(metavar="DIR", help="Where to; a folder that is new or empty.")
    ],
) -> None:
    """Write the example story into a folder: a beginning and thirty responses; needs no server."""
    from tasklore.commands.stories.example import copy_into

    copy_into(folder)


@app.command(cls=Command, epilog=example("tasklore story check lighthouse"))
def check(folder: Folder, as_json: Json = False) -> int:
    """Print the problems of a story's folder, each with its file, its place and its cure; needs no server.

    Ends with 2 when there are any. Warnings, such as one about an unknown name, are printed too.
    """
    from tasklore.commands.story.views import print_check

    return print_check(folder, as_json=as_json)


@app.command(cls=Command, epilog=example("tasklore story load lighthouse"))
def load(folder: Folder, as_json: Json = False) -> int:
    """Load the beginning of a story from its folder, for the agents; changes of responses stay.

    Ends with 2, and loads nothing, when the folder has problems. Responses are not loaded: `tasklore
    analysis run` takes them one by one, and loads the folder before.
    """
    from tasklore.commands.running import run
    from tasklore.commands.story.views import load_story

    return run(load_story(folder, as_json=as_json))


@app.command("list", cls=Command, epilog=example("tasklore story list"))
def list_stories(as_json: Json = False) -> None:
    """List the stories that are loaded, the last changed first."""
    from tasklore.commands.running import run
    from tasklore.commands.story.views import print_stories

    run(print_stories(as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore story show lighthouse"))
def show(story: Story, as_json: Json = False) -> None:
    """Show how a story stands after its last response: settings, relationships, open threads, how much is known."""
    from tasklore.commands.running import run
    from tasklore.commands.story.views import print_story

    run(print_story(story, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore story delete lighthouse --yes"))
def delete(
    story: Story,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove a story with its responses and their analyses; its folder stays."""
    from tasklore.commands.running import run
    from tasklore.commands.story.views import delete_story

    run(delete_story(story, is_sure=yes, as_json=as_json))
