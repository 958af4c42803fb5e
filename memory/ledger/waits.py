"""Waits of tasks: for answers, signals and times; each is answered once, the first counts.

They stand in the task's entry in the ledger; for the wait in slot `3` its fields are `wait.3`, `wait.3.answer`,
`wait.3.refusals` (answers that did not count, a line each), `wait.3.left_out` (how many more there were) and
`wait.3.notices` (how many were sent of it). `open_waits` has generation, number and slots of the last run that waits.
One list names every open wait by when to look at it next: an answer moves it there first, so that a process which dies
between the answer and the wake-up leaves it to be found.
"""

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, get_args

import structlog
from pydantic import ValidationError
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import (
    MOST_OPEN,
    Kind,
    Wait,
    WaitAnswer,
    WaitRefusal,
    to_run_wait,
)
from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.layouts import Entries
from tasklore.memory.ledger.ledger import number_in
from tasklore.memory.ledger.runs import Ended, RunName

log = structlog.get_logger(__name__)

#: Returns the signature of a body, under what it is signed for and an id, with the role that signs.
Sign = Callable[[str, str, bytes], str]
#: Raises InvalidInput unless a body was signed by a role that may: under what it is signed for, with its headers.
CheckSignature = Callable[[str, Mapping[str, str], bytes], None]

#: How long after its end a wait is looked at whose task should have gone on by then.
LATE = timedelta(seconds=5)
_OPEN = keys.index("waits")
#: Fields of an entry that are looked through for waits where a worker of 0.2 wrote it.
_MOST_FIELDS = 1_000
_NO_WAIT = "there is no such task or question"
#: Characters of the author that is kept of an answer that others may have written.
_MOST_NAME = 300
#: Bytes of all refusals that are kept of one wait, and how many of them may be one author's; each link is one. Beyond
#: that the author of the most loses the oldest; all that were forged have one: who wrote them is not known.
MOST_REFUSALS = 4096
MOST_OF_ONE = 8
#: Why an answer that lies in the ledger is set aside: nobody who may took it, its author was shown another question
#: than the task asks, it is no answer at all.
FORGED = "forged"
ALTERED = "altered"
UNREADABLE = "unreadable"


class WaitName(NamedTuple):
    """The place of a wait: of which *kind*, in which task, in which slot."""

    kind: Kind
    task_id: str
    slot: str


class WaitState(NamedTuple):
    """A wait as it stands. *state* is that of its task in the ledger, "" for an unknown one.

    *attempts*, *assignment* and *trace* are what another run of the task needs; *has_report* when none will follow.
    *is_withdrawn* when the last run of the task has waited without it.
    *has_answer* also where what is kept as the answer is none. *left_out* counts the refusals that are not kept.
    """

    wait: Wait
    answer: WaitAnswer | None
    has_answer: bool
    refusals: tuple[WaitRefusal, ...]
    left_out: int
    notices: int
    state: str
    has_report: bool
    is_withdrawn: bool
    attempts: int
    assignment: bytes
    trace: str

    @property
    def is_open(self) -> bool:
        """Whether it still waits: it has no answer, its task has not ended, and goes on for nothing else."""
        return not (self.has_answer or self.has_report or self.is_withdrawn)


class Waits:
    """Reads and writes waits in Redis; every method may raise MemoryUnavailable, after *deadline_s*.

    Args:
        keep: How long a task is known after its wait.
        sign: Signs answers that are stored here; None where roles have no keys.
        check: Refuses answers whose signer may not give them; without it all count.
    """

    def __init__(
        self,
        client: Redis,
        *,
        keep: timedelta = timedelta(days=7),
        deadline_s: float = 5.0,
        breaker: Breaker | None = None,
        sign: Sign | None = None,
        check: CheckSignature | None = None,
    ) -> None:
        self._sign = sign
        self._check = check
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._batch = CommandBatch(client, deadline_s, breaker)
        self._entries = Entries(client, self._batch)

    async def find(
        self, task_id: str, wait: Wait
    ) -> tuple[Wait | None, WaitAnswer | None]:
        """Return what is kept in the slot of *wait*, and its answer, for the run that waits as *wait* says.

        An answer without the signature of a role that may is set aside, and so is one that was given to another
        question, one for the end of the wait that is not what *wait* says, and what is none.
        """
        known, stored = await self._read_stored(task_id, wait.slot)
        answer = await self._take_proven(task_id, wait.slot, stored, wait)
        return known, answer

    async def digests(self, task_id: str, slots: Sequence[str]) -> dict[str, str]:
        """Return the digest of what is kept in each of *slots*, but for those in which there is nothing."""
        fields = [_fields(slot)[0] for slot in slots]
        found = await self._read_fields(task_id, fields)
        read = zip(slots, map(_read_wait, found), strict=True)
        return {slot: wait.digest for slot, wait in read if wait is not None}

    async def begin(
        self,
        run: Ended,
        waits: Sequence[Wait],
        *,
        wait_s: float,
        due_s: float,
        assignment: bytes,
    ) -> bool | None:
        """End *run*, which is in *waits* for *wait_s* seconds and is due after *due_s*.

        Return True when it waits, False when an answer is there already, so that it is due at once; None when another
        run has taken its place.
        """
        times = int(wait_s * 1000), int(due_s * 1000), assignment, self._keep_ms
        more = len(waits) - 1
        told = to_run_wait(run.task_id, waits[0], more=more).model_dump_json()
        ended = run.generation, run.token, *times, told
        stored = [part for one in waits for part in (one.slot, one.model_dump_json())]
        entry = await self._entries.make(run.task_id)
        command = entry.call(scripts.WAIT, *ended, *stored, more=entry.children)
        earlier = entry.ask(scripts.OPEN_WAITS, 0)
        listed, found = await self._batch.run([earlier, command])
        if found:
            left = {one.decode(errors="replace") for one in listed}
            await self._unlist(run.task_id, left - {one.slot for one in waits})
        return None if found == 0 else found == 1

    async def ask(self, run: RunName, wait: Wait) -> bool:
        """Put the question *wait* while its *run* goes on; return False where that is not the task's any more."""
        stored = run.generation, run.worker_id, wait.slot, wait.model_dump_json()
        entry = await self._entries.make(run.task_id)
        if not (await self._batch.run([entry.call(scripts.ASK, *stored)]))[0]:
            return False
        name = WaitName(wait.kind, run.task_id, wait.slot)
        await self.look_at(name, datetime.now(UTC))
        return True

    async def close(self, task_id: str) -> None:
        """Take the open waits of a task that has ended off the list of all, but for what is left to the notifier.

        That is a question with an answer, or past its time: the notifier tells of it first.
        """
        entry = await self._entries.find(task_id)
        if entry is None:
            return
        listed = (await self._batch.run([entry.ask(scripts.OPEN_WAITS, 0)]))[0]
        await self._unlist(task_id, {one.decode(errors="replace") for one in listed})

    async def _unlist(self, task_id: str, slots: Collection[str]) -> None:
        """Take waits off the list; a question that the notifier may not have told of stays: when answered, due now."""
        if not slots:
            return
        kinds: tuple[Kind, ...] = get_args(Kind)
        left = {WaitName(kind, task_id, slot) for slot in slots for kind in kinds}
        asked = [name for name in left if name.kind == "ask"]
        now = datetime.now(UTC)
        commands: list[Command] = []
        for name, state in zip(asked, await self.read_many(asked), strict=True):
            if state is None or state.wait.kind != "ask":
                continue
            if state.has_answer:
                commands.append(_look_command({name: now}, if_listed=True))
            if state.has_answer or now >= state.wait.until:
                left.remove(name)
        if left:
            commands.append(("ZREM", _OPEN, *map(" ".join, left)))
        await self._batch.run(commands)

    async def answer(
        self, task_id: str, slot: str, answer: WaitAnswer, *, is_signal: bool = False
    ) -> WaitAnswer | None:
        """Store *answer* and return None, or the earlier one, which counts.

        Raises:
            InvalidInput: there is no such wait, its task has ended or goes on without it, or its question has changed.
        """
        answer = self._signed(task_id, slot, answer)
        stored = slot, (body := answer.model_dump_json()), answer.digest, int(is_signal)
        entry = await self._entries.find(task_id)
        if entry is None:
            raise InvalidInput(_NO_WAIT)
        command = entry.call(scripts.ANSWER, *stored)
        found = (await self._batch.run([command]))[0]
        # When the reply to the first attempt was lost, the one that is there is this very answer.
        if found[0] == 0 and found[1] != body.encode():
            wait, _ = await self._read_stored(task_id, slot)
            earlier = await self._take_proven(task_id, slot, found[1], wait)
            if earlier is not None:
                return earlier
            found = (await self._batch.run([command]))[0]
            if found[0] == 0 and found[1] != body.encode():
                earlier = _read_answer(found[1])
                if earlier is None:
                    raise MemoryUnavailable(
                        "another writer writes invalid data in the place of answers; "
                        "try again"
                    )
                return earlier
        if found[0] in (0, 1):
            return None
        why = {
            -1: _NO_WAIT,
            -2: "the task has ended",
            -4: "the task no longer needs this answer and has continued",
        }
        raise InvalidInput(
            why.get(found[0], "the question has changed since; open it again")
        )

    async def refuse(self, task_id: str, slot: str, refusal: WaitRefusal) -> None:
        """Keep *refusal* beside the wait, if there is one."""
        await self._refuse(task_id, slot, refusal)

    async def _read_stored(
        self, task_id: str, slot: str
    ) -> tuple[Wait | None, bytes | None]:
        """Return the wait in *slot*, None for one that is not readable, and what lies there as its answer."""
        wait, answer = await self._read_fields(task_id, _fields(slot)[:2])
        return _read_wait(wait), answer

    async def _read_fields(
        self, task_id: str, fields: Sequence[str]
    ) -> list[bytes | None]:
        """Return *fields* of the entry of a task, of which one layout has none."""
        entry = await self._entries.find(task_id)
        places = () if entry is None else entry.entry_keys
        asked: list[Command] = [("HMGET", key, *fields) for key in places]
        found: list[list[bytes | None]] = await self._batch.run(asked)
        return next((one for one in found if any(one)), [None] * len(fields))

    async def _take_proven(
        self, task_id: str, slot: str, stored: bytes | None, wait: Wait | None
    ) -> WaitAnswer | None:
        """Return the answer that is *stored* if it counts for *wait*; else set it aside, and return None."""
        if stored is None:
            return None
        answer = _read_answer(stored)
        why = (
            UNREADABLE
            if answer is None
            else self._find_flaw(task_id, slot, answer, wait)
        )
        if why is None:
            return answer
        log.warning(
            "answer_set_aside",
            task_id=task_id,
            slot=slot,
            why=why,
            by=answer.by if answer else None,
        )
        refusal = WaitRefusal(
            by=answer.by[:_MOST_NAME] if answer else "",
            at=datetime.now(UTC),
            # Of what cannot be read no door is known; runs themselves say `time` for an end without an answer.
            door=answer.door if answer else "time",
            why=why,
        )
        await self._refuse(task_id, slot, refusal, stored)
        return None

    def _find_flaw(
        self, task_id: str, slot: str, answer: WaitAnswer, wait: Wait | None
    ) -> str | None:
        """Return why *answer*, which is stored in *slot*, does not count for *wait*; None if it does."""
        if answer.door == "time":
            is_own = wait is not None and answer.value == wait.otherwise
            return None if is_own else FORGED
        if self._check is None:
            return None
        if not self._is_proven(task_id, slot, answer):
            return FORGED
        if wait is None or wait.kind != "ask":
            return None
        # Of a question that has changed since, the run says itself that the answer is for another one.
        if answer.digest != wait.digest or answer.asked == wait.as_asked():
            return None
        return ALTERED

    async def _refuse(
        self, task_id: str, slot: str, refusal: WaitRefusal, stored: bytes | None = None
    ) -> None:
        """Keep *refusal*, and take the answer away that is *stored*, if it still is."""
        bounds = MOST_REFUSALS, MOST_OF_ONE
        kept = slot, refusal.model_dump_json(), *bounds
        taken = () if stored is None else (stored,)
        entry = await self._entries.find(task_id)
        if entry is not None:
            await self._batch.run([entry.call(scripts.REFUSE_ANSWER, *kept, *taken)])

    def _signed(self, task_id: str, slot: str, answer: WaitAnswer) -> WaitAnswer:
        """Return *answer* with a proof of who took it; a run that writes what holds at its end has none."""
        if self._sign is None or answer.door == "time":
            return answer
        what = subjects.answer_proof(task_id, slot)
        proof = self._sign(what, answer.digest, _signed_part(answer))
        return answer.model_copy(update={"proof": proof})

    def _is_proven(self, task_id: str, slot: str, answer: WaitAnswer) -> bool:
        """Return whether *answer* was signed by a role that may; True where roles have no keys."""
        if self._check is None:
            return True
        headers = {
            subjects.SIGNATURE_HEADER: answer.proof or "",
            subjects.MESSAGE_ID_HEADER: answer.digest,
        }
        try:
            self._check(
                subjects.answer_proof(task_id, slot), headers, _signed_part(answer)
            )
        except InvalidInput as error:
            log.info("answer_unproven", task_id=task_id, why=str(error))
            return False
        return True

    async def read(self, task_id: str, slot: str) -> WaitState | None:
        """Return all that is known of a wait, None when there is none that can be read.

        An answer without the signature of a role that may is set aside.
        """
        name = WaitName("ask", task_id, slot)
        state = (await self.read_many([name], with_assignments=True))[0]
        if state is None or not state.has_answer:
            return state
        await self.find(task_id, state.wait)
        return (await self.read_many([name], with_assignments=True))[0]

    async def of(self, task_id: str) -> list[WaitState]:
        """Return the open waits of a task, in the order in which it came to them, at most `MOST_OPEN`.

        Those that nobody has answered, of all kinds; none of a task that is unknown, has ended or is to be cancelled.
        An answer without the signature of a role that may is set aside.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        return (await self.of_many([task_id]))[0]

    async def of_many(self, task_ids: Sequence[str]) -> list[list[WaitState]]:
        """Return `of` for each of *task_ids*, in two round trips."""
        return [
            [
                state
                for one in states
                if (state := await self._read_open(task_id, one)) is not None
            ]
            for task_id, states in zip(
                task_ids, await self.asked_last(task_ids), strict=True
            )
        ]

    async def asked_last(self, task_ids: Sequence[str]) -> list[list[WaitState]]:
        """Return, of each task, the waits in which the last run that waits has ended, answered ones too.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        entries = await self._entries.find_many(task_ids)
        asked = [
            entry.ask(scripts.OPEN_WAITS, _MOST_FIELDS)
            for entry in entries
            if entry is not None
        ]
        found = iter(await self._batch.run(asked))
        listed = [[] if entry is None else next(found) for entry in entries]
        names = [
            [
                WaitName("ask", task_id, slot.decode(errors="replace"))
                for slot in slots[:MOST_OPEN]
            ]
            for task_id, slots in zip(task_ids, listed, strict=True)
        ]
        states = iter(await self.read_many([one for each in names for one in each]))
        return [
            [state for _ in each if (state := next(states)) is not None]
            for each in names
        ]

    async def is_last_waiting(self, task_id: str, generation: int, run: int) -> bool:
        """Return whether *run* of a task is the last that ended to wait for a person, a signal or a time.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        named = (await self._read_fields(task_id, ["open_waits"]))[0] or b""
        return named.split()[:2] == [b"%d" % generation, b"%d" % run]

    async def _read_open(self, task_id: str, found: WaitState) -> WaitState | None:
        """Return *found* if it is open, once an answer that does not count is set aside."""
        state: WaitState | None = found
        if found.has_answer:
            state = await self.read(task_id, found.wait.slot)
        return state if state is not None and state.is_open else None

    async def read_many(
        self, names: Sequence[WaitName], *, with_assignments: bool = False
    ) -> list[WaitState | None]:
        """Return all that is known of each wait, in one round trip; *assignment* and *trace* are empty unless asked."""
        many = int(with_assignments)
        found = await self._entries.ask_many(
            [one.task_id for one in names],
            lambda place, entry: entry.ask(scripts.READ_WAIT, names[place].slot, many),
            is_unknown=operator.not_,
        )
        return [None if one is None else _read(one.reply) for one in found]

    async def note_notices(self, task_id: str, slot: str, number: int) -> None:
        """Note that *number* notices of a wait were sent."""
        entry = await self._entries.find(task_id)
        if entry is not None:
            noted = _fields(slot)[2], number
            await self._batch.run([entry.call(scripts.NOTE_NOTICES, *noted)])

    async def look_at(
        self, name: WaitName, at: datetime, *, if_listed: bool = False
    ) -> None:
        """Let the next look at a wait be *at* that time."""
        await self._batch.run([_look_command({name: at}, if_listed=if_listed)])

    async def look_at_many(self, times: Mapping[WaitName, datetime]) -> None:
        """Let the next look at each of these waits be at its time."""
        await self._batch.run([_look_command(times)])

    async def drop(self, name: WaitName) -> None:
        """Take a wait off the list of open ones."""
        await self._batch.run([("ZREM", _OPEN, " ".join(name).rstrip())])

    async def is_idle(self) -> bool:
        """Return whether there is no open wait."""
        return not await self._batch.exists(_OPEN)

    async def due(self, now: datetime, limit: int) -> list[WaitName]:
        """Return up to *limit* waits that are to be looked at."""
        due = ("ZRANGEBYSCORE", _OPEN, "-inf", _ms(now), "LIMIT", 0, limit)
        return [_parse(name) for name in (await self._batch.run([due]))[0]]

    async def claim(self, name: WaitName, now: datetime, lease: timedelta) -> bool:
        """Return whether the wait is to be looked at; if so, it is due for others after *lease* alone."""
        claimed = " ".join(name), _ms(now), _ms(now + lease)
        return bool(
            (
                await self._batch.run(
                    [("FCALL", scripts.CLAIM_WAIT, 1, _OPEN, *claimed)]
                )
            )[0]
        )

    async def count_open(self) -> int:
        """Return the number of open waits."""
        return int((await self._batch.run([("ZCARD", _OPEN)]))[0])

    async def list_open(self, kind: Kind, limit: int) -> list[WaitName]:
        """Return up to *limit* open waits of *kind*; one that has just ended may be among them."""
        found: list[WaitName] = []
        cursor: bytes = b"0"
        while True:
            scan = ("ZSCAN", _OPEN, cursor, "MATCH", f"{kind} *", "COUNT", 1000)
            cursor, members = (await self._batch.run([scan]))[0]
            found += [_parse(member) for member in members[::2]]
            if int(cursor) == 0 or len(found) >= limit:
                return list(dict.fromkeys(found))[:limit]


def _look_command(
    times: Mapping[WaitName, datetime], *, if_listed: bool = False
) -> Command:
    """Return the command that lets the next look at each of these waits be at its time."""
    only = ("XX",) if if_listed else ()
    scored = [part for name, at in times.items() for part in (_ms(at), " ".join(name))]
    return ("ZADD", _OPEN, *only, *scored)


def _read(found: Sequence[bytes | None]) -> WaitState | None:
    (
        stored,
        answer,
        refusals,
        left_out,
        notices,
        state,
        report,
        cancel,
        attempts,
        assignment,
        trace,
        withdrawn,
    ) = (*found, *[None] * 12)[:12]
    wait = _read_wait(stored)
    if wait is None:
        return None
    lines = (refusals or b"").splitlines()
    read = [one for one in map(_read_refusal, lines) if one is not None]
    return WaitState(
        wait,
        answer=_read_answer(answer) if answer else None,
        has_answer=answer is not None,
        refusals=tuple(read),
        left_out=(number_in(left_out) or 0) + len(lines) - len(read),
        notices=number_in(notices) or 0,
        state=(state or b"").decode(errors="replace"),
        has_report=report is not None or cancel is not None,
        is_withdrawn=withdrawn is not None,
        attempts=number_in(attempts) or 0,
        assignment=assignment or b"",
        trace=(trace or b"").decode(errors="replace"),
    )


def _read_wait(stored: bytes | None) -> Wait | None:
    """Return the wait that is *stored*; None for what is none: roles that write the ledger may write anything."""
    try:
        return Wait.model_validate_json(stored or b"")
    except ValidationError:
        return None


def _read_answer(stored: bytes) -> WaitAnswer | None:
    """Return the answer that is *stored*; None for what is none."""
    try:
        return WaitAnswer.model_validate_json(stored)
    except ValidationError:
        return None


def _read_refusal(line: bytes) -> WaitRefusal | None:
    """Return the refusal in *line*; None for what is none."""
    try:
        return WaitRefusal.model_validate_json(line)
    except ValidationError:
        return None


def _fields(slot: str) -> tuple[str, str, str]:
    """Return the fields of a wait, its answer and its notices."""
    return (wait := f"wait.{slot}"), f"{wait}.answer", f"{wait}.notices"


def _signed_part(answer: WaitAnswer) -> bytes:
    return answer.model_dump_json(exclude={"proof"}).encode()


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _parse(member: bytes) -> WaitName:
    # A worker may have written any text there: such a name leads nowhere, and is dropped.
    kind, task_id, slot, *_ = [*member.decode(errors="replace").split(" "), "", ""]
    return WaitName(kind, task_id, slot)  # type: ignore[arg-type]  # as `look_at` writes it
