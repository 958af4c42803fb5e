"""`tasklore analysis`: what agents found in a response of a story, as a file; none of it needs a server."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(epilog=example("tasklore analysis context state/agent_analysis.json"), **SETTLED)

File = Annotated[str, Argument(metavar="FILE", help="An analysis document; - is stdin.")]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Look into the analysis of a response, and give it to a prompt; needs no server."""
    show_help_alone(context)


@app.command(cls=Command, epilog=example("tasklore analysis context state/agent_analysis.json --tokens 200"))
def context(
    file: File,
    tokens: Annotated[int, Option("--tokens", metavar="N", min=0, help="At most so many tokens of o200k_base.")] = 350,
    as_json: Json = False,
) -> None:
    """Print what the prompt of the next response needs to know.

    What is least important is left out first, and how much; alerts, critical threads and who is in the scene last.
    Tokens are counted exactly where the extra `tokens` is installed, else rather too many than too few.
    """
    from tasklore.analysis_views import print_context

    print_context(file, tokens, as_json=as_json)


@app.command(cls=Command, epilog=example("tasklore analysis show state/agent_analysis.json"))
def show(file: File, as_json: Json = False) -> None:
    """Show which response it is about, what each agent left, and what that took and saved."""
    from tasklore.analysis_views import print_document

    print_document(file, as_json=as_json)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore analysis get state/agent_analysis.json background.relationship.interactions[0].score",
        "tasklore analysis get state/agent_analysis.json 'facts[\"David Park\"][0]'",
    ),
)
def get(
    file: File,
    path: Annotated[str, Argument(metavar="PATH", help="A place in it, by short keys or long names.")],
) -> None:
    """Print what stands at a place: a text as it is, anything else as JSON."""
    from tasklore.analysis_views import print_value

    print_value(file, path)


@app.command(cls=Command, epilog=example("tasklore analysis check state/agent_analysis.json"))
def check(file: File, as_json: Json = False) -> int:
    """Say what is wrong with a document, each problem with its place; ends with 2 when anything is."""
    from tasklore.analysis_views import check_aloud

    return check_aloud(file, as_json=as_json)


@app.command(cls=Command, epilog=example("tasklore analysis migrate state/agent_analysis.md"))
def migrate(
    files: Annotated[list[Path], Argument(metavar="FILE", help="Analyses in the Markdown form.")],
    force: Annotated[bool, Option("--force", help="Write over a document that is there.")] = False,
) -> int:
    """Turn Markdown analyses into documents: FILE.md is kept, FILE.json is written beside it.

    Lists every line that could not be read. Ends with 1 when a file was not migrated.
    """
    from tasklore.analysis_migration import migrate_files

    return migrate_files(files, force=force)
