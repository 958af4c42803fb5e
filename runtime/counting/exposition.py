"""Prometheus' text format, with the names and labels of each series spelled once.

The client library spells them anew in every scrape, which is half of what a scrape costs. What it can write beyond what
this house counts (times of samples, times of birth, names outside ASCII) is left to it.
"""

from collections.abc import Iterator
from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

#: Series whose spelling is kept: twice as many as a process may have.
_KEPT = 4_096
_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def exposition(registry: CollectorRegistry) -> bytes:
    """Return everything in *registry*, byte for byte as `prometheus_client.generate_latest` writes it."""
    return "".join(
        line for metric in registry.collect() for line in _lines(metric)
    ).encode()


def _lines(metric: Metric) -> Iterator[str]:
    name = metric.name
    kind = metric.type
    if kind == "counter":
        name += "_total"
    elif kind == "info":
        name = f"{name}_info"
        kind = "gauge"
    about = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
    for sample in metric.samples:
        value = floatToGoString(sample.value)  # type: ignore[no-untyped-call]  # theirs
        yield f"{_series(sample.name, tuple(sample.labels.items()))} {value}\n"


@lru_cache(maxsize=_KEPT)
def _series(name: str, labels: tuple[tuple[str, str], ...]) -> str:
    """Return what stands before the value of a sample: `tasklore_slots`, or `tasklore_tasks_total{agent="A"}`."""
    if not labels:
        return name
    spelled = ",".join(
        f'{label}="{value.translate(_ESCAPED)}"' for label, value in sorted(labels)
    )
    return f"{name}{{{spelled}}}"
