"""Whether the agents of known cards can do what a pipeline asks of them: tasks, parameters, results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from pydantic import JsonValue

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.pipelines import PIPELINE_AGENT, Phase, Pipeline
from tasklore.contracts.session_keys import read_key
from tasklore.supervisor.pipelines.declaration.graph import Graph, mentions_of
from tasklore.supervisor.pipelines.declaration.problems import (
    MOST_PROBLEMS,
    Flaw,
    Place,
    place_in_words,
    suggest,
)
from tasklore.supervisor.pipelines.declaration.references import Reference
from tasklore.supervisor.pipelines.declaration.schemas import (
    ANY,
    PhaseSchema,
    mismatches,
)

#: Types of inputs whose values a sentence can hold.
_SAYABLE = ("text", "number", "flag")
_TYPES = {
    "text": "string",
    "number": "number",
    "flag": "boolean",
    "list": "array",
    "object": "object",
}
_STANDARD: JsonValue = {
    "id": {"type": "string"},
    "text": {"type": "string"},
    "tags": {"type": "array"},
}
#: The standards in force, as `${standards}` gives them.
_STANDARDS = PhaseSchema.of(
    {"type": "array", "items": {"type": "object", "properties": _STANDARD}}
)


def problems_with(pipeline: Pipeline, cards: Mapping[str, AgentCard]) -> list[Flaw]:
    """Return the problems of *pipeline*, in which `problems_of` finds none, with the agents of *cards* by their ids.

    Raises:
        InvalidInput: a reference cannot be read, or phases wait for each other.
    """
    return list(islice(_problems_with(pipeline, cards), MOST_PROBLEMS))


def write_problems(pipeline: Pipeline, cards: Mapping[str, AgentCard]) -> list[Flaw]:
    """Return the entries in `writes` that the results of the tasks, by *cards*, do not have."""
    return [
        problem
        for n, phase in enumerate(pipeline.phases)
        if (task := _task_of(phase, cards))
        for problem in _write_problems(("phases", n), phase, task)
    ]


def card_of(pipeline: Pipeline) -> TaskCard:
    """Return the card of the task whose parameters are the inputs of *pipeline*."""
    required: list[JsonValue] = [
        name for name, one in pipeline.inputs.items() if one.required
    ]
    inputs: dict[str, JsonValue] = {}
    for name, declared in pipeline.inputs.items():
        schema: dict[str, JsonValue] = (
            {} if declared.type == "any" else {"type": _TYPES[declared.type]}
        )
        if declared.description:
            schema["description"] = declared.description
        if not declared.required:
            schema["default"] = declared.default
        inputs[name] = schema or True
    return TaskCard(
        name=pipeline.name,
        version=pipeline.version,
        description=pipeline.description,
        parameters={
            "type": "object",
            "properties": inputs,
            "required": required,
            "additionalProperties": False,
        },
        examples=pipeline.examples,
        remember="never",
        in_words=all(
            one.type in _SAYABLE for one in pipeline.inputs.values() if one.required
        ),
    )


def _task_of(phase: Phase, cards: Mapping[str, AgentCard]) -> TaskCard | None:
    if phase.pipeline is not None:
        return card_of(phase.pipeline)
    card = cards.get(phase.agent) if phase.agent != PIPELINE_AGENT else None
    return (
        next((task for task in card.tasks if task.name == phase.task), None)
        if card
        else None
    )


def _problems_with(
    pipeline: Pipeline, cards: Mapping[str, AgentCard]
) -> Iterator[Flaw]:
    tasks = {
        phase.name: task
        for phase in pipeline.phases
        if (task := _task_of(phase, cards))
    }
    # Each schema is checked once: a pipeline may refer to it half a million times.
    results = {
        phase.name: PhaseSchema.of(task.result)
        for phase in pipeline.phases
        if phase.for_each is None
        and (task := tasks.get(phase.name))
        and task.result is not None
    }
    known = _Known(pipeline, Graph.of(pipeline), results)
    for n, phase in enumerate(pipeline.phases):
        place: Place = ("phases", n)
        task = tasks.get(phase.name)
        if task is None:
            yield _unknown_task(place, phase, cards)
        else:
            yield from _parameter_problems(place, phase, task, known)
            yield from _write_problems(place, phase, task)
        yield from _path_problems(place, phase, known)
        if (inner := phase.pipeline) is not None:
            for problem in _problems_with(inner, cards):
                where = place_in_words(problem.place, {"phases": inner.phases})
                yield Flaw(
                    (*place, "pipeline"),
                    f"pipeline {inner.name!r}: {where}{problem.text}",
                )


@dataclass(frozen=True, slots=True)
class _Known:
    """The schemas of references in one pipeline; `results` are those of the phases whose results are known."""

    pipeline: Pipeline
    graph: Graph
    results: Mapping[str, PhaseSchema]

    def schema_of(self, reference: Reference, reader: str) -> PhaseSchema | None:
        """Return the schema of the whole that *reference* names, its path left aside; None when it is not known."""
        if reference.kind == "standards":
            return _STANDARDS
        if reference.kind == "input" and reference.name in self.pipeline.inputs:
            declared = self.pipeline.inputs[reference.name].type
            return (
                PhaseSchema.of({"type": _TYPES[declared]})
                if declared in _TYPES
                else ANY
            )
        key = read_key(reference.name) if reference.kind == "entry" else None
        if key is None or key.identifier is not None:
            return None
        writers = [key.phase, *self.graph.replacements(key.phase, reader)]
        results = [self.results.get(writer) for writer in writers]
        schemas = [
            one.inside(key.data_type) if key.data_type != "results" else one
            for one in results
            if one
        ]
        return (
            PhaseSchema.either([one for one in schemas if one])
            if all(results) and all(schemas)
            else None
        )

    def schema_at(self, reference: Reference, reader: str) -> PhaseSchema | None:
        """Return the schema at the path of *reference*, None when it is not known."""
        schema = self.schema_of(reference, reader)
        for step in reference.path:
            schema = schema.inside(step) if schema else None
        return schema


def _unknown_task(place: Place, phase: Phase, cards: Mapping[str, AgentCard]) -> Flaw:
    if phase.agent == PIPELINE_AGENT:
        cure = f"name the file of {phase.task!r} in `pipeline`, in place of `agent` and `task`"
        return Flaw(
            (*place, "agent"),
            f"a phase that is a pipeline has its run driven with its own; {cure}",
        )
    if (card := cards.get(phase.agent)) is None:
        known = (
            suggest(phase.agent, cards, "known are")
            if cards
            else "; no agent has reported yet"
        )
        cure = "or start it with `tasklore worker`"
        return Flaw(
            (*place, "agent"), f"agent {phase.agent!r} is not known{known} {cure}"
        )
    known = suggest(phase.task, [task.name for task in card.tasks], "it has")
    return Flaw(
        (*place, "task"), f"task {phase.task!r} is not a task of {phase.agent!r}{known}"
    )


def _parameter_problems(
    place: Place, phase: Phase, task: TaskCard, known: _Known
) -> Iterator[Flaw]:
    schema = PhaseSchema.of(task.parameters)
    names = schema.names()
    aliases: dict[str, str] = {}
    for name in names:
        body = (schema.inside(name) or ANY).body
        named = body.get("aliases") if isinstance(body, dict) else None
        aliases |= (
            {one: name for one in named if isinstance(one, str)}
            if isinstance(named, list)
            else {}
        )
    given: dict[str, str] = {}
    for spelled, value in phase.parameters.items():
        at = (*place, "parameters", spelled)
        name = aliases.get(spelled, spelled)
        target = schema.inside(name)
        if target is None:
            others = suggest(spelled, [*names, *aliases], "known are")
            yield Flaw(
                at, f"parameters.{spelled} is not a parameter of {task.name!r}{others}"
            )
        elif name in given:
            yield Flaw(
                at,
                f"parameters.{spelled} is the same parameter as {given[name]!r}; give it once",
            )
        else:
            given[name] = spelled
            for reason in mismatches(
                value, target, lambda reference: known.schema_at(reference, phase.name)
            ):
                yield Flaw(
                    at,
                    f"parameters.{spelled}{'' if reason.startswith('.') else ' '}{reason}",
                )
    required = schema.body.get("required", ()) if isinstance(schema.body, dict) else ()
    for name in required:
        if name not in given:
            yield Flaw(
                (*place, "parameters"),
                f"parameters.{name} is missing; task {task.name!r} needs it",
            )


def _write_problems(place: Place, phase: Phase, task: TaskCard) -> Iterator[Flaw]:
    result = PhaseSchema.of(task.result)
    for n, data_type in enumerate(phase.writes):
        if data_type != "results" and result.inside(data_type) is None:
            why = f"the result of {task.name!r} {_lacks(result, data_type)}"
            why += "" if result.names() else "; write 'results', which is all of it"
            yield Flaw((*place, "writes", n), f"writes {data_type!r}, but {why}")


def _path_problems(place: Place, phase: Phase, known: _Known) -> Iterator[Flaw]:
    for mention in mentions_of(phase)[0]:
        schema = known.schema_of(mention.reference, phase.name)
        above = mention.reference.name
        for step in mention.reference.path:
            if schema is None:
                break
            inner = schema.inside(step)
            if inner is None:
                why = f"{above!r} {_lacks(schema, step)}"
                field = ".".join(map(str, mention.place))
                yield Flaw(
                    (*place, *mention.place),
                    f"{field} reads {mention.reference.text!r}, but {why}",
                )
            above = f"{above}.{step}"
            schema = inner


def _lacks(schema: PhaseSchema, name: str) -> str:
    names = schema.names()
    return (
        f"has no {name!r}{suggest(name, names, 'it has')}"
        if names
        else f"is {schema.describe()}"
    )
