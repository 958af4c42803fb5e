"""The breaker of a model, on a clock of its own and with the most jitter there is."""

import asyncio
import contextlib

import pytest

from tasklore.contracts.errors import (
    LlmCutOff,
    LlmError,
    LlmRateLimited,
    LlmRejected,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.runtime.models.breaker import LONGEST_REST_S, ModelBreaker


class Bench:
    """A breaker that opens after two failures, and the time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.breaker = ModelBreaker(
            "m", 2, 30.0, monotonic=lambda: self.now, uniform=lambda _low, high: high
        )

    def ask(self, error: LlmError | None = None) -> None:
        """Ask, with *error* as what comes of it."""
        with self.breaker.asking():
            if error is not None:
                raise error

    def fail(self, error: LlmError | None = None) -> LlmError:
        """Ask in vain; return the error, the breaker's own when it refuses."""
        with pytest.raises(LlmError) as caught:
            self.ask(error or LlmUnavailable("503"))
        return caught.value

    def give_up_after(self, seconds: float) -> None:
        """Ask, and be cancelled after *seconds*."""
        with contextlib.suppress(asyncio.CancelledError), self.breaker.asking():
            self.now += seconds
            raise asyncio.CancelledError

    def opened(self) -> "Bench":
        """Open it."""
        self.fail()
        self.fail()
        return self


@pytest.mark.parametrize(
    "error", [LlmRateLimited("429"), LlmTimeout("late"), LlmUnavailable("refused")]
)
def test_failures_of_the_provider_in_a_row_open_it(error: LlmError) -> None:
    """An answer in between forgives, also one that is of no use."""
    bench = Bench()
    for forgiving in (None, LlmRejected("400"), LlmCutOff("long")):
        bench.fail(error)
        assert not bench.breaker.is_open
        bench.ask() if forgiving is None else bench.fail(forgiving)
    bench.fail(error)
    bench.fail(error)
    assert bench.breaker.is_open


def test_while_it_is_open_nobody_asks_but_a_probe() -> None:
    bench = Bench().opened()
    refused = bench.fail()
    assert "was not asked (circuit breaker open); last error: 503" in str(refused)
    assert (refused.away_s, refused.model, refused.retryable) == (0.5 + 1.0, "m", True)
    bench.now += 0.5
    with bench.breaker.asking():
        beside = bench.fail()
        assert "was not asked" in str(beside)
    assert not bench.breaker.is_open
    bench.ask()


def test_each_probe_that_fails_doubles_the_rest_up_to_the_longest() -> None:
    """So a dead provider is asked once in five seconds, and not more rarely."""
    bench = Bench().opened()
    rests = list[float]()
    for _ in range(6):
        away_s = bench.fail().away_s or 0.0
        rests.append(away_s - 1.0)
        bench.now += rests[-1]
        assert str(bench.fail()) == "503"
    assert rests == [0.5, 1.0, 2.0, 4.0, LONGEST_REST_S, LONGEST_REST_S]
    assert bench.breaker.open_s == sum(rests)


@pytest.mark.parametrize(
    ("asked_s", "rest_s"), [(12.0, 12.0), (0.1, 0.5), (10_000.0, 30.0)]
)
def test_a_provider_may_ask_for_a_longer_rest_within_bounds(
    asked_s: float, rest_s: float
) -> None:
    """But not for a day."""
    bench = Bench()
    for _ in range(2):
        bench.fail(LlmRateLimited("429", asked_s))
    assert bench.fail().away_s == rest_s + 1.0


def test_what_was_under_way_when_it_opened_makes_no_rest_longer() -> None:
    """Eight that fail together are one failure; one of them that is answered closes it."""
    bench = Bench()
    with contextlib.suppress(LlmUnavailable), bench.breaker.asking():
        bench.opened()
        raise LlmUnavailable("503")
    assert bench.fail().away_s == 0.5 + 1.0
    bench = Bench()
    with bench.breaker.asking():
        bench.opened()
    assert not bench.breaker.is_open


@pytest.mark.parametrize(("seconds", "is_open"), [(1.0, False), (6.0, True)])
def test_a_caller_that_waited_in_vain_for_long_counts(
    seconds: float, *, is_open: bool
) -> None:
    """One with a short deadline of its own says nothing of the provider."""
    bench = Bench()
    for _ in range(2):
        bench.give_up_after(seconds)
    assert bench.breaker.is_open == is_open


def test_a_probe_that_is_cancelled_leaves_its_place_to_another() -> None:
    """Its task was cancelled, and the provider may be back."""
    bench = Bench().opened()
    bench.now += 0.5
    bench.give_up_after(0.0)
    bench.ask()
    assert not bench.breaker.is_open


def test_a_thousand_that_wait_do_not_come_back_within_one_second() -> None:
    """A hundred a second leave time for others."""
    bench = Bench().opened()
    spreads = {}
    for number in range(1, 1_001):
        spreads[number] = (bench.fail().away_s or 0.0) - 0.5
    assert (spreads[50], spreads[1_000]) == (1.0, 10.0)


def test_a_breaker_that_nobody_asks_does_not_say_for_ever_that_its_provider_is_away() -> (
    None
):
    bench = Bench().opened()
    bench.now += 299
    assert (bench.breaker.is_open, bench.breaker.open_s) == (True, 299)
    bench.now += 2
    assert (bench.breaker.is_open, bench.breaker.open_s) == (False, 0.0)
    bench.fail()
    assert (bench.breaker.is_open, bench.breaker.open_s) == (True, 0.0)
    bench.now += 301
    bench.ask()
    bench.fail()
    assert not bench.breaker.is_open
