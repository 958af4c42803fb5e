"""`tasklore memory`: the memory of a person, its history, and undoing edits."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone
from tasklore.commands.running import run
from tasklore.contracts.errors import InvalidInput

app = Typer(
    epilog=example(
        'tasklore memory tell "I am vegan now" --user ana',
        "tasklore memory show --user ana",
    ),
    **SETTLED,
)

#: Characters of a user id, as on the wire.
_LONGEST_NAME = 256


def _check_user(user: str | None) -> str | None:
    """Return *user*, when it is given.

    Raises:
        InvalidInput: it cannot be a user id: the memory of an empty one would be everybody's.
    """
    if user is None:
        return None
    if not user.strip() or len(user) > _LONGEST_NAME:
        raise InvalidInput(
            f"--user must name somebody, in 1 to {_LONGEST_NAME} characters; say whose memory it is"
        )
    if any("\ud800" <= letter <= "\udfff" for letter in user):
        raise InvalidInput("--user is no valid Unicode; send it as UTF-8")
    return user


User = Annotated[
    str, Option("--user", metavar="ID", help="Whose memory.", callback=_check_user)
]
Resource = Annotated[
    str | None,
    Option(
        "--resource",
        metavar="DOC",
        help="Only this document: its id, or a word for it such as food.",
    ),
]
PlanId = Annotated[
    str | None,
    Argument(metavar="PLAN", help="Its id, or the end of it; without it the last one."),
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Tell it something about a person, look at their memory, take edits back."""
    show_help_alone(context)


@app.command(
    cls=Command,
    epilog=example(
        'tasklore memory tell "I like omelettes, but no eggs on Friday" --user ana'
    ),
)
def tell(
    text: Annotated[
        list[str],
        Argument(metavar="TEXT", help="What the person said, in their own words."),
    ],
    user: User,
    conversation: Annotated[
        str | None,
        Option("--conversation", metavar="ID", help="The conversation it was said in."),
    ] = None,
    wait: Annotated[
        float,
        Option(
            "--wait",
            metavar="S",
            min=0,
            max=600,
            help="Seconds to wait for what becomes of it.",
        ),
    ] = 15.0,
    as_json: Json = False,
) -> int:
    """Say something as in a chat, and show the edits that follow.

    Ends with 1 when it failed, or when it was not worked on within the wait; then it is kept, and worked on later.
    """
    from tasklore.commands.memory import tell as telling

    return run(
        telling.tell(
            " ".join(text),
            user,
            conversation=conversation,
            wait_s=wait,
            as_json=as_json,
        )
    )


@app.command(
    cls=Command,
    epilog=example(
        "tasklore memory show --user ana", "tasklore memory show --user ana --as-prompt"
    ),
)
def show(
    user: User,
    resource: Resource = None,
    at: Annotated[
        str | None,
        Option(
            "--at",
            metavar="DATE",
            help="As it was on that day, such as 2026-05-01; or, with --resource, a revision.",
        ),
    ] = None,
    as_prompt: Annotated[
        bool, Option("--as-prompt", help="As an agent's prompt quotes it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the memory of a person."""
    from tasklore.commands.memory.views import print_documents
    from tasklore.commands.options import day_of

    moment = (
        None
        if at is None
        else int(at)
        if at.isdecimal() and len(at) < 8
        else day_of(at, "--at")
    )
    run(
        print_documents(user, resource, at=moment, as_prompt=as_prompt, as_json=as_json)
    )


@app.command(cls=Command, epilog=example("tasklore memory facts --user ana"))
def facts(
    user: User,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=10_000, help="At most so many.")
    ] = 20,
    as_json: Json = False,
) -> None:
    """List the facts found in what a person said.

    What became of each: those that wait, those that wait for a model, then the last that were done.
    """
    from tasklore.commands.memory.views import print_facts

    run(print_facts(user, limit, as_json=as_json))


@app.command(
    cls=Command, epilog=example('tasklore memory search "when did I move?" --user ana')
)
def search(
    question: Annotated[
        str, Argument(metavar="QUESTION", help="What to look for, in any words.")
    ],
    user: User,
    at: Annotated[
        str | None,
        Option(
            "--at", metavar="DATE", help="As it stood on that day, such as 2026-05-01."
        ),
    ] = None,
    since: Annotated[
        str | None, Option("--since", metavar="DATE", help="Said on that day or later.")
    ] = None,
    until: Annotated[
        str | None,
        Option("--until", metavar="DATE", help="Said by the end of that day."),
    ] = None,
    speaker: Annotated[
        Literal["person", "assistant", "agent"] | None,
        Option("--speaker", help="Who said it."),
    ] = None,
    conversation: Annotated[
        str | None, Option("--conversation", metavar="ID", help="Said in it.")
    ] = None,
    limit: Annotated[
        int, Option("--limit", min=1, max=100, help="How much at most.")
    ] = 10,
    as_json: Json = False,
) -> None:
    """Search turns and memory, with the day and the speaker of each."""
    from tasklore.commands.memory.views import print_matches
    from tasklore.commands.options import day_of
    from tasklore.memory.recall import Within

    first = None if since is None else day_of(since, "--since")
    last = None if until is None else day_of(until, "--until")
    day = None if at is None else day_of(at, "--at")
    within = Within(first, last, speaker, conversation)
    run(
        print_matches(
            user, question, at=day, limit=limit, within=within, as_json=as_json
        )
    )


@app.command(cls=Command, epilog=example("tasklore memory waiting --user ana"))
def waiting(user: User, as_json: Json = False) -> None:
    """List the turns and facts that were not learned from yet, with the reason."""
    from tasklore.commands.memory.views import print_waiting

    run(print_waiting(user, as_json=as_json))


@app.command(
    cls=Command, epilog=example("tasklore memory settings --user ana --keep-days 30")
)
def settings(
    user: User,
    keep_days: Annotated[
        int | None,
        Option(
            "--keep-days",
            metavar="N",
            min=1,
            max=36_500,
            help="Keep turns for so many days.",
        ),
    ] = None,
    on: Annotated[
        bool | None,
        Option("--on/--off", help="Whether turns are kept word for word from now on."),
    ] = None,
    as_json: Json = False,
) -> None:
    """See or say whether a person's turns are kept word for word, and for how long."""
    from tasklore.commands.memory.views import print_settings

    run(print_settings(user, keep_days=keep_days, is_on=on, as_json=as_json))


@app.command(
    cls=Command, epilog=example("tasklore memory history --user ana --resource food")
)
def history(
    user: User,
    resource: Resource = None,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=10_000, help="At most so many.")
    ] = 20,
    as_json: Json = False,
) -> None:
    """List the edits of a person's documents, the newest first."""
    from tasklore.commands.memory.history import print_history

    run(print_history(user, resource, limit, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example("tasklore memory diff --user ana --resource food --from 3"),
)
def diff(
    user: User,
    resource: Annotated[
        str, Option("--resource", metavar="DOC", help="Which document.")
    ],
    since: Annotated[
        int | None,
        Option("--from", metavar="REVISION", min=0, help="By default the one before."),
    ] = None,
    until: Annotated[
        int | None,
        Option("--to", metavar="REVISION", min=0, help="By default the present one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what changed between two revisions of a document."""
    from tasklore.commands.memory.history import print_difference

    run(print_difference(user, resource, since, until, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example("tasklore memory explain food.likes[0] --user ana --resource food"),
)
def explain(
    path: Annotated[
        str,
        Argument(metavar="PATH", help="A place in a document, as `show` prints it."),
    ],
    user: User,
    resource: Annotated[
        str | None,
        Option(
            "--resource",
            metavar="DOC",
            help="Which document; by default the one that has it.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell how something came to be remembered, and why.

    What was said, what was found in it, who decided and on what grounds: every edit that touched it, newest first.
    """
    from tasklore.commands.memory.history import print_explanation

    run(print_explanation(user, resource, path, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore memory undo --user ana"))
def undo(user: User, plan: PlanId = None, as_json: Json = False) -> None:
    """Take an edit back, in every document that it touched.

    An older one is taken back beneath what came later; when something later touched the same place it is refused.
    """
    from tasklore.commands.memory.history import print_undo

    run(print_undo(user, plan, again=False, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore memory redo --user ana"))
def redo(user: User, plan: PlanId = None, as_json: Json = False) -> None:
    """Apply an edit again that was taken back."""
    from tasklore.commands.memory.history import print_undo

    run(print_undo(user, plan, again=True, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore memory conflicts --user ana"))
def conflicts(user: User, resource: Resource = None, as_json: Json = False) -> None:
    """List what contradicts something else in a person's memory."""
    from tasklore.commands.memory.review import print_conflicts

    run(print_conflicts(user, resource, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore memory audit --user ana"))
def audit(user: User, resource: Resource = None, as_json: Json = False) -> None:
    """Tell how good a person's memory is.

    Which share of it is said twice, stale, never read, in conflict or out of place, and where that is.
    """
    from tasklore.commands.memory.review import print_audit

    run(print_audit(user, resource, as_json=as_json))


@app.command(
    "export", cls=Command, epilog=example("tasklore memory export ./ana --user ana")
)
def export_documents(
    folder: Annotated[
        Path,
        Argument(
            metavar="FOLDER",
            help="Where to; one DOC.json each. - writes one to stdout.",
        ),
    ],
    user: User,
    resource: Resource = None,
) -> None:
    """Write a person's documents as JSON files.

    What was imported and not edited since comes back byte for byte. Files that are there are written over.
    """
    from tasklore.commands.memory import files

    run(files.export_documents(folder, user, resource))


@app.command(
    "import",
    cls=Command,
    epilog=example("tasklore memory import resources/*.json --user ana"),
)
def import_documents(
    files: Annotated[
        list[Path],
        Argument(metavar="FILE", help="JSON documents, each named by its _metadata."),
    ],
    user: User,
    resource: Annotated[
        str | None,
        Option(
            "--resource",
            metavar="DOC",
            help="Which document it is, when the file does not say so.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Put JSON files in the place of a person's documents.

    Each is an edit that `undo` takes back. Ends with 2 when one was refused; the others are stored.
    """
    from tasklore.commands.memory import files as file_commands

    return run(file_commands.import_documents(files, user, resource, as_json=as_json))


@app.command(
    cls=Command,
    epilog=example("tasklore memory migrate ./resources --user ana --dry-run"),
)
def migrate(
    folder: Annotated[
        Path, Argument(metavar="FOLDER", help="Where the older resource_*.md lie.")
    ],
    user: User,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Show what would change; change nothing.")
    ] = False,
) -> int:
    """Turn older Markdown memories into documents.

    The originals are renamed to .md.archive. What cannot be read as headings and bullets is listed and kept as it is
    written; nothing is dropped. Ends with 1 when a file was left, as when its document holds something else already.
    """
    from tasklore.commands.memory.migration import migrate_folder

    return run(migrate_folder(folder, user, is_dry=dry_run))


@app.command(
    cls=Command,
    epilog=example("tasklore memory forget --user ana", "tasklore memory forget ana"),
)
def forget(
    person: Annotated[
        str | None, Argument(metavar="USER", help="Who is to be forgotten.")
    ] = None,
    user: Annotated[
        str | None,
        Option("--user", metavar="ID", help="The same.", callback=_check_user),
    ] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> int:
    """Remove everything that is known of a person, and prove it.

    Everywhere: documents, history, facts, turns, conversations, answers that only they asked for, sessions of
    pipelines and the evidence of those that failed here, and the messages that carried their words, erased from the
    servers' files. What they decided for a project stays as a record without its text and their name. It cannot be
    undone. The name can be used again at once.
    """
    from tasklore.commands.memory import forget as forgetting

    if person is not None and user is not None:
        raise InvalidInput(
            "two users are given; say USER or --user, and forget them one after the other"
        )
    meant = person if user is None else user
    if meant is None:
        raise InvalidInput("say who is to be forgotten: --user ID")
    return run(forgetting.forget(meant, is_sure=yes, as_json=as_json))
