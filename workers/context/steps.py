"""The steps of one run: each is journaled before anything sees its result, and read by a later run of the task."""

import asyncio
import contextlib
import hashlib
import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from tasklore.contracts.errors import EffectUncertain, InvalidInput, MemoryUnavailable
from tasklore.runtime import tracing

if TYPE_CHECKING:
    from tasklore.memory.ledger.journal import Journal
    from tasklore.memory.ledger.runs import RunName

log = structlog.get_logger(__name__)

R = TypeVar("R")

#: Steps of one task.
MOST_STEPS = 5_000
#: Bytes of one result as JSON.
MOST_BYTES = 8 * 1024 * 1024

_is_inside: ContextVar[bool] = ContextVar("is_inside_step", default=False)


class Steps:
    """Runs the steps of one run of a task; a position is given to each in the order in which they are called."""

    def __init__(
        self,
        journal: "Journal",
        run: "RunName",
        claim: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._journal = journal
        self._run = run
        self._claim = claim
        self._lock = asyncio.Lock()
        self._heads: dict[int, str] | None = None
        self._count = self._running = 0
        self._idle = asyncio.Event()

    async def run(
        self,
        name: str,
        function: Callable[..., Awaitable[R]],
        arguments: tuple[Any, ...],
        *,
        once: bool,
    ) -> R:
        """Return what the step returned in an earlier run, or call *function* and journal its result."""
        if _is_inside.get():
            return await _call(name, function, arguments)
        head = f"{_digest(name, arguments)} {name}"
        position = self._take_place(f"step {name!r}")
        adapter: TypeAdapter[R] = _find_adapter(function)
        if await self._is_journaled(position, head, name):
            stored = await self._journal.result(self._run.task_id, position)
            if stored is not None:
                return adapter.validate_json(stored)
        self._running += 1
        try:
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
            await self._journal.write(self._run, position, head, spelled)
            return result
        finally:
            self._running -= 1
            self._idle.set()

    async def finish(self) -> None:
        """Return once no step is under way: none is to be cut off by the end of the run."""
        while self._running:
            self._idle.clear()
            await self._idle.wait()

    def take_place(self, what: str) -> int:
        """Return the next position, for *what* is no step itself.

        Raises:
            InvalidInput: it is called within a step, or there are too many.
        """
        if _is_inside.get():
            raise InvalidInput(
                f"{what} is within a step, which a wait would interrupt; wait before or after it"
            )
        return self._take_place(what)

    def _take_place(self, what: str) -> int:
        position = self._count
        self._count = self._count + 1
        if position >= MOST_STEPS:
            raise InvalidInput(
                f"{what} is number {MOST_STEPS + 1:,}; a task has at most {MOST_STEPS:,} steps"
            )
        return position

    async def drop_journal(self) -> None:
        """Remove the journal when a step was called; one that stays goes after its time to live."""
        if self._count:
            with contextlib.suppress(MemoryUnavailable):
                await self._journal.remove([self._run.task_id])

    async def _is_journaled(self, position: int, head: str, name: str) -> bool:
        """Return whether *head* stands at *position*; where another one does, no later step counts any more."""
        async with self._lock:
            if self._heads is None:
                self._heads = await self._journal.heads(self._run.task_id)
            stored = self._heads.get(position)
            if stored is not None and stored != head:
                log.warning(
                    "journal_differs",
                    task_id=self._run.task_id,
                    step=name,
                    stored=stored.partition(" ")[2],
                )
                self._heads = {
                    place: kept
                    for place, kept in self._heads.items()
                    if place < position
                }
        return stored == head


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
        msg = f"the arguments of step {name!r} are no JSON ({error}); pass numbers, texts, lists, dicts or models"
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
