"""A run kept as a file, and run again from it without asking anybody.

A line of JSON each: what the world began with, then for every step what was chosen and a hash of the world it made,
and last that it ended. Each line holds a seal over itself and all before it, so that no line can be changed, moved or
left out unseen.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from contracts.errors import InvalidInput
from examples.coin_world.running import Answer
from examples.coin_world.world import Choice, Plan, World

#: Of the form of the file, and of the rules of the world: with other rules, other things come of the same choices.
VERSION = 1

Choices = Mapping[str, Choice | None]


class Recorder:
    """Writes a run to *file* while it goes; `close` says that it ended."""

    def __init__(self, file: IO[str], plan: Plan) -> None:
        self._file = file
        self._seal = ""
        self._steps = 0
        self._write({"coin_world": VERSION, **asdict(plan)})

    def note(self, world: World, choices: Choices) -> None:
        """Write what was chosen, and what it made of *world*."""
        told = {name: choice.as_data() if choice is not None else None for name, choice in choices.items()}
        self._write({"step": world.step, "choices": told, "world": world.digest()})
        self._steps = world.step

    def close(self) -> None:
        """Write that there is no more."""
        self._write({"end": self._steps})
        self._file.flush()

    def _write(self, content: Mapping[str, Any]) -> None:
        self._seal = _sealed(self._seal, content)
        self._file.write(json.dumps({**content, "seal": self._seal}) + "\n")


@dataclass(frozen=True, slots=True)
class Recording:
    """A run that was kept: how it began, what was chosen in each step, and the hash of the world after it."""

    plan: Plan
    choices: Sequence[Choices]
    worlds: Sequence[str]

    async def decide(self, world: World) -> Mapping[str, Answer]:
        """Return what everybody chose in this step when it was recorded."""
        return {name: Answer(choice) for name, choice in self.choices[world.step].items()}

    def check(self, world: World, _choices: Choices) -> None:
        """Compare *world* with what it was after this step.

        Raises:
            InvalidInput: it is another one.
        """
        if world.digest() != self.worlds[world.step - 1]:
            _refuse(world.step + 1, "makes another world than was recorded", "it is of other rules; record it anew")


def read_recording(path: Path) -> Recording:
    """Return the run that is kept in *path*.

    Raises:
        InvalidInput: it was cut or changed, or is none; the message names the line and the cure.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {str(path)!r} ({error}); name a file that --record wrote") from error
    contents, seal = list[dict[str, Any]](), ""
    for number, line in enumerate(lines, start=1):
        content = _read(number, line)
        seal = _sealed(seal, content)
        if content.pop("seal", None) != seal:
            _refuse(number, "was changed, or stood somewhere else", "take the file as it was written")
        contents.append(content)
    return _recording(contents)


def _recording(contents: Sequence[dict[str, Any]]) -> Recording:
    if not contents or "coin_world" not in contents[0]:
        _refuse(1, "begins no recording", "name a file that --record wrote")
    first, *steps = contents
    if (version := first.pop("coin_world")) != VERSION:
        _refuse(1, f"is of version {version}, this is {VERSION}", "record it anew")
    if not steps or "end" not in steps[-1]:
        _refuse(len(contents), "is the last, and does not say that the run ended", "take the whole file")
    if len(steps) == 1:
        _refuse(len(contents), "ends it before its first step, so there is nothing to show", "name another file")
    plan, kept = _plan(first), [_step(number, content) for number, content in enumerate(steps[:-1], start=2)]
    return Recording(plan, [choices for choices, _ in kept], [world for _, world in kept])


def _plan(content: Mapping[str, Any]) -> Plan:
    try:
        return Plan(content["seed"], tuple(content["names"]), content["size"], content["coins"])
    except (KeyError, TypeError, InvalidInput) as error:
        _refuse(1, f"begins no world ({error})", "name a file that --record wrote")


def _step(number: int, content: Mapping[str, Any]) -> tuple[Choices, str]:
    try:
        told = content["choices"].items()
        choices = {name: Choice.of(choice) if choice is not None else None for name, choice in told}
        return choices, content["world"]
    except (KeyError, TypeError, AttributeError, ValueError):
        _refuse(number, "holds no step", "name a file that --record wrote")


def _read(number: int, line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        _refuse(number, "is no JSON object; it was cut or changed", "take the file as it was written")
    return content


def _sealed(before: str, content: Mapping[str, Any]) -> str:
    plain = json.dumps({name: value for name, value in content.items() if name != "seal"}, sort_keys=True)
    return hashlib.sha256(f"{before}{plain}".encode()).hexdigest()[:16]


def _refuse(line: int, what: str, cure: str) -> NoReturn:
    raise InvalidInput(f"line {line} of the recording {what}; {cure}, or make another with --record")
