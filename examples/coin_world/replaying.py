"""A run that was kept, run again without asking anybody.

Whoever can write a file can seal it, too: what a line holds is looked at as closely as what a stranger sends.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from examples.coin_world.recording import VERSION, sealed
from examples.coin_world.running import Answer
from examples.coin_world.telling import plain
from examples.coin_world.world import Choice, Place, Plan, World
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import complaint_of

Choices = Mapping[str, Choice | None]

#: Characters that are told of what is wrong within a line.
_MOST_TOLD = 80


@dataclass(frozen=True, slots=True)
class Recording:
    """A run that was kept: how it began, what was chosen in each step, and the hash of the world after it.

    `unfinished` says why there may have been more; None when the recording says that the run ended.
    """

    plan: Plan
    choices: Sequence[Choices]
    worlds: Sequence[str]
    unfinished: str | None = None

    async def decide(self, world: World) -> Mapping[str, Answer]:
        """Return what everybody chose in this step when it was recorded."""
        return {
            name: Answer(choice) for name, choice in self.choices[world.step].items()
        }

    def check(self, world: World, _choices: Choices) -> None:
        """Compare *world* with what it was after this step.

        Raises:
            InvalidInput: it is another one.
        """
        if world.digest() != self.worlds[world.step - 1]:
            _refuse(
                world.step + 1,
                "makes another world than was recorded",
                "it is of other rules; record it anew",
            )


def read_recording(path: Path) -> Recording:
    """Return the run that is kept in *path*; of one that was killed, the steps that are whole.

    Raises:
        InvalidInput: it was changed, or is none; the message names the line and the cure.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"cannot read {str(path)!r} ({error}); name a file that --record wrote"
        ) from error
    contents = list[dict[str, Any]]()
    seal = ""
    cut = None
    # What comes after the last line break is nothing, or a line that nobody could finish.
    rest = len(lines) if lines[-1] else None
    for number, line in enumerate(lines if rest else lines[:-1], start=1):
        if (
            number == rest
            and contents
            and "end" not in contents[-1]
            and not _is_json(line)
        ):
            cut = number
            break
        content, seal = _read(number, line, seal)
        contents.append(content)
    return _recording(contents, cut)


def _recording(contents: Sequence[dict[str, Any]], cut: int | None) -> Recording:
    if not contents or "coin_world" not in contents[0]:
        _refuse(1, "begins no recording", "name a file that --record wrote")
    first, *steps = contents
    if (version := first.pop("coin_world")) != VERSION:
        _refuse(
            1,
            f"is of version {plain(str(version))[:_MOST_TOLD]}, this is {VERSION}",
            "record it anew",
        )
    has_end = bool(steps) and "end" in steps[-1]
    kept = steps[:-1] if has_end else steps
    if not kept:
        _refuse(
            len(contents),
            "is the last, and no step comes before it",
            "name another file",
        )
    if has_end and steps[-1]["end"] != len(kept):
        _refuse(
            len(contents),
            "ends another run than this",
            "name a file that --record wrote",
        )
    plan = _plan(first)
    read = [
        _step(number, content, plan) for number, content in enumerate(kept, start=2)
    ]
    choices = [choices for choices, _ in read]
    worlds = [world for _, world in read]
    return Recording(
        plan, choices, worlds, None if has_end else _told_of_its_end(len(read), cut)
    )


def _told_of_its_end(steps: int, cut: int | None) -> str:
    what = (
        f"line {cut} of the recording was cut"
        if cut
        else "the recording does not say that the run ended"
    )
    return f"{what}: it was killed, or still goes on, or the file was cut; {steps} whole steps are there and are shown"


class _Form(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", strict=True
    )


class _PlanForm(_Form):
    seed: int
    names: list[str]
    size: int
    coins: int


class _PlaceForm(_Form):
    x: FiniteFloat
    z: FiniteFloat


class _ChoiceForm(_Form):
    action: str
    target: _PlaceForm | None
    to: str | None
    said: str | None
    reasoning: str
    by: str

    def choice(self) -> Choice:
        target = (
            Place(self.target.x, self.target.z) if self.target is not None else None
        )
        return Choice(self.action, target, self.to, self.said, self.reasoning, self.by)


class _StepForm(_Form):
    step: int
    choices: dict[str, _ChoiceForm | None]
    world: str


def _plan(content: Mapping[str, Any]) -> Plan:
    try:
        form = _PlanForm.model_validate(content)
        return Plan(form.seed, tuple(form.names), form.size, form.coins)
    except (ValidationError, InvalidInput) as error:
        _refuse(
            1, f"begins no world ({_fault(error)})", "name a file that --record wrote"
        )


def _step(number: int, content: Mapping[str, Any], plan: Plan) -> tuple[Choices, str]:
    try:
        form = _StepForm.model_validate(content)
    except ValidationError as error:
        _refuse(
            number,
            f"holds no step ({_fault(error)})",
            "name a file that --record wrote",
        )
    if form.step != number - 1 or not form.choices.keys() <= set(plan.names):
        _refuse(
            number, "holds no step of this world", "name a file that --record wrote"
        )
    return {
        name: one.choice() if one is not None else None
        for name, one in form.choices.items()
    }, form.world


def _fault(error: ValidationError | InvalidInput) -> str:
    """Return what is wrong in few words; the names of fields may be somebody's as well."""
    if isinstance(error, InvalidInput):
        return plain(str(error))[:_MOST_TOLD]
    first = error.errors(include_url=False, include_input=False)[0]
    field = plain(".".join(str(part) for part in first["loc"]))
    return f"{field[:_MOST_TOLD]}: {complaint_of(first)}"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    except RecursionError:
        # It is read again, and refused for that.
        return True
    return True


def _read(number: int, line: str, before: str) -> tuple[dict[str, Any], str]:
    """Return what *line* holds, and its seal."""
    try:
        content = json.loads(line)
        seal = sealed(before, content) if isinstance(content, dict) else ""
    except (ValueError, RecursionError):
        content = None
        seal = ""
    if not isinstance(content, dict):
        _refuse(
            number,
            "is no JSON object; it was cut or changed",
            "take the file as it was written",
        )
    if content.pop("seal", None) != seal:
        _refuse(
            number,
            "was changed, or stood somewhere else",
            "take the file as it was written",
        )
    return content, seal


def _refuse(line: int, what: str, cure: str) -> NoReturn:
    raise InvalidInput(
        f"line {line} of the recording {what}; {cure}, or make another with --record"
    )
