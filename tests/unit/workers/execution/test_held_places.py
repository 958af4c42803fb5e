"""The places of runs: how long each is held, and which run ends when its place cannot be kept."""

import asyncio
import time
from typing import Any, cast

from tasklore.memory.concurrency.semaphore import Permit
from tasklore.workers.execution.bounded_runs import HeldPlaces
from tests.virtual_time import in_virtual_time

LEASE_S = 30.0
PLACE = Permit("b", task="t1:1", limit=1, worker_id="w", token="r1", arrival=1)


class _Running:
    """A run that notes why it was given back."""

    name = ("t1", 1)

    def __init__(self, *, idempotent: bool = True) -> None:
        task = type("Task", (), {"idempotent": idempotent})
        self.job = type("Job", (), {"task": task})
        self.given_back: list[str] = []

    def hand_back(self, reason: str) -> None:
        self.given_back.append(reason)


def hold(places: HeldPlaces, running: _Running) -> None:
    """Hold the place from now."""
    places.add(PLACE, cast("Any", running), time.monotonic(), LEASE_S)


@in_virtual_time
async def test_a_run_ends_with_the_lease_of_its_place_unless_that_is_renewed() -> None:
    places = HeldPlaces()
    running = _Running()
    hold(places, running)
    await asyncio.sleep(0.8 * LEASE_S)
    hold(places, running)
    await asyncio.sleep(0.8 * LEASE_S)
    assert running.given_back == []
    await asyncio.sleep(0.4 * LEASE_S)
    assert len(running.given_back) == 1


@in_virtual_time
async def test_a_place_that_was_left_ends_no_run_and_one_that_must_not_run_twice_goes_on() -> (
    None
):
    left = _Running()
    places = HeldPlaces()
    hold(places, left)
    places.drop(PLACE)
    once = _Running(idempotent=False)
    others = HeldPlaces()
    hold(others, once)
    await asyncio.sleep(2 * LEASE_S)
    assert (left.given_back, once.given_back) == ([], [])
