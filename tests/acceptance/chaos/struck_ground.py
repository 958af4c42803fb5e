"""What a storm does to its ground: each fault falls on whom the dice choose, among those free of any other."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from random import Random

from tasklore.memory.ledger.layouts import KNOWN_S
from tests.acceptance.chaos.forged import PATIENCE_S
from tests.acceptance.chaos.ground import Ground, Seat
from tests.acceptance.chaos.proxy import Cut
from tests.acceptance.chaos.submitter import Assignment
from tests.acceptance.chaos.troubles import RECOVERY_S
from tests.acceptance.faults.plan import At, Every, Fault
from tests.ledger_layouts import move

#: Seconds between looks for a process that nothing is being done to.
_LOOK_S = 0.02

_MANNERS: tuple[Cut, ...] = ("stall", "drop", "reset")


class StruckGround:
    """A ground as a stage of faults: *assignments* are its load; the last two settle it and look at it.

    *silence_s* is how long a process is frozen or cut off.
    """

    def __init__(
        self,
        ground: Ground,
        *,
        assignments: Iterable[Assignment],
        silence_s: float,
        drain: Callable[[], Awaitable[None]],
        look: Callable[[], Awaitable[None]],
    ) -> None:
        self._ground = ground
        self._assignments = assignments
        self._silence_s = silence_s
        self._began_at = time.monotonic()
        self._drain = drain
        self._look = look

    async def work(self) -> None:
        """Submit every task."""
        await self._ground.program.submit_all(self._assignments)

    async def strike(self, fault: Fault, dice: Random) -> None:
        """Let one fault fall at its time, and return when it is over."""
        await self._reach(fault, dice)
        ground = self._ground
        match fault.kind:
            case "kill":
                (await self._somebody(fault, dice)).worker.kill()
            case "kill nats":
                await ground.kill_server("nats")
            case "kill valkey":
                await ground.kill_server("valkey")
            case "freeze":
                await ground.stop_worker(
                    await self._somebody(fault, dice), self._silence_s
                )
            case "cut nats":
                await ground.cut_off(
                    await self._somebody(fault, dice),
                    "nats",
                    dice.choice(_MANNERS),
                    self._silence_s,
                )
            case "cut valkey":
                await ground.cut_off(
                    await self._somebody(fault, dice),
                    "valkey",
                    dice.choice(_MANNERS),
                    self._silence_s,
                )
            case "delete consumer":
                await ground.delete_consumer("TASKS", ground.agent_id)
            case "move ledger":
                # A frozen process knows a layout for so much longer.
                settled_s = KNOWN_S + self._silence_s + RECOVERY_S
                entries = await move(ground.servers.redis_url, settled_s)
                ground.history.note("moved", about=str(entries))

    async def drain(self) -> None:
        """Return once every task is reported, or counts as lost."""
        await self._drain()

    async def look(self) -> None:
        """Note what both stores hold, and have every process leave."""
        await self._look()

    async def _reach(self, fault: Fault, dice: Random) -> None:
        match fault.when:
            case At(seconds=seconds):
                await asyncio.sleep(self._began_at + seconds - time.monotonic())
            case Every() as every:
                reported = self._ground.program.reported
                enough = len(reported) + every.reports
                await asyncio.sleep(dice.uniform(every.shortest_s, every.longest_s))
                while len(reported) < enough:  # noqa: ASYNC110 - cancelled once all are there
                    await asyncio.sleep(_LOOK_S)
            case _:
                raise TypeError(f"a storm has no runs with moments: {fault}")

    async def _somebody(self, fault: Fault, dice: Random) -> Seat:
        """Return a seat of the role whose process takes work and that nothing is being done to."""
        ground = self._ground
        seats = {
            "worker": ground.seats,
            "supervisor": ground.supervisors,
            "anybody": [*ground.seats, *ground.supervisors],
        }[fault.role]
        # On a busy machine a supervisor takes a minute to start.
        within_s = None if fault.role == "supervisor" else PATIENCE_S
        async with asyncio.timeout(within_s):
            while not (free := [seat for seat in seats if seat.is_free]):  # noqa: ASYNC110 - nobody tells when
                await asyncio.sleep(_LOOK_S)
        return dice.choice(free)
