"""The queue of dead letters: found and counted, sent again, deleted; every call is bounded, and the next one goes on.

Whoever has a letter sent again, or deleted, may be one of several: each letter is sent once all the same.
"""

import asyncio
import contextlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import structlog

from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    TaskloreError,
    Unreachable,
)
from tasklore.contracts.identifiers import TaskName, checked_name
from tasklore.contracts.traces import read_context
from tasklore.memory.ledger.ledger import Ledger, LedgerEntry
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.supervisor.dead_letters.known_agents import KnownAgents, read_known_agents
from tasklore.supervisor.dead_letters.letters import Letter, LetterSelection
from tasklore.supervisor.dead_letters.redrive import (
    KEEP_DEADLINE,
    Redrive,
    Renewal,
    agent_of,
    end_after,
    is_sent,
    redrive_of,
)
from tasklore.supervisor.dead_letters.stream import (
    PAGE,
    DeadStream,
    LetterRange,
    NewestRange,
    open_dead_stream,
)
from tasklore.supervisor.dead_letters.summaries import (
    LetterCounts,
    LetterSummary,
    summary_of,
)

log = structlog.get_logger(__name__)

#: Letters that one call looks at, and their bytes: some seconds, whatever lies there.
MOST_LOOKED_AT = 5_000
MOST_BYTES = 64 * 1024**2
#: Letters that one call names by their sequences, and of these how many are held at once.
MOST_NAMED = 1_000
_NAMED_AT_ONCE = 32
#: Letters of one task that are returned, the newest.
MOST_OF_TASK = 20
#: Letters that stayed and are named; the others are only counted.
_MOST_KEPT = 1_000
#: Letters erased at once: the server does one after the other, and others wait for DEAD meanwhile.
_ERASED_AT_ONCE = 16
#: Entries of the ledger read at once: one may have two mebibytes, and only a word of it is kept.
_READ_AT_ONCE = 16
#: Seconds for a task to be stored: whoever waits for it repeats what was not.
_STORED_WITHIN_S = 30.0

#: All letters that fit, or those at these sequences.
Choice = LetterSelection | Sequence[int]


class LetterPage(NamedTuple):
    """Some letters in the order asked for; *total* fit in all, None when only reading every one could tell.

    *goes_on_at* is what the next page is asked with, `before` or `after`; None when there are no more. A page may have
    fewer letters than were asked for, and still go on.
    """

    letters: list[LetterSummary]
    goes_on_at: int | None
    total: int | None


class TaskLetters(NamedTuple):
    """Letters of one task, the newest first.

    *goes_on_at* is what the next call is asked with, `before`; None when `MOST_OF_TASK` were found, or all are known.
    """

    letters: list[Letter]
    goes_on_at: int | None


class LetterPosition(NamedTuple):
    """How far a long work on letters came: all up to sequence *after* are done, those up to *up_to* are meant."""

    after: int
    up_to: int


class GroupPage(NamedTuple):
    """How many letters there are of each agent and error so far; *position* is where to go on, None at the end."""

    counts: LetterCounts
    position: LetterPosition | None


class KeptLetter(NamedTuple):
    """A letter that stays where it is, and why."""

    sequence: int
    why: str


@dataclass(slots=True)
class LetterOutcome:
    """The outcome of a redrive so far.

    `sent` counts what was sent again, `kept` are those that stay, the first of `kept_in_all`. `stopped` is why the rest
    was not even tried, else None; `position` is where the next call goes on, None when all is done.
    """

    sent: LetterCounts = field(default_factory=LetterCounts)
    kept: list[KeptLetter] = field(default_factory=list)
    kept_in_all: int = 0
    stopped: str | None = None
    position: LetterPosition | None = None

    @property
    def redriven(self) -> int:
        """How many letters were sent again."""
        return self.sent.total

    def keep(self, letter: Letter, why: str) -> None:
        """Note that *letter* stays."""
        self.kept_in_all += 1
        if len(self.kept) < _MOST_KEPT:
            self.kept.append(KeptLetter(letter.sequence, why))


class PurgeOutcome(NamedTuple):
    """How many letters were deleted, and where the next call goes on; None when all is done."""

    purged: int
    position: LetterPosition | None


class _Known(NamedTuple):
    """Sequences of letters whose tasks were *sent* again already, and of those that are to be *kept*."""

    sent: set[int]
    kept: set[int]


@dataclass(slots=True)
class _Budget:
    """What one call may still look at."""

    letters: int = field(default_factory=lambda: MOST_LOOKED_AT)
    size: int = field(default_factory=lambda: MOST_BYTES)

    def take(self, page: LetterRange | NewestRange) -> bool:
        """Take the letters that were read for *page*, and return whether there are more."""
        self.letters -= page.looked_at
        self.size -= page.size
        return self.letters > 0 and self.size > 0


class DeadLetters:
    """The letters in DEAD; opened with `open_dead_letters`.

    Raises:
        Unreachable: by every method, when the server does not answer or there is no such stream.
    """

    def __init__(
        self,
        stream: DeadStream,
        outbox: Outbox,
        ledger: Ledger,
        *,
        agents: Callable[[], Awaitable[KnownAgents]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._stream = stream
        self._outbox = outbox
        self._ledger = ledger
        self._agents = agents
        self._now = now

    async def page(
        self,
        selection: LetterSelection,
        limit: int,
        *,
        before: int | None = None,
        after: int | None = None,
        oldest_first: bool = False,
    ) -> LetterPage:
        """Return up to *limit* letters that fit *selection*, the newest first unless *oldest_first*.

        *before* leaves out letters at this sequence or newer, *after* those at it or older, with *oldest_first*.
        """
        last = await self._stream.last_of(selection)
        if before is not None:
            last = min(last, before - 1)
        total = await self._stream.count(selection) if selection.is_by_subject else None
        page = LetterPage([], None, total)
        budget = _Budget()
        if oldest_first:
            async for some in self._stream.pages(selection, last, after=after or 0):
                page.letters.extend(map(summary_of, some.letters))
                if not budget.take(some) or len(page.letters) > limit:
                    page = page._replace(goes_on_at=some.last)
                    break
        else:
            size = min(limit + 1, PAGE)
            async for newest in self._stream.pages_back(selection, last + 1, size):
                page.letters.extend(newest.letters)
                if not budget.take(newest) or len(page.letters) > limit:
                    page = page._replace(goes_on_at=newest.first)
                    break
        if len(page.letters) <= limit:
            return page
        return LetterPage(
            page.letters[:limit], page.letters[limit - 1].sequence, page.total
        )

    async def groups(
        self,
        selection: LetterSelection,
        *,
        position: LetterPosition | None = None,
        into: LetterCounts | None = None,
    ) -> GroupPage:
        """Return how many letters of each agent and error fit *selection*, from *position* on.

        The counts of earlier calls are given as *into*, which then counts these too.
        """
        counts = LetterCounts() if into is None else into
        last = await self._last(selection, position)
        after = 0 if position is None else position.after
        budget = _Budget()
        async for page in self._stream.pages(selection, last, after=after):
            counts.add(map(summary_of, page.letters))
            if not budget.take(page) and page.has_more:
                return GroupPage(counts, LetterPosition(page.last, page.end))
        return GroupPage(counts, None)

    async def count_all(self, selection: LetterSelection) -> LetterCounts:
        """Return how many letters of each agent and error fit *selection*, as many calls of `groups` as that takes."""
        page = await self.groups(selection)
        while page.position is not None:
            page = await self.groups(
                selection, position=page.position, into=page.counts
            )
        return page.counts

    async def last_of(self, selection: LetterSelection) -> int:
        """Return the last sequence that may fit *selection* now, 0 when nothing ever was there."""
        return await self._stream.last_of(selection)

    async def read(self, sequence: int) -> Letter:
        """Return the letter at *sequence*.

        Raises:
            InvalidInput: there is none.
        """
        letter = await self._stream.read(sequence)
        if letter is None:
            raise InvalidInput(
                f"there is no dead letter {sequence}; GET /v1/dead-letters lists them"
            )
        return letter

    async def of_task(self, task_id: str, *, before: int | None = None) -> TaskLetters:
        """Return letters of *task_id*, the newest first: of one call's share of those that lie there, twenty at most.

        Where the ledger knows its agent those of that one are read, else all. *before* goes on with older ones.
        """
        selection = LetterSelection(await self._find_agent(task_id))
        end = await self._stream.last_of(selection) + 1
        if before is not None:
            end = min(end, before)
        sequences: list[int] = []
        goes_on_at = None
        budget = _Budget()
        async for page in self._stream.pages_back(selection, end, MOST_OF_TASK):
            sequences += [
                one.sequence for one in page.letters if one.task_id == task_id
            ]
            if len(sequences) >= MOST_OF_TASK:
                break
            if not budget.take(page):
                goes_on_at = page.first
                break
        newest = sequences[:MOST_OF_TASK]
        read = [await self._stream.read(sequence) for sequence in newest]
        letters = [letter for letter in read if letter is not None]
        return TaskLetters(letters, goes_on_at)

    async def _find_agent(self, task_id: str) -> str | None:
        """Return the agent of *task_id*, None where the ledger does not say."""
        with contextlib.suppress(MemoryUnavailable, InvalidInput):
            named = await self._ledger.name(checked_name(task_id, "task_id"))
            if isinstance(named, TaskName):
                return named.agent_id
            return agent_of(await self._ledger.read(named))
        return None

    async def why_kept(self, letter: Letter) -> str | None:
        """Return why *letter* would stay if it were to be sent again now, None where it would be sent."""
        outcome = LetterOutcome()
        agents = await self._agents()
        await self._send_page(
            [letter], KEEP_DEADLINE, outcome, agents=agents, is_trial=True
        )
        return next((kept.why for kept in outcome.kept), None)

    async def redrive(
        self,
        choice: Choice,
        renewal: Renewal = KEEP_DEADLINE,
        *,
        is_trial: bool = False,
        is_forced: bool = False,
        into: LetterOutcome | None = None,
    ) -> LetterOutcome:
        """Send the letters of *choice* again, the oldest first, and delete each once its task is stored.

        One call looks at `MOST_LOOKED_AT`: whoever wants the rest gives the outcome to the next one as *into*, which
        then counts what both did. Tasks that die meanwhile are left alone, so that one which dies again is not sent for
        ever. A redrive that was killed may be repeated: what was sent by then is known to the ledger, or to the stream,
        and is only deleted. A letter whose task ended after it was written stays, and so does one that carries no
        readable task, unless *is_forced*. Without the ledger the former are not recognised. *is_trial* changes nothing
        and returns the outcome.

        Raises:
            InvalidInput: a sequence names no letter, or there are too many; nothing was sent.
        """
        outcome = LetterOutcome() if into is None else into
        position = outcome.position
        outcome.position = None
        agents = await self._agents()
        pages = self._select(choice, position)
        budget = _Budget()
        try:
            async for page in pages:
                await self._send_page(
                    page.letters,
                    renewal,
                    outcome,
                    agents=agents,
                    is_trial=is_trial,
                    is_forced=is_forced,
                )
                if outcome.stopped is not None:
                    break
                if not budget.take(page) and page.has_more:
                    outcome.position = LetterPosition(page.last, page.end)
                    break
        except Unreachable as error:
            if not outcome.sent.total and not outcome.kept:
                raise
            outcome.stopped = str(error)
        outcome.kept.sort()
        return outcome

    async def purge(
        self, choice: Choice, *, position: LetterPosition | None = None
    ) -> PurgeOutcome:
        """Delete the letters of *choice* and return how many those were; their bytes are gone from the files too.

        One call deletes of those that it looks at, at most `MOST_LOOKED_AT`; *position* is where it goes on.

        Raises:
            InvalidInput: a sequence names no letter, or there are too many; nothing was deleted.
        """
        if isinstance(choice, LetterSelection) and choice.is_everything:
            last = await self._stream.last_of(choice)
            return PurgeOutcome(await self._stream.clear(last), None)
        turns = asyncio.Semaphore(_ERASED_AT_ONCE)
        deleted = 0

        async def erase(letter: Letter) -> None:
            nonlocal deleted
            async with turns:
                was_there = await self._stream.remove(letter.sequence, erase=True)
            deleted += was_there

        budget = _Budget()
        async for page in self._select(choice, position):
            await _each(page.letters, erase)
            if not budget.take(page) and page.has_more:
                return PurgeOutcome(deleted, LetterPosition(page.last, page.end))
        return PurgeOutcome(deleted, None)

    async def _last(
        self, selection: LetterSelection, position: LetterPosition | None
    ) -> int:
        return (
            await self._stream.last_of(selection)
            if position is None
            else position.up_to
        )

    async def _select(
        self, choice: Choice, position: LetterPosition | None
    ) -> AsyncIterator[LetterRange]:
        """Yield the letters of *choice* behind *position*, the oldest first."""
        if isinstance(choice, LetterSelection):
            last = await self._last(choice, position)
            after = 0 if position is None else position.after
            async for page in self._stream.pages(choice, last, after=after):
                yield page
            return
        sequences = sorted(set(choice))
        if not sequences:
            return
        if len(sequences) > MOST_NAMED:
            raise InvalidInput(
                f"{len(sequences):,} letters are named, at most {MOST_NAMED:,} are taken at once; name fewer, or "
                "select them by agent, error or time"
            )
        for sequence in sequences:
            await self.read(sequence)
        end = sequences[-1]
        for at in range(0, len(sequences), _NAMED_AT_ONCE):
            some = sequences[at : at + _NAMED_AT_ONCE]
            read = [await self._stream.read(sequence) for sequence in some]
            letters = [letter for letter in read if letter is not None]
            # They are few, and done in one call.
            yield LetterRange(letters, looked_at=0, size=0, last=some[-1], end=end)

    async def _send_page(
        self,
        letters: Sequence[Letter],
        renewal: Renewal,
        outcome: LetterOutcome,
        *,
        agents: KnownAgents,
        is_trial: bool,
        is_forced: bool = False,
    ) -> None:
        """Send *letters* again and note in *outcome* what became of each."""
        known = await self._look_up(letters, outcome, is_forced=is_forced)

        async def send(letter: Letter) -> None:
            try:
                if letter.sequence not in known.sent:
                    redrive = redrive_of(
                        letter,
                        await self._whole_body(letter),
                        self._now(),
                        renewal,
                        agents=agents,
                        takes_unreadable=is_forced,
                    )
                    if not is_trial:
                        await self._publish(redrive)
                # Its text lies in TASKS again: overwriting it here would gain nothing and cost a hundred times more.
                if is_trial or await self._stream.remove(letter.sequence, erase=False):
                    outcome.sent.add([summary_of(letter)])
            except (InvalidInput, MemoryUnavailable) as error:
                outcome.keep(letter, str(error))
            except TaskloreError as error:
                outcome.keep(letter, str(error))
                outcome.stopped = str(error)

        await _each([one for one in letters if one.sequence not in known.kept], send)

    async def _look_up(
        self, letters: Sequence[Letter], outcome: LetterOutcome, *, is_forced: bool
    ) -> _Known:
        """Return what the ledger knows of *letters*; why some of them stay is noted in *outcome*."""
        turns = asyncio.Semaphore(_READ_AT_ONCE)
        known = _Known(sent=set(), kept=set())

        async def look(letter: Letter) -> None:
            entry = None
            async with turns:
                # A fault of the letter shows when it is sent; without the ledger it is sent all the same.
                with contextlib.suppress(InvalidInput, MemoryUnavailable):
                    entry = await self._read_entry(letter)
            why = None if is_forced else end_after(letter, entry)
            if agent_of(entry) not in (None, letter.agent_id):
                why = (
                    f"letter {letter.sequence} names task {letter.content.task_id!r}, which is of agent "
                    f"{agent_of(entry)!r} and not of its own; purge it"
                )
            if why is not None:
                known.kept.add(letter.sequence)
                outcome.keep(letter, why)
            elif is_sent(letter, entry):
                known.sent.add(letter.sequence)

        await _each(
            [letter for letter in letters if letter.content.task_id is not None], look
        )
        return known

    async def _read_entry(self, letter: Letter) -> LedgerEntry | None:
        """Return what the ledger knows of the task of *letter*, however long ago that ended.

        Raises:
            InvalidInput: the letter names no task or agent that there can be.
            MemoryUnavailable: the ledger did not answer in time.
        """
        task_id = checked_name(letter.content.task_id or "", "task_id")
        if letter.agent_id is not None:
            agent_id = checked_name(letter.agent_id, "agent_id")
            entry = await self._ledger.read(TaskName(agent_id, task_id))
            if entry is not None:
                return entry
        # It may be the task of another agent, or only a request to cancel it.
        return await self._ledger.read(task_id)

    async def _publish(self, redrive: Redrive) -> None:
        await self._outbox.put(
            redrive.subject,
            redrive.body,
            redrive.message_id,
            headers=redrive.headers,
            patience_s=_STORED_WITHIN_S,
        )
        if redrive.task_id is None:
            return
        try:
            trace = str(read_context(redrive.headers) or "")
            await self._ledger.accept(
                redrive.task_id,
                redrive.generation,
                assignment=redrive.body,
                trace=trace,
                row=redrive.row,
            )
        except MemoryUnavailable as error:
            log.warning("ledger_away", task_id=redrive.task_id, error=str(error))

    async def _whole_body(self, letter: Letter) -> bytes:
        """Return the body of *letter*, from the ledger where the letter kept only the beginning.

        Raises:
            InvalidInput: the ledger does not have it either.
            MemoryUnavailable: the ledger did not answer in time.
        """
        if letter.is_whole:
            return letter.body
        has_task = letter.content.task_id is not None
        entry = await self._read_entry(letter) if has_task else None
        known = entry.generations.get(letter.generation) if entry is not None else None
        if (
            known is not None
            and known.assignment is not None
            and letter.is_body(known.assignment)
        ):
            return known.assignment
        raise InvalidInput(
            f"letter {letter.sequence} keeps {len(letter.body):,} of "
            f"{letter.content.body_bytes:,} bytes, and the ledger does not have the "
            "rest; have its sender send it again, then purge it"
        )


@asynccontextmanager
async def open_dead_letters(
    link: Link, outbox: Outbox, ledger: Ledger
) -> AsyncIterator[DeadLetters]:
    """Open the letters in DEAD on *link*; nothing is asked before the first call."""
    async with open_dead_stream(link) as stream:
        yield DeadLetters(
            stream, outbox, ledger, agents=lambda: read_known_agents(link)
        )


async def drop_letters(
    link: Link, agents: Collection[str], task_ids: Collection[str], since: datetime
) -> int:
    """Delete the letters of *agents* since then that are of *task_ids*, or of items of such a task; return how many.

    Raises:
        Unreachable: the server does not answer, or there is no such stream.
    """
    dropped = 0
    async with open_dead_stream(link) as stream:
        last = (await stream.extent()).last
        for agent in sorted(agents):
            async for page in stream.pages(
                LetterSelection(agent_id=agent, since=since), last
            ):
                for letter in page.letters:
                    task_id = letter.content.task_id or ""
                    if task_id in task_ids or task_id.rpartition("-")[0] in task_ids:
                        dropped += await stream.remove(letter.sequence, erase=True)
    return dropped


async def _each(
    letters: Sequence[Letter], do: Callable[[Letter], Coroutine[None, None, None]]
) -> None:
    """Do it to all *letters* of a page side by side."""
    async with asyncio.TaskGroup() as group:
        for letter in letters:
            group.create_task(do(letter))
