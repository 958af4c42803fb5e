"""The table of stores: how data of a user is removed from each and counted in it, in the order of the flow of work."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from pydantic_core import from_json
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import user_token
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.run_index import RunIndex
from tasklore.memory.ledger.user_tasks import UserTasks
from tasklore.memory.long_term.owners import EntryOwners
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.memory.schedules.store import UserSchedules
from tasklore.memory.sessions.index import RunOutcomes
from tasklore.memory.sessions.session import SessionCache
from tasklore.memory.webhooks.outbox import WebhookOutbox
from tasklore.runtime.messaging.direct import open_direct_reads
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.workers.forgetting.erasure import UserStore
from tasklore.workers.forgetting.tasks import TaskEraser, names_user

#: Turns of one conversation that are looked through: far above what one holds.
_ALL_TURNS = 1_000_000
#: Seconds for one look at a store: only the one who asked waits for it.
_DEADLINE_S = 10.0


def stores_in_redis(
    redis: Redis,
    documents: DocumentStore,
    episodes: Episodes,
    conversations: Conversations,
) -> tuple[UserStore, ...]:
    """Return the stores whose keys a memory worker may remove, in order."""
    return (
        _rows("turns", PersonalQueue(redis, "turns")),
        _rows("facts", PersonalQueue(redis, "facts")),
        _episodes(episodes, Notices(redis)),
        _documents(documents),
        _conversations(conversations),
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
    sessions = SessionCache(redis, deadline_s=deadline_s)
    conversations = Conversations(redis, deadline_s=deadline_s)
    owners = EntryOwners(redis, deadline_s=deadline_s)
    projects = ProjectMemory(redis, deadline_s=deadline_s)

    schedules = UserSchedules(redis, deadline_s=deadline_s)
    webhooks = WebhookOutbox(redis, deadline_s=deadline_s)

    async def release(user_id: str) -> int:
        return (await owners.release(user_token(user_id))).removed

    tasks = TaskEraser(
        link,
        ledger=ledger,
        tasks=UserTasks(redis),
        index=RunIndex(redis, deadline_s=deadline_s),
        outbox=outbox,
    )
    return (
        # Schedules and sessions start tasks, and tasks leave all that follows.
        _store("schedules", schedules.forget, schedules.count),
        _sessions(sessions, RunOutcomes(redis, deadline_s=deadline_s)),
        UserStore("tasks", tasks.forget, tasks.count),
        _queue(
            link,
            subjects.TURNS,
            subjects.turns,
            PersonalQueue(redis, "turns", deadline_s=deadline_s),
        ),
        _queue(
            link,
            subjects.FACTS,
            subjects.facts,
            PersonalQueue(redis, "facts", deadline_s=deadline_s),
        ),
        _episodes(
            Episodes(redis, deadline_s=deadline_s),
            Notices(redis, deadline_s=deadline_s),
        ),
        _documents(documents),
        # Before the conversations, which messages would enter anew.
        _messages(link, conversations),
        _conversations(conversations),
        # Shared results that another user asked for as well stay.
        _store("webhooks", webhooks.forget, webhooks.count),
        _store("answers", release, lambda user_id: owners.listed(user_token(user_id))),
        evidence_files(evidence),
        _store("texts in projects", projects.redact, projects.count_by),
    )


def _store(
    kind: str,
    forget: Callable[[str], Awaitable[int]],
    count: Callable[[str], Awaitable[int]],
) -> UserStore:
    """Return a store with data of one kind."""

    async def by_kind(
        function: Callable[[str], Awaitable[int]], user_id: str
    ) -> dict[str, int]:
        return {kind: await function(user_id)}

    return UserStore(kind, partial(by_kind, forget), partial(by_kind, count))


def _rows(kind: str, rows: PersonalQueue) -> UserStore:
    async def count(user_id: str) -> int:
        counts = await rows.counts(user_id)
        return counts.waiting + counts.parked + sum(counts.closed.values())

    return _store(kind, rows.forget, count)


def _queue(
    link: Link, stream: str, subject_of: Callable[[str], str], queue: PersonalQueue
) -> UserStore:
    """Return a table of waiting rows with its stream; the messages go first: one delivered later would make a row."""
    eraser = Eraser(link)
    rows = _rows(stream.lower(), queue)

    async def forget(user_id: str) -> dict[str, int]:
        erased = await eraser.erase_by_subject(stream, subject_of(user_id))
        return {"messages": erased.erased, **await rows.forget(user_id)}

    async def count(user_id: str) -> dict[str, int]:
        async with open_direct_reads(link, stream) as reads:
            messages = sum(
                [len(page) async for page in reads.pages(subject_of(user_id))]
            )
        return {"messages": messages, **await rows.count(user_id)}

    return UserStore(stream.lower(), forget, count)


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
                    elif _user_of(one.body) is None:
                        # The third word of the subject is the token of the conversation.
                        unsigned[(*one.subject.split("."), "", "", "")[2]].append(
                            one.sequence
                        )
        for conversation_id in await conversations.of_user(user_id) if unsigned else ():
            sequences = unsigned.get(user_token(conversation_id), [])
            if sequences and not _is_shared(
                await _all_turns(conversations, conversation_id), user_id
            ):
                theirs += sequences
        return theirs

    async def forget(user_id: str) -> int:
        return (await eraser.erase_many(subjects.MESSAGES, await find(user_id))).erased

    async def count(user_id: str) -> int:
        return len(await find(user_id))

    return _store("messages", forget, count)


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


def _episodes(episodes: Episodes, notices: Notices) -> UserStore:
    async def forget(user_id: str) -> dict[str, int]:
        return {
            "episodes": await episodes.forget(user_id),
            "notices": await notices.forget(user_id),
        }

    async def count(user_id: str) -> dict[str, int]:
        return {"episodes": await episodes.count(user_id)}

    return UserStore("episodes", forget, count)


def _conversations(conversations: Conversations) -> UserStore:
    """Return the conversations of a user; of one in which others take part, the user's own turns."""

    async def remove(conversation_id: str, user_id: str) -> bool:
        turns = await _all_turns(conversations, conversation_id)
        if _is_shared(turns, user_id):
            theirs = [turn for turn in turns if _user_of(turn) == user_id]
            return bool(await conversations.drop(conversation_id, theirs))
        # What was said in it before they gave a name is theirs too.
        return await conversations.forget(conversation_id)

    async def forget(user_id: str) -> int:
        listed = await conversations.of_user(user_id)
        removed = sum(
            [await remove(conversation_id, user_id) for conversation_id in listed]
        )
        await conversations.disown(user_id, listed)
        # Of one that goes on meanwhile a turn may have come while it stood in no list.
        for conversation_id in listed:
            await remove(conversation_id, user_id)
        return removed

    async def count(user_id: str) -> int:
        return len(await conversations.of_user(user_id))

    return _store("conversations", forget, count)


def _sessions(sessions: SessionCache, outcomes: RunOutcomes) -> UserStore:
    """Return sessions that were started for a user, running ones too, and the outcomes of their runs."""

    async def drop(listed: Sequence[str]) -> int:
        return sum(
            [await sessions.drop(session_id, force=True) for session_id in listed]
        )

    async def forget(user_id: str) -> dict[str, int]:
        listed = await sessions.of_user(user_id)
        dropped = await drop(listed)
        ended = await outcomes.drop(listed)
        await outcomes.disown(user_id, listed)
        # One may have been made, or have ended, while it stood in no list.
        return {
            "sessions": dropped + await drop(listed),
            "outcomes": ended + await outcomes.drop(listed),
        }

    async def count(user_id: str) -> dict[str, int]:
        return {"sessions": len(await sessions.of_user(user_id))}

    return UserStore("sessions", forget, count)


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

    return _store("evidence files", forget, count)


def _is_shared(turns: Sequence[bytes], user_id: str) -> bool:
    """Return whether another known user takes part in a conversation of *turns*."""
    return any(_user_of(turn) not in (None, user_id) for turn in turns)


async def _all_turns(conversations: Conversations, conversation_id: str) -> list[bytes]:
    # Waiting turns first: one may be taken between the two reads.
    waiting = await conversations.waiting(conversation_id)
    return waiting + await conversations.recent(conversation_id, _ALL_TURNS)


def _user_of(turn: bytes) -> object:
    """Return the user id of a turn; None when it has none or cannot be read."""
    try:
        read = from_json(turn)
    except ValueError:
        return None
    return read.get("user_id") if isinstance(read, dict) else None
