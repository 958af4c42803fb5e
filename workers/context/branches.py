"""The branches of one run of a task: the asyncio tasks that its code makes, and whether all of them wait.

A branch is known by the branch that began it, by the function that it runs, and by how many of that function were begun
there before: so every run tells them apart alike, whichever is quicker. The run ends once nothing of it can go on: when
each branch that the task itself depends on is in an open wait, or in others that are.
"""

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import (
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary, ref

import structlog

from tasklore.contracts.admission.waits import MOST_OPEN, Wait
from tasklore.contracts.errors import InvalidInput, TaskloreError

log = structlog.get_logger(__name__)

#: Seconds for which a branch may stand still, outside of this library, that is not known to wait for another one: a
#: socket of the author's own, a thread, a lock that another branch holds. Then it counts as one that waits.
STILL_S = 10.0
#: Looks in turns of the event loop that follow one another, until it is sure that none goes on: that a branch has ended
#: is heard of a turn later by those that wait for it.
_SURE = 4
#: Seconds between looks at branches of which some go on.
_FIRST_PAUSE_S = 0.005
_MOST_PAUSE_S = 0.25
#: Seconds after which code that goes on behind the end of its run is cancelled again; from then on as often as the
#: second says, which also pass in each further step or wait of it.
_TOLD_AGAIN_S = 2.0
_REFUSED_S = 0.1
#: Modules at work on behalf of a branch, however long they take.
_OURS = (
    "tasklore.workers.context",
    "tasklore.workers.child_tasks",
    "tasklore.runtime",
    "tasklore.memory",
)

#: Modules whose code waits for other tasks of the same run where it stands still, and leaves them all else: a graph of
#: pydantic-ai runs its nodes, and a node its tools, in tasks of their own.
_DELEGATING = ("anyio.streams.memory", "pydantic_graph")

_of_run: ContextVar["Branches | None"] = ContextVar("branches_of_run", default=None)
_is_behind: ContextVar[bool] = ContextVar("is_behind_run", default=False)


class RunParked(TaskloreError):
    """The run is over, and another one follows when one of *waits* has its answer, or its time has come."""

    def __init__(self, waits: tuple[Wait, ...]) -> None:
        until = min(one.until for one in waits)
        super().__init__(f"it waits until {until.isoformat()}")
        self.waits = waits


class Branch:
    """One asyncio task of a run, the *number*th that runs *function* for *begun_by*; the main one is begun by none.

    `count` is how many steps and waits it has come to. What never asks anything of the context counts for nothing: then
    `is_used` is false, and the run ends whatever it does. `has_changed` says that a step of it, or of a branch that it
    began, is another one than in the run before: what it begins from then on `is_begun_anew`, and reads no journal.
    """

    is_used = False
    count = 0
    has_changed = False
    is_begun_anew = False

    def __init__(
        self, begun_by: "Branch | None" = None, function: str = "", number: int = 0
    ) -> None:
        self.begun_by = begun_by
        self._function = function
        self._number = number

    @cached_property
    def _begun(self) -> Counter[str]:
        return Counter()

    @cached_property
    def _renumbered(self) -> dict[tuple[str, int], int]:
        """The numbers that branches go by in place of that which they were begun as, by function and that one."""
        return {}

    @property
    def is_main(self) -> bool:
        """Whether it is that of the task's own function."""
        return self.begun_by is None

    @property
    def name(self) -> str:
        """Ten hex digits, the same in every run of the task; "" for the main one."""
        if self.begun_by is None:
            return ""
        renumbered = self.begun_by._renumbered  # noqa: SLF001 - of its own class
        return self._name_of(
            renumbered.get((self._function, self._number), self._number)
        )

    @property
    def ancestors(self) -> Iterator["Branch"]:
        """The branch that began it, that which began this, up to the main one."""
        branch = self.begun_by
        while branch is not None:
            yield branch
            branch = branch.begun_by

    @property
    def names_of_alike(self) -> list[str]:
        """The names of those that run the same function for the same branch."""
        if self.begun_by is None:
            return []
        return [
            self._name_of(number)
            for number in range(self.begun_by._begun[self._function])  # noqa: SLF001 - of its own class
        ]

    def take_name(self, name: str) -> None:
        """Be the branch *name* of `names_of_alike`, which gets the name of this one.

        They were begun in another order than in the run before; no two have one name.
        """
        if self.begun_by is None:
            return
        names = self.names_of_alike
        mine = names.index(self.name)
        wished = names.index(name)
        renumbered = self.begun_by._renumbered  # noqa: SLF001 - of its own class
        other = next(
            (
                number
                for (function, number), new in renumbered.items()
                if (function, new) == (self._function, wished)
            ),
            wished,
        )
        renumbered[self._function, other] = mine
        renumbered[self._function, self._number] = wished

    def begin(self, function: str) -> "Branch":
        """Return the next branch that this one begins, which runs *function*."""
        number = self._begun[function]
        self._begun[function] = number + 1
        branch = Branch(self, function, number)
        branch.has_changed = self.has_changed
        branch.is_begun_anew = self.has_changed
        return branch

    def _name_of(self, number: int) -> str:
        begun_by = "" if self.begun_by is None else self.begun_by.name
        way = f"{begun_by}/{self._function}.{number}".encode()
        return hashlib.blake2b(way, digest_size=5).hexdigest()


class Branches:
    """The branches of one run; *park* ends the run, which goes no further than that."""

    # Most runs have one branch and are in no wait: what these do not need is made by those that do.
    _timer: asyncio.TimerHandle | asyncio.Handle | None = None
    _told_again: asyncio.TimerHandle | None = None
    _pause_s = _FIRST_PAUSE_S
    _mark: Sequence[tuple[int, int, int]] = ()
    _unmoved_since = 0.0
    _sure = 0
    _is_over = False
    _is_watched = False
    _main_task: "ref[asyncio.Task[Any]] | None" = None

    def __init__(self, park: Callable[[RunParked], None] | None) -> None:
        self._park = park
        self._main = Branch()

    @cached_property
    def _others(self) -> WeakKeyDictionary[asyncio.Task[Any], Branch]:
        return WeakKeyDictionary()

    @cached_property
    def _open(
        self,
    ) -> dict[asyncio.Future[Any], tuple[Wait, asyncio.Future[None]]]:
        return {}

    @property
    def can_wait(self) -> bool:
        """Whether the run can end in a wait."""
        return self._park is not None

    def enter(self) -> None:
        """Let the next asyncio task that is made in the current context be the main branch of the run."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop.get_task_factory(), _TaskFactory):
            loop.set_task_factory(_TaskFactory(loop.get_task_factory()))
        if self._main_task is not None:
            # That of a yes without which nothing of the task begins.
            self._main = Branch()
            self._main_task = None
            self._is_over = self._is_watched = False
            if self._told_again is not None:
                self._told_again.cancel()
        _of_run.set(self)

    def leave(self) -> None:
        """Let code of the current context use the run behind its end, outside of its branches."""
        _of_run.set(None)
        _is_behind.set(True)

    def add(self, task: asyncio.Task[Any]) -> Branch:
        """Note that *task* was made, by the branch that is at work, and return its branch."""
        if self._main_task is None:
            self._main_task = ref(task)
            return self._main
        maker = asyncio.current_task()
        begun_by = (self._find(maker) if maker is not None else None) or self._main
        branch = begun_by.begin(getattr(task.get_coro(), "__qualname__", ""))
        self._others[task] = branch
        return branch

    @property
    def current(self) -> Branch:
        """The branch that is at work."""
        task = asyncio.current_task()
        if task is None:
            return self._main
        return self._find(task) or self.add(task)

    def come(self) -> Branch:
        """Return the branch that is at work, which the task depends on from now on."""
        branch = self.current
        branch.is_used = True
        if not self._is_watched and (main := self._find_main()) is not None:
            self._is_watched = True
            main.add_done_callback(self._close_with)
        return branch

    def _find(self, task: asyncio.Task[Any]) -> Branch | None:
        if task is self._find_main():
            return self._main
        return self._others.get(task)

    def _find_main(self) -> asyncio.Task[Any] | None:
        return None if self._main_task is None else self._main_task()

    async def demand_going(self) -> None:
        """Note that the branch at work is used; do nothing else while the run goes on.

        Raises:
            CancelledError: it is over, and code that swallowed that goes on.
        """
        if _is_behind.get():
            return
        self.come()
        if self._is_over:
            await asyncio.sleep(_REFUSED_S)
            raise asyncio.CancelledError

    async def demand_waiting(self, what: str) -> None:
        """Note that the branch at work is used, and is about to wait in *what*.

        Raises:
            InvalidInput: it is a hook behind the run, which no answer brings back.
            CancelledError: as `demand_going`.
        """
        if _is_behind.get():
            msg = f"{what} is not allowed in after_run; call it in the task or in before_run"
            raise InvalidInput(msg)
        await self.demand_going()

    @contextmanager
    def opened(self, wait: Wait) -> Iterator[asyncio.Future[None]]:
        """Be in *wait* during the block; once nothing of the run can go on, it ends, and the future is cancelled.

        Raises:
            InvalidInput: it is in too many waits at once.
        """
        if len(self._open) >= MOST_OPEN:
            msg = (
                f"the task is in {MOST_OPEN} open waits already; ask, wait for signals and sleep in groups of at most "
                f"{MOST_OPEN} at once"
            )
            raise InvalidInput(msg)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        self.come()
        over = asyncio.get_running_loop().create_future()
        self._open[task] = wait, over
        self._look_soon()
        try:
            yield over
        finally:
            del self._open[task]

    def _look_soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._pause_s = _FIRST_PAUSE_S
        self._sure = 0
        self._timer = asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """End the run if nothing of it can go on, else look again in a while."""
        self._timer = None
        if not self._open or self._is_over:
            return
        loop = asyncio.get_running_loop()
        try:
            marks = self._find_unproven()
        except Exception:
            # What of asyncio is looked at may be other than it was: then time alone shows that nothing goes on.
            if self._mark != (marks := [(0, 0, 0)]):
                log.exception("branches_not_seen_through")
        if marks is None or marks != self._mark:
            self._mark = marks or ()
            self._unmoved_since = loop.time()
        if marks == [] or (
            marks is not None and loop.time() - self._unmoved_since >= STILL_S
        ):
            self._sure += 1
            if self._sure < _SURE:
                self._timer = loop.call_soon(self._look)
            else:
                self._end()
            return
        self._sure = 0
        self._timer = loop.call_later(self._pause_s, self._look)
        self._pause_s = min(_MOST_PAUSE_S, 2 * self._pause_s)

    def _end(self) -> None:
        by_slot = {wait.slot: wait for wait, _ in self._open.values()}
        if self._park is not None:
            self._park(RunParked(tuple(by_slot.values())))
        self._close()

    def _close(self) -> None:
        """Let nothing of the run go on."""
        self._is_over = True
        for _, over in self._open.values():
            over.cancel()
        self._tell_again_in(_TOLD_AGAIN_S)

    def _close_with(self, task: asyncio.Task[Any]) -> None:
        """End whatever the main branch *task*, which has ended, has left behind: another run may begin."""
        if task is self._find_main() and not self._is_over:
            self._close()
            self._tell_again()

    def _tell_again_in(self, pause_s: float) -> None:
        if self._told_again is not None:
            self._told_again.cancel()
        loop = asyncio.get_running_loop()
        self._told_again = loop.call_later(pause_s, self._tell_again)

    def _tell_again(self) -> None:
        if not self._is_over:
            return
        left = [task for task in self._used() if not task.done()]
        for task in left:
            task.cancel()
        if left:
            # At any time of a loop that swallows it: it ends where nothing does.
            pause_s = random.uniform(0.0, _REFUSED_S)  # noqa: S311 - jitter
            self._tell_again_in(pause_s)

    def _used(self) -> list[asyncio.Task[Any]]:
        """Return the asyncio tasks that the task depends on: its main one, and those that asked of the context."""
        used = [task for task, one in list(self._others.items()) if one.is_used]
        main = self._find_main()
        return used if main is None else [main, *used]

    def _find_unproven(self) -> list[tuple[int, int, int]] | None:
        """Return where those branches stand that are not known to wait; None when one of them is at work."""
        seen: set[asyncio.Future[Any]] = set()
        marks: list[tuple[int, int, int]] = []
        for task in self._used():
            if not self._examine(task, seen, marks):
                return None
        return marks

    def _examine(
        self,
        future: asyncio.Future[Any],
        seen: set[asyncio.Future[Any]],
        marks: list[tuple[int, int, int]],
    ) -> bool:
        """Return whether *future* is not known to go on; where it stands is added to *marks* unless it waits."""
        if future in seen or future in self._open or future.done():
            return True
        seen.add(future)
        if not isinstance(future, asyncio.Task):
            # That of `asyncio.gather`, of which all parts count.
            parts = getattr(future, "_children", None) or _find_shielded(future)
            if not parts:
                marks.append((id(future), 0, 0))
            return all(self._examine(part, seen, marks) for part in parts)
        awaited: asyncio.Future[Any] | None = getattr(future, "_fut_waiter", None)
        if awaited is None or awaited.done():
            return False
        if isinstance(awaited, asyncio.Task) or hasattr(awaited, "_children"):
            return self._examine(awaited, seen, marks)
        frames = list(_frames_of(future.get_coro()))
        if any(_is_in(frame, _OURS) for frame in frames):
            return False
        parts = self._find_parts(future, frames) or _find_shielded(awaited)
        if parts:
            return all(self._examine(part, seen, marks) for part in parts)
        last = frames[-1] if frames else None
        if last is None or not _is_in(last, _DELEGATING):
            marks.append((id(awaited), id(last), last.f_lasti if last else 0))
        return True

    def _find_parts(
        self, task: asyncio.Task[Any], frames: Sequence[FrameType]
    ) -> list[asyncio.Future[Any]]:
        """Return what *task* waits for in asyncio, nothing where that is no group of others."""
        names = [_name_of(frame) for frame in frames[-2:]]
        if "asyncio.tasks._wait_for_one" in names:
            # That of `asyncio.as_completed`.
            branch = self._find(task)
            return [one for one, of in self._others.items() if of.begun_by is branch]
        if not names:
            return []
        inside = frames[-1].f_locals
        if names[-1] == "asyncio.taskgroups.__aexit__":
            return list(inside["self"]._tasks)  # noqa: SLF001 - no other way to see them
        if names[-1] == "asyncio.tasks._wait":
            return list(inside["fs"])
        if names[-1] == "asyncio.tasks.wait_for":
            return [inside["fut"]]
        return []


def _frames_of(running: object) -> Iterator[FrameType]:
    """Yield the frames of a coroutine that stands still, the one that called the others first."""
    while running is not None:
        frame = getattr(running, "cr_frame", None) or getattr(running, "gi_frame", None)
        if frame is None:
            return
        yield frame
        running = getattr(running, "cr_await", None) or getattr(
            running, "gi_yieldfrom", None
        )


def _find_shielded(future: asyncio.Future[Any]) -> list[asyncio.Future[Any]]:
    """Return what `asyncio.shield` shields with *future*, nothing where that is another one."""
    for callback, _context in getattr(future, "_callbacks", None) or ():
        if getattr(callback, "__qualname__", "").startswith("shield.<locals>"):
            inside = zip(
                callback.__code__.co_freevars, callback.__closure__, strict=True
            )
            return [cell.cell_contents for name, cell in inside if name == "inner"]
    return []


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _name_of(frame: FrameType) -> str:
    return f"{_module_of(frame)}.{frame.f_code.co_name}"


def _is_in(frame: FrameType, modules: Iterable[str]) -> bool:
    """Return whether *frame* is of one of *modules* or below it."""
    where = f"{_module_of(frame)}."
    return any(where.startswith(f"{one}.") for one in modules)


class _TaskFactory:
    """Makes asyncio tasks as *inner* does, or the loop itself, and tells the run in whose context one is made."""

    def __init__(self, inner: Callable[..., Any] | None) -> None:
        self._inner = inner

    def __call__(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        /,
        **options: Any,
    ) -> asyncio.Task[Any]:
        """Return a task that runs *coroutine*."""
        task: asyncio.Task[Any] = (
            asyncio.Task(coroutine, loop=loop, **options)
            if self._inner is None
            else self._inner(loop, coroutine, **options)
        )
        context = options.get("context")
        run = _of_run.get() if context is None else context.get(_of_run)
        if run is not None:
            run.add(task)
        return task
