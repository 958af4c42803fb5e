"""`tasklore story`: where stories begin, from a folder into the store that agents read, and how they stand."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(epilog=example("tasklore story example lighthouse", "tasklore story check lighthouse"), **SETTLED)

Folder = Annotated[Path, Argument(metavar="DIR", help="The folder of a story; story.toml is in it.")]
Story = Annotated[str, Argument(metavar="STORY", help="Which story, by its id; `tasklore story list` shows them.")]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Check stories, load them, see how they stand.

    A story's folder says where it begins: who is in it, what is remembered, what is open. What agents find in its
    responses is kept beside that, and `tasklore analysis run` asks them.
    """
    show_help_alone(context)


@app.command("example", cls=Command, epilog=example("tasklore story example lighthouse"))
def copy_example(
    folder: Annotated[Path, Argument(metavar="DIR", help="Where to; a folder that is new or empty.")],
) -> None:
    """Write the example story into a folder: a beginning and thirty responses; needs no server."""
    from tasklore.story.example import copy_into

    copy_into(folder)


@app.command(cls=Command, epilog=example("tasklore story check lighthouse"))
def check(folder: Folder, as_json: Json = False) -> int:
    """Tell what is wrong with a story's folder, each problem with its line and its cure; needs no server.

    Ends with 2 when something is wrong. What is only odd, such as a name of nobody, is told and counts as sound.
    """
    from tasklore.story.check import check_aloud

    return check_aloud(folder, as_json=as_json)


@app.command(cls=Command, epilog=example("tasklore story load lighthouse"))
def load(folder: Folder, as_json: Json = False) -> int:
    """Make a folder where its story begins, for the agents; what responses changed stays.

    Ends with 2, and loads nothing, when something is wrong with the folder. Responses are not loaded: `tasklore
    analysis run` takes them one by one, and loads the folder before.
    """
    from tasklore.running import run
    from tasklore.story.load import load_aloud

    return run(load_aloud(folder, as_json=as_json))


@app.command("list", cls=Command, epilog=example("tasklore story list"))
def list_stories(as_json: Json = False) -> None:
    """List the stories that are loaded, the last changed first."""
    from tasklore.running import run
    from tasklore.story.views import print_stories

    run(print_stories(as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore story show lighthouse"))
def show(story: Story, as_json: Json = False) -> None:
    """Show how a story stands after its last response: settings, relationships, open threads, how much is known."""
    from tasklore.running import run
    from tasklore.story.views import print_story

    run(print_story(story, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore story delete lighthouse --yes"))
def delete(
    story: Story,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove a story with its responses and their analyses; its folder stays."""
    from tasklore.running import run
    from tasklore.story.load import delete_aloud

    run(delete_aloud(story, is_sure=yes, as_json=as_json))
