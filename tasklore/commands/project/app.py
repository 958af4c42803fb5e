"""`tasklore project`: decisions, standards and the history of runs, kept for good."""

from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(
    epilog=example(
        'tasklore project decide "Prices are kept in cents" --project shop --tag money',
        "tasklore project search cents --project shop",
    ),
    **SETTLED,
)

Project = Annotated[
    str | None,
    Option(
        "--project",
        metavar="ID",
        help="Which project; without it TASKLORE_PROJECT_ID, without that the only project there is.",
    ),
]
Words = Annotated[
    list[str],
    Argument(
        metavar="TEXT", help="What is to be remembered, at most 8,000 characters."
    ),
]
Tags = Annotated[
    list[str] | None,
    Option(
        "--tag",
        metavar="TAG",
        help="What it is found by, repeatable; capitals do not count.",
    ),
]
By = Annotated[
    str | None,
    Option(
        "--by",
        metavar="USER",
        help="Who says so; forgetting them takes the words away.",
    ),
]
Supersedes = Annotated[
    str | None,
    Option(
        "--supersedes",
        metavar="ID",
        help="The record that no longer holds; it stays readable.",
    ),
]
Since = Annotated[
    str | None,
    Option(
        "--since",
        metavar="WHEN",
        help="Only from then on: 2h or 7d ago, or 2026-11-21T10:00:00Z.",
    ),
]
Until = Annotated[
    str | None,
    Option("--until", metavar="WHEN", help="Only before then, said in the same way."),
]
Limit = Annotated[
    int, Option("--limit", metavar="N", min=1, max=999, help="At most so many.")
]
Before = Annotated[
    str | None,
    Option("--before", metavar="ID", help="Only what is older than this record."),
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Note what was decided, and find it again.

    What a project remembers is only ever added to: no command deletes a record, and none expires.
    """
    show_help_alone(context)


@app.command(
    cls=Command,
    epilog=example(
        'tasklore project decide "Prices are kept in cents" --project shop --tag money --by ana',
        'tasklore project decide "Prices are kept in tenths of a cent" --supersedes d1',
    ),
)
def decide(
    text: Words,
    project: Project = None,
    tag: Tags = None,
    by: By = None,
    supersedes: Supersedes = None,
    as_json: Json = False,
) -> None:
    """Note a decision.

    A project begins with its first record.
    """
    from tasklore.commands.project.files import add_record
    from tasklore.commands.running import run

    tags = tuple(tag or ())
    run(
        add_record(
            project,
            "decision",
            " ".join(text),
            tags=tags,
            by=by,
            supersedes=supersedes,
            as_json=as_json,
        )
    )


@app.command(
    cls=Command,
    epilog=example(
        'tasklore project standard "Functions have at most 50 lines" --tag size --project shop'
    ),
)
def standard(
    text: Words,
    project: Project = None,
    tag: Tags = None,
    by: By = None,
    supersedes: Supersedes = None,
    as_json: Json = False,
) -> None:
    """Note a standard.

    Pipelines and agents are given it by its tags, as long as it is in force.
    """
    from tasklore.commands.project.files import add_record
    from tasklore.commands.running import run

    tags = tuple(tag or ())
    run(
        add_record(
            project,
            "standard",
            " ".join(text),
            tags=tags,
            by=by,
            supersedes=supersedes,
            as_json=as_json,
        )
    )


@app.command(
    cls=Command, epilog=example("tasklore project history --project shop --since 7d")
)
def history(
    project: Project = None,
    tag: Tags = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    before: Before = None,
    as_json: Json = False,
) -> None:
    """List the runs of a project, the newest first."""
    from tasklore.commands.project.views import RecordFilter, print_found
    from tasklore.commands.running import run

    only = RecordFilter(
        tags=tuple(tag or ()), kind="history", since=since, until=until, before=before
    )
    run(print_found(project, only, limit, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example(
        "tasklore project search cents price --project shop",
        "tasklore project search --tag money --kind standard --in-force",
    ),
)
def search(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="WORDS", help="Words, or how they begin; each has to be there."
        ),
    ] = None,
    project: Project = None,
    tag: Tags = None,
    kind: Annotated[
        str | None,
        Option(
            "--kind", metavar="KIND", help="Only these: decision, standard or history."
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    in_force: Annotated[
        bool, Option("--in-force", help="Not what was superseded.")
    ] = False,
    limit: Limit = 20,
    before: Before = None,
    as_json: Json = False,
) -> None:
    """Find records that fit every given condition, the newest first."""
    from tasklore.commands.project.views import RecordFilter, print_found
    from tasklore.commands.running import run

    only = RecordFilter(
        words=" ".join(words or ()),
        tags=tuple(tag or ()),
        kind=kind,
        since=since,
        until=until,
        in_force=in_force,
        before=before,
    )
    run(print_found(project, only, limit, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore project show d17 --project shop"))
def show(
    record: Annotated[str, Argument(metavar="ID", help="A record: d17, s3 or h42.")],
    project: Project = None,
    as_json: Json = False,
) -> None:
    """Show a record and its chain.

    With all its fields, the records it superseded, and those that superseded it.
    """
    from tasklore.commands.project.views import print_record
    from tasklore.commands.running import run

    run(print_record(record, project, as_json=as_json))


@app.command(
    "export",
    cls=Command,
    epilog=example("tasklore project export shop.jsonl --project shop"),
)
def export_records(
    file: Annotated[str, Argument(metavar="FILE", help="Where to; - is stdout.")],
    project: Project = None,
    force: Annotated[
        bool, Option("--force", help="Write over a file that is there.")
    ] = False,
) -> None:
    """Write all records as JSON lines, the oldest first."""
    from tasklore.commands.project.files import export_records as export
    from tasklore.commands.running import run

    run(export(project, file, is_forced=force))


@app.command(
    "import",
    cls=Command,
    epilog=example("tasklore project import shop.jsonl --project shop"),
)
def import_records(
    file: Annotated[
        str, Argument(metavar="FILE", help="What `export` wrote; - reads stdin.")
    ],
    project: Project = None,
    as_json: Json = False,
) -> int:
    """Add the records of a file.

    They keep their ids and times. What is there already stays as it is, so that it can be repeated. A record whose id
    is taken by another one is refused, and the others are added; then it ends with 2.
    """
    from tasklore.commands.project.files import import_records as load
    from tasklore.commands.running import run

    return run(load(project, file, as_json=as_json))


@app.command("list", cls=Command, epilog=example("tasklore project list"))
def list_projects(as_json: Json = False) -> None:
    """List the projects, the one with the newest record first."""
    from tasklore.commands.project.views import print_projects
    from tasklore.commands.running import run

    run(print_projects(as_json=as_json))
