"""An agent's card: its tasks, as a supervisor hears of them."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.workers.agent import Agent
from tasklore.workers.task import Task

#: Bytes; the digest is twice as many hexadecimal digits.
_DIGEST = 8

#: Parts of a schema that help to choose and fill it but change neither what is accepted nor what is meant.
_PROSE = frozenset({"title", "description", "examples", "cues"})

#: Parts that workers of earlier versions leave out, and do without: they take an amount in any currency.
_NEWER = frozenset({"any_currency"})

#: Parts of a schema whose keys are names that somebody chose, such as a parameter called `title`.
_NAMED = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})

#: Parts of a schema that are values.
_VALUES = frozenset({"default", "const", "enum", "aliases"})


def card_of(agent: Agent) -> AgentCard:
    """Return the card of *agent*; its digest covers what callers and memories depend on, and no prose."""
    tasks = tuple(_card_of_task(task) for task in agent.tasks.values())
    return AgentCard(
        agent_id=agent.agent_id,
        version=agent.version,
        description=agent.description,
        keywords=agent.keywords,
        tasks=tasks,
        digest=_digest(agent, tasks),
    )


def same_contract(one: AgentCard, other: AgentCard) -> bool:
    """Return whether workers of both cards may serve one queue and one memory."""
    return (one.agent_id, one.version, one.digest) == (
        other.agent_id,
        other.version,
        other.digest,
    )


def _card_of_task(task: Task) -> TaskCard:
    return TaskCard(
        name=task.name,
        version=task.version,
        description=task.description,
        parameters=task.parameters.schema_for_cards(),
        result=task.result_schema(),
        remember=task.remember,
        max_attempts=task.runs_allowed,
        deadline_s=task.deadline.total_seconds() if task.deadline is not None else None,
        keywords=task.keywords,
        examples=task.examples,
        in_words=task.in_words,
        confirm=task.confirm,
        approver=task.approver,
        schedule=task.schedule,
        code=task.code,
    )


def _digest(agent: Agent, tasks: tuple[TaskCard, ...]) -> str:
    contract = {
        "agent_id": agent.agent_id,
        "version": agent.version,
        # The order of tasks means nothing.
        "tasks": {task.name: _contract_of(task) for task in tasks},
    }
    text = json.dumps(contract, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST).hexdigest()


def _contract_of(task: TaskCard) -> list[Any]:
    # The order of parameters is that of the memory's key.
    order = list(cast("dict[str, Any]", task.parameters.get("properties", {})))
    contract = [
        task.version,
        task.remember,
        _bare(task.parameters),
        order,
        _bare(task.result),
    ]
    # Else an older worker that starts again would put back a card by which words start the task at once.
    return contract if task.approver is None else [*contract, task.approver]


def _bare(schema: Any) -> Any:
    """Return *schema* without its prose, and without what a worker of 0.2 beside this one leaves out."""
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    bare: dict[str, Any] = {}
    for word, part in schema.items():
        if word in _PROSE or word in _NEWER:
            continue
        if word in _NAMED and isinstance(part, Mapping):
            bare[word] = {name: _bare(inner) for name, inner in part.items()}
        else:
            bare[word] = part if word in _VALUES else _bare(part)
    return bare
