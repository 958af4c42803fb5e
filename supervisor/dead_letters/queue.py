"""The queue of dead letters: list, redrive or delete them."""

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
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import structlog
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    NotAccepted,
    Unreachable,
)
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.messages import AgentCard
from tasklore.contracts.traces import read_context
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.buckets import read_bucket
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.supervisor.dead_letters.letters import Letter, Selection
from tasklore.supervisor.dead_letters.redrive import (
    KEEP_DEADLINE,
    Declared,
    Redrive,
    Renewal,
    end_after,
    redrive_of,
)
from tasklore.supervisor.dead_letters.stream import PAGE, DeadStream, open_dead_stream

log = structlog.get_logger(__name__)

#: Letters erased at once: the server does one after the other, and others wait for DEAD meanwhile.
_ERASED_AT_ONCE = 16
#: Entries of the ledger read at once: one may have two mebibytes, and only a word of it is kept.
_READ_AT_ONCE = 16

#: All letters that fit, or those at these sequences.
Choice = Selection | Sequence[int]


class LetterPage(NamedTuple):
    """Some letters in the order asked for; *total* fit in all, None when only reading every one could tell."""

    letters: list[Letter]
    has_more: bool
    total: int | None


class KeptLetter(NamedTuple):
    """A letter that stays where it is, and why."""

    sequence: int
    why: str


@dataclass(slots=True)
class LetterOutcome:
    """The outcome of a redrive; `stopped` is why the rest was not even tried, else None."""

    redriven: int = 0
    kept: list[KeptLetter] = field(default_factory=list)
    stopped: str | None = None


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
        declared: Callable[[], Awaitable[Declared]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._stream = stream
        self._outbox = outbox
        self._ledger = ledger
        self._declared = declared
        self._now = now

    async def page(
        self,
        selection: Selection,
        limit: int,
        *,
        before: int | None = None,
        oldest_first: bool = False,
    ) -> LetterPage:
        """Return up to *limit* letters that fit *selection*, the newest first unless *oldest_first*.

        *before* leaves out letters at this sequence or newer: the last sequence of a page is where the next begins.
        """
        last = (await self._stream.extent()).last if before is None else before - 1
        if oldest_first:
            pages = self._stream.pages(selection, last)
        else:
            pages = self._stream.pages_back(selection, last + 1, min(limit + 1, PAGE))
        letters: list[Letter] = []
        async for page in pages:
            letters += page
            if len(letters) > limit:
                break
        total = await self._stream.count(selection) if selection.is_by_subject else None
        return LetterPage(letters[:limit], len(letters) > limit, total)

    async def count(self, selection: Selection) -> int:
        """Return how many letters fit *selection*; conditions that the server does not know have every one read."""
        if selection.is_by_subject:
            return await self._stream.count(selection)
        return sum(
            [
                len(page)
                async for page in self._stream.pages(
                    selection, (await self._stream.extent()).last
                )
            ]
        )

    async def read(self, sequence: int) -> Letter:
        """Return the letter at *sequence*.

        Raises:
            InvalidInput: there is none.
        """
        letter = await self._stream.read(sequence)
        if letter is None:
            raise InvalidInput(
                f"there is no dead letter {sequence}; `tasklore dlq list` shows those there are"
            )
        return letter

    async def of_task(self, task_id: str) -> list[Letter]:
        """Return every letter of *task_id*, the newest first; reads all that lie there."""
        last = (await self._stream.extent()).last
        pages = self._stream.pages(Selection(), last)
        found = [
            letter
            async for page in pages
            for letter in page
            if letter.content.task_id == task_id
        ]
        return found[::-1]

    async def redrive(
        self,
        choice: Choice,
        renewal: Renewal = KEEP_DEADLINE,
        *,
        is_trial: bool = False,
        is_forced: bool = False,
    ) -> LetterOutcome:
        """Send the letters of *choice* again, the oldest first, and delete each once its task is stored.

        Tasks that die meanwhile are left alone, so that one which dies again is not sent for ever. A redrive that was
        killed may be repeated: the stream swallows the tasks sent by then, or the ledger finds them finished. A letter
        whose task ended after it was written stays, unless *is_forced*: it would run once more. Without the ledger such
        letters are not recognised. *is_trial* changes nothing and returns the outcome.

        Raises:
            InvalidInput: a sequence names no letter; nothing was sent.
        """
        outcome = LetterOutcome()
        declared = await self._declared()
        async for page in self._select(choice):
            done = set() if is_forced else await self._keep_done(page, outcome)
            due = [letter for letter in page if letter.sequence not in done]
            await _each(
                due,
                lambda letter: self._send(
                    letter, renewal, outcome, declared=declared, is_trial=is_trial
                ),
            )
            if outcome.stopped is not None:
                break
        outcome.kept.sort()
        return outcome

    async def purge(self, choice: Choice) -> int:
        """Delete the letters of *choice* and return how many those were; their bytes are gone from the files too.

        Raises:
            InvalidInput: a sequence names no letter; nothing was deleted.
        """
        if choice == Selection():
            return await self._stream.clear((await self._stream.extent()).last)
        turns = asyncio.Semaphore(_ERASED_AT_ONCE)
        deleted = 0

        async def erase(letter: Letter) -> None:
            nonlocal deleted
            async with turns:
                was_there = await self._stream.remove(letter.sequence, erase=True)
            deleted += was_there

        async for page in self._select(choice):
            await _each(page, erase)
        return deleted

    async def _select(self, choice: Choice) -> AsyncIterator[list[Letter]]:
        if isinstance(choice, Selection):
            async for page in self._stream.pages(
                choice, (await self._stream.extent()).last
            ):
                yield page
        else:
            yield [await self.read(sequence) for sequence in sorted(set(choice))]

    async def _keep_done(
        self, page: Sequence[Letter], outcome: LetterOutcome
    ) -> set[int]:
        """Note in *outcome* which letters of *page* are about tasks done with since; return where those lie."""
        turns = asyncio.Semaphore(_READ_AT_ONCE)
        done: set[int] = set()

        async def look(letter: Letter) -> None:
            why = None
            async with turns:
                # A fault of the letter shows when it is sent; without the ledger it is sent all the same.
                with contextlib.suppress(InvalidInput, MemoryUnavailable):
                    task_id = checked_name(letter.content.task_id or "", "task_id")
                    why = end_after(letter, await self._ledger.read(task_id))
            if why is not None:
                done.add(letter.sequence)
                outcome.kept.append(KeptLetter(letter.sequence, why))

        await _each(
            [letter for letter in page if letter.content.task_id is not None], look
        )
        return done

    async def _send(
        self,
        letter: Letter,
        renewal: Renewal,
        outcome: LetterOutcome,
        *,
        declared: Declared,
        is_trial: bool,
    ) -> None:
        try:
            redrive = redrive_of(
                letter,
                await self._whole_body(letter),
                self._now(),
                renewal,
                declared=declared,
            )
            if not is_trial:
                await self._outbox.put(
                    redrive.subject,
                    redrive.body,
                    redrive.message_id,
                    headers=redrive.headers,
                )
                await self._note_task(redrive)
                # Its text lies in TASKS again: overwriting it here would gain nothing and cost a hundred times more.
                await self._stream.remove(letter.sequence, erase=False)
            outcome.redriven += 1
        except (InvalidInput, MemoryUnavailable) as error:
            outcome.kept.append(KeptLetter(letter.sequence, str(error)))
        except NotAccepted as error:
            outcome.kept.append(KeptLetter(letter.sequence, str(error)))
            outcome.stopped = str(error)

    async def _note_task(self, redrive: Redrive) -> None:
        if redrive.task_id is None:
            return
        try:
            trace = str(read_context(redrive.headers) or "")
            await self._ledger.accept(
                redrive.task_id, redrive.generation, redrive.body, trace
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
        task_id = letter.content.task_id
        entry = await self._ledger.read(task_id) if task_id is not None else None
        known = entry.generations.get(letter.generation) if entry is not None else None
        if (
            known is not None
            and known.assignment is not None
            and letter.is_body(known.assignment)
        ):
            return known.assignment
        raise InvalidInput(
            f"letter {letter.sequence} keeps {len(letter.body):,} of {letter.content.body_bytes:,} bytes, and the "
            "ledger does not have the rest; have its sender send it anew, then purge it"
        )


@asynccontextmanager
async def open_dead_letters(
    link: Link, outbox: Outbox, ledger: Ledger
) -> AsyncIterator[DeadLetters]:
    """Open the letters in DEAD on *link*; nothing is asked before the first call."""
    async with open_dead_stream(link) as stream:
        yield DeadLetters(
            stream, outbox, ledger, declared=lambda: _declared_deadlines(link)
        )


async def _declared_deadlines(link: Link) -> Declared:
    """Return the deadlines that the cards of agents declare; none while those cannot be read."""
    try:
        cards = await read_bucket(link, subjects.AGENTS_BUCKET)
    except Unreachable as error:
        log.warning("cards_not_read", error=str(error))
        return {}
    found: dict[tuple[str, str], timedelta] = {}
    for body in cards.values():
        with contextlib.suppress(ValidationError):
            card = AgentCard.model_validate_json(body)
            found |= {
                (card.agent_id, task.name): timedelta(seconds=task.deadline_s)
                for task in card.tasks
                if task.deadline_s
            }
    return found


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
                Selection(agent_id=agent, since=since), last
            ):
                for letter in page:
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
