"""Language models: tokens, money, time and errors of every attempt to ask one."""

from runtime.counting.series import Series
from runtime.counting.words import LLM_BUCKETS
from runtime.llm_prices import Expense


class ModelCounts:
    """What whoever asks a model counts."""

    def __init__(self, series: Series) -> None:
        self._llm_tokens = series.counter("llm_tokens", "Tokens, also of failed attempts.", "role", "model", "type")
        self._llm_cost = series.counter("llm_cost_usd", "US dollars by list price.", "role", "model")
        self._llm_duration = series.histogram(
            "llm_request_duration_seconds", "One attempt to ask a language model.", LLM_BUCKETS, "role", "model"
        )
        self._llm_errors = series.counter("llm_errors", "Failed attempts.", "class")

    def record(self, role: str, model: str, usage: Expense, duration_s: float, error_class: str | None) -> None:
        """Count one attempt to ask a language model; *error_class* None is a success."""
        self._llm_tokens.labels(role, model, "input").inc(usage.input_tokens)
        self._llm_tokens.labels(role, model, "output").inc(usage.output_tokens)
        self._llm_cost.labels(role, model).inc(float(usage.cost_usd))
        self._llm_duration.labels(role, model).observe(duration_s)
        if error_class is not None:
            self._llm_errors.labels(error_class).inc()
