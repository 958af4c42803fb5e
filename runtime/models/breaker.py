"""A circuit breaker for one model: while its provider is away one probe at a time asks, and all others come later."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from tasklore.contracts.errors import (
    LlmError,
    LlmRateLimited,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.runtime.models.answer_reader import words_of

log = structlog.get_logger(__name__)

#: Seconds until the first probe; each that fails doubles them, up to the longest.
FIRST_REST_S = 0.5
LONGEST_REST_S = 5.0
#: Questions a second that may come back at once after a rest, so that thousands of waiting tasks leave time for others.
_RETURNS_PER_S = 100.0
#: Seconds over which those that wait come back, at least and at most.
_SPREAD_S = 1.0
_LONGEST_SPREAD_S = 60.0
#: Seconds after which a request that its caller gave up counts as a timeout of the provider.
_SILENT_S = 5.0
#: Seconds without a probe that was due after which nobody knows whether the provider is still away.
_UNKNOWN_S = 300.0


class ModelBreaker:
    """Opens after *failures* rate limits, 5xx, timeouts or broken connections in a row; any answer closes it.

    *model* is its name as persons are shown it, *patience_s* the longest rest in seconds that a provider's Retry-After
    may ask for.
    """

    def __init__(
        self,
        model: str,
        failures: int,
        patience_s: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.model = model
        self._limit = failures
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._uniform = uniform
        self._failures = 0
        self._opened_at: float | None = None
        self._rest_s = 0.0
        self._probe_at = 0.0
        self._is_probing = False
        self._refused = 0
        self._words = ""

    @property
    def is_open(self) -> bool:
        """Whether the provider counts as away."""
        return (
            self._opened_at is not None
            and self._monotonic() - self._probe_at < _UNKNOWN_S
        )

    @property
    def said(self) -> str:
        """What the provider said when it failed last."""
        return self._words

    @property
    def open_s(self) -> float:
        """Seconds since it opened, 0 while it is closed; may be read from another thread."""
        opened_at = self._opened_at
        return (
            0.0
            if opened_at is None or not self.is_open
            else self._monotonic() - opened_at
        )

    def demand(self) -> None:
        """Refuse a question that would only have to wait.

        Raises:
            LlmUnavailable: the provider is away, and no probe is due; with `away_s`.
        """
        if self.is_open and (self._is_probing or self._monotonic() < self._probe_at):
            self._refused += 1
            raise self.mark(
                LlmUnavailable(
                    f"{self.model!r} is unavailable and was not asked (circuit breaker "
                    f"open); last error: {self._words}"
                )
            )

    def mark(self, error: LlmError) -> LlmError:
        """Return *error* with the seconds after which its task is to come back, while the provider is away."""
        if self.is_open and isinstance(
            error, LlmRateLimited | LlmTimeout | LlmUnavailable
        ):
            # A probe mostly answers at once: whoever comes meanwhile need not wait as if it had failed.
            left_s = (
                0.5
                if self._is_probing
                else max(0.0, self._probe_at - self._monotonic())
            )
            spread_s = min(
                _LONGEST_SPREAD_S, max(_SPREAD_S, self._refused / _RETURNS_PER_S)
            )
            error.away_s = left_s + self._uniform(0.0, spread_s)
            error.model = self.model
            error.said = self._words
        return error

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Judge the provider by the request in the block; a probe when it counts as away.

        Raises:
            LlmUnavailable: as `demand`.
        """
        self.demand()
        is_probe = self._is_probing = self.is_open
        started = self._monotonic()
        try:
            yield
        except (LlmRateLimited, LlmTimeout, LlmUnavailable) as error:
            self._words = words_of(str(error))
            self._fail(getattr(error, "retry_after_s", None) or 0.0, is_probe=is_probe)
            raise
        except asyncio.CancelledError:
            if self._monotonic() - started >= _SILENT_S:
                self._words = "nothing"
                self._fail(0.0, is_probe=is_probe)
            raise
        except LlmError:
            self._close()
            raise
        else:
            self._close()
        finally:
            if is_probe:
                self._is_probing = False

    def _fail(self, asked_s: float, *, is_probe: bool) -> None:
        self._failures += 1
        if self.is_open != is_probe or (not is_probe and self._failures < self._limit):
            # What was under way when it opened says nothing new.
            return
        now = self._monotonic()
        self._rest_s = (
            min(LONGEST_REST_S, 2 * self._rest_s) if is_probe else FIRST_REST_S
        )
        rest_s = max(
            self._uniform(0.75, 1.0) * self._rest_s, min(asked_s, self._patience_s)
        )
        self._probe_at = now + rest_s
        self._refused = 0
        if not is_probe:
            self._opened_at = now
            log.warning("llm_breaker_opened", model=self.model, failures=self._failures)

    def _close(self) -> None:
        self._failures = 0
        if self._opened_at is not None:
            log.info(
                "llm_breaker_closed", model=self.model, open_s=round(self.open_s, 1)
            )
            self._opened_at = None
