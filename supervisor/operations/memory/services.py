"""The services of operations on memories, whose memory a caller may name, and which document a word means."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Annotated

from pydantic import Field
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.extensions import Embedder
from tasklore.contracts.identifiers import Scope, scoped
from tasklore.contracts.messages import CompletionReport
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Document, resource_of
from tasklore.memory.documents.storage.reader import DocumentReader
from tasklore.memory.episodes.minilm import load_minilm
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.supervisor.catalogue import Catalogue, Offer
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.operations.refusals import Fault, Refused, not_found, unusable

Owner = Annotated[
    str,
    Field(min_length=1, max_length=200, description='User id (must not contain "/").'),
]
OwnerScope = Annotated[
    Scope,
    Field(
        description="Scope of the id in `user`: a user, an agent, a run or an "
        "organisation."
    ),
]
DocumentWord = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        description="A document: its id, or a word for it such as food.",
    ),
]
OneDocument = Annotated[
    str | None,
    Field(
        max_length=128,
        description="Only this document: its id, or a word for it such as food.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTask:
    """One task for the memory of *owner*; *chosen* is the id that its sender gave it, None when it gave none.

    One that *adds* nothing (undoing, deleting, forgetting) is done however much its sender keeps.
    """

    name: str
    parameters: Mapping[str, object]
    owner: str
    chosen: str | None = None
    adds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSeen:
    """A task that was sent, and its report where that came in time."""

    task_id: str
    report: CompletionReport | None


#: Sends a task to the memory agent, and returns it after so many seconds at the latest.
SendMemoryTask = Callable[[Caller, Offer, MemoryTask, float], Awaitable[TaskSeen]]


@dataclass(frozen=True, kw_only=True)
class MemoryLooks:
    """The stores of looks at memories; `embedder` is loaded when it is asked for, None where there is none."""

    reader: DocumentReader
    kinds: Kinds
    episodes: Episodes
    turns: PersonalQueue
    facts: PersonalQueue
    embedder: Callable[[], Embedder | None]


@dataclass(frozen=True, kw_only=True)
class TurnServices(MemoryLooks):
    """The stores of looks at memories, the way that turns go in, and the ids that their senders chose."""

    dispatch: Dispatch
    records: RequestRecords


@dataclass(frozen=True, kw_only=True)
class MemoryServices(TurnServices):
    """The stores and functions of operations on memories."""

    catalogue: Callable[[], Catalogue]
    send: SendMemoryTask


def look_at_memories(
    redis: Redis, kinds: Kinds, turns_kept: timedelta | None
) -> MemoryLooks:
    """Return the stores on *redis*; turns are kept for *turns_kept*, None for no end."""
    return MemoryLooks(
        reader=DocumentReader(redis, kinds),
        kinds=kinds,
        episodes=Episodes(redis, keep=turns_kept),
        turns=PersonalQueue(redis, "turns"),
        facts=PersonalQueue(redis, "facts"),
        embedder=cache(load_minilm),
    )


def demand_owner(caller: Caller, name: str, scope: Scope) -> str:
    """Return the owner that *name* is in *scope*, when *caller* may act for it.

    Raises:
        NotPermitted: the key is for another user.
        InvalidInput: a user is called as the owners of another scope are.
        Refused: 403, the key is for one user, and another scope is named.
    """
    if scope == "user":
        caller.demand_user(name)
    elif caller.user is not None:
        raise Refused(
            403,
            "scope",
            f"this key is for one user; use a key without one for the scope {scope!r}",
        )
    return scoped(scope, name)


async def read_documents(services: MemoryLooks, owner: str) -> Mapping[str, Document]:
    """Return every document of *owner* as they are at one moment."""
    return (await services.reader.snapshot(owner)).documents


def find_resource(word: str, kinds: Kinds, stored: Iterable[str] = ()) -> str:
    """Return the resource id that *word* means: a whole one, its file's name, a tag, or a word of its name ("food").

    *stored* are the documents of a user, some of which may be of no kind.

    Raises:
        Refused: 404, *word* means no document; 422, it means several.
    """
    known = list(dict.fromkeys([*kinds.ids, *stored]))
    wanted = resource_of(word)
    if wanted in known:
        return wanted
    plain = wanted.casefold()
    by_tag = [kind.resource_id for kind in kinds.by_id.values() if plain in kind.tags]
    found = by_tag or [one for one in known if plain in one.casefold().split("_")]
    if len(found) == 1:
        return found[0]
    if not found:
        raise not_found(f"there is no document {word!r}; say one of {', '.join(known)}")
    complaint = (
        f"{word!r} means several of the documents; say one of {', '.join(found)}"
    )
    raise unusable([Fault(where="resource", message=complaint)])


def find_resources(
    word: str | None, kinds: Kinds, stored: Iterable[str]
) -> tuple[str, ...]:
    """Return the documents that *word* means among *stored*: all of them when it is None.

    Raises:
        Refused: as `find_resource`.
    """
    known = tuple(stored)
    return known if word is None else (find_resource(word, kinds, known),)
