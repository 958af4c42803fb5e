"""The hands by which an operator's process changes memories: supervisors edit no documents, and forget no user."""

from datetime import timedelta
from functools import partial

from redis.asyncio import Redis

from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.history import PlanRecord
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.tombstones.declaration import hidden_words
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.settings import Settings
from tasklore.supervisor.operations.memory.hand_edits import (
    DocumentFile,
    Erased,
    MemoryHands,
    Redo,
)
from tasklore.workers.forgetting.erasure import UserStore, forget_user
from tasklore.workers.forgetting.server_files import rewrite_redis, rewrite_streams
from tasklore.workers.forgetting.stores import all_stores

#: Seconds for one exchange of documents with Valkey, and for one answer of the ledger: a person waits for all of it.
_DOCUMENTS_S = 5.0
_LEDGER_S = 10.0


def stores_of(
    link: Link, redis: Redis, outbox: Outbox, settings: Settings
) -> tuple[UserStore, ...]:
    """Return every store with data of users, in the order in which they are emptied; for one forgetting."""
    return all_stores(
        link,
        redis=redis,
        outbox=outbox,
        documents=_open_documents(redis, settings),
        evidence=settings.evidence_dir,
        ledger=Ledger(
            redis,
            keep=timedelta(days=settings.ledger_keep_days),
            reports_keep=timedelta(hours=settings.ledger_report_hours),
            deadline_s=_LEDGER_S,
        ),
    )


def lend_hands(
    link: Link, redis: Redis, outbox: Outbox, settings: Settings
) -> MemoryHands:
    """Return hands on the servers behind *link*, *redis* and *outbox*."""
    documents = _open_documents(redis, settings)

    async def put(file: DocumentFile) -> PlanRecord | None:
        return await documents.import_document(
            file.owner, file.content, at=file.at, resource=file.resource
        )

    async def redo(asked: Redo) -> PlanRecord:
        return await documents.redo(asked.owner, asked.plan_id, at=asked.at)

    async def erase(user: str) -> Erased:
        stores = stores_of(link, redis, outbox, settings)
        files = (partial(rewrite_redis, redis), partial(rewrite_streams, link))
        done = await forget_user(user, stores, files)
        return Erased(removed=done.removed, left=done.left, beside=done.beside)

    async def purge(user: str) -> Erased:
        # Streams carry none of it: what comes late from one is hidden in Valkey too.
        stores = (hidden_words(redis, deadline_s=_DOCUMENTS_S),)
        done = await forget_user(user, stores, (partial(rewrite_redis, redis),))
        return Erased(removed=done.removed, left=done.left, beside=done.beside)

    return MemoryHands(put=put, redo=redo, erase=erase, purge=purge)


def _open_documents(redis: Redis, settings: Settings) -> DocumentStore:
    kinds = Kinds.load(*filter(None, [settings.kinds_dir]))
    return DocumentStore(redis, kinds, deadline_s=_DOCUMENTS_S)
