"""The steps of one run: each is journaled before anything sees its result, and read by a later run of the task."""

import asyncio
import contextlib
import hashlib
import inspect
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import structlog
from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from tasklore.contracts.errors import EffectUncertain, InvalidInput, MemoryUnavailable
from tasklore.runtime import tracing

if TYPE_CHECKING:
    from tasklore.contracts.run_messages import RunMessageKind
    from tasklore.memory.ledger.journal import Journal
    from tasklore.memory.ledger.runs import RunName
    from tasklore.workers.context.branches import Branch, Branches
    from tasklore.workers.context.recorder import RunRecorder

log = structlog.get_logger(__name__)

R = TypeVar("R")

#: Steps of one task.
MOST_STEPS = 5_000
#: Bytes of one result as JSON.
MOST_BYTES = 8 * 1024 * 1024

_is_inside: ContextVar[bool] = ContextVar("is_inside_step", default=False)


#: The main branch in a slot of which the plain spelling is that of another wait.
_MAIN = "0" * 10


class StepPlace(NamedTuple):
    """Where a step or a wait stands: as which of its branch, and as which of all that the run has come to."""

    branch: "Branch"
    number: int
    of_all: int

    @property
    def slot(self) -> str:
        """The slot of a wait in this place, the same in every run."""
        return str(self.number) if self.branch.is_main else self.named_slot

    @property
    def named_slot(self) -> str:
        """Its slot with the name of its branch, which the main one has too."""
        return f"{self.branch.name or _MAIN}-{self.number}"

    @property
    def other_slots(self) -> set[str]:
        """The slots in which it may be kept too: 0.2 counted all branches as one."""
        return {self.named_slot, str(self.of_all)} - {self.slot}

    @property
    def name(self) -> str:
        """What a head in the journal calls it."""
        return f"{self.branch.name}.{self.number}"


class Steps:
    """Runs the steps of one run of a task; each is known by its place in the order of calls of its branch."""

    def __init__(
        self,
        journal: "Journal",
        run: "RunName",
        claim: Callable[[str], Awaitable[bool]],
        branches: "Branches",
        recorder: "RunRecorder | None" = None,
    ) -> None:
        self._journal = journal
        self._run = run
        self._recorder = recorder
        self._claim = claim
        self._branches = branches
        self._lock = asyncio.Lock()
        self._kept: _Kept | None = None
        self._count = 0

    async def run(
        self,
        name: str,
        function: Callable[..., Awaitable[R]],
        arguments: tuple[Any, ...],
        *,
        once: bool,
        kind: "RunMessageKind | None" = "step",
    ) -> R:
        """Return what the step returned in an earlier run, or call *function* and journal its result.

        It is noted as a *kind* of message, None: as none.
        """
        noting = _Noting(
            None if kind is None else self._recorder, kind, name, arguments
        )
        try:
            return await self._run_step(name, function, arguments, noting, once=once)
        except Exception as error:
            noting.fail(error)
            raise

    async def _run_step(
        self,
        name: str,
        function: Callable[..., Awaitable[R]],
        arguments: tuple[Any, ...],
        noting: "_Noting",
        *,
        once: bool,
    ) -> R:
        if _is_inside.get():
            result = await _call(name, function, arguments)
            noting.end_within(result)
            return result
        await self._branches.demand_going()
        head = f"{_digest(name, arguments)} {name}"
        place = self._take_place(f"step {name!r}")
        adapter: TypeAdapter[R] = _find_adapter(function)
        position, written, is_journaled = await self._locate(place, head)
        if is_journaled:
            stored = await self._journal.result(self._run.task_id, position)
            if stored is not None:
                noting.end(stored, is_journaled=True)
                return adapter.validate_json(stored)
        if once and not await self._claim(f"step {head}"):
            msg = (
                f"step {name!r} was begun by a run that ended before its result was kept, so that its effect may "
                "have been made or not; catch EffectUncertain and look, or leave once out where it may be repeated"
            )
            raise EffectUncertain(msg)
        with tracing.span(f"step {name}"):
            spelled, result = _spell(
                name, adapter, await _call(name, function, arguments)
            )
        noting.end(spelled)
        await self._write(position, written, spelled)
        return result

    def take_place(self, what: str) -> StepPlace:
        """Return the next place of the branch that is at work, for *what* is no step itself.

        Raises:
            InvalidInput: it is called within a step, or there are too many.
        """
        if _is_inside.get():
            raise InvalidInput(
                f"{what} is within a step, which a wait would interrupt; wait before or after it"
            )
        return self._take_place(what)

    def _take_place(self, what: str) -> StepPlace:
        if self._count >= MOST_STEPS:
            raise InvalidInput(
                f"{what} is number {MOST_STEPS + 1:,}; a task has at most {MOST_STEPS:,} steps"
            )
        branch = self._branches.current
        place = StepPlace(branch, branch.count, self._count)
        branch.count += 1
        self._count += 1
        return place

    async def drop_journal(self) -> None:
        """Remove the journal when a step was called; one that stays goes after its time to live."""
        if self._count:
            with contextlib.suppress(MemoryUnavailable):
                await self._journal.remove([self._run.task_id])

    async def _locate(self, place: StepPlace, head: str) -> tuple[int, str, bool]:
        """Return the position of a step in the journal, its head as it is written there, and whether it is there."""
        async with self._lock:
            if self._kept is None:
                self._kept = _Kept(await self._journal.heads(self._run.task_id))
            kept = self._kept
            position = kept.find(place, head)
            if (
                position is not None
                and (stored := _strip(kept.heads[position])) != head
            ):
                log.warning(
                    "journal_differs",
                    task_id=self._run.task_id,
                    step=head.partition(" ")[2],
                    stored=stored.partition(" ")[2],
                )
                kept.drop_behind(position, place)
            elif position is not None:
                return position, kept.heads[position], True
            position, written = kept.add(place, head, position)
            return position, written, False

    async def _write(self, position: int, head: str, result: bytes) -> None:
        """Write the result of a step that was located, and remove what this run has dropped so far."""
        kept = self._kept
        if kept is None or not kept.dropped:
            await self._journal.write(self._run, position, head, result)
            return
        async with self._lock:
            # No step takes a position meanwhile that is being removed.
            dropped = sorted(kept.dropped)
            await self._journal.write(
                self._run, position, head, result, dropped=dropped
            )
            kept.dropped.clear()


class _Noting:
    """Notes one step where anybody wants to know of it."""

    def __init__(
        self,
        recorder: "RunRecorder | None",
        kind: "RunMessageKind | None",
        name: str,
        arguments: tuple[Any, ...],
    ) -> None:
        self._recorder = recorder
        self._kind: RunMessageKind = kind or "step"
        self._name = name
        self._arguments = arguments
        self._began = 0.0 if recorder is None else time.monotonic()

    def end(self, result: bytes, *, is_journaled: bool = False) -> None:
        """Note the *result*, as JSON."""
        self._note(result=result, is_journaled=is_journaled)

    def end_within(self, result: object) -> None:
        """Note the *result* of a part of another step, which is spelled for nothing else."""
        if self._recorder is not None:
            self._note(result=_spell_any(result))

    def fail(self, error: Exception) -> None:
        """Note how it ended."""
        self._note(error=error)

    def _note(self, **ended: Any) -> None:
        if self._recorder is None:
            return
        # The arguments of most are one value.
        given = self._arguments[0] if len(self._arguments) == 1 else self._arguments
        spelled = _spell_any(given) if self._arguments else b""
        self._recorder.note_step(
            self._kind, self._name, given=spelled, began=self._began, **ended
        )


class _Kept:
    """The heads of the journal by position, and which of them this run has come to.

    A head of another place than its position says, or of another branch than the main one, names its place behind the
    digest: "d1d1@3fa9c01d22.0 send". Of workers of 0.2, which count all branches as one, none does.
    """

    def __init__(self, heads: dict[int, str]) -> None:
        self.heads = heads
        self._last = max(heads, default=-1)
        self._by_place = {_place_in(head): at for at, head in heads.items()}
        self._by_place.pop("", None)
        self._by_branch = defaultdict[str, set[int]](set)
        for at, head in heads.items():
            self._by_branch[_branch_in(head)].add(at)
        self._found: set[int] = set()
        #: Positions that hold what this run takes again, or does not come to any more.
        self.dropped: set[int] = set()

    def find(self, place: StepPlace, head: str) -> int | None:
        """Return the position of what stands in *place*, None where nothing is known to."""
        if place.branch.is_begun_anew:
            place.branch.is_begun_anew = False
            self._drop(self._by_branch[place.branch.name])
        found = self._by_place.get(place.name)
        if (
            found is not None
            and place.number == 0
            and _strip(self.heads[found]) != head
        ):
            moved = self._find_moved(place, head)
            found = found if moved is None else moved
        if found is None:
            found = next(filter(lambda at: self._is_of(at, head), _plain(place)), None)
        if found is None and place.branch.is_main and self._is_bare(place.number):
            found = place.number
        if found is not None:
            self._found.add(found)
        return found

    def add(self, place: StepPlace, head: str, position: int | None) -> tuple[int, str]:
        """Note the step in *place*, at *position* where another one stood, and return its position and its head."""
        if position is None:
            # Behind all that it may rest on.
            position = max(self._last + 1, place.of_all)
        written = head
        if not place.branch.is_main or position != place.number:
            digest, _, name = head.partition(" ")
            written = f"{digest}@{place.name} {name}"
            self._by_place[place.name] = position
        self.heads[position] = written
        self._by_branch[place.branch.name].add(position)
        self._last = max(self._last, position)
        self._found.add(position)
        self.dropped.discard(position)
        return position, written

    def drop_behind(self, position: int, place: StepPlace) -> None:
        """Drop what may rest on the step in *place*, at *position*, where another one stood: all is taken again.

        That is what its branch, and those that wait for it, have not come to yet, and whatever they begin from now on.
        Branches beside it go on with what they have done.
        """
        own = self._by_branch[place.branch.name]
        self._drop(at for at in own if _number_of(at, self.heads[at]) > place.number)
        place.branch.has_changed = True
        for branch in place.branch.ancestors:
            branch.has_changed = True
            self._drop(at for at in self._by_branch[branch.name] if at > position)

    def _drop(self, positions: Iterable[int]) -> None:
        """Drop what stands at *positions*, but for what this run has come to."""
        dropped = set(positions) - self._found
        for at in dropped:
            head = self.heads.pop(at)
            self._by_branch[_branch_in(head)].discard(at)
            self._by_place.pop(_place_in(head), None)
        if dropped:
            self.dropped |= dropped
            self._last = max(self.heads, default=-1)

    def _find_moved(self, place: StepPlace, head: str) -> int | None:
        """Return where the step stands if it began another branch like its own before, and make that its branch."""
        for name in place.branch.names_of_alike:
            position = self._by_place.get(f"{name}.0")
            if (
                position is not None
                and position not in self._found
                and _strip(self.heads[position]) == head
            ):
                place.branch.take_name(name)
                return position
        return None

    def _is_of(self, position: int, head: str) -> bool:
        return self.heads.get(position) == head and position not in self._found

    def _is_bare(self, position: int) -> bool:
        """Return whether what stands at *position* names no place, and was not come to."""
        head = self.heads.get(position)
        return head is not None and position not in self._found and not _place_in(head)


def _plain(place: StepPlace) -> tuple[int, ...]:
    """Return the positions at which the head of a step in *place* may stand without its place."""
    return (place.of_all, place.number) if place.branch.is_main else (place.of_all,)


def _place_in(head: str) -> str:
    """Return the place that *head* names, "" where its position says it."""
    return head.partition(" ")[0].partition("@")[2]


def _branch_in(head: str) -> str:
    """Return the name of the branch that *head* names, "" where it names none, as of the main one."""
    return _place_in(head).partition(".")[0]


def _number_of(position: int, head: str) -> int:
    """Return as which of its branch *head* stands at *position*."""
    number = _place_in(head).partition(".")[2]
    return int(number) if number else position


def _strip(head: str) -> str:
    """Return *head* without its place."""
    digest, _, name = head.partition(" ")
    return f"{digest.partition('@')[0]} {name}"


async def _call(
    name: str, function: Callable[..., Awaitable[R]], arguments: tuple[Any, ...]
) -> R:
    token = _is_inside.set(True)
    try:
        called = function(*arguments)
        if not inspect.isawaitable(called):
            raise InvalidInput(
                f"the function of step {name!r} returned nothing to await; make it an async one"
            )
        return await called
    finally:
        _is_inside.reset(token)


def _digest(name: str, arguments: tuple[Any, ...]) -> str:
    try:
        spelled = to_json(arguments)
    except PydanticSerializationError as error:
        msg = f"the arguments of step {name!r} are not JSON ({error}); pass numbers, texts, lists, dicts or models"
        raise InvalidInput(msg) from error
    return hashlib.blake2b(spelled, digest_size=16).hexdigest()


def _spell(name: str, adapter: TypeAdapter[R], result: R) -> tuple[bytes, R]:
    """Return *result* as JSON, and as a later run reads it."""
    try:
        spelled = adapter.dump_json(result)
        again = adapter.validate_json(spelled)
    except (PydanticSerializationError, ValidationError) as error:
        msg = f"the result of step {name!r} cannot be kept as JSON ({error}); annotate what the function returns"
        raise InvalidInput(msg) from error
    if len(spelled) > MOST_BYTES:
        msg = f"the result of step {name!r} has {len(spelled):,} bytes, more than {MOST_BYTES:,}; return a reference"
        raise InvalidInput(msg)
    return spelled, again


def _spell_any(value: object) -> bytes:
    """Return *value* as JSON, or as much of it as can be."""
    try:
        return to_json(value, fallback=str)
    except (PydanticSerializationError, ValueError, RecursionError):
        return b"(no JSON)"


def _find_adapter(function: Callable[..., Any]) -> TypeAdapter[Any]:
    """Return the adapter for what *function* returns, by its annotation; for any JSON without one."""
    try:
        returns = inspect.signature(function, eval_str=True).return_annotation
        return _make_adapter(Any if returns is inspect.Signature.empty else returns)
    except (TypeError, ValueError, NameError, PydanticUserError):
        return _make_adapter(Any)


@lru_cache(maxsize=1_000)
def _make_adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)
