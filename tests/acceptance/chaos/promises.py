"""What storms have to show, as rows of the table."""

from collections import Counter
from collections.abc import Sequence

from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.table import Row
from tests.acceptance.chaos.weather import Climate
from tests.acceptance.faults.plan import Promise

_NEVER = (
    Promise[Findings]("tasks accepted and never reported", lambda found: found.lost),
    Promise[Findings](
        "tasks with two stored reports", lambda found: found.stored_twice
    ),
    Promise[Findings](
        "reports that the ledger does not hold", lambda found: found.not_in_ledger
    ),
    Promise[Findings](
        "reports of which the ledger holds another", lambda found: found.contradicted
    ),
    Promise[Findings](
        "reports other than completed", lambda found: found.not_completed
    ),
    Promise[Findings](
        "reports on tasks that nobody submitted", lambda found: found.unasked
    ),
    Promise[Findings](
        "tasks left in the queue after their report", lambda found: found.left
    ),
    Promise[Findings](
        "counts of what has ended that differ from the ledger",
        lambda found: found.miscounted,
    ),
    Promise[Findings](
        "tasks that are not listed once as the ledger has them",
        lambda found: found.mislisted,
    ),
    Promise[Findings]("effects made twice", lambda found: found.effects_twice),
    Promise[Findings]("workers that ended unasked", lambda found: found.fallen),
)


def rows_of(storms: Sequence[Findings], climate: Climate) -> list[Row]:
    """Return a row for each promise, over all *storms*, and for what was done to break it."""
    accepted = sum(findings.accepted for findings in storms)
    rows = [promise.row("storm", storms, f"{accepted:,}") for promise in _NEVER]
    rows.append(
        _explained(
            "storm: tasks with two different reports published, unexplained: 0",
            [findings.told_apart for findings in storms],
            sum(len(findings.told_apart_unexplained) for findings in storms),
        )
    )
    rows.append(
        _explained(
            "storm: completed tasks without their effect, unexplained: 0",
            [findings.effects_missing for findings in storms],
            sum(len(findings.effects_missing_unexplained) for findings in storms),
        )
    )
    rows.append(
        _explained(
            "storm: runs of a task after its first, unexplained: 0",
            [findings.recomputed for findings in storms],
            sum(len(findings.recomputed_unexplained) for findings in storms),
        )
    )
    return rows + _blows(storms, climate)


def _explained(asked: str, causes: Sequence[Counter[str]], unexplained: int) -> Row:
    """Return a row that tells by cause what is explained."""
    total = sum(causes, Counter[str]())
    told = ", ".join(f"{cause} {number}" for cause, number in total.most_common())
    return Row(
        asked,
        f"{unexplained}; explained {total.total()}{f' ({told})' if told else ''}",
        unexplained == 0,
    )


def _blows(storms: Sequence[Findings], climate: Climate) -> list[Row]:
    """Return the rows on what was done; each storm has to have had all of it."""
    hits = [findings.hits for findings in storms]
    rows = [
        Row(
            f"storm: kills that hit a running task, each seed: {climate.least_hits} or more",
            f"least {min(hits)}, in all {sum(hits)} of {sum(findings.troubles['kill'] for findings in storms)}",
            min(hits) >= climate.least_hits,
        )
    ]
    wanted = {
        "nats-server killed": (climate.nats_kills, ("outage nats",)),
        "Valkey killed": (climate.valkey_kills, ("outage valkey",)),
        "a worker frozen for longer than its lease": (climate.stops, ("stop",)),
        "a wire cut for longer than a lease": (
            climate.cuts,
            ("cut nats", "cut valkey"),
        ),
    }
    for words, (number, causes) in wanted.items():
        done = [
            sum(findings.troubles[cause] for cause in causes) for findings in storms
        ]
        rows.append(
            Row(
                f"storm: {words}, each seed: {number}",
                f"least {min(done)}",
                min(done) >= number,
            )
        )
    return rows
