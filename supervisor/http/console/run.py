"""One run: how it stands and why, its parameters and result, steps, children, times and costs, and actions on it."""

import asyncio
import time
from dataclasses import dataclass

from tasklore.contracts.errors import NotPermitted, Unreachable
from tasklore.supervisor.approvals.questions import ApprovalQuestion
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
)
from tasklore.supervisor.http.console.timeline import draw_timeline
from tasklore.supervisor.operations.agents import show_agent
from tasklore.supervisor.operations.approvals import approve, list_approvals
from tasklore.supervisor.operations.dead_letters import (
    LetterDetails,
    LettersToRedrive,
    redrive_dead_letters,
    show_dead_letter,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.results import ResultView, show_result
from tasklore.supervisor.operations.run_messages import show_messages
from tasklore.supervisor.operations.sent_tasks import Sent
from tasklore.supervisor.operations.table import Unfinished
from tasklore.supervisor.operations.task_words import TaskWords
from tasklore.supervisor.operations.tasks import (
    Send,
    TaskAssigned,
    Trace,
    cancel,
    send,
    show_assignment,
    show_task,
    show_words,
    trace_task,
)

#: Questions of one task that are shown.
_MOST_QUESTIONS = 20
_OPEN = ("accepted", "running", "waiting", "cancelling")


@dataclass(frozen=True, kw_only=True)
class RunFindings:
    """All that is found of a run beside its trace; each None where it is not kept, or not for this person."""

    sent: Sent
    assigned: TaskAssigned | None
    letter: LetterDetails | None
    questions: tuple[ApprovalQuestion, ...]
    words: TaskWords | None
    remembered: ResultView | None


async def show(visit: Visit) -> RenderedPage:
    """Return the run in the address.

    Raises:
        Refused: 404, there is none for this person.
    """
    task_id = visit.path["task_id"]
    sent = await visit.call(show_task, task_id)
    found, trace = await asyncio.gather(_find(visit, sent), _read_trace(visit, task_id))
    root = None if trace is None else trace.root
    is_open = sent.status in _OPEN
    name = f"{root.agent_id}.{root.task}" if root is not None else task_id
    return RenderedPage(
        title=f"{name} · run",
        values={
            "task_id": task_id,
            "name": name,
            "found": found,
            "sent": sent,
            "report": sent.report,
            "trace": trace,
            "root": root,
            "timeline": None
            if trace is None
            else draw_timeline(trace, time.time_ns() // 1_000_000),
            "is_open": is_open,
            "absent": await _find_absent(visit, trace),
            "here": address(f"runs/{task_id}"),
            "parameters": _parameters_of(found),
            "may_cancel": is_open and visit.may(cancel),
            "may_redrive": found.letter is not None and visit.may(redrive_dead_letters),
            "may_repeat": found.assigned is not None and visit.may(send),
            "may_answer": visit.may(approve),
            "may_see_messages": visit.may(show_messages),
        },
    )


async def _find(visit: Visit, sent: Sent) -> RunFindings:
    """Return all that is known of a run beside its trace."""
    task_id = sent.task_id
    is_open = sent.status in _OPEN
    assigned = letter = None
    questions: tuple[ApprovalQuestion, ...] = ()
    try:
        if is_open:
            assigned = await visit.call(show_assignment, task_id)
    except Refused:
        # It ended just now, or a program published it and no worker has taken it.
        assigned = None
    if not is_open and visit.may(show_dead_letter):
        try:
            letter = await visit.call(show_dead_letter, task_id)
        except Refused:
            letter = None
    if is_open and visit.may(list_approvals):
        asked = await visit.call(list_approvals, limit=_MOST_QUESTIONS, task_id=task_id)
        questions = asked.approvals
    return RunFindings(
        sent=sent,
        assigned=assigned,
        letter=letter,
        questions=questions,
        words=await _find_words(visit, task_id),
        remembered=await _find_remembered(visit, sent),
    )


async def _find_words(visit: Visit, task_id: str) -> TaskWords | None:
    if not visit.may(show_words):
        return None
    try:
        return await visit.call(show_words, task_id)
    except Refused:
        return None


async def _find_remembered(visit: Visit, sent: Sent) -> ResultView | None:
    """Return the result as the memory has it: of a run that was answered from there, or left its own there."""
    key = None if sent.report is None else sent.report.memory.key
    if key is None or visit.is_bound or not visit.may(show_result):
        return None
    try:
        return await visit.call(show_result, key)
    except Refused:
        return None


async def _read_trace(visit: Visit, task_id: str) -> Trace | None:
    try:
        return await visit.call(trace_task, task_id)
    except (Refused, NotPermitted):
        return None


async def _find_absent(visit: Visit, trace: Trace | None) -> str:
    """Return the agent whose worker a run waits for while none is alive; "" where it waits for none, or one is."""
    wait = None if trace is None else trace.root.waits_for
    if wait is None or wait.kind != "turn" or not visit.may(show_agent):
        return ""
    try:
        agent = await visit.call(show_agent, wait.name)
    except (Refused, Unreachable):
        return ""
    return agent.agent_id if agent.live_workers == 0 else ""


def _parameters_of(found: RunFindings) -> object:
    """Return the parameters of a run, None where they are kept nowhere.

    The ledger has those of an open one. Of one that has ended they are in its dead letter, with the words that it was
    made of, or with its result in the memory.
    """
    if found.assigned is not None:
        return found.assigned.parameters
    payload = None if found.letter is None else found.letter.payload
    call = payload.get("task") if isinstance(payload, dict) else None
    if isinstance(call, dict) and "parameters" in call:
        return call["parameters"]
    if found.words is not None:
        return found.words.parameters
    is_own = found.remembered is not None and _is_exact(found.sent)
    return found.remembered.parameters if found.remembered and is_own else None


def _is_exact(sent: Sent) -> bool:
    """Return whether the memory has the result of these very parameters, and not those of a neighbour."""
    return sent.report is not None and sent.report.memory.outcome in ("hit", "miss")


async def redrive(visit: Visit) -> Notice:
    """Send the dead letter of a run again, as a new generation of the same task."""
    sequence = visit.one("letter")
    back = address(f"runs/{visit.one('task_id')}")
    if not sequence.isdecimal():
        return Notice(to=back, text="There is no dead letter of this run.", tone="bad")
    wanted = LettersToRedrive.model_validate({"sequences": [sequence]})
    done = await visit.call(redrive_dead_letters, wanted)
    if done.concerns:
        return Notice(to=back, text="It was sent again, as a new generation.")
    why = done.stopped or next((one.why for one in done.kept), "it stays as it is")
    return Notice(to=back, text=f"It was not sent again: {why}.", tone="bad")


async def repeat(visit: Visit) -> Notice:
    """Send a new task with the parameters of an open one."""
    task_id = visit.one("task_id")
    given = await visit.call(show_assignment, task_id)
    new = Send(
        agent_id=given.agent_id,
        task=given.task,
        parameters=given.parameters,
        user=given.user,
        tenant=given.tenant,
        memory="refresh",
        wait_seconds=0,
    )
    made = await visit.call(send, new)
    view = made.view if isinstance(made, Unfinished) else made
    return Notice(
        to=address(f"runs/{view.task_id}"),
        text=f"This is a new run with the parameters of {task_id}.",
    )


PAGE = ConsolePage(
    path="runs/{task_id}",
    title="Run",
    operation=show_task,
    show=show,
    template="run.html",
    actions=(
        FormAction(path="runs/redrive", operation=redrive_dead_letters, run=redrive),
        FormAction(path="runs/repeat", operation=send, run=repeat),
    ),
)
