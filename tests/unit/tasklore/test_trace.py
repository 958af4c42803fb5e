"""The drawing of a tree of tasks: lines, folds, narrow terminals; and which of many children are drawn."""

from datetime import UTC, datetime, timedelta

from tasklore.commands.pictures.trace import draw_lines
from tasklore.commands.render.fields import Fields
from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.messages import Usage
from tasklore.memory.ledger.task_tree import (
    MOST_ALIKE,
    AlikeTasks,
    Trace,
    TracedStep,
    TracedTask,
    TracedWait,
    fold_alike,
    sum_tasks,
)

WIDE = 1_000


def task(task_id: str = "c-1", **fields: object) -> TracedTask:
    known = {
        "agent_id": "TreeAgent",
        "task": "leaf",
        "state": "completed",
        "run_ms": 1_500,
        **fields,
    }
    return TracedTask(task_id=task_id, **known)  # type: ignore[arg-type]


def lines(root: TracedTask, width: int = WIDE, *, is_plain: bool = False) -> list[str]:
    trace = Trace(root=root, sums=sum_tasks([root]), wall_ms=2_000, more_tasks=0)
    view = Fields(trace.model_dump(mode="json"))
    return list(draw_lines(view, width, is_plain=is_plain))


def test_a_line_has_state_times_runs_memory_cost_and_error() -> None:
    usage = Usage(
        input_tokens=1_200, output_tokens=300, cost_usd=0.0031, models=("gpt-6",)
    )
    drawn, sums = lines(
        task(
            queued_ms=4,
            attempts=3,
            generation=2,
            memory="miss",
            usage=usage,
            state="failed",
            error="GiveUp: bad",
        )
    )
    assert drawn == (
        "TreeAgent.leaf  failed in 1.5 s, queued 4 ms, 3 runs, generation 2, cache "
        "miss, gpt-6, 1,200 + 300 tokens, $0.0031, GiveUp: bad"
    )
    assert (
        sums
        == "   total: 1 task (1 failed), 2.0 s from first to last, 1,200 + 300 tokens, $0.0031"
    )
    assert (
        lines(task(memory="hit", saved_ms=7_000, run_ms=0))[0]
        == "TreeAgent.leaf  completed, cache hit (saved 7.0 s)"
    )
    unpriced = Usage(input_tokens=1, output_tokens=0, unpriced=True)
    assert lines(task(usage=unpriced))[0].endswith("1 + 0 tokens, unpriced")
    assert lines(TracedTask(task_id="c-1"))[0] == "c-1  gone"
    assert (
        lines(task(state="accepted", run_ms=None, queued_ms=900))[0]
        == "TreeAgent.leaf  accepted for 900 ms"
    )
    assert (
        lines(task(state="expired", run_ms=0, queued_ms=900))[0]
        == "TreeAgent.leaf  expired, queued 900 ms"
    )


def test_a_line_says_why_a_task_waits_and_which_worker_was_lost() -> None:
    since = datetime(2026, 1, 1, 12, tzinfo=UTC)
    wait = RunWait(
        kind="retry",
        name="OSError",
        text="its next run, as run 1 ended with OSError",
        said="no room",
        since=since,
        until=since + timedelta(seconds=5),
    )
    lost = {"crashes": 1, "lost_worker_id": "w-1", "lost_ms": 1_767_268_800_000}
    assert lines(task(state="waiting", run_ms=None, waits_for=wait, **lost))[0] == (
        "TreeAgent.leaf  waiting, waits for its next run, as run 1 ended with OSError (it said: no room), "
        "runs again at 2026-01-01 12:00:05 UTC, "
        "1 run crashed without a report (worker w-1, last heartbeat 2026-01-01 12:00:00 UTC)"
    )
    assert lines(task(state="running", worker_id="w-2"))[0] == (
        "TreeAgent.leaf  running for 1.5 s, on worker w-2"
    )
    assert lines(task(state="running", worker_id="w-2", silent_ms=3_000))[0] == (
        "TreeAgent.leaf  running for 1.5 s, on worker w-2 that is lost: its lease expired 3.0 s ago; "
        "the task runs again when another worker picks it up"
    )


def test_what_a_task_asks_stands_below_it() -> None:
    """And each of several waits, as the line of the task has the first alone."""
    until = datetime(2026, 1, 1, 12, tzinfo=UTC)
    known = {"kind": "ask", "until": until}
    first = TracedWait(id="c-1.0", question="Pay?", sentence="waits for ana", **known)  # type: ignore[arg-type]
    assert lines(task(state="waiting", run_ms=None, waits=(first,)), is_plain=True) == [
        "TreeAgent.leaf  waiting, waits for ana",
        "|  total: 1 task (1 waiting), 2.0 s from first to last",
        "`- asks 'Pay?'",
    ]
    second = TracedWait(
        kind="signal", id=None, question=None, sentence="waits for it", until=until
    )
    root = task(state="waiting", run_ms=None, waits=(first, second))
    assert lines(root, is_plain=True)[2:] == [
        "|- waits for ana: asks 'Pay?'",
        "`- waits for it",
    ]


def test_a_tree_has_steps_children_folds_and_a_count_of_the_rest() -> None:
    alike = AlikeTasks(
        agent_id="A",
        task="b",
        sums=sum_tasks([task(), task(state="failed")]),
        below=sum_tasks([task()]),
    )
    child = task("c-1", children=(task("c-2"),))
    root = task(
        "r",
        steps=(TracedStep(name="find", bytes=2_048),),
        more_steps=1,
        children=(child,),
        alike=(alike,),
    )
    drawn = lines(root.model_copy(update={"more_children": 7}), is_plain=True)
    assert drawn[2:] == [
        "|- step find  journaled, 2.0 KiB",
        "|- 1 more step journaled",
        "|- TreeAgent.leaf  completed in 1.5 s",
        "|  `- TreeAgent.leaf  completed in 1.5 s",
        "|- A.b  2 more tasks (1 completed, 1 failed), 3.0 s of running, below them 1 task (1 completed)",
        "`- 7 more tasks, not read",
    ]


def test_a_deep_tree_fits_a_narrow_terminal() -> None:
    root = task(queued_ms=12_345)
    for _ in range(32):
        root = task(queued_ms=12_345, children=(root,))
    drawn = lines(root, 60)
    assert max(map(len, drawn)) <= 60
    assert [line for line in drawn if line.startswith("32 ")]
    assert len([line for line in drawn if "TreeAgent.leaf" in line]) == 33


def test_of_many_children_with_one_name_failures_and_open_ones_are_drawn() -> None:
    children = [task(f"c-{number}", state="completed") for number in range(50)]
    children[40] = task("c-40", state="running")
    children[45] = task("c-45", state="failed")
    children.append(task("other", task="other"))
    whole = {child.task_id: [child] for child in children}
    whole["c-30"].append(task("below", usage=Usage(cost_usd=0.5)))
    shown, (alike,) = fold_alike(children, whole)
    assert [one.task_id for one in shown] == [
        *(f"c-{number}" for number in range(MOST_ALIKE - 2)),
        "c-40",
        "c-45",
        "other",
    ]
    assert (alike.sums.tasks, alike.sums.states, alike.below.cost_usd) == (
        30,
        {"completed": 30},
        0.5,
    )
