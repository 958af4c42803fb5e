"""Language models: tokens, money, time and errors of every attempt to ask one."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from tasklore.runtime.counting.series import Series
from tasklore.runtime.counting.words import LLM_BUCKETS, TOKEN_BUCKETS
from tasklore.runtime.models.dialects import known_dialects
from tasklore.runtime.models.prices import Expense

#: Seconds after its time within which a task that waits for a model is still expected.
_LATE_S = 5.0


class ModelCounts:
    """Metrics of requests to language models."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._open_seconds: Callable[[], Mapping[str, float]] = dict
        self._troubles: Callable[[], Mapping[str, str]] = dict
        #: By model and id of each task that waits for it when it comes back, the next one first.
        self._returns: dict[str, dict[str, float]] = defaultdict(dict)
        self._llm_tokens = series.counter(
            "llm_tokens", "Tokens, also of failed attempts.", "role", "model", "type"
        )
        self._llm_estimated = series.counter(
            "llm_estimated_tokens",
            "Tokens of `llm_tokens` that no provider counted, by the length of texts.",
            "role",
            "model",
        )
        self._llm_cost = series.counter(
            "llm_cost_usd", "US dollars by list price.", "role", "model"
        )
        self._llm_unpriced = series.counter(
            "llm_unpriced_tokens", "Tokens whose price is not known.", "model"
        )
        self._llm_duration = series.histogram(
            "llm_request_duration_seconds",
            "Duration of one request to a language model.",
            LLM_BUCKETS,
            "role",
            "model",
        )
        self._first_chunk = series.histogram(
            "llm_time_to_first_chunk_seconds",
            "Until a streamed answer begins (`gen_ai.client.operation.time_to_first_chunk`).",
            LLM_BUCKETS,
            "role",
            "model",
        )
        self._request_tokens = series.histogram(
            "llm_request_tokens",
            "Tokens of one request that was answered (`gen_ai.client.token.usage`).",
            TOKEN_BUCKETS,
            "model",
            "type",
        )
        about = (
            "Calls that went out while the accounts of their limits could not be read."
        )
        self._llm_unchecked = series.counter("llm_unchecked_calls", about, "model")
        self._llm_errors = series.counter("llm_errors", "Failed attempts.", "class")

    def record(
        self,
        role: str,
        model: str,
        usage: Expense,
        duration_s: float,
        error_class: str | None,
        first_chunk_s: float | None = None,
    ) -> None:
        """Count one attempt to ask a language model; *error_class* None is a success."""
        for kind, tokens in (
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
        ):
            self._llm_tokens.labels(role, model, kind).inc(tokens)
            if error_class is None:
                self._request_tokens.labels(model, kind).observe(tokens)
        if usage.estimated_tokens:
            self._llm_estimated.labels(role, model).inc(usage.estimated_tokens)
        if first_chunk_s is not None:
            self._first_chunk.labels(role, model).observe(first_chunk_s)
        self._llm_cost.labels(role, model).inc(float(usage.cost_usd))
        if usage.unpriced:
            self._llm_unpriced.labels(model).inc(
                usage.input_tokens + usage.output_tokens
            )
        self._llm_duration.labels(role, model).observe(duration_s)
        if error_class is not None:
            self._llm_errors.labels(error_class).inc()

    def count_unchecked(self, model: str) -> None:
        """Count a call that went out while the accounts of its limits could not be read."""
        self._llm_unchecked.labels(model).inc()

    def watch_models(
        self,
        open_seconds: Callable[[], Mapping[str, float]],
        troubles: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Export by model for how long its provider has been away, and how many tasks wait for it.

        *troubles* says by role why its last question has no answer.
        """
        self._open_seconds = open_seconds
        self._troubles = troubles
        about = "Seconds since the circuit breaker of a model opened; 0 if closed."
        self._series.told("llm_breaker_open_seconds", about, "model", open_seconds)
        about = "Tasks that this process sent back to wait for a model."
        self._series.told("llm_waiting_tasks", about, "model", self._waiting)

    def count_waiting(self, model: str, task_id: str, pause_s: float) -> None:
        """Note that a task comes back in *pause_s* seconds to ask *model* again."""
        now = time.monotonic()
        returns = self._returns[model]
        returns.pop(task_id, None)
        while returns and returns[first := next(iter(returns))] + _LATE_S <= now:
            del returns[first]
        returns[task_id] = now + pause_s

    def _waiting(self) -> Mapping[str, float]:
        """Return by model how many tasks wait for it: none once it answers, and none that went elsewhere."""
        since = time.monotonic() - _LATE_S
        return {
            model: sum(
                due > since for due in list(self._returns.get(model, {}).values())
            )
            if open_s
            else 0
            for model, open_s in self._open_seconds().items()
        }

    def check_models(self) -> tuple[bool, str]:
        """Say which models are away, since when, and how many tasks wait; and which roles have no answer, and why.

        Never that this process is at fault.
        """
        waiting = self._waiting()
        now = datetime.now(UTC)
        away = [
            f"{model} has been unavailable since "
            f"{now - timedelta(seconds=open_s):%H:%M:%S} UTC ({open_s:.0f} s), "
            f"{waiting.get(model, 0):.0f} tasks wait for it"
            for model, open_s in self._open_seconds().items()
            if open_s > 0
        ]
        silent = [f"role {role!r}: {words}" for role, words in self._troubles().items()]
        return True, "; ".join([*away, *silent])

    def check_dialects(self) -> tuple[bool, str]:
        """Say which servers are spoken to otherwise than OpenAI's own, since they refused that."""
        return True, "; ".join(known_dialects())
