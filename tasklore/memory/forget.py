"""`tasklore memory forget`: a person is removed everywhere, and it is looked again whether anything is left."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from contracts import subjects
from contracts.errors import InvalidInput
from memory.conversations.conversation import Conversations
from memory.conversations.notices import Notices
from memory.documents.storage.reader import MAX_USER_ID
from memory.episodes.store import Episodes
from memory.ledger.ledger import Ledger
from memory.ledger.user_tasks import UserTasks
from memory.long_term.owners import EntryOwners
from memory.projects.project import ProjectMemory
from memory.sessions.run_outcomes import RunOutcomes
from memory.sessions.session import SessionCache
from runtime.messaging.connection import connected
from runtime.messaging.link import Link
from runtime.messaging.outbox import open_outbox
from runtime.settings import Settings
from tasklore.exits import FAILED, OK
from tasklore.memory.stores import user_memory
from tasklore.places import current_endpoints, demand_listener
from tasklore.render.questions import confirm
from tasklore.render.screen import patience, print_json, print_table, printable, say
from workers.forgetting.erasure import ForgetsUser, Forgotten, RewritesFiles, forget_user
from workers.forgetting.projects import EvidenceOfUser, RecordsOfUser, SessionsOfUser
from workers.forgetting.server_files import StoreFiles, StreamFiles
from workers.forgetting.tasks import TasksOfUser
from workers.forgetting.words import EpisodesOfUser, kept_words

#: Seconds for one look at a store: only the caller waits for it.
_DEADLINE_S = 10.0
#: The messages that leave remains in the files of each stream.
_STAYING = {
    subjects.TASKS: "was done",
    subjects.LATER: "became due",
    subjects.REPORTS: "expired",
    subjects.TURNS: "was learned",
    subjects.FACTS: "was learned",
    subjects.MESSAGES: "was delivered",
    subjects.DEAD: "was sent again",
}


async def forget(user: str, *, is_sure: bool, as_json: bool) -> int:
    """Remove *user* everywhere, print the counts of what was removed and is left, and return the exit code.

    That is 1 when something is left.

    Raises:
        InvalidInput: *user* cannot be a user id.
    """
    if not user.strip() or len(user) > MAX_USER_ID:
        raise InvalidInput(f"USER must be a name of 1 to {MAX_USER_ID} characters; memory belongs to one person each")
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
        print_json({"user": user, "removed": done.removed, "left": done.left, "beside": done.beside})
    else:
        print_forgotten(user, done)
    return OK if done.is_complete else FAILED


@contextlib.asynccontextmanager
async def places_of_users() -> AsyncIterator[tuple[tuple[ForgetsUser, ...], tuple[RewritesFiles, ...]]]:
    """Open all places of the system that runs here in which data of a user may lie, in order, and their files."""
    url = current_endpoints().nats
    await demand_listener(url)
    async with (
        connected(url, "tasklore-forget") as client,
        user_memory() as memory,
        open_outbox(link := Link(client)) as outbox,
    ):
        redis = memory.client
        sessions = SessionCache(redis, deadline_s=_DEADLINE_S)
        episodes = Episodes(redis, deadline_s=_DEADLINE_S)
        # First what makes tasks, then these, then what they leave.
        parts: tuple[ForgetsUser, ...] = (
            SessionsOfUser(sessions, RunOutcomes(redis, deadline_s=_DEADLINE_S)),
            TasksOfUser(link, Ledger(redis, deadline_s=_DEADLINE_S), UserTasks(redis), outbox),
            *kept_words(
                link,
                queues=(
                    (subjects.TURNS, subjects.turns, memory.turns),
                    (subjects.FACTS, subjects.facts, memory.facts),
                ),
                documents=memory.documents,
                episodes=EpisodesOfUser(episodes, Notices(redis, deadline_s=_DEADLINE_S)),
                conversations=Conversations(redis, deadline_s=_DEADLINE_S),
                askers=EntryOwners(redis),
            ),
            EvidenceOfUser(Settings.load().evidence_dir),
            RecordsOfUser(ProjectMemory(redis, deadline_s=_DEADLINE_S)),
        )
        yield parts, (StoreFiles(redis), StreamFiles(link))


def print_forgotten(user: str, done: Forgotten) -> None:
    """Print the counts of what was removed and is left."""
    if done.removed:
        print(f"Forgot {printable(user)}:")
        print_table(("What", "Removed"), _rows(done.removed), right=("Removed",))
    else:
        print(f"Nothing was known of {printable(user)}.")
    if done.left:
        print("There is something left; forget again, once nobody works on it:")
        print_table(("What", "Left"), _rows(done.left), right=("Left",))
    else:
        print("Looked again everywhere: nothing is left.")
    for what, count in sorted(done.beside.items()):
        if what in _STAYING:
            whose = f"beside {count:,} of others that wait there"
            say(f"remains of what {_STAYING[what]}, anybody's, may lie in the files of {what} {whose}")
        else:
            say(f"the {what} could not be written anew; have whoever runs the server do it")


def _rows(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(kind, f"{count:,}") for kind, count in sorted(counts.items()) if count]
