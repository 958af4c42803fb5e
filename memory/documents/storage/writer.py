"""Stores a draft: whole, or not at all when it rests on outdated documents."""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.guard import LIMITS, DocumentLimits
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Document
from tasklore.memory.documents.storage.history import (
    entry_json,
    json_bytes,
    record_json,
)
from tasklore.memory.documents.storage.reader import DocumentReader, token_of
from tasklore.memory.documents.storage.repository import (
    Committed,
    DocumentWrite,
    Recorded,
    Stale,
    Transaction,
)
from tasklore.memory.queues.claims import Claim, Closing

#: Revisions of a document that can be gone back to: years of what a person says, and about half a megabyte of log.
KEEP_REVISIONS = 1_000


class DocumentWriter(DocumentReader):
    """Reads documents and stores drafts of them; every call fails with InvalidInput when the user id is empty.

    Args:
        kinds: Templates of documents that are not stored yet.
        deadline_s: Seconds for one exchange with the server; some calls need several.
        limits: What a document that is imported, or whose items expire, may be.
        keep_revisions: Revisions of a document that can be gone back to; older log entries are dropped.
    """

    def __init__(
        self,
        client: Redis,
        kinds: Kinds,
        *,
        deadline_s: float = 1.0,
        limits: DocumentLimits = LIMITS,
        keep_revisions: int = KEEP_REVISIONS,
    ) -> None:
        super().__init__(client, kinds, deadline_s=deadline_s)
        self._limits = limits
        self._keep_revisions = keep_revisions

    async def commit(
        self,
        draft: Draft,
        *,
        claim: Claim | None = None,
        closings: Sequence[Closing] = (),
    ) -> Committed | Stale:
        """Store all that *draft* applied and close rows of *claim*, in one step; or nothing, and say why.

        Every document that it changed, or whose body was asked for, must still be as the draft found it. A plan is
        stored once, however often it is committed: a commit that is repeated because its answer was lost closes the
        rows again, which changes nothing.

        Raises:
            InvalidInput: the claim is of another user, rows are to be closed without one, or a value is no JSON.
            MemoryUnavailable: no answer in time: all is stored or nothing; commit it again to learn which.
        """
        token = token_of(draft.user_id)
        if claim is not None and claim.owner_token != token:
            raise InvalidInput(
                f"the draft is of user_id {draft.user_id!r} and the claim of {claim.owner!r}; commit apart"
            )
        if closings and claim is None:
            raise InvalidInput(
                "rows are closed under a claim; give the claim that they were taken with"
            )
        deed, after = self._deed(draft, claim, closings)
        if not deed.documents and claim is None:
            return Committed({})
        word, names = await self._repository.commit(token, deed)
        if word == "done":
            for document in after.values():
                self._bodies.put(token, document)
            revisions = {one: document.revision for one, document in after.items()}
            return Committed(revisions, tuple(plan.plan_id for plan in deed.plans))
        if word == "known":
            return Committed({}, known=names)
        return Stale(
            moved=names if word == "moved" else (),
            lease=word == "lease",
            known=names if word == "partly" else (),
        )

    def _deed(
        self, draft: Draft, claim: Claim | None, closings: Sequence[Closing]
    ) -> tuple[Transaction, dict[str, Document]]:
        """Return what storing *draft* takes, and the documents as they are after it."""
        plans = [applied for applied in draft.applied if applied.steps]
        written = dict.fromkeys(
            resource_id for applied in plans for resource_id in applied.steps
        )
        documents: dict[str, DocumentWrite] = {}
        after: dict[str, Document] = {}
        for resource_id in [
            *written,
            *(one for one in sorted(draft.read) if one not in written),
        ]:
            before = draft.snapshot.documents[resource_id]
            if resource_id not in written:
                documents[resource_id] = DocumentWrite(
                    found_revision=before.revision, found_born=before.born
                )
                continue
            body = json_bytes(draft.documents[resource_id].body)
            born = before.born or secrets.token_hex(8)
            last = replace(draft.documents[resource_id], born=born, size=len(body))
            entries = [
                (number, entry_json(applied, applied.steps[resource_id]))
                for number, applied in enumerate(plans, 1)
                if resource_id in applied.steps
            ]
            documents[resource_id] = DocumentWrite(
                found_revision=before.revision,
                found_born=before.born,
                revision=last.revision,
                born=born,
                form=last.form,
                body=body,
                entries=entries,
            )
            after[resource_id] = last
        recorded = [
            Recorded(
                one.plan.plan_id, record_json(one), len(one.steps), one.undoes or ""
            )
            for one in plans
        ]
        return Transaction(
            keep=self._keep_revisions,
            plans=recorded,
            documents=documents,
            claim=claim,
            closings=closings,
        ), after
