"""Recordings of the coin world: the same world again, and no tampered file."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.coin_world.recording import Recorder, sealed
from examples.coin_world.replaying import read_recording
from examples.coin_world.running import Answer, Runner
from examples.coin_world.world import Choice, Place, World
from tasklore.contracts.errors import InvalidInput

STEPS = 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a file that is not there yet."""
    return tmp_path / "run"


def record(path: Path, steps: int = STEPS, *, ends: bool = True) -> list[str]:
    """Record steps in which Ana walks and Bob is late, and return the hashes of their worlds."""
    world = World.new(7, ("Ana", "Bob"), 10, 20)
    recorder = Recorder(path, world.plan)
    worlds = []
    for number in range(steps):
        here = world.place("Ana")
        there = Place(here.x + (0.25 if here.x < 9 else -0.25), here.z)
        choices = {
            "Ana": Choice("move", there, reasoning=f"It is step {number}.", by="rules"),
            "Bob": None,
        }
        world.apply(choices)
        recorder.note(world, choices)
        worlds.append(world.digest())
    if ends:
        recorder.close()
    return worlds


def lines_of(path: Path) -> list[str]:
    record(path)
    return path.read_text().splitlines()


async def test_a_recording_reproduces_its_world(path: Path) -> None:
    worlds = record(path)
    kept = read_recording(path)
    again = []
    runner = Runner(
        World(kept.plan),
        kept.decide,
        notes=[kept.check, lambda world, _: again.append(world.digest())],
        steps=len(kept.worlds),
    )
    await runner.run()
    assert again == worlds
    assert kept.unfinished is None
    assert [agent["late"] for agent in runner.picture()["agents"]] == [False, True]


def _without(number: int) -> Callable[[list[str]], list[str]]:
    return lambda lines: lines[: number - 1] + lines[number:]


def _with(number: int, old: str, new: str) -> Callable[[list[str]], list[str]]:
    def changed(lines: list[str]) -> list[str]:
        assert old in lines[number - 1]
        return [
            *lines[: number - 1],
            lines[number - 1].replace(old, new),
            *lines[number:],
        ]

    return changed


@pytest.mark.parametrize(
    ("spoil", "line", "what"),
    [
        (_with(3, "It is step 1.", "It was step 1."), 3, "was changed"),
        (_without(3), 3, "was changed, or stood somewhere else"),
        (
            lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
            2,
            "was changed, or stood somewhere else",
        ),
        (lambda lines: [*lines[:-2], lines[-2][:40], ""], 5, "is no JSON object"),
        (
            lambda lines: [lines[0], lines[1][:40]],
            1,
            "is the last, and no step comes before it",
        ),
        (lambda lines: [*lines[:2], "[" * 100_000, *lines[2:]], 3, "is no JSON object"),
        (lambda _: [], 1, "begins no recording"),
        (lambda lines: lines[1:], 1, "was changed"),
        (lambda lines: [*lines, lines[-1]], 7, "was changed"),
    ],
)
def test_a_changed_recording_is_refused(
    spoil: Callable[[list[str]], list[str]], line: int, what: str, path: Path
) -> None:
    path.write_text("\n".join(spoil(lines_of(path))))
    with pytest.raises(
        InvalidInput, match=rf"^line {line} of the recording .*{what}.*; .* --record"
    ) as refused:
        read_recording(path)
    assert len(str(refused.value)) < 200


def test_a_recording_of_another_version_is_refused(path: Path) -> None:
    path.write_text(_resealed([{"coin_world": 99}, {"end": 0}]))
    with pytest.raises(
        InvalidInput,
        match=r"^line 1 of the recording is of version 99, this is 1; record it anew",
    ):
        read_recording(path)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        (1, "seed", []),
        (1, "names", "Ana"),
        (1, "size", 10**4000),
        (2, "step", 7),
        (2, "choices", {"Carol": None}),
        (2, "choices", {"\x1b[2J" * 100: 1}),
        (2, "world", None),
        (2, "said", ["Hello"]),
        (2, "target", {"x": float("nan"), "z": 0}),
        (2, "target", {"x": 10**400, "z": 0}),
        (6, "end", 99),
    ],
)
def test_a_resealed_invalid_recording_is_refused(
    line: int, field: str, value: object, path: Path
) -> None:
    told = [json.loads(one) for one in lines_of(path)]
    held = (
        told[line - 1] if field in told[line - 1] else told[line - 1]["choices"]["Ana"]
    )
    held[field] = value
    path.write_text(_resealed(told))
    with pytest.raises(
        InvalidInput,
        match=rf"^line {line} of the recording .*; name a file .* --record$",
    ) as refused:
        read_recording(path)
    assert len(str(refused.value)) < 250
    assert str(refused.value).isprintable()


def test_a_killed_run_is_recorded_up_to_its_last_step(path: Path) -> None:
    worlds = record(path, ends=False)
    kept = read_recording(path)
    assert kept.worlds == worlds
    assert kept.unfinished is not None
    assert kept.unfinished.startswith("the recording does not say that the run ended")
    assert "4 whole steps" in kept.unfinished


def test_a_cut_line_is_left_out(path: Path) -> None:
    worlds = record(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:4], lines[4][:60]]))
    kept = read_recording(path)
    assert kept.worlds == worlds[:3]
    assert kept.unfinished is not None
    assert kept.unfinished.startswith("line 5 of the recording was cut")
    assert "3 whole steps" in kept.unfinished


async def test_an_interrupted_world_has_an_end(path: Path) -> None:
    world = World.new(7, ("Ana",), 10, 20)
    recorder = Recorder(path, world.plan)

    def interrupt(world: World, _choices: object) -> None:
        if world.step == 3:
            raise KeyboardInterrupt

    runner = Runner(
        world, _waits, notes=[recorder.note, interrupt], ends=[recorder.close]
    )
    with pytest.raises(KeyboardInterrupt):
        await runner.run()

    assert (len(read_recording(path).worlds), read_recording(path).unfinished) == (
        3,
        None,
    )


async def _waits(of: World) -> dict[str, Answer]:
    return {name: Answer(Choice("wait")) for name in of.plan.names}


def test_an_older_recording_stays_until_the_first_step(path: Path) -> None:
    before = lines_of(path)
    world = World.new(8, ("Ana",), 10, 20)
    recorder = Recorder(path, world.plan)
    assert path.read_text().splitlines() == before
    recorder.close()
    assert path.read_text().splitlines() == before
    world.apply({})
    recorder.note(world, {})
    assert read_recording(path).plan == world.plan


@pytest.mark.parametrize(
    "text",
    [
        "precious",
        '{"seed": 7}\n',
    ],
)
def test_another_file_is_not_overwritten(text: str, path: Path) -> None:
    path.write_text(text)
    with pytest.raises(
        InvalidInput, match="is there and is no recording; name another file"
    ):
        Recorder(path, World.new(7, ("Ana",), 10, 20).plan)
    assert path.read_text() == text


def test_a_full_disk_is_one_line(path: Path) -> None:
    world = World.new(7, ("Ana",), 10, 20)
    recorder = Recorder(path, world.plan)
    path.symlink_to("/dev/full")
    world.apply({})
    with pytest.raises(
        InvalidInput,
        match=r"^--record: .*run' cannot be written \(No space left on device\)",
    ):
        recorder.note(world, {})
    recorder.close()


def _resealed(contents: list[dict[str, object]]) -> str:
    seal = ""
    lines = []
    for content in contents:
        seal = sealed(seal, content)
        lines.append(json.dumps({**content, "seal": seal}))
    return "\n".join(lines)
