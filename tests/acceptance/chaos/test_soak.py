"""The judge of the soak: what only grows is found, what is steady is not."""

from collections import Counter

from tests.acceptance.chaos.soak import judged
from tests.acceptance.chaos.soak_samples import CENSUSES, Sample


def samples(*, mb: float = 0.0, tasks: float = 0.0, keys: float = 0.0, dead: int = 0) -> list[Sample]:
    """Return half an hour of looks, ten seconds apart and one at the end, in which things grow by so much each look."""
    looks = []
    for number in range(1, 182):
        asked = 1_000 * number
        look = Sample(10.0 * number)
        look.figures = {"worker 1 RSS MB": 70 + mb * number, "worker 1 asyncio tasks": 30 + int(tasks * number)}
        reports = asked + CENSUSES * number
        look.streams = {"TASKS": 0, "LATER": 0, "DEAD": 10 * number + dead, "REPORTS": reports}
        look.keys = Counter(task=reports, ltm=200 * number, conversation=40 + int(keys * number))
        look.kinds = Counter(work=asked - 210 * number, miss=200 * number, give_up=10 * number)
        looks.append(look)
    return looks


def failed(looks: list[Sample]) -> list[str]:
    """Return what the judge finds in *looks*."""
    return [row.asked.partition(":")[0] for row in judged(looks) if not row.passed]


def test_a_steady_system_passes() -> None:
    """The ledger, the memory, the reports and the dead letters grow with what is asked, by contract."""
    assert failed(samples()) == []


def test_memory_that_creeps_is_found() -> None:
    """Three megabytes in twenty minutes are too much."""
    assert failed(samples(mb=3 / 120)) == ["worker 1 RSS MB"]
    assert failed(samples(mb=1 / 120)) == []


def test_tasks_that_are_never_done_are_found() -> None:
    """One more each minute."""
    assert failed(samples(tasks=1 / 6)) == ["worker 1 asyncio tasks"]


def test_keys_and_dead_letters_that_nobody_asked_for_are_found() -> None:
    """Whatever is not one a task."""
    assert failed(samples(keys=1.0, dead=3)) == [
        "DEAD holds what was given up and nothing else",
        "keys of every other kind do not grow",
    ]
