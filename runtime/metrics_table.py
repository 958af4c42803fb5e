"""The page that lists every series, generated from the declarations: `python -m tasklore.runtime.metrics_table`."""

import sys
from collections.abc import Iterator

from tasklore.contracts.messages import Status
from tasklore.runtime.counting.series import PREFIX
from tasklore.runtime.counting.words import MAX_TASKS, words_of
from tasklore.runtime.messaging.broker import make_broker
from tasklore.runtime.metrics import Metrics

_HEAD = """# Metrics

Every process serves its own at `/metrics`, in the text format of Prometheus, on the address of its probes
(`TASKLORE_HTTP_HOST`, `TASKLORE_HTTP_PORT`; 9464 in the manifests). A process is one scrape target: there is no mode
for several processes and no global registry. No label is an id, a user or a text, so the number of series does not
grow with use: at most 2,000 in a process with twenty agents. Names of tasks may come from any caller: after {most} of
them further ones are counted as `other`. A series that counts a loss stands at 0 from the start, so that `increase`
sees the first one. Gauges of the system as a whole come from supervisors, or from the processes that listen; each
replica exports the same value, so take `max`, not `sum`.

`deploy/prometheus` has rules and alerts over these, `deploy/grafana` dashboards, `deploy/runbooks` a page for each
alert. Made by `make generated`.

"""

_LEDGER = """## Counters that add up

`tasklore_tasks_total` counts reports of workers. A killed worker loses its counts since the last scrape, and the
supervisor's report of a task that was cancelled before a worker had it is not in it.

`tasklore_ledger_tasks` loses nothing: the script that stores the one report of a task's generation counts it in the
same write, so neither a repeat nor a killed worker changes it. A supervisor reads its 16,384 counters, one a cluster
slot, every 10 s. A report that was published while the ledger was away counts once a supervisor has put it there; one
that the ledger takes over from REPORTS moves a count from one state to another. The sum falls only when the store
loses data. It begins with the first report stored by this version.

"""


def families() -> Metrics:
    """Return metrics on which everything is declared that any process may export."""

    def nothing() -> float:
        return 0.0

    metrics = Metrics("documented")
    metrics.watch_dead_letters(nothing, nothing)
    for queue in ("turns", "facts", "messages"):
        metrics.watch_waiting(queue, nothing, nothing)
    metrics.watch_waits(nothing)
    metrics.watch_questions(nothing, nothing)
    metrics.watch_webhooks(nothing, nothing, nothing)
    metrics.watch_models(dict)
    metrics.watch_tasks(dict, dict, dict, nothing)
    metrics.watch_store(nothing)
    metrics.watch_limits(dict, dict, dict, dict)
    metrics.watch_ledger(lambda: {"completed": 0}, nothing)
    return metrics


def exported() -> frozenset[str]:
    """Return every name that a scrape may have, those of histograms with their endings."""
    endings = {
        "histogram": ("_bucket", "_sum", "_count"),
        "counter": ("",),
        "gauge": ("",),
    }
    found = {f"{PREFIX}build_info"}
    for one in families().declared:
        found |= {one.name + ending for ending in endings[one.kind]}
    for name, kind, _ in _frame():
        found |= {name + ending for ending in endings[kind]}
    return frozenset(found)


def page() -> str:
    """Return docs/reference/metrics.md."""
    return (
        _HEAD.format(most=MAX_TASKS)
        + "".join(_ours())
        + "".join(_labels())
        + _LEDGER
        + "".join(_others())
    )


def main() -> None:
    """Print the page."""
    sys.stdout.write(page())


def _ours() -> Iterator[str]:
    yield "## Series of Tasklore\n\n| name | kind | labels | meaning |\n|---|---|---|---|\n"
    build = [
        (f"{PREFIX}build_info", "gauge", ("version",), "The running version; always 1.")
    ]
    for name, kind, labels, about in build + [
        (one.name, one.kind, one.labels, one.about) for one in families().declared
    ]:
        spelled = ", ".join(f"`{label}`" for label in labels)
        yield f"| `{name}` | {kind} | {spelled} | {about} |\n"
    words = ", ".join(f"`{word}`" for word in words_of(Status))
    yield f"\nAn `outcome` of a task is one of {words}.\n\n"


def _labels() -> Iterator[str]:
    """Yield the table of the label values that are closed words, which stand at 0 from the start."""
    yield "## Label values\n\n| series | label | values |\n|---|---|---|\n"
    metrics = families()
    found = {
        family.name: family.samples
        for family in metrics.registry.collect()
        if family.type != "gauge"
    }
    for one in metrics.declared:
        for label in one.labels:
            samples = found.get(one.name.removesuffix("_total"), ())
            if values := dict.fromkeys(
                f"`{sample.labels[label]}`"
                for sample in samples
                if label in sample.labels
            ):
                yield f"| `{one.name}` | `{label}` | {', '.join(values)} |\n"
    yield "\n"


def _others() -> Iterator[str]:
    yield (
        "## Series of FastStream and of the process\n\nRequests, progress, cancellation and cards pass through "
        "FastStream, which counts them by the family of their subject. Its series are for finding faults; no alert "
        "rests on them.\n\n"
        "| name | kind | meaning |\n|---|---|---|\n"
    )
    for name, kind, about in _frame():
        yield f"| `{name}` | {kind} | {about.rstrip('.')}. |\n"


def _frame() -> Iterator[tuple[str, str, str]]:
    """Yield name, kind and meaning of each family that is not ours: the frame's, and those of the process."""
    metrics = Metrics("documented")
    ours = {one.name.removesuffix("_total") for one in metrics.declared} | {
        f"{PREFIX}build"
    }
    make_broker("nats://127.0.0.1:4222", "documented", metrics.registry, lambda: None)
    for family in sorted(metrics.registry.collect(), key=lambda one: one.name):
        if family.name not in ours:
            ending = "_total" if family.type == "counter" else ""
            yield family.name + ending, family.type, family.documentation


if __name__ == "__main__":
    main()
