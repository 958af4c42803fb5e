"""Whether the agents that are known can do what a pipeline asks of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from pydantic import JsonValue

from contracts.messages import AgentCard, TaskCard
from contracts.pipelines import PIPELINE_AGENT, Input, Phase, Pipeline
from contracts.session_keys import read_key
from supervisor.pipelines.declaration.declarations import place_in_words
from supervisor.pipelines.declaration.graph import Graph
from supervisor.pipelines.declaration.problems import MOST_PROBLEMS, Place, Problem, known_ones
from supervisor.pipelines.declaration.references import Reference, mentions_of
from supervisor.pipelines.declaration.shapes import STANDARDS, Shape
from supervisor.pipelines.declaration.values import misfits

#: Types of inputs whose values a sentence can hold.
_SAYABLE = ("text", "number", "flag")


def problems_with(pipeline: Pipeline, cards: Mapping[str, AgentCard]) -> list[Problem]:
    """Return what of *pipeline* does not fit the agents of *cards*, by their ids: tasks, parameters, results.

    It takes for granted that `problems_of` finds nothing.

    Raises:
        InvalidInput: a reference cannot be read, or phases wait for each other.
    """
    return list(islice(_misfits(pipeline, cards), MOST_PROBLEMS))


def _misfits(pipeline: Pipeline, cards: Mapping[str, AgentCard]) -> Iterator[Problem]:
    tasks = {phase.name: task for phase in pipeline.phases if (task := _task_of(phase, cards))}
    outlook = _Outlook(pipeline, Graph.of(pipeline), tasks)
    for n, phase in enumerate(pipeline.phases):
        place: Place = ("phases", n)
        task = tasks.get(phase.name)
        if task is None:
            yield _unknown_task(place, phase, cards)
        else:
            yield from _parameter_problems(place, phase, task, outlook)
            yield from _write_problems(place, phase, task)
        yield from _path_problems(place, phase, outlook)
        if (inner := phase.pipeline) is not None:
            for problem in _misfits(inner, cards):
                where = place_in_words(problem.place, {"phases": inner.phases})
                yield Problem((*place, "pipeline"), f"pipeline {inner.name!r}: {where}{problem.text}")


def write_problems(pipeline: Pipeline, cards: Mapping[str, AgentCard]) -> list[Problem]:
    """Return what the phases of *pipeline* want to write and the results of their tasks, by *cards*, do not have."""
    return [
        problem
        for n, phase in enumerate(pipeline.phases)
        if (task := _task_of(phase, cards))
        for problem in _write_problems(("phases", n), phase, task)
    ]


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What the references of a pipeline will be, as far as schemas tell."""

    pipeline: Pipeline
    graph: Graph
    tasks: Mapping[str, TaskCard]

    def whole(self, reference: Reference, reader: str) -> Shape | None:
        """Return the shape of all that *reference* names, its path left aside; None when it is not known."""
        if reference.kind == "standards":
            return STANDARDS
        if reference.kind == "input":
            declared = self.pipeline.inputs.get(reference.name)
            return Shape.of_input(declared.type) if declared else None
        if reference.kind in ("item", "last", "index"):
            return None
        key = read_key(reference.name)
        if key.identifier is not None:
            # Only the task that writes it knows what it is.
            return None
        writers = [key.phase, *self.graph.replacements(key.phase, reader)]
        shapes = [self._written(writer, key.data_type) for writer in writers]
        return Shape.either([shape for shape in shapes if shape]) if all(shapes) else None

    def at(self, reference: Reference, reader: str) -> Shape | None:
        """Return the shape of what is at the path of *reference*, None when it is not known."""
        shape = self.whole(reference, reader)
        for step in reference.path:
            shape = shape.inside(step) if shape else None
        return shape

    def _written(self, phase: str, data_type: str) -> Shape | None:
        task = self.tasks.get(phase)
        is_list = any(one.name == phase and one.for_each for one in self.pipeline.phases)
        if task is None or task.result is None or is_list:
            return None
        result = Shape.of(task.result)
        return result if data_type == "results" else result.inside(data_type)


def _task_of(phase: Phase, cards: Mapping[str, AgentCard]) -> TaskCard | None:
    if phase.pipeline is not None:
        return card_of(phase.pipeline)
    card = cards.get(phase.agent) if phase.agent != PIPELINE_AGENT else None
    return next((task for task in card.tasks if task.name == phase.task), None) if card else None


def card_of(pipeline: Pipeline) -> TaskCard:
    """Return what a task is whose parameters are the inputs of *pipeline*; lists and objects nobody says in words."""
    required: list[JsonValue] = [name for name, one in pipeline.inputs.items() if one.required]
    inputs = {name: _schema_of(one) for name, one in pipeline.inputs.items()}
    return TaskCard(
        name=pipeline.name,
        version=pipeline.version,
        description=pipeline.description,
        parameters={"type": "object", "properties": inputs, "required": required, "additionalProperties": False},
        examples=pipeline.examples,
        remember="never",
        in_words=all(one.type in _SAYABLE for one in pipeline.inputs.values() if one.required),
    )


def _schema_of(declared: Input) -> JsonValue:
    schema = Shape.of_input(declared.type).schema
    if not isinstance(schema, dict):
        return {"description": declared.description} if declared.description else schema
    told = {"description": declared.description} if declared.description else {}
    return {**schema, **told} if declared.required else {**schema, **told, "default": declared.default}


def _unknown_task(place: Place, phase: Phase, cards: Mapping[str, AgentCard]) -> Problem:
    if phase.agent == PIPELINE_AGENT:
        words = f"name the file of {phase.task!r} in `pipeline`, in place of `agent` and `task`"
        return Problem((*place, "agent"), f"a phase that is a pipeline has its run driven with its own; {words}")
    card = cards.get(phase.agent)
    if card is None:
        known = known_ones(phase.agent, cards, "known are") if cards else "; no agent has reported yet"
        cure = "or start it with `tasklore worker`"
        return Problem((*place, "agent"), f"agent {phase.agent!r} is not known{known} {cure}")
    known = known_ones(phase.task, [task.name for task in card.tasks], "it has")
    return Problem((*place, "task"), f"task {phase.task!r} is none of {phase.agent!r}{known}")


def _parameter_problems(place: Place, phase: Phase, task: TaskCard, outlook: _Outlook) -> Iterator[Problem]:
    schema = Shape.of(task.parameters)
    names = schema.names()
    aliases = {alias: name for name in names for alias in _aliases(schema.inside(name))}
    given: dict[str, str] = {}
    for spelled, value in phase.parameters.items():
        at = (*place, "parameters", spelled)
        name = aliases.get(spelled, spelled)
        target = schema.inside(name)
        if target is None:
            known = known_ones(spelled, [*names, *aliases], "known are")
            yield Problem(at, f"parameters.{spelled} is no parameter of {task.name!r}{known}")
        elif name in given:
            yield Problem(at, f"parameters.{spelled} is the same parameter as {given[name]!r}; give it once")
        else:
            given[name] = spelled
            for reason in misfits(value, target, lambda reference: outlook.at(reference, phase.name)):
                yield Problem(at, f"parameters.{spelled}{'' if reason.startswith('.') else ' '}{reason}")
    for name in _required(task.parameters):
        if name not in given:
            yield Problem((*place, "parameters"), f"parameters.{name} is missing; task {task.name!r} needs it")


def _write_problems(place: Place, phase: Phase, task: TaskCard) -> Iterator[Problem]:
    result = Shape.of(task.result)
    for n, data_type in enumerate(phase.writes):
        if data_type != "results" and result.inside(data_type) is None:
            why = f"the result of {task.name!r} {_why_without(result, data_type)}"
            why += "" if result.names() else "; write 'results', which is all of it"
            yield Problem((*place, "writes", n), f"writes {data_type!r}, but {why}")


def _path_problems(place: Place, phase: Phase, outlook: _Outlook) -> Iterator[Problem]:
    for mention in mentions_of(phase)[0]:
        shape = outlook.whole(mention.reference, phase.name)
        above = mention.reference.name
        for step in mention.reference.path:
            if shape is None:
                break
            inner = shape.inside(step)
            if inner is None:
                why = f"{above!r} {_why_without(shape, step)}"
                field = ".".join(map(str, mention.place))
                yield Problem((*place, *mention.place), f"{field} reads {mention.reference.text!r}, but {why}")
            above, shape = f"{above}.{step}", inner


def _why_without(shape: Shape, name: str) -> str:
    names = shape.names()
    return f"has no {name!r}{known_ones(name, names, 'it has')}" if names else f"is {shape.described()}"


def _aliases(shape: Shape | None) -> list[str]:
    aliases = shape.schema.get("aliases") if shape is not None and isinstance(shape.schema, dict) else None
    return [alias for alias in aliases if isinstance(alias, str)] if isinstance(aliases, list) else []


def _required(schema: Mapping[str, JsonValue]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
