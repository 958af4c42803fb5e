"""`tasklore memory export` and `tasklore memory import`: files of this machine, for the operations of their names."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example

app = Typer(
    epilog=example('tasklore memory tell ana "I am vegan now"'),
    **SETTLED,
)

User = Annotated[str, Argument(metavar="USER", help="Whose memory.")]
Resource = Annotated[
    str | None,
    Option(
        "--resource",
        metavar="DOC",
        help="Only this document: its id, or a word for it such as food.",
    ),
]
Scope = Annotated[
    str,
    Option(
        "--scope",
        metavar="SCOPE",
        help="What USER names: a user, an agent, a run or an organisation. One of user, agent, run, org.",
    ),
]


@app.callback()
def front() -> None:
    """Stand beside the operations of the noun, whose sentence is in `tasklore.commands.app`."""


@app.command("export", cls=Command, epilog=example("tasklore memory export ana ./ana"))
def export_documents(
    user: User,
    folder: Annotated[
        Path,
        Argument(
            metavar="FOLDER",
            help="Where to; one DOC.json each. - writes one to stdout.",
        ),
    ],
    resource: Resource = None,
    scope: Scope = "user",
) -> None:
    """Write a person's documents as JSON files.

    An imported one comes back byte for byte while nothing edits it. Files that are there are written over.
    """
    from tasklore.commands.memory import files

    files.export_documents(user, folder, resource, scope=scope)


@app.command(
    "import",
    cls=Command,
    epilog=example("tasklore memory import ana resources/*.json"),
)
def import_documents(
    user: User,
    files: Annotated[
        list[Path],
        Argument(metavar="FILE", help="JSON documents, each named by its _metadata."),
    ],
    resource: Annotated[
        str | None,
        Option(
            "--resource",
            metavar="DOC",
            help="Which document it is, when the file does not say so.",
        ),
    ] = None,
    scope: Scope = "user",
    as_json: Json = False,
) -> int:
    """Put JSON files in the place of a person's documents, at a supervisor that runs with --operations.

    Each is an edit that `undo` takes back. Ends with 2 when one was refused; the others are stored.
    """
    from tasklore.commands.memory import files as file_commands

    return file_commands.import_documents(
        user, files, resource, scope=scope, is_json=as_json
    )
