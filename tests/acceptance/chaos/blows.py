"""The blows of a storm: each falls on whom the seed chooses, among those to whom nothing else is being done."""

import asyncio
import random

from tests.acceptance.chaos.forged import PATIENCE_S
from tests.acceptance.chaos.ground import Ground, Seat
from tests.acceptance.chaos.proxy import Cut
from tests.acceptance.chaos.weather import Climate, Planned, pauses

#: Seconds between looks for a worker that nothing is being done to.
_LOOK_S = 0.02

_MANNERS: tuple[Cut, ...] = ("stall", "drop", "reset")


async def kill_workers(ground: Ground, climate: Climate, seed: int) -> None:
    """Kill one worker after another until cancelled."""
    dice = random.Random(f"victims {seed}")
    reported = ground.program.reported
    for pause_s in pauses(climate, seed):
        enough = len(reported) + climate.reports_between_kills
        await asyncio.sleep(pause_s)
        while len(reported) < enough:  # noqa: ASYNC110 - cancelled once all are there
            await asyncio.sleep(_LOOK_S)
        (await _somebody(ground.seats, dice)).worker.kill()


async def kill_supervisors(ground: Ground, climate: Climate, seed: int) -> None:
    """Kill one supervisor after another until cancelled, a third as often as workers."""
    dice = random.Random(f"supervisors {seed}")
    for pause_s in pauses(climate, -seed):
        await asyncio.sleep(3 * pause_s)
        # On a busy machine one takes a minute to start.
        (await _somebody(ground.supervisors, dice, within_s=None)).worker.kill()


async def strike(ground: Ground, climate: Climate, planned: Planned, seed: int) -> None:
    """Let one blow fall at its time, and return when it is over."""
    await asyncio.sleep(planned.at_s)
    dice = random.Random(f"strike {seed} {planned.at_s}")
    blow = planned.blow
    silence_s = climate.silence_s
    everybody = [*ground.seats, *ground.supervisors]
    if blow == "kill nats":
        await ground.kill_server("nats")
    elif blow == "kill valkey":
        await ground.kill_server("valkey")
    elif blow == "stop":
        await ground.stop_worker(await _somebody(everybody, dice), silence_s)
    elif blow == "cut nats":
        await ground.cut_off(
            await _somebody(everybody, dice), "nats", dice.choice(_MANNERS), silence_s
        )
    elif blow == "cut valkey":
        await ground.cut_off(
            await _somebody(everybody, dice), "valkey", dice.choice(_MANNERS), silence_s
        )
    else:
        await ground.delete_consumer("TASKS", ground.agent_id)


async def _somebody(
    seats: list[Seat], dice: random.Random, within_s: float | None = PATIENCE_S
) -> Seat:
    """Return one of *seats* whose process takes work and that nothing is being done to."""
    async with asyncio.timeout(within_s):
        while not (free := [seat for seat in seats if seat.is_free]):  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(_LOOK_S)
    return dice.choice(free)
