"""`tasklore memory forget`: a person is removed everywhere, and it is looked again whether anything is left."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from functools import partial

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.memory.stores import user_memory
from tasklore.commands.places import open_nats
from tasklore.commands.render.screen import (
    confirm,
    patience,
    print_json,
    print_table,
    printable,
    say,
)
from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.storage.reader import MAX_USER_ID
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.settings import Settings
from tasklore.workers.forgetting.erasure import (
    Forgotten,
    Rewrite,
    UserStore,
    forget_user,
)
from tasklore.workers.forgetting.server_files import rewrite_redis, rewrite_streams
from tasklore.workers.forgetting.stores import all_stores

#: Seconds for one answer of the ledger.
_LEDGER_S = 10.0

#: The messages that leave remains in the files of each stream.
_STAYING = {
    subjects.TASKS: "was done",
    subjects.LATER: "became due",
    subjects.REPORTS: "expired",
    subjects.TURNS: "was learned",
    subjects.FACTS: "was learned",
    subjects.MESSAGES: "was delivered",
    subjects.DEAD: "was sent again",
    subjects.OUTPUT: "was emitted",
}


async def forget(user: str, *, is_sure: bool, as_json: bool) -> int:
    """Remove *user* everywhere, print the counts of removed and remaining entries, and return the exit code.

    That is 1 when something is left.

    Raises:
        InvalidInput: *user* cannot be a user id.
    """
    if not user.strip() or len(user) > MAX_USER_ID:
        raise InvalidInput(
            f"USER must be a name of 1 to {MAX_USER_ID} characters; memory belongs to one person each"
        )
    if not is_sure:
        confirm(
            f"Forget everything about {printable(user)}? It cannot be undone.",
            unasked="forgetting a person cannot be undone; say --yes to mean it",
            declined="nothing was forgotten",
        )
    async with places_of_users() as (parts, files), patience("forgetting"):
        try:
            done = await forget_user(user, parts, files)
        except asyncio.CancelledError:
            say("stopped in the middle; forget again to finish")
            raise
    if as_json:
        print_json(
            {
                "user": user,
                "removed": done.removed,
                "left": done.left,
                "beside": done.beside,
            }
        )
    else:
        print_forgotten(user, done)
    return OK if done.is_complete else FAILED


@contextlib.asynccontextmanager
async def places_of_users() -> AsyncIterator[
    tuple[tuple[UserStore, ...], tuple[Rewrite, ...]]
]:
    """Open all stores of the system that runs here with data of users, in order, and their files."""
    async with (
        open_nats("tasklore-forget") as client,
        user_memory() as memory,
        open_outbox(link := Link(client)) as outbox,
    ):
        settings = Settings.load()
        stores = all_stores(
            link,
            redis=memory.client,
            outbox=outbox,
            documents=memory.documents,
            evidence=settings.evidence_dir,
            ledger=Ledger(
                memory.client,
                keep=timedelta(days=settings.ledger_keep_days),
                reports_keep=timedelta(hours=settings.ledger_report_hours),
                deadline_s=_LEDGER_S,
            ),
        )
        yield (
            stores,
            (partial(rewrite_redis, memory.client), partial(rewrite_streams, link)),
        )


def print_forgotten(user: str, done: Forgotten) -> None:
    """Print the counts of removed and remaining entries."""
    if done.removed:
        print(f"Forgot {printable(user)}:")
        print_table(("What", "Removed"), _rows(done.removed), right=("Removed",))
    else:
        print(f"Nothing was known of {printable(user)}.")
    if done.left:
        print("Some of it is left; run it again once no task works on it:")
        print_table(("What", "Left"), _rows(done.left), right=("Left",))
    else:
        print("Looked again everywhere: nothing is left.")
    for what, count in sorted(done.beside.items()):
        if what in _STAYING:
            whose = f"beside {count:,} of others that wait there"
            say(
                f"remains of what {_STAYING[what]}, anybody's, may lie in the files of {what} {whose}"
            )
        else:
            say(
                f"the {what} could not be written anew; have whoever runs the server do it"
            )


def _rows(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(kind, f"{count:,}") for kind, count in sorted(counts.items()) if count]
