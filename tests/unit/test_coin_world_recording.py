"""Runs of the example kept as a file: the same world again, and no file that somebody cut or changed."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import InvalidInput
from examples.coin_world.recording import Recorder, read_recording
from examples.coin_world.running import Runner
from examples.coin_world.world import Choice, Place, World

STEPS = 4


def recorded(steps: int = STEPS) -> tuple[str, list[str]]:
    """Return the text of a recording in which Ana walks and Bob is late, and the hashes of its worlds."""
    file = io.StringIO()
    world = World.new(7, ("Ana", "Bob"), 10, 20)
    recorder, worlds = Recorder(file, world.plan), []
    for number in range(steps):
        here = world.place("Ana")
        there = Place(here.x + (0.25 if here.x < 9 else -0.25), here.z)
        choices = {"Ana": Choice("move", there, reasoning=f"It is step {number}.", by="rules"), "Bob": None}
        world.apply(choices)
        recorder.note(world, choices)
        worlds.append(world.digest())
    recorder.close()
    return file.getvalue(), worlds


async def test_a_recording_makes_the_same_world_again(tmp_path: Path) -> None:
    """Step by step, and nobody is asked."""
    text, worlds = recorded()
    (tmp_path / "run").write_text(text)
    kept, again = read_recording(tmp_path / "run"), []
    runner = Runner(
        World(kept.plan),
        kept.decide,
        notes=[kept.check, lambda world, _: again.append(world.digest())],
        steps=len(kept.worlds),
    )
    await runner.run()

    assert again == worlds
    assert [agent["late"] for agent in runner.picture()["agents"]] == [False, True]


def _without(number: int) -> Callable[[list[str]], list[str]]:
    return lambda lines: lines[: number - 1] + lines[number:]


def _with(number: int, old: str, new: str) -> Callable[[list[str]], list[str]]:
    def changed(lines: list[str]) -> list[str]:
        assert old in lines[number - 1]
        return [*lines[: number - 1], lines[number - 1].replace(old, new), *lines[number:]]

    return changed


@pytest.mark.parametrize(
    ("spoil", "line", "what"),
    [
        (_with(3, "It is step 1.", "It was step 1."), 3, "was changed"),
        (_with(1, '"seed": 7', '"seed": 8'), 1, "was changed"),
        (_without(3), 3, "was changed, or stood somewhere else"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2, "was changed, or stood somewhere else"),
        (lambda lines: lines[:-1], 5, "does not say that the run ended"),
        (lambda lines: [*lines[:-2], lines[-2][:40]], 5, "is no JSON object"),
        (lambda lines: [*lines[:2], "[]", *lines[2:]], 3, "is no JSON object"),
        (lambda _: [], 1, "begins no recording"),
        (lambda lines: lines[1:], 1, "was changed"),
        (lambda lines: [*lines, lines[-1]], 7, "was changed"),
    ],
)
def test_a_recording_that_was_cut_or_changed_is_refused(
    spoil: Callable[[list[str]], list[str]], line: int, what: str, tmp_path: Path
) -> None:
    """With the line, and what to do."""
    (tmp_path / "run").write_text("\n".join(spoil(recorded()[0].splitlines())))

    with pytest.raises(InvalidInput, match=rf"^line {line} of the recording .*{what}.*; .* --record") as refused:
        read_recording(tmp_path / "run")
    assert len(str(refused.value)) < 200


def test_a_recording_of_another_version_is_refused(tmp_path: Path) -> None:
    """Even when its seal is right: its rules are not ours."""
    (tmp_path / "run").write_text(_resealed([{"coin_world": 99}, {"end": 0}]))

    with pytest.raises(InvalidInput, match=r"^line 1 of the recording is of version 99, this is 1; record it anew"):
        read_recording(tmp_path / "run")


async def test_other_rules_are_seen_in_the_first_step_they_change(tmp_path: Path) -> None:
    """A sound file of a world where something else came of the same choices."""
    lines = [json.loads(line) for line in recorded()[0].splitlines()]
    lines[2]["world"] = "0" * 32
    (tmp_path / "run").write_text(_resealed(lines))
    kept = read_recording(tmp_path / "run")
    runner = Runner(World(kept.plan), kept.decide, notes=[kept.check], steps=len(kept.worlds))

    with pytest.raises(InvalidInput, match=r"^line 3 of the recording makes another world than was recorded"):
        await runner.run()
    assert runner.world.step == 2


@pytest.mark.parametrize(
    ("place", "old", "new"),
    [(1, "size", "edge"), (2, "choices", "chosen"), (2, "world", "word"), (2, "action", "deed")],
)
def test_a_recording_of_another_form_is_refused(place: int, old: str, new: str, tmp_path: Path) -> None:
    """Somebody else's, well sealed: the line, and no traceback."""
    lines = recorded()[0].splitlines()
    told = [
        json.loads(line.replace(f'"{old}"', f'"{new}"') if at == place else line) for at, line in enumerate(lines, 1)
    ]
    (tmp_path / "run").write_text(_resealed(told))

    with pytest.raises(InvalidInput, match=rf"^line {place} of the recording "):
        read_recording(tmp_path / "run")


def test_a_run_that_ended_before_its_first_step_is_refused(tmp_path: Path) -> None:
    """Ctrl-C came while the system started: there is nothing to run again."""
    (tmp_path / "run").write_text(recorded(steps=0)[0])

    with pytest.raises(InvalidInput, match="line 2 of the recording ends it before its first step"):
        read_recording(tmp_path / "run")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The path, and what it should be."""
    with pytest.raises(InvalidInput, match=r"missing.*name a file that --record wrote"):
        read_recording(tmp_path / "missing")


def _resealed(contents: list[dict[str, object]]) -> str:
    """Return *contents* as a file whose seals are right."""
    from examples.coin_world.recording import _sealed

    seal, lines = "", []
    for content in contents:
        seal = _sealed(seal, content)
        lines.append(json.dumps({**content, "seal": seal}))
    return "\n".join(lines)
