"""One run with one blow: brought to its moment, struck, and brought to its end."""

import asyncio
import time
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.acceptance.chaos.forged import Forged
from tests.acceptance.pipeline_storm.moments import Moment
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
    began = time.monotonic()
    await on.start(session_id, number)
    return await ended(on, session_id, number, Blow(), began)


async def strike(
    on: Stage, session_id: str, moment: Moment, took_s: float, random: Random
) -> Struck:
    """Let a run pass with the blow of *moment*; an undisturbed one takes *took_s*. All serve again afterwards."""
    began = time.monotonic()
    if moment.place == "any":
        blow = await _at_any_time(on, session_id, moment, took_s, random)
    elif moment.phase is None:
        blow = await _before_the_first(on, session_id, moment)
    elif moment.place == "inside":
        blow = await _inside(on, session_id, moment, moment.phase, random)
    else:
        blow = await _after(on, session_id, moment, moment.phase)
    replacement = await on.fork(moment.victim)
    struck = await ended(on, session_id, moment.number, blow, began)
    await replacement.begun()
    return struck


async def ended(
    on: Stage, session_id: str, number: int, blow: Blow, began: float
) -> Struck:
    """Return what the run came to, once it has ended; it *began* at that reading of the monotonic clock."""
    outcome = await on.outcome(session_id)
    # The end of a task is written down before its report, and with that before the end of the run.
    executions = on.executions(session_id)
    return Struck(
        session_id, number, blow, outcome, executions, time.monotonic() - began
    )


async def _inside(
    on: Stage, session_id: str, moment: Moment, phase: str, random: Random
) -> Blow:
    """Kill between the start of *phase* and its end, which waits until then, as does what runs beside it."""
    together = SIDE_BY_SIDE if phase in SIDE_BY_SIDE else (phase,)
    held = [on.hold(session_id, one) for one in together]
    await on.start(session_id, moment.number)
    executions = {one: await on.started(session_id, one) for one in together}
    victim = await _victim(on, session_id, moment, executions[phase])
    blow = await _kill(on, moment, victim)
    if moment.victim == "supervisor" and random.random() < _TAKEN_OVER:
        # Whoever goes on finds the phase still running, or in the moment in which it ends.
        await on.driver(session_id)
        await asyncio.sleep(random.uniform(0.0, _LOOKS_ROUND_S))
    for one in held:
        one.unlink()
    return blow


async def _after(on: Stage, session_id: str, moment: Moment, phase: str) -> Blow:
    """Kill once the report of *phase* is stored; until then supervisors are frozen, so that nothing follows on it."""
    held = on.hold(session_id, phase)
    await on.start(session_id, moment.number)
    execution = await on.started(session_id, phase)
    victim = await _victim(on, session_id, moment, execution)
    frozen = list(on.serving["supervisor"])
    for supervisor in frozen:
        supervisor.stop()
    held.unlink()
    await on.until(lambda: on.reported_at(execution.task_id))
    blow = await _kill(on, moment, victim)
    for supervisor in frozen:
        supervisor.resume()
    return blow


async def _before_the_first(on: Stage, session_id: str, moment: Moment) -> Blow:
    """Kill once the first phase is begun; until then workers are frozen, so that none starts it."""
    frozen = list(on.serving["worker"])
    for worker in frozen:
        worker.stop()
    await on.start(session_id, moment.number)

    async def is_begun() -> bool:
        return (await on.record(session_id)).phases[PHASES[0]].status == "running"

    await on.until(is_begun)
    victim = frozen[0] if moment.victim == "worker" else await on.driver(session_id)
    blow = await _kill(on, moment, victim)
    for worker in frozen:
        worker.resume()
    return blow


async def _at_any_time(
    on: Stage, session_id: str, moment: Moment, took_s: float, random: Random
) -> Blow:
    """Kill whoever serves then."""
    await on.start(session_id, moment.number)
    await asyncio.sleep(moment.share * took_s)
    return await _kill(on, moment, random.choice(on.serving[moment.victim]))


async def _victim(
    on: Stage, session_id: str, moment: Moment, execution: Execution
) -> Forged:
    """Return the worker that runs the phase, or the supervisor that drives the run."""
    if moment.victim == "worker":
        return next(one for one in on.serving["worker"] if one.pid == execution.pid)
    return await on.driver(session_id)


async def _kill(on: Stage, moment: Moment, victim: Forged) -> Blow:
    return Blow(victim.pid, await on.kill(moment.victim, victim))
