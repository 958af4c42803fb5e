"""`tasklore memory export` and `tasklore memory import`: files of this machine, for the operations of their names."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example

app = Typer(
    epilog=example('tasklore memory tell ana "I am vegan now"'),
    **SETTLED,
)

User = Annotated[str, Argument(metavar="USER", help="User id.")]
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
        help="Scope of the id in USER: a user, an agent, a run or an organisation. One "
        "of user, agent, run, org.",
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
            help="Output folder, one DOC.json each; - writes one document to stdout.",
        ),
    ],
    resource: Resource = None,
    scope: Scope = "user",
) -> None:
    """Write a person's documents as JSON files.

    An imported document is exported byte for byte until it is edited. Existing files
    are overwritten.
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
            help="The document to import into, if the file does not say so.",
        ),
    ] = None,
    scope: Scope = "user",
    as_json: Json = False,
) -> int:
    """Replace a person's documents by JSON files, at a supervisor that runs with --operations.

    Each is an edit that `undo` can revert. Ends with 2 if one was refused; the others
    are stored.
    """
    from tasklore.commands.memory import files as file_commands

    return file_commands.import_documents(
        user, files, resource, scope=scope, is_json=as_json
    )
