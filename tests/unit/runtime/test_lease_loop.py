"""The loop of leases: due work is claimed, done side by side, renewed, and given back."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.runtime.claim_loop import IDLE_LOOK_S, ClaimLoop, LeaseLost, NotYet
from tests.virtual_time import elapsed_s, in_virtual_time

PATIENCE_S = 60.0


class Letters(ClaimLoop[str, str]):
    """Works on the letters in `waiting`; its leases are spelled `lease of a`."""

    def __init__(
        self, waiting: str, *, at_once: int = 10, lease_s: float = 3600.0
    ) -> None:
        super().__init__("letter", at_once=at_once, lease_s=lease_s)
        self.waiting = list(waiting)
        self.begun: Counter[str] = Counter()
        self.returned: list[str] = []
        self.away = self.away_at_return = 0
        self.is_lost = self.is_listed = False
        self.looks = self.idle_looks = 0
        self.looked_at: list[float] = []
        self.renewals = 1_000_000
        self.renewed_at = 0.0
        self.answers_after_s = 0.0
        self.release = asyncio.Event()
        self.failure: Exception | None = None

    async def is_idle(self) -> bool:
        """Return whether nothing waits, unless it is said that something will."""
        is_idle = not (self.waiting or self.away or self.is_listed)
        self.idle_looks += is_idle
        self.looked_at.append(self._loop.time())
        return is_idle

    async def due(self, limit: int) -> Sequence[str]:
        """Return what waits."""
        self.looks += 1
        if self.away:
            self.away -= 1
            raise MemoryUnavailable("away")
        return self.waiting[:limit]

    async def claim(self, key: str) -> str | None:
        """Lease a letter that waits."""
        return f"lease of {key}" if key in self.waiting else None

    async def work(self, key: str, lease: str) -> float:
        """Wait for `release`, unless it fails."""
        self.begun[key] += 1
        if (failure := self.failure) is not None:
            self.failure = None
            raise failure
        await self.release.wait()
        self.waiting.remove(key)
        return 0.0

    async def renew(self, lease: str) -> bool:
        """Renew, unless leases are lost, or no more `renewals` come through."""
        if not self.renewals:
            await asyncio.sleep(0.2)
            raise MemoryUnavailable("away")
        self.renewals = self.renewals - 1
        self.renewed_at = self._loop.time()
        await asyncio.sleep(self.answers_after_s)
        return not self.is_lost

    async def give_back(self, lease: str) -> None:
        """Note it, unless the store is away."""
        if self.away_at_return:
            self.away_at_return -= 1
            raise MemoryUnavailable("away")
        self.returned.append(lease)


@contextlib.asynccontextmanager
async def at_work(letters: Letters) -> AsyncIterator[None]:
    """Run the loop while the block runs."""
    running = asyncio.create_task(letters.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield
            letters.stop()
            await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(fact: Callable[[], object], letters: Letters) -> None:
    """Return once *fact* holds; the loop looks at once, again and again."""
    while not fact():
        letters.look_soon()
        await asyncio.sleep(0.001)


async def test_no_more_is_worked_on_at_once_than_allowed() -> None:
    """The others come once there is room, and each key once."""
    letters = Letters("abcd", at_once=2)
    async with at_work(letters):
        await until(lambda: letters.busy == 2, letters)
        await asyncio.sleep(0.01)
        assert letters.begun.total() == 2
        letters.release.set()
        await until(lambda: not letters.waiting, letters)
    assert letters.begun == Counter("abcd")
    assert sorted(letters.returned) == [f"lease of {key}" for key in "abcd"]


async def test_stop_lets_work_end_and_drain_gives_it_back() -> None:
    """Both give every lease back."""
    for is_draining in (False, True):
        letters = Letters("a")
        async with at_work(letters):
            await until(lambda letters=letters: letters.driven, letters)  # type: ignore[misc]
            if is_draining:
                await letters.drain()
            else:
                letters.stop()
                letters.release.set()
        assert letters.waiting == (["a"] if is_draining else [])
        assert letters.returned == ["lease of a"]


@in_virtual_time
async def test_a_lost_lease_ends_the_work_under_it() -> None:
    """With the next renewal."""
    letters = Letters("a", lease_s=0.1)
    async with at_work(letters):
        await until(lambda: letters.driven, letters)
        letters.is_lost = True
        await until(lambda: not letters.driven, letters)
        letters.waiting.clear()
    assert letters.returned


@in_virtual_time
async def test_a_lease_that_cannot_be_renewed_is_held_to_its_end_and_no_longer() -> (
    None
):
    """From then on another process may have the work; how long a store takes for a renewal does not matter."""
    letters = Letters("a", lease_s=0.6)
    letters.answers_after_s = 0.1
    async with at_work(letters):
        await until(lambda: letters.driven, letters)
        letters.renewals = 2
        await until(lambda: letters.renewals == 0, letters)
        held = letters._held["a"]
        await until(lambda: not letters.driven, letters)
        assert held.until <= elapsed_s() < held.until + 0.15
        assert held.until - letters.renewed_at == pytest.approx(0.6)
        letters.waiting.clear()
    assert letters.returned == ["lease of a"]


async def test_a_store_that_is_away_delays_and_loses_nothing() -> None:
    """Neither a look, nor a lease that could not be given back."""
    letters = Letters("a")
    letters.away = 2
    letters.away_at_return = 1
    letters.release.set()
    async with at_work(letters):
        await until(lambda: letters.returned, letters)
    assert letters.begun == Counter("a")


async def test_a_mistake_in_one_key_disturbs_no_other() -> None:
    """It rests, and is worked on again later; so does one whose lease was lost or whose store was away."""
    for failure in (
        ValueError("a bug"),
        LeaseLost("theirs"),
        MemoryUnavailable("away"),
    ):
        letters = Letters("ab")
        letters.failure = failure
        letters.release.set()
        with capture_logs():
            async with at_work(letters):
                await until(lambda letters=letters: letters.begun.total() >= 2, letters)  # type: ignore[misc]
                await until(lambda letters=letters: letters.waiting == ["a"], letters)  # type: ignore[misc]
                assert letters.rests_of("a") <= 1
                letters.look_soon("a")
                await until(lambda letters=letters: not letters.waiting, letters)  # type: ignore[misc]
        assert letters.begun == Counter("aab")


async def test_only_a_store_that_is_away_counts_as_a_rest() -> None:
    """A key whose turn has not come waits as long as it says, and is none the worse for it."""
    for failure, counted in (
        (NotYet("others run", 0.01), 0),
        (MemoryUnavailable("away"), 1),
    ):
        letters = Letters("a")
        letters.failure = failure
        async with at_work(letters):
            await until(lambda letters=letters: letters.begun.total() == 2, letters)  # type: ignore[misc]
            assert letters.rests_of("a") == counted
            letters.release.set()


async def test_a_lease_that_cannot_be_given_back_while_draining_is_not_forgotten() -> (
    None
):
    """The failure is kept with the lease, not lost in a task that no other awaits."""
    letters = Letters("a")
    letters.away_at_return = 1
    running = asyncio.create_task(letters.run())
    async with asyncio.timeout(PATIENCE_S):
        await until(lambda: letters.driven, letters)
        await letters.drain()
        assert list(letters._unreturned) == ["lease of a"]
        await running


@in_virtual_time
async def test_what_is_never_due_is_looked_for_half_as_often() -> None:
    """What another process lists is seen within a second, and what is listed within half of one."""
    letters = Letters("", lease_s=3600.0)
    letters.release.set()
    async with at_work(letters):
        await asyncio.sleep(10.0)
        assert (letters.idle_looks, letters.looks) == (pytest.approx(10, abs=1), 0)
        letters.waiting.append("a")
        letters.is_listed = True
        listed_at = elapsed_s()
        while letters.waiting:  # noqa: ASYNC110 - it is not to be looked for any sooner
            await asyncio.sleep(0.01)
        assert elapsed_s() - listed_at <= IDLE_LOOK_S + 0.02
        letters.looks = 0
        await asyncio.sleep(10.0)
        assert letters.looks == pytest.approx(20, abs=1)


@in_virtual_time
async def test_all_loops_of_a_process_look_in_one_moment() -> None:
    """Whenever each of them began: a server is woken once for all of their commands."""
    crowd = [Letters("") for _ in range(3)]
    async with contextlib.AsyncExitStack() as stack:
        for letters in crowd:
            await stack.enter_async_context(at_work(letters))
            await asyncio.sleep(0.1)
        await asyncio.sleep(5.0)
        # On a busy machine one of them may have looked once more before the last one began.
        first = max(letters.looked_at[2] for letters in crowd)
        last = min(letters.looked_at[-1] for letters in crowd)
        moments = [
            [at for at in letters.looked_at if first <= at <= last] for letters in crowd
        ]
        assert len(moments[0]) >= 3
        assert moments[0] == moments[1] == moments[2]
        gaps = [later - one for one, later in pairwise(moments[0])]
        assert gaps == pytest.approx([IDLE_LOOK_S] * len(gaps))
