"""The tree of the tasks that a task called, drawn: states, times, runs, recalled answers, tokens and cost.

Of children with one name 20 are drawn, the rest summed up.
"""

import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tasklore.commands.render.fields import Fields
from tasklore.commands.render.screen import HELD, folded, printable, styled
from tasklore.commands.render.task_states import OPEN_STATES, RECALLED, style_of
from tasklore.commands.render.words import count_of, duration, money, one_line, size
from tasklore.contracts.admission.wait_words import spell_wait
from tasklore.contracts.moments import spell_moment

#: Branch, last branch, and the lines below each; where stdout has no such letters, the second set.
_LINES = ("├─ ", "└─ ", "│  ", "   "), ("|- ", "`- ", "|  ", "   ")
#: Columns of text that a deep branch leaves at least on a terminal.
_ROOM = 36


def draw(view: dict[str, Any]) -> str:
    """Return the tree of *view*, as wide as the terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    return "\n".join(draw_lines(Fields(view), width, is_plain=not _can_draw()))


def _can_draw() -> bool:
    try:
        "".join(_LINES[0]).encode(sys.stdout.encoding or "ascii")
    except UnicodeError:
        return False
    return True


def draw_lines(trace: Fields, width: int, *, is_plain: bool = False) -> Iterator[str]:
    """Yield the lines of the tree, each at most *width* long where its words allow that."""
    root = trace.root
    yield from _line(
        describe_task(root), first="", rest="", width=width, word=_word_of(root)
    )
    sums = [f"total: {describe_states(trace.sums)}", *_money(trace.sums)]
    if trace.wall_ms is not None:
        sums.insert(1, f"{duration(trace.wall_ms)} from first to last")
    if trace.more_tasks:
        sums.append(f"{trace.more_tasks:,} more not shown")
    below = list(_entries(root))
    lines = _LINES[is_plain]
    yield from _line(
        ", ".join(sums), *(((lines[2],) * 2) if below else ("   ", "   ")), width
    )
    yield from _branches(root, "", width, lines)


def _branches(
    task: Fields, indent: str, width: int, lines: tuple[str, str, str, str]
) -> Iterator[str]:
    """Yield the lines below *task*; where its *indent* leaves no room, they begin with their level in its place."""
    entries = list(_entries(task))
    level = len(indent) // 3 + 1
    surplus = 3 * max(0, level - max(2, (width - _ROOM) // 3))
    mark, blank = (f"{level:>2} ", "   ") if surplus else ("", "")
    for number, entry in enumerate(entries, 1):
        is_last = number == len(entries)
        rest = indent + lines[2 + is_last]
        first = mark + (indent + lines[is_last])[surplus + len(mark) :]
        under = blank + rest[surplus + len(mark) :]
        if isinstance(entry, str):
            yield from _line(entry, first, under, width)
            continue
        bar = lines[2] if any(_entries(entry)) else ""
        yield from _line(
            describe_task(entry),
            first=first,
            rest=under + bar,
            width=width,
            word=_word_of(entry),
        )
        yield from _branches(entry, rest, width, lines)


def _line(
    text: str, first: str, rest: str, width: int, word: tuple[str, str] | None = None
) -> list[str]:
    """Return *text* folded to *width*, short facts in one piece, the first occurrence of *word* in its style."""
    facts = re.split(r"(, |  )", text)
    kept = "".join(
        fact.replace(" ", HELD) if 2 < len(fact) < _ROOM // 2 else fact
        for fact in facts
    )
    lines = folded(kept, max(width, _ROOM), rest + "  ", first).split("\n")
    if word is not None:
        for place, line in enumerate(lines):
            if word[0] in line:
                head, _, tail = line.partition(word[0])
                lines[place] = f"{head}{styled(*word)}{tail}"
                break
    return lines


def _entries(task: Fields) -> Iterator[Fields | str]:
    """Yield the entries below *task*: its waits, steps, children, and sums of those that are not shown."""
    for wait in task.waits:
        asked = f"asks {one_line(wait.question, 300)!r}" if wait.question else ""
        # What a single one waits for stands in the line of the task.
        said = one_line(wait.sentence, 300) if len(task.waits) > 1 else ""
        if asked or said:
            yield ": ".join(filter(None, (said, asked)))
    if task.more_waits:
        yield f"waits for {task.more_waits:,} more"
    for step in task.steps:
        yield f"step {one_line(step.name, 80)}  journaled, {size(step.bytes)}"
    if task.more_steps:
        yield f"{count_of(task.more_steps, 'more step')} journaled"
    yield from task.children
    for alike in task.alike:
        yield describe_alike(alike)
    if task.more_children:
        yield f"{count_of(task.more_children, 'more task')}, not read"


def _sentence_of(wait: Fields) -> str:
    """Return why a task waits: a person, a signal or a time says it itself."""
    if wait.sentence:
        return str(wait.sentence)
    until = None if wait.until is None else datetime.fromisoformat(wait.until)
    return spell_wait(wait.kind, wait.text, wait.said or "", until)


def _word_of(task: Fields) -> tuple[str, str]:
    return style_of(task.state)


def describe_task(task: Fields) -> str:
    """Return *task* in a line: name, state, times, runs, the memory's part, models, tokens and cost, error."""
    facts = [_word_of(task)[0]]
    has_run = task.run_ms or task.state == "running"
    if task.state == "completed" and task.run_ms is not None:
        has_run = task.run_ms or task.memory not in ("hit", "near", "joined")
    if has_run and task.run_ms is not None:
        facts[0] += (
            f" {'in' if task.state not in OPEN_STATES else 'for'} {duration(task.run_ms)}"
        )
    if task.queued_ms and task.state == "accepted":
        facts[0] += f" for {duration(task.queued_ms)}"
    elif task.queued_ms:
        facts.append(f"queued {duration(task.queued_ms)}")
    waits = [one for one in (task.waits_for, *task.waits) if one is not None]
    facts += [one_line(_sentence_of(one), 300) for one in waits[:1]]
    facts += _describe_workers(task)
    if task.attempts > 1:
        facts.append(f"{task.attempts} runs")
    if task.generation > 1:
        facts.append(f"generation {task.generation}")
    if task.memory in RECALLED:
        saved = f" (saved {duration(task.saved_ms)})" if task.saved_ms else ""
        facts.append(RECALLED[task.memory] + saved)
    usage = task.usage
    facts += [one_line(model, 60) for model in usage.models or ()]
    facts += _price(usage, usage.cost_usd or 0)
    if task.error:
        facts.append(one_line(task.error, 200))
    name = f"{task.agent_id}.{task.task}" if task.task else task.task_id
    return f"{name}  {', '.join(facts)}"


def _describe_workers(task: Fields) -> Iterator[str]:
    """Yield which worker runs *task*, if it is still heard, and which did not end a run of it."""
    if task.worker_id is not None:
        worker = f"on worker {one_line(task.worker_id, 80)}"
        if task.silent_ms is not None:
            worker += (
                f" that is lost: its lease expired {duration(task.silent_ms)} ago; the "
                "task runs again when another worker picks it up"
            )
        yield worker
    if task.crashes:
        lost = ""
        if task.lost_worker_id is not None and task.lost_ms is not None:
            since = datetime.fromtimestamp(task.lost_ms / 1000, UTC)
            words = (
                f"worker {task.lost_worker_id}, last heartbeat {spell_moment(since)}"
            )
            lost = f" ({one_line(words, 140)})"
        yield f"{count_of(task.crashes, 'run')} crashed without a report{lost}"


def describe_alike(alike: Fields) -> str:
    """Return children with one name in a line: count, states, times, cost, and the tasks below them."""
    facts = [
        describe_states(alike.sums, "more"),
        f"{duration(alike.sums.run_ms)} of running",
        *_money(alike.sums),
    ]
    if alike.below.tasks:
        facts += [f"below them {describe_states(alike.below)}", *_money(alike.below)]
    return f"{alike.agent_id}.{alike.task}  {', '.join(facts)}"


def describe_states(sums: Fields, more: str = "") -> str:
    """Return the number of tasks, and how many are in each state: "3 tasks (2 completed, 1 failed)"."""
    states = ", ".join(
        f"{count:,} {printable(state)}" for state, count in sums.pairs("states")
    )
    return f"{count_of(sums.tasks, f'{more} task'.strip())} ({states})"


def _money(sums: Fields) -> Iterable[str]:
    yield from _price(sums, sums.cost_usd)
    if sums.recalled:
        yield f"{sums.recalled:,} from the cache" + (
            f" (saved {duration(sums.saved_ms)})" if sums.saved_ms else ""
        )


def _price(spent: Fields, cost_usd: float) -> Iterator[str]:
    """Yield tokens and cost; a small cost keeps two digits."""
    if spent.input_tokens or spent.output_tokens:
        said = f"{spent.input_tokens:,} + {spent.output_tokens:,} tokens"
        guessed = spent.estimated_tokens
        yield said + (f" ({guessed:,} of them estimated)" if guessed else "")
    if cost_usd:
        yield money(cost_usd) + (" and more, unpriced" if spent.unpriced else "")
    elif spent.unpriced:
        yield "unpriced"
