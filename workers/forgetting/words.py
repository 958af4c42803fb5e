"""What is removed of a user where their words were kept: turns, facts, messages, documents, conversations, answers.

Each class is a `workers.forgetting.erasure.ForgetsUser`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from pydantic_core import from_json
from redis.asyncio import Redis

from contracts import subjects
from contracts.identifiers import user_token
from memory.conversations.conversation import Conversations
from memory.conversations.notices import Notices
from memory.documents.storage.store import DocumentStore
from memory.episodes.store import Episodes
from memory.long_term.owners import EntryOwners
from memory.queues.queue import PersonalQueue
from runtime.messaging.direct import Line, open_direct_reads
from runtime.messaging.erasure import Eraser
from workers.forgetting.erasure import ForgetsUser
from workers.forgetting.tasks import names_user

#: Turns of one conversation that are looked through: far above what one holds.
_ALL_TURNS = 1_000_000


class RowsOfUser:
    """A table of waiting rows alone; what is on its way to it stays with the streams."""

    def __init__(self, kind: str, rows: "PersonalQueue") -> None:
        self._kind = kind
        self._rows = rows

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Remove the rows."""
        return {self._kind: await self._rows.forget(user_id)}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count them."""
        counts = await self._rows.counts(user_id)
        return {self._kind: counts.waiting + counts.parked + sum(counts.closed.values())}


class QueueOfUser:
    """A table of waiting rows, and the stream whose messages become rows: *subject_of* says where those of a user lie.

    The messages go first: each that is delivered later would make a row.
    """

    def __init__(self, line: Line, stream: str, subject_of: Callable[[str], str], rows: "PersonalQueue") -> None:
        self._line = line
        self._eraser = Eraser(line)
        self._stream = stream
        self._subject_of = subject_of
        self._rows = RowsOfUser(stream.lower(), rows)

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Erase the messages and remove the rows."""
        erased = await self._eraser.erase_by_subject(self._stream, self._subject_of(user_id))
        return {"messages": erased.erased, **await self._rows.forget(user_id)}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count both."""
        async with open_direct_reads(self._line, self._stream) as reads:
            messages = sum([len(page) async for page in reads.pages(self._subject_of(user_id))])
        return {"messages": messages, **await self._rows.left(user_id)}


class MessagesOfUser:
    """What waits to be delivered to agents: the user's words, and what nobody known says where they are alone.

    It goes before the conversations, which it would enter anew.
    """

    def __init__(self, line: Line, conversations: Conversations) -> None:
        self._line = line
        self._eraser = Eraser(line)
        self._conversations = conversations

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Erase it."""
        erased = await self._eraser.erase_many(subjects.MESSAGES, await self._found(user_id))
        return {"messages": erased.erased}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count it."""
        return {"messages": len(await self._found(user_id))}

    async def _found(self, user_id: str) -> list[int]:
        """Return the places of what is theirs."""
        theirs: list[int] = []
        unsigned: dict[str, list[int]] = defaultdict(list)
        async with open_direct_reads(self._line, subjects.MESSAGES) as reads:
            async for page in reads.pages(subjects.MESSAGES_ALL):
                for one in page:
                    if names_user(one.body, user_id):
                        theirs.append(one.sequence)
                    elif _user_of(one.body) is None:
                        unsigned[_addressed(one.subject)].append(one.sequence)
        for conversation_id in await self._conversations.of_user(user_id) if unsigned else ():
            sequences = unsigned.get(user_token(conversation_id), [])
            if sequences and not is_shared(await _whole(self._conversations, conversation_id), user_id):
                theirs += sequences
        return theirs


class DocumentsOfUser:
    """JSON memory documents with all that is told of how they came to be."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Remove them."""
        gone = await self._store.forget(user_id)
        return {"documents": gone.documents, "edits": gone.entries, "plans": gone.plans, "noted reads": gone.reads}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count documents, plans and noted reads."""
        snapshot = await self._store.snapshot(user_id)
        documents = sum(1 for document in snapshot.documents.values() if document.revision)
        plans = len(await self._store.history(user_id))
        return {"documents": documents, "plans": plans, "noted reads": len(await self._store.reads(user_id))}


class EpisodesOfUser:
    """What was said word for word, with the index of its words; and lines that wait to be said."""

    def __init__(self, episodes: Episodes, notices: Notices) -> None:
        self._episodes = episodes
        self._notices = notices

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Remove both."""
        return {"episodes": await self._episodes.forget(user_id), "notices": await self._notices.forget(user_id)}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count the turns that are there."""
        return {"episodes": await self._episodes.count(user_id)}


class ConversationsOfUser:
    """What was said to and by the user, and for them; of a conversation that others take part in, only that."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Remove them, and then the list of them."""
        listed = await self._conversations.of_user(user_id)
        count = 0
        for conversation_id in listed:
            count += await self._removed(conversation_id, user_id)
        await self._conversations.disown(user_id, listed)
        # Of one that goes on meanwhile something may have come while it stood in no list.
        for conversation_id in listed:
            await self._removed(conversation_id, user_id)
        return {"conversations": count}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count those that are listed."""
        return {"conversations": len(await self._conversations.of_user(user_id))}

    async def _removed(self, conversation_id: str, user_id: str) -> bool:
        turns = await _whole(self._conversations, conversation_id)
        if is_shared(turns, user_id):
            theirs = [turn for turn in turns if _user_of(turn) == user_id]
            return bool(await self._conversations.drop(conversation_id, theirs))
        # Nobody else is known in it: what was said before they gave a name is theirs too.
        return await self._conversations.forget(conversation_id)


class AnswersOfUser:
    """Remembered results: their own, and shared ones that nobody else asked for."""

    def __init__(self, askers: EntryOwners) -> None:
        self._askers = askers

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Remove them."""
        released = await self._askers.release(user_token(user_id))
        return {"answers": released.removed}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count those that are listed."""
        return {"answers": await self._askers.listed(user_token(user_id))}


def is_shared(turns: Sequence[bytes], user_id: str) -> bool:
    """Return whether somebody else who is known takes part in a conversation of *turns*."""
    return any(_user_of(turn) not in (None, user_id) for turn in turns)


async def _whole(conversations: Conversations, conversation_id: str) -> list[bytes]:
    # What waits goes first: it may be taken between the two.
    waiting = await conversations.waiting(conversation_id)
    return waiting + await conversations.recent(conversation_id, _ALL_TURNS)


def _addressed(subject: str) -> str:
    """Return the token of the conversation that a message on *subject* is for; nothing when it tells none."""
    return (*subject.split("."), "", "", "")[2]


def _user_of(turn: bytes) -> object:
    """Return whose turn it is, None when nobody's; of one that cannot be read it is not known."""
    try:
        read = from_json(turn)
    except ValueError:
        return None
    return read.get("user_id") if isinstance(read, dict) else None


def kept_words(
    line: Line,
    *,
    queues: Sequence[tuple[str, Callable[[str], str], "PersonalQueue"]],
    documents: DocumentStore,
    episodes: EpisodesOfUser,
    conversations: Conversations,
    askers: EntryOwners,
) -> tuple[QueueOfUser | EpisodesOfUser | DocumentsOfUser | MessagesOfUser | ConversationsOfUser | AnswersOfUser, ...]:
    """Return all of these parts in order; *queues* are stream, subject and table, that of turns first."""
    return (
        *(QueueOfUser(line, stream, subject_of, rows) for stream, subject_of, rows in queues),
        episodes,
        DocumentsOfUser(documents),
        MessagesOfUser(line, conversations),
        ConversationsOfUser(conversations),
        AnswersOfUser(askers),
    )


def words_in_store(
    redis: Redis, documents: DocumentStore, episodes: Episodes, conversations: Conversations
) -> tuple[ForgetsUser, ...]:
    """Return the parts that lie in the keys of a memory worker, in order."""
    return (
        RowsOfUser("turns", PersonalQueue(redis, "turns")),
        RowsOfUser("facts", PersonalQueue(redis, "facts")),
        EpisodesOfUser(episodes, Notices(redis)),
        DocumentsOfUser(documents),
        ConversationsOfUser(conversations),
    )
