"""Waits of tasks: for answers, signals and times; each is answered once, the first counts.

They stand in the task's entry in the ledger; for the wait in slot `3` its fields are `wait.3`, `wait.3.answer`,
`wait.3.refusals` (answers that did not count, a line each) and `wait.3.notices` (how many were sent of it). One list
names every open wait by when to look at it next: an answer moves it there first, so that a process which dies between
the answer and the wake-up leaves it to be found.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import structlog
from pydantic import JsonValue, ValidationError
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import Kind, Wait, WaitAnswer, WaitRefusal
from tasklore.contracts.errors import InvalidInput
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.ledger import number_in
from tasklore.memory.ledger.runs import Ended

log = structlog.get_logger(__name__)

#: Returns the signature of a body, under what it is signed for and an id, with the role that signs.
Sign = Callable[[str, str, bytes], str]
#: Raises InvalidInput unless a body was signed by a role that may: under what it is signed for, with its headers.
CheckSignature = Callable[[str, Mapping[str, str], bytes], None]

#: How long after its end a wait is looked at whose task should have gone on by then.
LATE = timedelta(seconds=5)
_OPEN = keys.index("waits")
#: Bytes of all refusals that are kept of one wait, and how many of them may be one author's.
MOST_REFUSALS = 4096
MOST_OF_ONE = 8


class WaitName(NamedTuple):
    """The place of a wait: of which *kind*, in which task, in which slot."""

    kind: Kind
    task_id: str
    slot: str


class WaitState(NamedTuple):
    """A wait as it stands. *state* is that of its task in the ledger, "" for an unknown one.

    *attempts*, *assignment* and *trace* are what another run of the task needs; *has_report* when none will follow.
    """

    wait: Wait
    answer: WaitAnswer | None
    refusals: tuple[WaitRefusal, ...]
    notices: int
    state: str
    has_report: bool
    attempts: int
    assignment: bytes
    trace: str


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

    async def find(
        self, task_id: str, slot: str, otherwise: JsonValue
    ) -> tuple[Wait | None, WaitAnswer | None]:
        """Return the wait in *slot* and its answer, for the run that waits.

        An answer without the signature of a role that may is set aside, and so is one for the end of the wait that
        is not *otherwise*.
        """
        wait, stored = (
            await self._batch.run([("HMGET", keys.task(task_id), *_fields(slot)[:2])])
        )[0]
        answer = stored and WaitAnswer.model_validate_json(stored)
        if answer and (
            answer.value != otherwise
            if answer.door == "time"
            else not self._is_proven(task_id, slot, answer)
        ):
            await self._set_aside(task_id, slot, answer, stored)
            answer = None
        return wait and Wait.model_validate_json(wait), answer

    async def begin(
        self, run: Ended, wait: Wait, wait_s: float, due_s: float, assignment: bytes
    ) -> bool | None:
        """End *run*, which waits for *wait_s* seconds and is due after *due_s*.

        Return True when it waits, False when the answer is there already, so that it is due at once; None when another
        run has taken its place.
        """
        task = (
            keys.task(run.task_id),
            *keys.steps(run.task_id),
            keys.children(run.task_id),
        )
        times = int(wait_s * 1000), int(due_s * 1000), assignment, self._keep_ms
        stored = run.generation, run.token, *times, wait.slot, wait.model_dump_json()
        found: int = (
            await self._batch.run([("FCALL", scripts.WAIT, len(task), *task, *stored)])
        )[0]
        return None if found == 0 else found == 1

    async def answer(
        self, task_id: str, slot: str, answer: WaitAnswer, *, is_signal: bool = False
    ) -> WaitAnswer | None:
        """Store *answer* and return None, or the earlier one, which counts.

        Raises:
            InvalidInput: there is no such wait, its task has ended, or its question has changed.
        """
        answer = self._signed(task_id, slot, answer)
        stored = slot, (body := answer.model_dump_json()), answer.digest, int(is_signal)
        command = ("FCALL", scripts.ANSWER, 1, keys.task(task_id), *stored)
        found = (await self._batch.run([command]))[0]
        if found[0] == 0:
            # When the reply to the first attempt was lost, the one that is there is this very answer.
            return (
                None
                if found[1] == body.encode()
                else WaitAnswer.model_validate_json(found[1])
            )
        if found[0] == 1:
            return None
        why = {-1: "there is no such task or question", -2: "the task has ended"}
        raise InvalidInput(
            why.get(found[0], "the question has changed since; look at it again")
        )

    async def refuse(self, task_id: str, slot: str, refusal: WaitRefusal) -> None:
        """Keep *refusal* beside the wait, if there is one."""
        await self._refuse(task_id, slot, refusal, b"")

    async def _set_aside(
        self, task_id: str, slot: str, answer: WaitAnswer, stored: bytes
    ) -> None:
        """Take *answer*, which is *stored* so, away: it does not count. That it was there is kept with the wait."""
        log.warning("forged_answer", task_id=task_id, slot=slot, by=answer.by)
        refusal = WaitRefusal(
            by=answer.by, at=datetime.now(UTC), door=answer.door, why="forged"
        )
        await self._refuse(task_id, slot, refusal, stored)

    async def _refuse(
        self, task_id: str, slot: str, refusal: WaitRefusal, stored: bytes
    ) -> None:
        bounds = MOST_REFUSALS, MOST_OF_ONE
        kept = slot, refusal.model_dump_json(), *bounds, stored
        await self._batch.run(
            [("FCALL", scripts.REFUSE_ANSWER, 1, keys.task(task_id), *kept)]
        )

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
        if state is None or state.answer is None:
            return state
        await self.find(task_id, slot, state.wait.otherwise)
        return (await self.read_many([name], with_assignments=True))[0]

    async def read_many(
        self, names: Sequence[WaitName], *, with_assignments: bool = False
    ) -> list[WaitState | None]:
        """Return all that is known of each wait, in one round trip; *assignment* and *trace* are empty unless asked."""
        many = int(with_assignments)
        asked = [
            ("FCALL_RO", scripts.READ_WAIT, 1, keys.task(one.task_id), one.slot, many)
            for one in names
        ]
        return [
            _read(found) for found in (await self._batch.run(asked) if asked else ())
        ]

    async def note_notices(self, task_id: str, slot: str, number: int) -> None:
        """Note that *number* notices of a wait were sent."""
        await self._batch.run([("HSET", keys.task(task_id), _fields(slot)[3], number)])

    async def look_at(
        self, name: WaitName, at: datetime, *, if_listed: bool = False
    ) -> None:
        """Let the next look at a wait be *at* that time."""
        only = ("XX",) if if_listed else ()
        await self._batch.run([("ZADD", _OPEN, *only, _ms(at), " ".join(name))])

    async def drop(self, name: WaitName) -> None:
        """Take a wait off the list of open ones."""
        await self._batch.run([("ZREM", _OPEN, " ".join(name).rstrip())])

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


def _read(found: Sequence[bytes | None]) -> WaitState | None:
    (
        wait,
        answer,
        refusals,
        notices,
        state,
        report,
        cancel,
        attempts,
        assignment,
        trace,
    ) = (*found, *[None] * 10)[:10]
    try:
        parsed = Wait.model_validate_json(wait or b"")
    except ValidationError:
        return None
    return WaitState(
        parsed,
        answer=WaitAnswer.model_validate_json(answer) if answer else None,
        refusals=tuple(
            WaitRefusal.model_validate_json(line)
            for line in (refusals or b"").splitlines()
        ),
        notices=number_in(notices) or 0,
        state=(state or b"").decode(errors="replace"),
        has_report=report is not None or cancel is not None,
        attempts=number_in(attempts) or 0,
        assignment=assignment or b"",
        trace=(trace or b"").decode(errors="replace"),
    )


def _fields(slot: str) -> tuple[str, str, str, str]:
    """Return the fields of a wait, its answer, its refusals and its notices."""
    return (
        (wait := f"wait.{slot}"),
        f"{wait}.answer",
        f"{wait}.refusals",
        f"{wait}.notices",
    )


def _signed_part(answer: WaitAnswer) -> bytes:
    return answer.model_dump_json(exclude={"proof"}).encode()


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _parse(member: bytes) -> WaitName:
    # A worker may have written any text there: such a name leads nowhere, and is dropped.
    kind, task_id, slot, *_ = [*member.decode(errors="replace").split(" "), "", ""]
    return WaitName(kind, task_id, slot)  # type: ignore[arg-type]  # as `look_at` writes it
