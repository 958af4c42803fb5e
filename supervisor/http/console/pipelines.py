"""Runs of pipelines: their list, and one with the graph of its phases, what each waits for, and how to go on."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal, cast
from urllib.parse import quote

from pydantic import ValidationError

from tasklore.contracts.errors import InvalidInput, NotPermitted
from tasklore.contracts.faults import fault_of
from tasklore.supervisor.http.console.graph import draw_graph
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
    ask_first,
)
from tasklore.supervisor.operations.pipelines import (
    Cancel,
    PhaseView,
    Rerun,
    Resume,
    RunView,
    cancel_run,
    list_runs,
    rerun_run,
    resume_run,
    show_run,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.tasks import Trace, trace_task

#: Ways in which a run can stand.
_STATES = ("running", "failed", "completed", "cancelled")
#: Tasks of phases that are looked at for their costs and waits.
_MOST_TRACED = 40
#: What stands for an input that is not shown.
_MASK = "***"
#: The fields in which inputs are typed anew begin so.
_INPUT = "input:"
_OVER = ("done", "failed", "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """One phase: its state, why it waits as a sentence, and the cost of its task, None where that is not known."""

    told: PhaseView
    waits_for: str
    cost_usd: float | None


async def show(visit: Visit) -> RenderedPage:
    """Return a page of runs."""
    wanted = cast(
        "Literal['running', 'failed', 'completed', 'cancelled'] | None",
        visit.choose("state", ("", *_STATES)) or None,
    )
    found = await visit.call(list_runs, state=wanted, after=visit.after)
    return RenderedPage(
        values={
            "runs": found.runs,
            "paging": visit.paging("pipelines", found.after, state=wanted),
            "state": wanted or "",
            "states": _STATES,
            "here": address("pipelines", state=wanted),
            "may_show": visit.may(show_run),
        }
    )


async def show_one(visit: Visit) -> RenderedPage:
    """Return the run in the address.

    Raises:
        Refused: 404, there is none for this person.
    """
    session_id = visit.path["session_id"]
    run = await visit.call(show_run, session_id)
    traces = await _trace(visit, run.phases)
    rows = tuple(_row_of(run, one, traces.get(one.phase)) for one in run.phases)
    costs = [one.cost_usd for one in rows if one.cost_usd is not None]
    is_running = run.state == "running"
    is_kept = bool(run.phases)
    return RenderedPage(
        title=f"{run.pipeline or session_id} · pipeline",
        values={
            "run": run,
            "rows": rows,
            "graph": draw_graph(run.phases),
            "cost_usd": sum(costs) if costs else None,
            "done": sum(one.status in _OVER for one in run.phases),
            "is_running": is_running,
            "masked": tuple(
                name for name, value in run.inputs.items() if value == _MASK
            ),
            "error": (run.outcome or {}).get("error"),
            "result": (run.outcome or {}).get("result"),
            "here": _page_of(session_id),
            "may_cancel": is_running
            and run.cancel_reason is None
            and visit.may(cancel_run),
            "may_resume": is_kept
            and (run.state in ("failed", "cancelled") or run.held)
            and visit.may(resume_run),
            "may_rerun": is_kept and not is_running and visit.may(rerun_run),
            "may_list": visit.may(list_runs),
        },
    )


async def _trace(visit: Visit, phases: Sequence[PhaseView]) -> Mapping[str, Trace]:
    """Return the traces of the tasks of *phases*, by the names of the phases."""
    if not visit.may(trace_task):
        return {}

    async def read(task_id: str) -> Trace | None:
        try:
            return await visit.call(trace_task, task_id)
        except (Refused, NotPermitted):
            # It is not kept any more, or no worker has it yet.
            return None

    known = [(one.phase, one.task_id) for one in phases if one.task_id is not None]
    known = known[-_MOST_TRACED:]
    found = await asyncio.gather(*(read(task_id) for _, task_id in known))
    return {
        phase: trace
        for (phase, _), trace in zip(known, found, strict=True)
        if trace is not None
    }


def _row_of(run: RunView, phase: PhaseView, trace: Trace | None) -> PhaseRow:
    cost_usd = None if trace is None or trace.sums.unpriced else trace.sums.cost_usd
    return PhaseRow(
        told=phase, waits_for=_spell_wait(run, phase, trace), cost_usd=cost_usd
    )


def _spell_wait(run: RunView, phase: PhaseView, trace: Trace | None) -> str:
    """Return what *phase* waits for, "" where it waits for nothing."""
    if phase.status == "pending":
        status = {one.phase: one.status for one in run.phases}
        missing = [name for name in phase.after if status.get(name) not in _OVER]
        failed = [name for name in phase.after if status.get(name) == "failed"]
        if failed:
            return f"{', '.join(failed)} failed"
        return f"waits for {', '.join(missing)}" if missing else ""
    if phase.status != "running":
        return ""
    away = [one for one in phase.agents if one in run.without_worker]
    if away:
        return f"waits for a worker of {', '.join(away)}"
    if trace is None:
        return ""
    root = trace.root
    if root.waits:
        return "; ".join(one.sentence for one in root.waits)
    return "" if root.waits_for is None else root.waits_for.sentence


def _depending_on(phases: Sequence[PhaseView], first: str) -> list[str]:
    """Return *first* and every phase that depends on it, in their order."""
    found = {first}
    for _ in phases:
        more = {one.phase for one in phases if found.intersection(one.after)}
        if more <= found:
            break
        found |= more
    return [one.phase for one in phases if one.phase in found]


def _typed_inputs(visit: Visit) -> dict[str, str]:
    """Return the inputs that were typed anew, those that are left empty left out."""
    return {
        name.removeprefix(_INPUT): visit.one(name)
        for name in visit.fields
        if name.startswith(_INPUT) and visit.one(name)
    }


def _page_of(session_id: str) -> str:
    return address(f"pipelines/{quote(session_id, safe='')}")


async def resume(visit: Visit) -> Notice:
    """Go on with a run that is over."""
    session_id = visit.one("session_id")
    to = _page_of(session_id)
    how = Resume.model_validate({"inputs": _typed_inputs(visit)})
    try:
        taken = (await visit.call(resume_run, session_id, how)).view
    except (Refused, InvalidInput) as refused:
        return Notice(to=to, text=_spell_refusal(refused), tone="bad")
    text = f"It continues: {taken.text}" if taken.text else "It continues."
    return Notice(to=to, text=_end(text))


async def rerun(visit: Visit) -> Notice | RenderedPage:
    """Run a phase again with all that depends on it, once that was shown."""
    session_id = visit.one("session_id")
    phase = visit.one("phase")
    to = _page_of(session_id)
    if visit.one("sure") != "yes":
        run = await visit.call(show_run, session_id)
        lines = _depending_on(run.phases, phase)
        kept = [("session_id", session_id), ("phase", phase)]
        kept += [
            (f"{_INPUT}{name}", value) for name, value in _typed_inputs(visit).items()
        ]
        return ask_first(
            question=f"Run {phase} again?",
            explained="With it runs what depends on it. Everything else keeps its results.",
            concerns=len(lines),
            lines=lines,
            to="pipelines/rerun",
            verb="Run again",
            kept=kept,
            back=to,
        )
    try:
        how = Rerun.model_validate({"phase": phase, "inputs": _typed_inputs(visit)})
    except ValidationError as error:
        fault = fault_of(error.errors(include_url=False, include_input=False)[0])
        return Notice(to=to, text=fault, tone="bad")
    try:
        taken = (await visit.call(rerun_run, session_id, how)).view
    except (Refused, InvalidInput) as refused:
        return Notice(to=to, text=_spell_refusal(refused), tone="bad")
    return Notice(to=to, text=_end(f"It runs again: {taken.text or phase}"))


async def cancel(visit: Visit) -> Notice | RenderedPage:
    """Cancel a run, once it was said so."""
    session_id = visit.one("session_id")
    to = _page_of(session_id)
    reason = visit.one("reason")[:1000]
    if visit.one("sure") != "yes":
        run = await visit.call(show_run, session_id)
        lines = [one.phase for one in run.phases if one.status not in _OVER]
        return ask_first(
            question=f"Cancel {run.pipeline or session_id}?",
            explained="Its running tasks are cancelled, and no other phase begins. "
            "What is done is kept, and it can be resumed.",
            concerns=len(lines),
            lines=lines,
            to="pipelines/cancel",
            verb="Cancel the run",
            kept=[("session_id", session_id), ("reason", reason)],
            back=to,
            is_grave=True,
        )
    try:
        await visit.call(cancel_run, session_id, Cancel(reason=reason))
    except (Refused, InvalidInput) as refused:
        return Notice(to=to, text=_spell_refusal(refused), tone="bad")
    return Notice(
        to=to, text="It is cancelled as soon as its running tasks have ended."
    )


def _spell_refusal(refused: Exception) -> str:
    """Return why nothing was done, with the faults.

    Raises:
        Refused: 404, there is no such run for this person.
    """
    text = f"It was refused: {refused}"
    if isinstance(refused, Refused):
        if refused.problem.status == HTTPStatus.NOT_FOUND:
            raise refused
        faults = [one.message for one in refused.problem.problems[:3]]
        if faults:
            text += f": {'; '.join(faults)}"
    return _end(text)


def _end(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


PAGE = ConsolePage(
    path="pipelines",
    title="Pipelines",
    operation=list_runs,
    show=show,
    template="pipelines.html",
    group="Work",
)
RUN = ConsolePage(
    path="pipelines/{session_id}",
    title="Run of a pipeline",
    operation=show_run,
    show=show_one,
    template="pipeline.html",
    actions=(
        FormAction(path="pipelines/resume", operation=resume_run, run=resume),
        FormAction(path="pipelines/rerun", operation=rerun_run, run=rerun),
        FormAction(path="pipelines/cancel", operation=cancel_run, run=cancel),
    ),
)
