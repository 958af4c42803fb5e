"""Messages of a run: prompts to models, their answers, tools, steps and results, as they are kept and shown."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tasklore.contracts.message_parts import Part
from tasklore.contracts.words import reads_unknown_as_other, writes_only_known

#: `parameters` of the task; `memory`, a block or what a search of it found; `prompt` to a model and its `answer`;
#: a `tool` that a model called, a `step` of the task's code, a `child` task; what a `person` answered; the `result`,
#: or the `error` that a request, a step or the run ended with.
RunMessageKind = Literal[
    "parameters",
    "memory",
    "prompt",
    "answer",
    "tool",
    "step",
    "child",
    "person",
    "result",
    "error",
    "other",
]


class RunMessage(Part):
    """One message of a run of a task, with its secrets masked.

    `at_ms` is when it was noted, ms since 1970, in which `run` of which `generation`. `name` is that of the model, the
    tool, the step, the task or the person. `text` has the words, or the result; of a longer one its beginning, and
    `size` is the length of the whole, else 0. `given` are the arguments of a tool, step or child, or a question.
    `facts` say more by name: tokens, where a result came from, the items that a block shows.
    """

    kind: Annotated[
        RunMessageKind, reads_unknown_as_other(RunMessageKind), writes_only_known
    ]
    at_ms: int
    generation: int = 1
    run: int = 1
    name: str = ""
    text: str = ""
    size: int = 0
    given: str = Field(default="", exclude_if=lambda text: text == "")
    facts: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def is_cut(self) -> bool:
        """Whether `text` is only the beginning of what there was."""
        return self.size > 0


def read_run_message(body: bytes) -> RunMessage:
    """Return the message in *body*; one that cannot be read is shown as such, since any worker may have written it."""
    try:
        return RunMessage.model_validate_json(body)
    except ValueError:
        return RunMessage(kind="other", at_ms=0, text="unreadable")
