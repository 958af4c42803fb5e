"""Series on one registry: declared with their prefix and unit, and listed for the page that documents them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

# A second series for each one, with the time of its birth, which nobody reads.
disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs

PREFIX = "tasklore_"


@dataclass(frozen=True, slots=True)
class Declared:
    """A family of series as a page lists it; *name* is that of its samples, without `_bucket` and the like."""

    name: str
    kind: str
    labels: tuple[str, ...]
    about: str


class Series:
    """Declares families on *registry*; `declared` lists them in their order."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.declared: list[Declared] = []

    def counter(self, name: str, about: str, *labels: str) -> Counter:
        """Declare a counter, whose samples are called *name* and `_total`."""
        self._declare(f"{name}_total", "counter", labels, about)
        return Counter(PREFIX + name, about, labels, registry=self.registry)

    def gauge(self, name: str, about: str) -> Gauge:
        """Declare a gauge without labels."""
        self._declare(name, "gauge", (), about)
        return Gauge(PREFIX + name, about, registry=self.registry)

    def histogram(
        self, name: str, about: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        """Declare a histogram."""
        self._declare(name, "histogram", labels, about)
        return Histogram(
            PREFIX + name, about, labels, buckets=buckets, registry=self.registry
        )

    def told(
        self,
        name: str,
        about: str,
        label: str,
        values: Callable[[], Mapping[str, float]],
    ) -> None:
        """Declare a gauge that is what *values* says at each scrape, by *label*; "" is a gauge without one."""
        self._declare(name, "gauge", (label,) if label else (), about)
        self.registry.register(_Told(PREFIX + name, about, label, values))

    def _declare(
        self, name: str, kind: str, labels: tuple[str, ...], about: str
    ) -> None:
        self.declared.append(Declared(PREFIX + name, kind, labels, about))


class _Told(Collector):
    """A gauge whose labels come and go; the client library knows only such as stay.

    It is not entered by name, so that a gauge may be called as a counter is without its `_total`: in the text format
    these are two names.
    """

    def __init__(
        self,
        name: str,
        about: str,
        label: str,
        values: Callable[[], Mapping[str, float]],
    ) -> None:
        self._name = name
        self._about = about
        self._label = label
        self._values = values

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the family as of now; without a series when there is nothing to say."""
        family = GaugeMetricFamily(
            self._name, self._about, labels=[self._label] if self._label else []
        )
        for word, value in self._values().items():
            family.add_metric([word] if self._label else [], value)
        yield family


class LabelledCounters(dict[str, Counter]):
    """The series of a counter by the last of its labels, each bound once; those of *words* stand at 0 from the start.

    Looking up labels costs three times what counting does.
    """

    def __init__(self, counter: Counter, words: Iterable[str], *labels: str) -> None:
        super().__init__((word, counter.labels(*labels, word)) for word in words)
        self._counter = counter
        self._labels = labels

    def __missing__(self, word: str) -> Counter:
        child = self[word] = self._counter.labels(*self._labels, word)
        return child
