"""For any graph: waiting, running, repeated and stale phases are exact, and no servable request is refused."""

import contextlib
import random
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal, TypeVar

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from tasklore.contracts.errors import InvalidInput, InvalidParameters
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.contracts.quantities.amounts import Amount
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.conditions import Condition
from tasklore.supervisor.pipelines.declaration.declarations import pipeline_from
from tasklore.supervisor.pipelines.declaration.files import lines_of
from tasklore.supervisor.pipelines.declaration.graph import (
    Graph,
    keys_read,
    result_keys,
)
from tasklore.supervisor.pipelines.declaration.references import Reference, resolve
from tasklore.supervisor.pipelines.declaration.schemas import PhaseSchema, mismatches
from tasklore.supervisor.pipelines.planning import (
    Changes,
    next_steps,
    resume_plan,
    stale_phases,
)
from tasklore.workers.agent import Agent
from tasklore.workers.card import card_of
from tests.property.examples import examples

T = TypeVar("T")

TAGS = ("style", "docs", "security")


def a_pipeline(seed: int, *, corrections: bool = True) -> Pipeline:
    """Return a pipeline that can run: each phase reads, follows or corrects phases made before it, in any order."""
    rng = random.Random(seed)
    count = rng.randint(1, 9)
    phases: list[Phase] = []
    for n in range(count):
        names = {phase.corrects for phase in phases}
        free = [phase.name for phase in phases if phase.name not in names]
        read = [f"{one.name}:results{_mark(one, rng)}" for one in _some(phases, 3, rng)]
        phases.append(
            Phase(
                name=f"p{n}",
                agent="A",
                task="t",
                parameters={"x": [f"${{{text}}}" for text in read[::2]]},
                reads=tuple(read[1::2]),
                after=tuple(one.name for one in _some(phases, 2, rng)),
                corrects=rng.choice(free)
                if corrections and free and rng.random() < 0.3
                else None,
                when=f"${{input.i{n}}}" if rng.random() < 0.3 else None,
                reads_files=tuple(_some(("a/**", "**/*.py", "b/x.py"), 1, rng)),
                standards=tuple(_some(TAGS, 2, rng)),
                design=tuple(_some(TAGS, 1, rng)),
            )
        )
    inputs = {
        f"i{n}": Input(type="flag", default=rng.random() < 0.6) for n in range(count)
    }
    rng.shuffle(phases)
    pipeline = Pipeline(name="x", root="/x", phases=tuple(phases), inputs=inputs)
    assert problems_of(pipeline) == []
    return pipeline


def _mark(phase: Phase, rng: random.Random) -> str:
    return "?" if phase.when is not None or rng.random() < 0.3 else ""


def _some(things: Sequence[T], most: int, rng: random.Random) -> list[T]:
    return rng.sample(things, min(len(things), rng.randint(0, most)))


#: By a seed, because drawing each phase takes a hundred times as long as all that is then looked at.
seeds = st.integers(0, 2**32)
pipelines = seeds.map(a_pipeline)
plain_pipelines = seeds.map(lambda seed: a_pipeline(seed, corrections=False))


def reachable(graph: Graph) -> dict[str, set[str]]:
    """Return all that each phase depends on, by Warshall's algorithm."""
    above = {name: set(upstream) for name, upstream in graph.dependencies.items()}
    for middle in above:
        for name in above:
            if middle in above[name]:
                above[name] |= above[middle]
    return above


def below(graph: Graph, phases: Collection[str]) -> set[str]:
    """Return what depends on one of *phases*, these not counted."""
    return {
        name for name, above in reachable(graph).items() if above & set(phases)
    } - set(phases)


@given(pipelines)
def test_the_graph_has_every_declared_step_and_no_other_but_for_corrections(
    pipeline: Pipeline,
) -> None:
    """Its order keeps them all, and ancestors and dependents are exact."""
    graph = Graph.of(pipeline)
    above = reachable(graph)

    assert sorted(graph.order) == sorted(phase.name for phase in pipeline.phases)
    for phase in pipeline.phases:
        declared = (
            {key.partition(":")[0] for key in keys_read(phase)}
            | set(phase.after)
            | {phase.corrects} - {None}
        )
        added = set(graph.dependencies[phase.name]) - declared
        assert declared <= set(graph.dependencies[phase.name])
        # A correction is waited for by whoever depends on what it corrects.
        assert all(
            graph.corrections.get(one) in graph.dependencies[phase.name]
            or one in declared
            for one in declared
        )
        assert added <= set(graph.corrections.values())
        assert all(
            graph.order.index(one) < graph.order.index(phase.name)
            for one in graph.dependencies[phase.name]
        )
        assert graph.ancestors(phase.name) == above[phase.name]
        assert set(graph.dependents([phase.name])) == below(graph, [phase.name])
        assert all(
            graph.reason(phase.name, one) for one in graph.dependencies[phase.name]
        )
    assert set(graph.sinks) == set(above) - {
        one for upstream in above.values() for one in upstream
    }


@given(pipelines)
def test_a_correction_comes_before_whoever_reads_what_it_corrects(
    pipeline: Pipeline,
) -> None:
    graph = Graph.of(pipeline)
    for corrected, correction in graph.corrections.items():
        for name in graph.order:
            if corrected in graph.dependencies[name] and name != correction:
                assert (correction in graph.ancestors(name)) != (
                    name in graph.ancestors(correction)
                )


@given(pipelines, st.data())
def test_several_phases_have_the_dependents_of_all(
    pipeline: Pipeline, data: st.DataObject
) -> None:
    """In order, without themselves."""
    graph = Graph.of(pipeline)
    chosen = data.draw(st.sets(st.sampled_from(graph.order)))

    found = graph.dependents(chosen)

    assert set(found) == below(graph, chosen)
    assert list(found) == [name for name in graph.order if name in found]


class Session:
    """A session as a run uses it: entries, corrections that are in force, and the status of every phase."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.graph = Graph.of(pipeline)
        self.phases = {phase.name: phase for phase in pipeline.phases}
        self.entries: dict[str, JsonValue] = {}
        self.corrected: dict[str, str] = {}
        self.statuses: dict[str, str] = {}
        self.ran: list[str] = []

    def look_up(self, reference: Reference) -> JsonValue:
        """Return the value of an input or entry, what corrected it if something has."""
        if reference.kind == "input":
            return self.pipeline.inputs[reference.name].default
        phase, _, data_type = reference.name.partition(":")
        while phase in self.corrected:
            phase = self.corrected[phase]
        value = self.entries.get(f"{phase}:{data_type}")
        assert value is not None or reference.optional, f"{reference.name} is not there"
        return value

    def run(
        self, failing: Collection[str], rng: random.Random, most: int = 1000
    ) -> None:
        """Run what may run, in any order, until nothing may or *most* phases have run."""
        while not (steps := next_steps(self.graph, self.statuses)).is_over and most:
            for name in steps.ready:
                through = [
                    self.statuses.get(one) for one in self.graph.dependencies[name]
                ]
                assert set(through) <= {"done", "skipped"}
            self.settle(self.phases[rng.choice(steps.ready)], failing)
            most -= 1

    def settle(self, phase: Phase, failing: Collection[str]) -> None:
        """Run *phase*, or leave it out; its value is made of all that it has read."""
        if phase.when is not None and not Condition.parse(phase.when).holds(
            self.look_up
        ):
            self.statuses[phase.name] = "skipped"
            return
        self.ran.append(phase.name)
        reads = [resolve(f"${{{text}}}", self.look_up) for text in phase.reads]
        if phase.name in failing:
            self.statuses[phase.name] = "failed"
            return
        self.entries[f"{phase.name}:results"] = [
            phase.name,
            resolve(phase.parameters["x"], self.look_up),
            reads,
        ]
        self.statuses[phase.name] = "done"
        if phase.corrects is not None:
            self.corrected[phase.corrects] = phase.name

    def reset(self, again: Collection[str]) -> None:
        """Make *again* pending: their entries go, and the corrections by them."""
        for name in again:
            self.statuses.pop(name, None)
            self.entries.pop(f"{name}:results", None)
        self.corrected = {
            one: by for one, by in self.corrected.items() if by not in again
        }

    def result(self) -> dict[str, JsonValue]:
        """Return what the run comes to, null for what was left out."""
        keys = result_keys(self.pipeline, self.graph)
        return {
            key: self.look_up(Reference(kind="entry", name=key, path=(), optional=True))
            for key in keys
        }

    def plan(self) -> Mapping[str, str]:
        """Return what a resumed run would do again."""
        return resume_plan(
            self.pipeline, self.graph, self.statuses, set(self.entries)
        ).again


@given(pipelines, st.data())
def test_a_run_ends_with_all_through_or_with_all_that_does_not_hang_on_a_failure(
    pipeline: Pipeline, data: st.DataObject
) -> None:
    """No phase begins before those it depends on, and none is forgotten."""
    session = Session(pipeline)
    failing = data.draw(st.sets(st.sampled_from(session.graph.order)))
    session.run(failing, random.Random(data.draw(st.integers())))

    steps = next_steps(session.graph, session.statuses)
    failed = {name for name, status in session.statuses.items() if status == "failed"}
    assert steps.outcome == ("failed" if failed else "completed")
    assert set(steps.blocked) == below(session.graph, failed)
    assert set(session.statuses) == set(session.graph.order) - set(steps.blocked)
    assert len(session.ran) == len(set(session.ran))


@given(pipelines, st.data())
def test_a_resumed_run_does_exactly_the_failed_and_their_dependents_again(
    pipeline: Pipeline, data: st.DataObject
) -> None:
    """And comes to the result of an undisturbed one."""
    rng = random.Random(data.draw(st.integers()))
    undisturbed = Session(pipeline)
    undisturbed.run((), rng)
    session = Session(pipeline)
    session.run(data.draw(st.sets(st.sampled_from(session.graph.order))), rng)
    failed = {name for name, status in session.statuses.items() if status == "failed"}

    again = session.plan()
    assert set(again) == failed | below(session.graph, failed)
    assert list(again) == [name for name in session.graph.order if name in again]

    session.ran.clear()
    session.reset(again)
    session.run((), rng)
    assert set(session.ran) == {
        name for name in again if undisturbed.statuses[name] == "done"
    }
    assert session.result() == undisturbed.result()
    assert session.statuses == undisturbed.statuses


@given(pipelines, st.data())
def test_a_run_from_which_entries_were_lost_comes_to_the_same_result(
    pipeline: Pipeline, data: st.DataObject
) -> None:
    rng = random.Random(data.draw(st.integers()))
    undisturbed = Session(pipeline)
    undisturbed.run((), rng)
    session = Session(pipeline)
    failing = data.draw(st.sets(st.sampled_from(session.graph.order), max_size=2))
    session.run(failing, rng, most=data.draw(st.integers(0, 12)))
    for key in data.draw(st.sets(st.sampled_from(sorted(session.entries) or ["none"]))):
        session.entries.pop(key, None)
    unfinished = {
        name
        for name in session.graph.order
        if session.statuses.get(name) not in ("done", "skipped")
    }

    plan = resume_plan(pipeline, session.graph, session.statuses, set(session.entries))
    assert unfinished | below(session.graph, unfinished) <= set(plan.again)
    assert set(plan.reused) == {
        name for name, one in session.statuses.items() if one == "done"
    } - set(plan.again)

    session.reset(plan.again)
    session.run((), rng)
    assert session.result() == undisturbed.result()


@given(plain_pipelines, st.data())
def test_only_what_needs_a_lost_entry_makes_its_phase_run_again(
    pipeline: Pipeline, data: st.DataObject
) -> None:
    session = Session(pipeline)
    rng = random.Random(data.draw(st.integers()))
    session.run(
        data.draw(st.sets(st.sampled_from(session.graph.order), max_size=1)), rng
    )
    gone = data.draw(st.sets(st.sampled_from(sorted(session.entries) or ["none"])))
    lost = {key for key in gone if session.entries.pop(key, None) is not None}

    needed = {
        key: {
            name
            for name in session.graph.order
            if key in keys_read(session.phases[name])
        }
        for key in lost
    }
    result = set(result_keys(pipeline, session.graph))
    again = {
        name
        for name in session.graph.order
        if session.statuses.get(name) not in ("done", "skipped")
    }
    while True:
        more = below(session.graph, again)
        more |= {
            key.partition(":")[0]
            for key in lost
            if needed[key] & again or key in result
        }
        if more <= again:
            break
        again |= more

    plan = resume_plan(pipeline, session.graph, session.statuses, set(session.entries))
    assert set(plan.again) == again
    assert {key.partition(":")[0] for key in plan.missing} <= again
    assert set(plan.missing) <= lost


@given(pipelines, st.data())
def test_a_change_makes_exactly_its_readers_and_their_dependents_stale(
    pipeline: Pipeline, data: st.DataObject
) -> None:
    """Of those that have begun, or were left out after something that is stale."""
    graph = Graph.of(pipeline)
    names = st.sampled_from(graph.order)
    changes = Changes(
        files=tuple(
            data.draw(
                st.sets(st.sampled_from(("a/x.py", "b/x.py", "a/b/c.txt", "x.md")))
            )
        ),
        standards=tuple(data.draw(st.sets(st.sampled_from(TAGS)))),
        design=tuple(data.draw(st.sets(st.sampled_from(TAGS)))),
        phases=tuple(data.draw(st.sets(names, max_size=1))),
        keys=tuple(f"{name}:results" for name in data.draw(st.sets(names, max_size=1))),
    )
    fitting = {
        "a/**": {"a/x.py", "a/b/c.txt"},
        "**/*.py": {"a/x.py", "b/x.py"},
        "b/x.py": {"b/x.py"},
    }
    statuses = data.draw(
        st.fixed_dictionaries(dict.fromkeys(graph.order, st.sampled_from(STATUSES)))
    )

    readers = {
        phase.name
        for phase in pipeline.phases
        if any(fitting[glob] & set(changes.files) for glob in phase.reads_files)
        or set(phase.standards) & set(changes.standards)
        or set(phase.design) & set(changes.design)
        or phase.name in changes.phases
        or f"{phase.name}:results" in changes.keys
    }
    assert set(stale_phases(pipeline, graph, changes)) == readers | below(
        graph, readers
    )

    begun = {
        name for name in readers if statuses[name] in ("done", "running", "failed")
    }
    expected = begun | {
        name for name in below(graph, begun) if statuses[name] != "pending"
    }
    assert set(stale_phases(pipeline, graph, changes, statuses)) == expected


STATUSES = ("pending", "running", "done", "failed", "skipped")


@given(pipelines)
def test_a_pipeline_comes_back_from_a_message(pipeline: Pipeline) -> None:
    """As a request carries it."""
    assert pipeline_from(pipeline.model_dump(mode="json")) == pipeline


json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-20, 20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        [
            "",
            "5",
            "50k",
            "1.5",
            "yes",
            "off",
            "deep",
            "2024-05-01",
            "null",
            "5 km",
            "$3",
            "nan",
            "1e400",
        ]
    )
    | st.text(max_size=6).filter(lambda text: "${" not in text),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["value", "unit", "path", "line", "a"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


class Place(BaseModel):
    """A model inside parameters."""

    path: str
    line: int | None = None
    near: list["Place"] = []


class Asked(Parameters):
    """Everything that parameters can be."""

    text: str = Field(default="ab", min_length=2, max_length=5)
    count: int = Field(default=1, ge=1, le=9)
    share: float = Field(default=0.5, gt=0, lt=1)
    limit: Amount = Field(default="1", unit="USD")
    plain: Amount = Field(default="1")
    price: Decimal = Decimal(1)
    flag: bool = False
    day: date = date(2024, 1, 1)
    kind: Literal["deep", "5"] = "deep"
    number: Literal[1, 2] = 1
    maybe: int | None = None
    names: list[str] = Field(default=())
    numbers: list[int] = Field(default=())
    pair: tuple[int, str] | None = None
    places: dict[str, float] = Field(default={})
    place: Place | None = None
    mixed: str | list[str] = "x"
    either: float | str = 1
    unique: set[str] = Field(default=())


agent = Agent("AnyAgent")


@agent.task
def ask(asked: Asked) -> str:
    """Ask."""
    raise NotImplementedError


SCHEMA = PhaseSchema.of(card_of(agent).tasks[0].parameters)


@examples(300)
@given(st.sampled_from(sorted(Asked.model_fields)), json_values)
def test_no_value_is_refused_that_the_task_would_take(
    name: str, value: JsonValue
) -> None:
    """The check before a run is never stricter than the task itself."""
    target = SCHEMA.inside(name)
    assert target is not None
    reasons = list(mismatches(value, target, lambda _: None))
    try:
        Asked.read({name: value})
    except InvalidParameters:
        return
    assert reasons == []


@given(st.text(alphabet="abin ${}:.?\"'\\()[]<>=!,-0159_truefalsn", max_size=40))
def test_no_text_breaks_the_reading_of_references_and_conditions(text: str) -> None:
    for read in (
        lambda: resolve(text, lambda _: 1),
        lambda: Condition.parse(text).holds(lambda _: 1),
    ):
        with contextlib.suppress(InvalidInput):
            read()


plain_keys = st.text(alphabet="abc-_1", min_size=1, max_size=3)
toml_strings = st.text(alphabet="ab\"'#[]{}=,\n\\é ", max_size=12)


def as_toml(value: Any) -> str:
    """Return a text, a number or a list of these as TOML, texts over several lines where they have some."""
    if isinstance(value, list):
        return "[" + "".join(f"\n  {as_toml(one)}, # ] \" '\n" for one in value) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"""\n{escaped}"""' if "\n" in value else f'"{escaped}"'
    return str(value)


@given(
    st.lists(
        st.dictionaries(
            plain_keys,
            toml_strings | st.integers() | st.lists(toml_strings, max_size=3),
            max_size=4,
        )
    )
)
def test_every_key_of_a_document_is_found_at_its_line(
    blocks: list[dict[str, Any]],
) -> None:
    """Whatever stands in the texts and lists between."""
    text = ""
    expected: dict[tuple[str | int, ...], int] = {}
    for n, block in enumerate(blocks):
        expected[("phase", n)] = text.count("\n") + 1
        text += "[[phase]] # [\n"
        for key, value in block.items():
            expected[("phase", n, key)] = text.count("\n") + 1
            text += f"{key} = {as_toml(value)}\n"

    lines = lines_of(text)

    assert {
        place: line for place, line in lines.items() if place != ("phase",)
    } == expected
