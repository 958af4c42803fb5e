"""Pipelines as they are declared: phases, what each reads and writes, and when its results are stale.

```python
from tasklore.contracts.pipelines import Input, Phase, Pipeline

pipeline = Pipeline(
    name="report",
    inputs={"folder": Input(type="text")},
    root="${input.folder}",
    phases=(
        Phase(name="context_query", agent="ContextAgent", task="look_around", parameters={"folder": "${input.folder}"}),
        Phase(
            name="analysis",
            agent="ImportsAgent",
            task="map_imports",
            parameters={"files": "${context_query:results.files}"},
            writes=("dependencyMap",),
            reads_files=("**/*.py",),
        ),
    ),
)
```

A parameter that is one reference takes the value with its type; references inside a longer text become text. The table
of references is in docs/reference/pipelines.md.
"""

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    model_validator,
)

from tasklore.contracts.identifiers import Name
from tasklore.contracts.spans import Span

#: What a session's domain usually is; any other name serves as well.
KNOWN_DOMAINS = ("webdev", "ios", "data", "seo", "brand")
#: How long a session lives after its last update when its pipeline does not say.
TIME_TO_LIVE = timedelta(hours=1)

#: Phases of a pipeline, names in one list of a phase, and items of a phase with `for_each`.
MOST_PHASES = 500
MOST_NAMES = 500
MOST_ITEMS = 10_000
#: Pipelines inside each other, and what stands for the agent of a phase that is one.
MOST_LEVELS = 4
PIPELINE_AGENT = "Pipeline"
#: Rounds of a phase with `repeat_until`.
MOST_ROUNDS = 100

InputType = Literal["text", "number", "flag", "list", "object", "any"]


class _Declared(BaseModel):
    """A piece of a declaration: closed, so that a typing error is no silent default, and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    _where: str = PrivateAttr(default="")

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        # Where somebody wrote it in Python: a refusal names the line. What is read from a file has no such place.
        frame = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's place
        if not frame.f_globals.get("__name__", "").startswith("pydantic."):
            self._where = f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def __eq__(self, other: object) -> bool:
        """Compare declarations, without the file they came from."""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment] # parameters may hold lists

    @property
    def where(self) -> str:
        """The file and line that made it, "" when it was read out of a file or a message."""
        return self._where


class Input(_Declared):
    """One input of a run; without a default it has to be given.

    A `secret` one is masked wherever a run is shown or kept as evidence.
    """

    type: InputType = "any"
    default: JsonValue = None
    required: bool = True
    secret: bool = False
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _is_required_without_default(cls, raw: Any) -> Any:
        return (
            {"required": "default" not in raw, **raw} if isinstance(raw, dict) else raw
        )


class Phase(_Declared):
    """One step of a pipeline: a task of an agent, or a run of another *pipeline*.

    `pipeline` stands in place of `agent` and `task`: `parameters` are its inputs, and `results` is its result, as for a
    task. It has a session of its own; when the phase runs again after a failure, that run goes on where it failed.
    `reads` names entries of earlier phases, `?` behind one that may be missing; those that stand in `parameters` need
    not be named again. `writes` names what lands in the session: `results` is the whole result, any other name the
    property of the result that is called so. `after` names phases that have to be through before. `corrects` names the
    phase whose entries this one replaces once it is through. `when` is a condition on entries and inputs; false leaves
    the phase out. `timeout` counts from the moment the phase may begin, queue time included. `retries` are runs beyond
    the first. `keep_for` is the own time to live of its entries. `memory` is as in a `TaskAssignment`.

    The failure of an `optional` phase fails neither the run nor the phases after it. A phase that has not ended
    `late_after` it began is late: phases after it begin without it, and what it still writes is kept. It is then
    awaited for `cancel_after` more (None: until its `timeout`), and cancelled. Readers of such a phase write `?`.

    `for_each` is a reference to a list: the phase is a task for each of its items, up to 10,000, `at_once` of them
    side by side. `${item}` and `${index}` stand in its parameters, `timeout` and `retries` are each item's own, and
    `results`, all that it writes, is the list of their results in the order of the items. `on_failure` says what
    becomes of the phase when an item fails: `fail` ends it, `skip` leaves the item out, `collect` has every item as
    `{"item", "result"}` or `{"item", "error"}`. A phase that runs again runs items that are new, changed or failed.

    `repeat_until` is a condition on what the task returned, `${last}`, and on entries and inputs: the phase is its task
    one round after the other until it holds, `at_most` of them, and `results` is what the last one returned. When it
    does not hold by then, the phase has failed; resumed with a larger `at_most`, it goes on from there.

    `reads_files` are globs below the pipeline's root, `standards` and `design` are tags of standards and of decisions
    in the project's memory: when one of these changes, what the phase wrote is stale, and so is what depends on it.
    """

    name: Name
    if TYPE_CHECKING:
        # A phase with a pipeline has neither, which no type checker can be told.
        agent: Name = ""
        task: Name = ""
    else:
        agent: Name
        task: Name
    pipeline: "Pipeline | None" = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    reads: tuple[str, ...] = Field(default=(), max_length=MOST_NAMES)
    writes: tuple[Name, ...] = Field(default=("results",), max_length=MOST_NAMES)
    after: tuple[Name, ...] = Field(default=(), max_length=MOST_NAMES)
    corrects: Name | None = None
    when: str | None = None
    timeout: Span | None = None
    retries: int = Field(default=2, ge=0, le=99)
    optional: bool = False
    late_after: Span | None = None
    cancel_after: Span | None = None
    keep_for: Span | None = None
    memory: Literal["use", "refresh", "bypass"] = "use"
    for_each: str | None = None
    at_once: int = Field(default=20, ge=1, le=1000)
    on_failure: Literal["fail", "skip", "collect"] = "fail"
    repeat_until: str | None = None
    at_most: int = Field(default=10, ge=1, le=MOST_ROUNDS)
    reads_files: tuple[str, ...] = Field(default=(), max_length=MOST_NAMES)
    standards: tuple[str, ...] = Field(default=(), max_length=MOST_NAMES)
    design: tuple[str, ...] = Field(default=(), max_length=MOST_NAMES)
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _is_named_by_its_pipeline(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or raw.get("pipeline") is None:
            return raw
        inner = raw["pipeline"]
        name = (
            inner.get("name")
            if isinstance(inner, dict)
            else getattr(inner, "name", None)
        )
        return {"agent": PIPELINE_AGENT, "task": name, **raw}

    @property
    def has_parts(self) -> bool:
        """Whether it is items, rounds or a pipeline, whose results the driver puts together."""
        return (
            self.for_each is not None
            or self.repeat_until is not None
            or self.pipeline is not None
        )

    @property
    def longest(self) -> timedelta | None:
        """The time after which its task is cancelled, None where it may take any."""
        spans = [self.timeout] if self.timeout is not None else []
        if self.late_after is not None and self.cancel_after is not None:
            spans.append(self.late_after + self.cancel_after)
        return min(spans, default=None)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that work on it, those of the phases of its pipeline included."""
        inner = self.pipeline
        return (
            (self.agent,)
            if inner is None
            else tuple(one for phase in inner.phases for one in phase.agents)
        )


def items_phase(phase: str) -> str:
    """Return the name under which a session keeps what the items of *phase* returned, beside the phase itself."""
    return f"{phase[:58]}-items"


class Pipeline(_Declared):
    """Phases that make one result together.

    `examples` are sentences that ask for it, such as "report on /srv/code", where it can be asked for in words.
    `root` is the folder, where the supervisor runs, below which `reads_files` are looked for; without it there can be
    none. It is a reference such as `${input.folder}`, or a whole path; a relative one begins at the folder that the
    supervisor was started in.
    `result` is the key of the entry that is the result of a run, None: the entries of the phases nothing depends on.
    `project` names the project memory that its runs are noted in, None: the pipeline's own name.
    """

    name: Name
    version: int = Field(default=1, ge=1)
    description: str = ""
    examples: tuple[str, ...] = Field(default=(), max_length=MOST_NAMES)
    domain: Name = "data"
    project: Name | None = None
    root: str | None = None
    inputs: dict[Name, Input] = Field(default_factory=dict)
    ttl: Span = TIME_TO_LIVE
    result: str | None = None
    phases: tuple[Phase, ...] = Field(min_length=1, max_length=MOST_PHASES)

    @property
    def project_id(self) -> str:
        """The project memory that its runs are noted in."""
        return self.project or self.name
