"""Profile `healing`: what is deleted, killed or away comes back, and waiting for it costs next to nothing."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable

from tests.acceptance.chaos.healing_outage import supervisor_outage, worker_outage
from tests.acceptance.chaos.healing_strikes import (
    consumer_deleted,
    dead_letters_deleted,
    nats_killed,
    stream_deleted,
    valkey_killed,
)
from tests.acceptance.chaos.healing_waiting import (
    consumer_of_others,
    drifted_stream,
    stuck_loop,
)
from tests.acceptance.chaos.table import Row

#: Seconds that NATS is away in the long outage.
OUTAGE_S = 180.0
#: Seconds over which the cost of waiting is measured elsewhere: below ten, a second's hiccup would count.
WATCH_S = 15.0
#: Seconds for which the event loop is blocked.
BLOCK_S = 30.0

Case = Callable[[], Awaitable[list[Row]]]


async def run(options: argparse.Namespace) -> list[Row]:
    """Strike one after another, then wait for all outages side by side: those only need a clock."""
    rows: list[Row] = []
    for strike in (
        consumer_deleted,
        stream_deleted,
        dead_letters_deleted,
        nats_killed,
        valkey_killed,
    ):
        rows += await strike()
    return rows + await side_by_side(
        lambda: worker_outage(OUTAGE_S),
        lambda: supervisor_outage(OUTAGE_S),
        lambda: consumer_of_others(WATCH_S),
        lambda: drifted_stream(WATCH_S),
        lambda: stuck_loop(BLOCK_S),
    )


async def side_by_side(*cases: Case) -> list[Row]:
    """Return the rows of all *cases*, each of which has a system of its own."""
    found = await asyncio.gather(*(case() for case in cases))
    return [row for rows in found for row in rows]
