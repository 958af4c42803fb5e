"""One run with one blow: brought to its moment, struck, and brought to its end."""

import asyncio
import time
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.acceptance.chaos.forged import Forged
from tests.acceptance.faults.plan import Fault, FaultPlan, Moment, Role, play
from tests.acceptance.pipeline_storm.nine_phases import PHASES, SIDE_BY_SIDE
from tests.acceptance.pipeline_storm.stage import Execution, Stage

#: How many of the phases that outlive their supervisor wait for the next one, the rest end before it is there.
_TAKEN_OVER = 0.7
#: Seconds within which a supervisor that has taken a run over does what it does first.
_LOOKS_ROUND_S = 0.2


@dataclass(frozen=True, slots=True)
class Blow:
    """Who was killed, and when it was gone, in seconds since 1970; pid 0 when nobody was."""

    pid: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Struck:
    """A run that was struck: what it came to, and every execution of its phases."""

    session_id: str
    number: int
    blow: Blow
    outcome: dict[str, Any]
    executions: list[Execution]
    took_s: float


async def undisturbed(on: Stage, session_id: str, number: int) -> Struck:
    """Let a run pass without a blow."""
    run = RunOnStage(on, session_id, number, took_s=0.0)
    run.is_set_up.set()
    return await play(FaultPlan(seed=number, faults=()), run)


class RunOnStage:
    """A run as a stage of faults: an undisturbed one takes *took_s*. All serve again at its end."""

    def __init__(
        self, on: Stage, session_id: str, number: int, *, took_s: float
    ) -> None:
        self.on = on
        self.session_id = session_id
        self.took_s = took_s
        self.is_set_up = asyncio.Event()
        self._number = number
        self._is_started = asyncio.Event()
        self._began = time.monotonic()
        self._blow = Blow()
        self._outcome: dict[str, Any] = {}

    async def work(self) -> None:
        """Start the run once the fault is set up, and return at its end."""
        await self.is_set_up.wait()
        await self.on.start(self.session_id, self._number)
        self._is_started.set()
        self._outcome = await self.on.outcome(self.session_id)

    async def start(self) -> None:
        """Have the run started, as whatever has to be there before is."""
        self.is_set_up.set()
        await self._is_started.wait()

    async def strike(self, fault: Fault, dice: Random) -> None:
        """Kill at the moment of *fault*, fork another one, and return once that serves.

        Raises:
            TypeError: the fault falls at another time than a moment.
        """
        if not isinstance(moment := fault.when, Moment):
            raise TypeError(f"a run is struck at a moment: {fault}")
        if moment.place == "any":
            self._blow = await _at_any_time(self, fault.role, moment, dice)
        elif moment.step is None:
            self._blow = await _before_the_first(self, fault.role)
        elif moment.place == "inside":
            self._blow = await _inside(self, fault.role, moment.step, dice)
        else:
            self._blow = await _after(self, fault.role, moment.step)
        replacement = await self.on.cast.fork(fault.role)
        await replacement.begun()

    async def drain(self) -> None:
        """Return at once: the run has ended."""

    async def look(self) -> Struck:
        """Return what the run came to."""
        # The end of a task is written down before its report, and with that before the end of the run.
        return Struck(
            self.session_id,
            self._number,
            self._blow,
            self._outcome,
            self.on.executions(self.session_id),
            time.monotonic() - self._began,
        )


async def _inside(run: RunOnStage, role: Role, phase: str, dice: Random) -> Blow:
    """Kill between the start of *phase* and its end, which waits until then, as does what runs beside it."""
    on = run.on
    session_id = run.session_id
    together = SIDE_BY_SIDE if phase in SIDE_BY_SIDE else (phase,)
    held = [on.hold(session_id, one) for one in together]
    await run.start()
    executions = {one: await on.started(session_id, one) for one in together}
    blow = await _kill(on, role, await _victim(run, role, executions[phase]))
    if role == "supervisor" and dice.random() < _TAKEN_OVER:
        # Whoever goes on finds the phase still running, or in the moment in which it ends.
        await on.driver(session_id)
        await asyncio.sleep(dice.uniform(0.0, _LOOKS_ROUND_S))
    for one in held:
        one.unlink()
    return blow


async def _after(run: RunOnStage, role: Role, phase: str) -> Blow:
    """Kill once the report of *phase* is stored; until then supervisors are frozen, so that nothing follows on it."""
    on = run.on
    held = on.hold(run.session_id, phase)
    await run.start()
    execution = await on.started(run.session_id, phase)
    victim = await _victim(run, role, execution)
    frozen = list(on.cast.serving["supervisor"])
    for supervisor in frozen:
        supervisor.stop()
    held.unlink()
    await on.until(lambda: on.reported_at(execution.task_id))
    blow = await _kill(on, role, victim)
    for supervisor in frozen:
        supervisor.resume()
    return blow


async def _before_the_first(run: RunOnStage, role: Role) -> Blow:
    """Kill once the first phase is begun; until then workers are frozen, so that none starts it."""
    on = run.on
    frozen = list(on.cast.serving["worker"])
    for worker in frozen:
        worker.stop()
    await run.start()

    async def is_begun() -> bool:
        record = await on.record(run.session_id)
        return record.phases[PHASES[0]].status == "running"

    await on.until(is_begun)
    victim = frozen[0] if role == "worker" else await on.driver(run.session_id)
    blow = await _kill(on, role, victim)
    for worker in frozen:
        worker.resume()
    return blow


async def _at_any_time(
    run: RunOnStage, role: Role, moment: Moment, dice: Random
) -> Blow:
    """Kill whoever serves then."""
    await run.start()
    await asyncio.sleep(moment.share * run.took_s)
    return await _kill(run.on, role, dice.choice(run.on.cast.serving[role]))


async def _victim(run: RunOnStage, role: Role, execution: Execution) -> Forged:
    """Return the worker that runs the phase, or the supervisor that drives the run."""
    if role == "worker":
        workers = run.on.cast.serving["worker"]
        return next(one for one in workers if one.pid == execution.pid)
    return await run.on.driver(run.session_id)


async def _kill(on: Stage, role: Role, victim: Forged) -> Blow:
    """Return once the victim is gone."""
    await on.cast.kill(role, victim)
    return Blow(victim.pid, time.time())
