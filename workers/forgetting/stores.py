"""What forgets a user: each store in Redis as it is declared, and beside it what takes streams or files, in order."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import user_token
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.declaration import is_shared, read_all_turns, user_of
from tasklore.memory.declarations import Store, UserStore, user_store
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.user_tasks import UserTasks
from tasklore.memory.stores import STORES
from tasklore.runtime.messaging.direct import open_direct_reads
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.workers.forgetting.tasks import TaskEraser, names_user

#: Seconds for one look at a store: only the one who asked waits for it.
_DEADLINE_S = 10.0
#: The name of the store that takes the kinds of documents too.
_DOCUMENTS = "documents"


#: What a memory worker keeps of people, beside their documents.
_OF_MEMORY_WORKER = frozenset(
    {"tombstones", "turns", "facts", "episodes", "conversations"}
)


def stores_in_redis(
    redis: Redis, documents: DocumentStore, *, deadline_s: float = 1.0
) -> tuple[UserStore, ...]:
    """Return the stores whose keys a memory worker may remove, in order."""
    stores = [one for one in STORES if one.name in {*_OF_MEMORY_WORKER, _DOCUMENTS}]
    return _in_order(
        stores, redis, {_DOCUMENTS: (_documents(documents),)}, deadline_s=deadline_s
    )


def all_stores(
    link: Link,
    redis: Redis,
    outbox: Outbox,
    documents: DocumentStore,
    evidence: Path,
    *,
    ledger: Ledger,
    deadline_s: float = _DEADLINE_S,
) -> tuple[UserStore, ...]:
    """Return every store of a deployment, in order; *evidence* is this machine's folder of failed runs.

    *ledger* keeps what is left of tasks as long as the deployment keeps others.
    """
    conversations = Conversations(redis, deadline_s=deadline_s)
    tasks = TaskEraser(
        link,
        ledger=ledger,
        tasks=UserTasks(redis),
        index=TaskIndex(redis, deadline_s=deadline_s),
        outbox=outbox,
    )
    # Messages go before the rows and the conversations which they would enter anew.
    before = {
        "tasks": (UserStore("tasks", tasks.forget, tasks.count),),
        "turns": (_on_their_way(link, subjects.TURNS, subjects.turns),),
        "facts": (_on_their_way(link, subjects.FACTS, subjects.facts),),
        _DOCUMENTS: (_documents(documents),),
        "conversations": (_messages(link, conversations),),
        "projects": (evidence_files(evidence),),
    }
    return _in_order(STORES, redis, before, deadline_s=deadline_s)


def _in_order(
    stores: Iterable[Store],
    redis: Redis,
    before: Mapping[str, tuple[UserStore, ...]],
    *,
    deadline_s: float,
) -> tuple[UserStore, ...]:
    """Return the words of users in each of *stores*, each behind those in *before* at its name."""
    found: list[UserStore] = []
    for store in stores:
        found += before.get(store.name, ())
        if store.of_users is not None:
            found.append(store.of_users(redis, deadline_s))
    return tuple(found)


def _on_their_way(
    link: Link, stream: str, subject_of: Callable[[str], str]
) -> UserStore:
    """Return the messages of a stream that become rows: one that is delivered later would make one."""
    eraser = Eraser(link)

    async def forget(user_id: str) -> int:
        return (await eraser.erase_by_subject(stream, subject_of(user_id))).erased

    async def count(user_id: str) -> int:
        async with open_direct_reads(link, stream) as reads:
            return sum([len(page) async for page in reads.pages(subject_of(user_id))])

    return user_store("messages", forget, count)


def _messages(link: Link, conversations: Conversations) -> UserStore:
    """Return the messages that wait for agents: the user's, and unsigned ones in conversations of theirs alone."""
    eraser = Eraser(link)

    async def find(user_id: str) -> list[int]:
        theirs: list[int] = []
        unsigned: dict[str, list[int]] = defaultdict(list)
        async with open_direct_reads(link, subjects.MESSAGES) as reads:
            async for page in reads.pages(subjects.MESSAGES_ALL):
                for one in page:
                    if names_user(one.body, user_id):
                        theirs.append(one.sequence)
                    elif user_of(one.body) is None:
                        # The third word of the subject is the token of the conversation.
                        unsigned[(*one.subject.split("."), "", "", "")[2]].append(
                            one.sequence
                        )
        for conversation_id in await conversations.of_user(user_id) if unsigned else ():
            sequences = unsigned.get(user_token(conversation_id), [])
            if sequences and not is_shared(
                await read_all_turns(conversations, conversation_id), user_id
            ):
                theirs += sequences
        return theirs

    async def forget(user_id: str) -> int:
        return (await eraser.erase_many(subjects.MESSAGES, await find(user_id))).erased

    async def count(user_id: str) -> int:
        return len(await find(user_id))

    return user_store("messages", forget, count)


def _documents(store: DocumentStore) -> UserStore:
    async def forget(user_id: str) -> dict[str, int]:
        gone = await store.forget(user_id)
        return {
            "documents": gone.documents,
            "edits": gone.entries,
            "plans": gone.plans,
            "noted reads": gone.reads,
        }

    async def count(user_id: str) -> dict[str, int]:
        snapshot = await store.snapshot(user_id)
        documents = sum(
            1 for document in snapshot.documents.values() if document.revision
        )
        plans = len(await store.history(user_id))
        return {
            "documents": documents,
            "plans": plans,
            "noted reads": len(await store.reads(user_id)),
        }

    return UserStore("documents", forget, count)


def evidence_files(folder: Path) -> UserStore:
    """Return the files in *folder* that keep failed runs; those of other machines are not reached from here."""

    def find(user_id: str) -> list[Path]:
        found = []
        for file in sorted(folder.glob("*-failed.json")):
            try:
                body = file.read_bytes()
            except FileNotFoundError:
                continue
            if names_user(body, user_id):
                found.append(file)
        return found

    async def forget(user_id: str) -> int:
        found = await asyncio.to_thread(find, user_id)
        for file in found:
            await asyncio.to_thread(file.unlink, missing_ok=True)
        return len(found)

    async def count(user_id: str) -> int:
        return len(await asyncio.to_thread(find, user_id))

    return user_store("evidence files", forget, count)
