"""What became of all that was told: counted against what must have, from rows, logs, records and documents."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from tasklore.memory.documents.edits import apply_changes
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Document
from tasklore.memory.documents.stamps import stamp
from tasklore.memory.documents.storage.history import LogEntry, json_bytes
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.queue import KnownRow, PersonalQueue
from tests.acceptance.memory_storm.told import LISTS, Told, expected

KINDS = Kinds.load()
#: What may not be, in the order of the table.
WRONGS = (
    "lost",
    "not applied",
    "applied twice",
    "half applied",
    "torn",
    "out of order",
)


@dataclass
class Verdict:
    """Counts of what is wrong, and how much was looked at."""

    wrong: Counter[str] = field(default_factory=Counter)
    facts: int = 0
    documents: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong."""
        return not any(self.wrong.values())

    def count(self, what: str, number: int, example: object) -> None:
        """Count what is wrong, and keep a few examples."""
        self.wrong[what] += number
        if number and len(self.examples) < 10:
            self.examples.append(f"{what}: {example}")

    def words(self) -> str:
        """Return the counts for people."""
        return ", ".join(f"{self.wrong[what]} {what}" for what in WRONGS)


async def judge(
    store: DocumentStore, queue: PersonalQueue, told: Mapping[str, Sequence[Told]]
) -> Verdict:
    """Return what became of *told*, by user and in the order in which it was said."""
    verdict = Verdict()
    for user, facts in told.items():
        verdict.facts += len(facts)
        rows = {row.row_id: row for row in await queue.rows(user, 10**6)}
        look = await store._look(user, list(LISTS), entries=-1)
        _judge_rows(verdict, user, facts, rows)
        _judge_logs(verdict, user, facts, look.logs)
        for resource, log in look.logs.items():
            _judge_body(verdict, look.snapshot.documents[resource], log)
        for resource, wanted in expected(facts).items():
            verdict.documents += 1
            _judge_list(
                verdict,
                user,
                _displays(look.snapshot.documents[resource].body, LISTS[resource]),
                wanted,
            )
    return verdict


def _judge_rows(
    verdict: Verdict, user: str, facts: Sequence[Told], rows: Mapping[str, KnownRow]
) -> None:
    for one in facts:
        fact_id = f"{user}-{one.number}"
        row = rows.get(fact_id)
        if row is None:
            verdict.count("lost", 1, fact_id)
        elif row.state != "done" or row.plan_id != fact_id:
            verdict.count(
                "not applied", 1, f"{fact_id} is {row.state}: {row.reason[:200]}"
            )


def _judge_logs(
    verdict: Verdict,
    user: str,
    facts: Sequence[Told],
    logs: Mapping[str, Sequence[LogEntry]],
) -> None:
    """Every plan is logged once in each document that it is about, as far back as the logs go."""
    plans = {
        resource: Counter(entry.plan_id for entry in log)
        for resource, log in logs.items()
    }
    for resource, counted in plans.items():
        again = {plan: count for plan, count in counted.items() if count > 1}
        verdict.count(
            "applied twice",
            sum(again.values()) - len(again),
            f"{user} {resource} {again}",
        )
    for one in facts:
        logged = [
            f"{user}-{one.number}" in plans.get(resource, ())
            for resource in one.resources
        ]
        if any(logged) and not all(logged):
            verdict.count("half applied", 1, f"{user}-{one.number}")


def _judge_body(verdict: Verdict, document: Document, log: Sequence[LogEntry]) -> None:
    """The document is what its log makes of what it was before, and there it was the empty one if it reaches back."""
    first = document
    try:
        for entry in reversed(log):
            first = entry.before(first)
    except Exception as error:  # noqa: BLE001 - whatever a torn document does to whoever reads it back
        verdict.count("torn", 1, f"{document.resource_id}: {error!r}")
        return
    body: Any = first.body
    # Each stamp writes over the one before: only the last day is seen.
    day = date.fromisoformat(_metadata(document)["last_updated"])
    for entry in log:
        body = stamp(
            apply_changes(body, entry.changes),
            document.resource_id,
            entry.revision,
            day,
        )[0]  # type: ignore[arg-type]
    is_whole = first.revision > 0 or json_bytes(first.body) == json_bytes(
        KINDS.by_id[document.resource_id].template
    )
    if json_bytes(body) != json_bytes(document.body) or not is_whole:
        verdict.count("torn", 1, document.resource_id)


def _judge_list(
    verdict: Verdict, user: str, found: Sequence[str], wanted: Sequence[str]
) -> None:
    missing = Counter(wanted) - Counter(found)
    more = Counter(found) - Counter(wanted)
    verdict.count("lost", missing.total(), f"{user}: {dict(missing)}")
    verdict.count("applied twice", more.total(), f"{user}: {dict(more)}")
    if not missing and not more and list(found) != list(wanted):
        verdict.count("out of order", 1, f"{user}: {found} instead of {wanted}")


def _metadata(document: Document) -> Any:
    return document.body["_metadata"]


def _displays(body: Any, path: str) -> list[str]:
    for step in path.split("."):
        body = body[step]
    return [item["display"] for item in body]
