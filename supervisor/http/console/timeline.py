"""The timeline of a tree of tasks as bars: when each was queued, ran and ended, in the units of a picture."""

from collections.abc import Iterator
from dataclasses import dataclass

from tasklore.supervisor.http.console.helpers import spell_span
from tasklore.supervisor.operations.tasks import Trace, TracedTask

#: Tasks that are drawn: a picture of more shows nothing.
_MOST_BARS = 60
#: The width of the picture, and of the narrowest bar that is seen.
WIDTH = 1000.0
_NARROWEST = 4.0
#: Levels below which bars are moved no further to the right.
_DEEPEST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One task as a bar: it waited from *queued_x* to *x*, and ran over *width*; `label` says it in words."""

    task_id: str
    name: str
    state: str
    level: int
    queued_x: float
    x: float
    width: float
    label: str
    took: str
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Bars from *began_ms* on, over *whole_ms*; `left_out` tasks are not drawn."""

    bars: tuple[Bar, ...]
    began_ms: int
    whole_ms: int
    left_out: int


def draw_timeline(trace: Trace, now_ms: int) -> Timeline | None:
    """Return the bars of the tasks of *trace*, None where no time of any is known; open ones go on to *now_ms*."""
    tasks = list(_walk(trace.root, 0))
    known = [(task, level) for task, level in tasks if task.began_ms is not None]
    if not known:
        return None
    began_ms = min(task.began_ms or 0 for task, _ in known)
    ended_ms = max(_end_of(task, now_ms) for task, _ in known)
    whole_ms = max(1, ended_ms - began_ms)
    drawn = known[:_MOST_BARS]
    return Timeline(
        bars=tuple(
            _bar_of(task, level, began_ms=began_ms, whole_ms=whole_ms, now_ms=now_ms)
            for task, level in drawn
        ),
        began_ms=began_ms,
        whole_ms=whole_ms,
        left_out=trace.sums.tasks - len(drawn),
    )


def _walk(task: TracedTask, level: int) -> Iterator[tuple[TracedTask, int]]:
    yield task, level
    for child in task.children:
        yield from _walk(child, min(level + 1, _DEEPEST))


def _end_of(task: TracedTask, now_ms: int) -> int:
    """Return when a task ended; an open one goes on, and of another one there is only how long it took."""
    if task.ended_ms is not None:
        return task.ended_ms
    took_ms = (task.began_ms or 0) + (task.queued_ms or 0) + (task.run_ms or 0)
    return max(now_ms, took_ms) if task.is_open else took_ms


def _bar_of(
    task: TracedTask, level: int, *, began_ms: int, whole_ms: int, now_ms: int
) -> Bar:
    queued_ms = (task.began_ms or began_ms) - began_ms
    start_ms = queued_ms + (task.queued_ms or 0)
    end_ms = _end_of(task, now_ms) - began_ms
    scale = WIDTH / whole_ms
    width = max(_NARROWEST, (end_ms - start_ms) * scale)
    x = min(start_ms * scale, WIDTH - width)
    name = f"{task.agent_id}.{task.task}" if task.agent_id else task.task_id
    words = [name, task.state]
    if task.queued_ms:
        words.append(f"queued {spell_span(task.queued_ms)}")
    if task.run_ms is not None:
        words.append(f"ran {spell_span(task.run_ms)}")
    return Bar(
        task_id=task.task_id,
        name=name,
        state=task.state,
        level=level,
        queued_x=max(0.0, min(queued_ms * scale, x)),
        x=max(0.0, x),
        width=min(width, WIDTH),
        label=", ".join(words),
        took=spell_span(task.run_ms),
        cost_usd=task.usage.cost_usd,
    )
