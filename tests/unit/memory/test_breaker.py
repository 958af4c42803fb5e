"""The breaker, on a clock of its own."""

from tasklore.memory.breaker import Breaker


class ManualClock:
    """A clock that somebody moves."""

    now = 100.0

    def __call__(self) -> float:
        """Return the seconds shown."""
        return self.now


def test_a_breaker_opens_after_failures_in_a_row_only() -> None:
    """A success in between forgives."""
    breaker = Breaker(failures=3, rest_s=1.0, clock=ManualClock())
    for _ in range(5):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.allows()
    for _ in range(3):
        breaker.failed()
    assert breaker.is_open
    assert not breaker.allows()


def test_an_open_breaker_lets_one_probe_through_each_rest() -> None:
    """A probe that is never heard of does not block the next."""
    clock = ManualClock()
    breaker = Breaker(failures=1, rest_s=1.0, clock=clock)
    breaker.failed()
    allowed = []
    for step in range(31):
        clock.now = 100.0 + step / 10
        allowed.append(breaker.allows())
    assert allowed.count(True) == 3


def test_a_probe_that_succeeds_closes_the_breaker() -> None:
    """Afterwards everybody may ask again."""
    clock = ManualClock()
    breaker = Breaker(failures=1, rest_s=1.0, clock=clock)
    breaker.failed()
    clock.now += 1.0
    assert breaker.allows()
    breaker.succeeded()
    assert [breaker.allows() for _ in range(3)] == [True] * 3


def test_a_probe_that_fails_starts_another_rest() -> None:
    """Counted from the failure."""
    clock = ManualClock()
    breaker = Breaker(failures=2, rest_s=1.0, clock=clock)
    breaker.failed()
    breaker.failed()
    clock.now += 1.0
    assert breaker.allows()
    clock.now += 0.5
    breaker.failed()
    clock.now += 0.9
    assert not breaker.allows()
    clock.now += 0.2
    assert breaker.allows()
