"""Analyses by story and response: their documents, byte for byte, their records, and the list of those under way.

Document, record and the changes of the story are written by one script, and only when nothing that they rest on was
written meanwhile: no reader sees one without the other, and no process loses its work.
"""

from collections.abc import Mapping

from redis.asyncio import Redis

from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.analysis.stories import StoryChange, StoryResponse
from tasklore.contracts.errors import InvalidInput
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.stories import scripts
from tasklore.memory.stories.reader import (
    NAMES,
    Wanted,
    digest_of,
    look,
    numbers_in,
    unreadable,
)
from tasklore.memory.stories.view import demand_changing, unknown


class AnalysisStore:
    """Keeps the analyses of stories; every method raises MemoryUnavailable without an answer within *deadline_s*.

    All but those of analyses under way raise UnknownStory when there is no such story. After MemoryUnavailable it is
    not known whether something was done; doing it again is safe.

    Args:
        client: A client that does not decode responses.
        deadline_s: Seconds for one round trip.
    """

    def __init__(self, client: Redis, *, deadline_s: float = 1.0) -> None:
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)

    async def read(self, story_id: str, number: int) -> AnalysisDocument | None:
        """Return the analysis of a response, None when there is none (any more).

        Its status is `stale` when a later response was stored, or this one again with another text, or when an earlier
        one changed the story otherwise since.

        Raises:
            InvalidInput: it cannot be read any more.
        """
        of = keys.story(story_id)
        digest = f":{number}"
        wanted: dict[str, Wanted] = {
            of.base: ("last", "earlier"),
            of.documents: (number,),
            of.records: (digest, f"@{number}"),
            of.responses: (digest,),
        }
        [last, earlier], [raw], [analysed, rests_on], [written] = await look(
            self._batch, story_id, wanted
        )
        if raw is None:
            return None
        try:
            document = read_document(raw)
        except InvalidInput as error:
            cure = (
                f"analyse response {number} of story {story_id!r} again, with --refresh"
            )
            raise unreadable(of.documents, str(number), cure, error) from error
        # A response that is not kept any more has not changed, as far as anybody knows.
        is_older = last is not None and int(last) > number
        is_moved = (
            earlier is not None
            and rests_on is not None
            and int(earlier) > int(rests_on)
        )
        is_stale = is_older or is_moved or (written is not None and written != analysed)
        return _stale(document) if is_stale else document

    async def raw(self, story_id: str, number: int) -> bytes | None:
        """Return the analysis of a response as it was stored, None when there is none."""
        found: bytes | None
        [[found]] = await look(
            self._batch, story_id, {keys.story(story_id).documents: (number,)}
        )
        return found

    async def numbers(self, story_id: str) -> tuple[int, ...]:
        """Return the numbers of the responses whose analyses are kept, in their order."""
        [names] = await look(
            self._batch, story_id, {keys.story(story_id).documents: NAMES}
        )
        return numbers_in(names)

    async def record(
        self, story_id: str, number: int
    ) -> tuple[int, bytes | None, bytes | None]:
        """Return the revision of the story, and the document and the record of a response, as they were stored."""
        of = keys.story(story_id)
        wanted: dict[str, Wanted] = {
            of.base: ("revision",),
            of.documents: (number,),
            of.records: (number,),
        }
        [revision], [document], [record] = await look(self._batch, story_id, wanted)
        return int(revision), document, record

    async def fold(
        self,
        story_id: str,
        number: int,
        revision: int,
        document: bytes | None,
        record: bytes,
        changes: Mapping[str, StoryChange | None],
        keep: int,
        *,
        of: StoryResponse | None = None,
        is_under_way: bool = False,
        rests_on: int | None = None,
    ) -> bool:
        """Store the analysis of a response, all of it or nothing; False when the story has moved on from *revision*.

        It also has when the response *of* which it is was given another text meanwhile, or is gone. Then read `record`,
        and after it the story, anew, and fold again: doing that twice changes nothing. *document* None leaves the one
        there is. *changes* take the place of what the same sections of this response changed before, None removes that.

        The *keep* analyses that were written last stay, and all that are under way; what they changed stays anyway.
        *rests_on* is the revision of the story that the agents were told, None: *revision*.

        Raises:
            InvalidInput: *changes* has a section that changes no story.
        """
        demand_changing(changes)
        key = keys.story(story_id)
        spelled = [_spelled(change) for change in changes.values()]
        tables = [key.base, key.documents, key.records, key.folded, key.responses]
        tables += [keys.story_changes(story_id, section) for section in changes]
        words: tuple[str | bytes | int, ...] = (
            number,
            revision,
            document or b"",
            record,
            max(1, keep),
            digest_of(of) if of else b"",
            int(is_under_way),
            revision if rests_on is None else rests_on,
            *spelled,
        )
        done = (
            await self._batch.run(
                [("FCALL", scripts.FOLD, len(tables), *tables, *words)]
            )
        )[0]
        if done < 0:
            raise unknown(story_id)
        return bool(done)

    async def begin(
        self, supervisor_id: str, story_id: str, number: int, lease_ms: int = 0
    ) -> None:
        """List an analysis as under way; it is due when it is not renewed for *lease_ms*."""
        member = _member(story_id, number)
        index = keys.analysing(supervisor_id)
        await self._batch.run([("FCALL", scripts.MARK, 1, index, member, lease_ms)])

    async def is_idle(self, supervisor_id: str) -> bool:
        """Return whether no analysis is under way."""
        return not await self._batch.exists(keys.analysing(supervisor_id))

    async def due(
        self, supervisor_id: str, lease_ms: int, limit: int = 100
    ) -> list[tuple[str, int]]:
        """Return analyses that are due, the longest first; no other process is given them for *lease_ms*.

        They are story and number of the response; the story may be gone.
        """
        index = keys.analysing(supervisor_id)
        found = (
            await self._batch.run([("FCALL", scripts.DUE, 1, index, lease_ms, limit)])
        )[0]
        parts = (member.decode().rpartition(":") for member in found)
        return [(story_id, int(number)) for story_id, _, number in parts]

    async def renew(
        self, supervisor_id: str, story_id: str, number: int, lease_ms: int
    ) -> bool:
        """Let an analysis be due in *lease_ms* from now; False when it is not under way."""
        words = _member(story_id, number), lease_ms
        renewed = (
            await self._batch.run(
                [("FCALL", scripts.RENEW, 1, keys.analysing(supervisor_id), *words)]
            )
        )[0]
        return bool(renewed)

    async def end(self, supervisor_id: str, story_id: str, number: int) -> None:
        """Take an analysis out of the list of those under way."""
        await self._batch.run(
            [("ZREM", keys.analysing(supervisor_id), _member(story_id, number))]
        )


def _spelled(change: StoryChange | None) -> bytes:
    return (
        b""
        if change is None
        else change.model_dump_json(exclude_defaults=True).encode()
    )


def _member(story_id: str, number: int) -> str:
    return f"{story_id}:{number}"


def _stale(document: AnalysisDocument) -> AnalysisDocument:
    return document.model_copy(
        update={"meta": document.meta.model_copy(update={"status": "stale"})}
    )
