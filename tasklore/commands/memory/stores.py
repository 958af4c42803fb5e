"""Opening the memory of a user, and finding the document that an option names."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import NamedTuple

from tasklore.commands.places import current_endpoints, demand_listener
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import resource_of
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.servers import valkey
from tasklore.runtime.settings import Settings

#: Seconds for one look: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0


class UserMemory(NamedTuple):
    """The stores of a person's words and documents, open."""

    documents: DocumentStore
    turns: PersonalQueue
    facts: PersonalQueue
    kinds: Kinds
    client: valkey.Valkey


@contextlib.asynccontextmanager
async def user_memory(redis_url: str | None = None) -> AsyncIterator[UserMemory]:
    """Open the memory of users at *redis_url*; None: of the system that runs here.

    Raises:
        Unreachable: there is none, or its Redis does not answer.
        ConfigurationError: a kind of document in TASKLORE_KINDS_DIR cannot be read.
    """
    url = redis_url or current_endpoints().redis_url
    settings = Settings.load()
    kinds = Kinds.load(*filter(None, [settings.kinds_dir]))
    await demand_listener(url)
    async with valkey.connect(
        url, name="tasklore-memory", deadline_s=2 * _DEADLINE_S
    ) as client:
        await client.check()
        turns = PersonalQueue(
            client,
            "turns",
            keep=timedelta(days=settings.turns_keep_days),
            deadline_s=_DEADLINE_S,
        )
        facts = PersonalQueue(
            client,
            "facts",
            keep=timedelta(days=settings.facts_keep_days),
            deadline_s=_DEADLINE_S,
        )
        yield UserMemory(
            DocumentStore(client, kinds, deadline_s=_DEADLINE_S),
            turns=turns,
            facts=facts,
            kinds=kinds,
            client=client,
        )


def find_resource(word: str, kinds: Kinds, stored: Iterable[str] = ()) -> str:
    """Return the resource id that *word* means: a whole one, its file's name, a tag, or a word of its name ("food").

    *stored* are the documents of a user, some of which may be of no kind.

    Raises:
        InvalidInput: *word* means no document, or several.
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
    raise InvalidInput(
        f"--resource {word!r} means {'several' if found else 'none'} of the documents; "
        f"say one of {', '.join(found or known)}"
    )


async def find_stored_resource(memory: UserMemory, user: str, word: str) -> str:
    """Return the resource id that *word* means among the documents of *user*, those of no kind among them."""
    return find_resource(
        word, memory.kinds, (await memory.documents.snapshot(user)).documents
    )
