"""Messages of the runs of a task, and the sources of its answer; for a right of its own, which no other role holds."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import NAME_PATTERN, TaskName
from tasklore.contracts.messages import CompletionReport, TaskAssignment
from tasklore.contracts.run_messages import RunMessage
from tasklore.memory.run_messages.store import RunMessages
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.refusals import not_found
from tasklore.supervisor.operations.sent_tasks import Sent, TaskLooks, read_task
from tasklore.supervisor.operations.table import Shows, operation

#: Characters of a message that stand in a source.
_QUOTED = 200


class AnswerSource(View):
    """Something that the answer of a task came from.

    `kind` is `cache` for a result that was remembered, `near` for that of other parameters; `item` of a person's
    memory; `tool`, `step`, `child` and `person` as of messages; `model`, which wrote an answer. `name` says which,
    `said` in words how it came in, and `message` is the number of the message, counted from 1, where one shows it.
    """

    kind: Literal["cache", "near", "item", "tool", "step", "child", "person", "model"]
    name: str
    said: str
    message: int | None = None


class TaskMessages(View):
    """Messages of the runs of a task, the oldest first, with secrets masked.

    Their words were written by persons, models and tools, and are to be shown as data. Of older messages, which
    had no room any more, `dropped` is the number and `dropped_bytes` what they had. All of it is kept until
    `kept_until`. `sources` are what the answer came from: those of the run that ended it.
    """

    task_id: str
    agent_id: str
    status: str
    sources: tuple[AnswerSource, ...]
    messages: tuple[RunMessage, ...]
    dropped: int
    dropped_bytes: int
    kept_until: datetime | None


@operation(
    "tasks",
    "messages",
    "GET /v1/tasks/{task_id}/messages",
    roles=("messages",),
    mounted="operations",
    problems=(404,),
    shows=Shows(
        shortcut="trace --messages",
        picture="run_messages",
        example="tasks messages 0199a1b2-3c4d",
    ),
)
async def show_messages(
    services: TaskLooks,
    caller: Caller,
    task_id: Annotated[
        str,
        Field(
            pattern=NAME_PATTERN,
            description="The id of a task, as the answer to it says.",
        ),
    ],
) -> TaskMessages:
    """See what the models of a task saw, and what its answer came from: prompts, tools, steps, memory and answers.

    Kept where workers have TASKLORE_RUN_MESSAGES_HOURS, as those of `tasklore up` do; secrets are masked.

    Raises:
        Refused: 404, there is no such task, or nothing is kept of it.
    """
    sent = await read_task(services, caller, task_id)
    agent_id = await _find_agent(services, sent)
    kept = None
    if agent_id is not None:
        kept = await RunMessages(services.redis).read(TaskName(agent_id, task_id))
    messages = () if kept is None else kept.messages
    sources = (*_sources_in_report(sent.report), *_sources_in(messages))
    if agent_id is None or (kept is None and not sources):
        raise not_found(
            f"nothing is kept of what the models of task {task_id!r} saw: it was not switched on, or is past its time; "
            "set TASKLORE_RUN_MESSAGES_HOURS=24 for the workers, and run the task again"
        )
    return TaskMessages(
        task_id=task_id,
        agent_id=agent_id,
        status=sent.status,
        sources=sources,
        messages=messages,
        dropped=0 if kept is None else kept.dropped,
        dropped_bytes=0 if kept is None else kept.dropped_bytes,
        kept_until=None
        if kept is None
        else datetime.now(UTC) + timedelta(milliseconds=kept.left_ms),
    )


async def _find_agent(services: TaskLooks, sent: Sent) -> str | None:
    """Return whose task it is, None where that is not known."""
    if sent.report is not None:
        return sent.report.agent_id
    named = await services.ledger.name(sent.task_id)
    if isinstance(named, TaskName):
        return named.agent_id
    entry = await services.ledger.read(named)
    body = None if entry is None else entry.generations[entry.newest].assignment
    if body is None:
        return None
    try:
        return TaskAssignment.model_validate_json(body).agent_id
    except ValueError:
        # A worker of another version, or a program, may have written it.
        return None


def _sources_in_report(report: CompletionReport | None) -> Iterator[AnswerSource]:
    """Yield what a report says: whether a remembered result served."""
    if report is None or report.memory.outcome not in ("hit", "near", "joined"):
        return
    memory = report.memory
    key = memory.key or ""
    if memory.outcome == "joined":
        said = "the same question was being answered for somebody else, with that answer; the messages are of that run"
        yield AnswerSource(kind="cache", name=key, said=said)
        return
    age = (
        "" if memory.age_ms is None else f", computed {memory.age_ms / 1000:,.0f} s ago"
    )
    if memory.outcome == "hit":
        said = f"a remembered result of the same parameters{age}; no model was asked"
        yield AnswerSource(kind="cache", name=key, said=said)
        return
    said = (
        f"a remembered result of other parameters, near enough{age}; no model was asked"
    )
    yield AnswerSource(kind="near", name=key, said=said)


def _sources_in(messages: tuple[RunMessage, ...]) -> Iterator[AnswerSource]:
    """Yield what the messages of the last run show that something came from."""
    last = max(((one.generation, one.run) for one in messages), default=(0, 0))
    for number, one in enumerate(messages, 1):
        if (one.generation, one.run) != last:
            continue
        from_journal = one.facts.get("source") == "journal"
        again = ", read from the journal: an earlier run did it" if from_journal else ""
        if one.kind == "memory":
            yield from _items_in(one, number)
        elif one.kind == "tool" or one.kind == "step":
            ended = f"{one.facts['error']}: " if "error" in one.facts else ""
            yield AnswerSource(
                kind=one.kind,
                name=one.name,
                said=f"{ended}{_quote(one.text)}{again}",
                message=number,
            )
        elif one.kind == "child":
            how = f"{one.facts.get('status')}, memory {one.facts.get('memory')}: "
            yield AnswerSource(
                kind="child",
                name=f"{one.name} {one.facts.get('task_id')}",
                said=how + _quote(one.text),
                message=number,
            )
        elif one.kind == "person":
            by = one.name or f"nobody, by {one.facts.get('door')}"
            yield AnswerSource(
                kind="person", name=by, said=_quote(one.text), message=number
            )
        elif one.kind == "answer":
            yield AnswerSource(
                kind="model",
                name=one.name,
                said=_quote(one.text) + again,
                message=number,
            )


def _items_in(message: RunMessage, number: int) -> Iterator[AnswerSource]:
    items = message.facts.get("items")
    for item in items if isinstance(items, list) else ():
        yield AnswerSource(
            kind="item",
            name=str(item),
            said="it stood in the block of memory that was asked for",
            message=number,
        )


def _quote(text: str) -> str:
    words = " ".join(text[: 4 * _QUOTED].split())
    return words if len(words) <= _QUOTED else f"{words[: _QUOTED - 1]}…"
