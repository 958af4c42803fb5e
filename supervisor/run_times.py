"""How long tasks take a slot, as their reports tell: enough to say what a backlog will cost, no promise."""

from contracts.messages import CompletionReport

#: Seconds that a task takes of which no report was seen yet.
UNKNOWN_S = 1.0
#: How much a report weighs against all before it: the last twenty or so tell nearly all.
_WEIGHT = 0.1
#: Names that are kept; task names may come from strangers.
_MOST = 1000


class RunTimes:
    """A moving mean by agent and task; runs only, as a remembered answer takes no slot worth counting."""

    def __init__(self) -> None:
        self._means: dict[tuple[str, str], float] = {}

    def note(self, report: CompletionReport) -> None:
        """Take *report* into account when its task ran to an end of its own."""
        if report.run_ms <= 0 or report.status not in {"completed", "failed"}:
            return
        name, run_s = (report.agent_id, report.task_name), report.run_ms / 1000
        mean = self._means.get(name)
        if mean is not None:
            self._means[name] = mean + _WEIGHT * (run_s - mean)
        elif len(self._means) < _MOST:
            self._means[name] = run_s

    def of(self, agent_id: str, task_name: str) -> float:
        """Return the seconds that such a task takes, `UNKNOWN_S` before the first report."""
        return self._means.get((agent_id, task_name), UNKNOWN_S)
