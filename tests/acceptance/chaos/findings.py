"""What the checker found in a history: broken promises by task, explained oddities by cause."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Findings:
    """What a history shows; lists name tasks, counters tell causes by how often."""

    accepted: int = 0
    runs: int = 0
    lost: list[str] = field(default_factory=list)
    #: More than one stored report for one generation.
    stored_twice: list[str] = field(default_factory=list)
    #: Two bodies that differ, stored or only published, for one generation; explained when those that say that no
    #: ledger fenced them were published while it was away.
    told_apart: Counter[str] = field(default_factory=Counter)
    told_apart_unexplained: list[str] = field(default_factory=list)
    #: Reports of which the ledger holds none, or another, when all is over.
    not_in_ledger: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    not_completed: list[str] = field(default_factory=list)
    #: Reports on tasks that nobody submitted.
    unasked: list[str] = field(default_factory=list)
    effects_twice: list[str] = field(default_factory=list)
    #: Completed without an effect, since something came between the claim and the deed.
    effects_missing: Counter[str] = field(default_factory=Counter)
    effects_missing_unexplained: list[str] = field(default_factory=list)
    recomputed: Counter[str] = field(default_factory=Counter)
    recomputed_unexplained: list[str] = field(default_factory=list)
    #: Workers that ended although nobody wished it.
    fallen: list[int] = field(default_factory=list)
    #: What stays in the queue although its report is there.
    left: list[str] = field(default_factory=list)
    #: Where the count of what has ended is another than the ledger, read task by task.
    miscounted: list[str] = field(default_factory=list)
    #: What the list of tasks says otherwise than the ledger, or not once.
    mislisted: list[str] = field(default_factory=list)
    #: Entries that a moving ledger took to layout 2; the rest was made there.
    moved: int = 0
    #: Kills that hit a running task.
    hits: int = 0
    #: What was done, by cause.
    troubles: Counter[str] = field(default_factory=Counter)

    @property
    def violations(self) -> dict[str, list[str]]:
        """Every broken promise by its name, with the tasks (or processes) that show it."""
        found = {
            "lost": self.lost,
            "stored twice": self.stored_twice,
            "different reports, unexplained": self.told_apart_unexplained,
            "not in the ledger": self.not_in_ledger,
            "another report in the ledger": self.contradicted,
            "not completed": self.not_completed,
            "unasked": self.unasked,
            "effect twice": self.effects_twice,
            "effect missing, unexplained": self.effects_missing_unexplained,
            "recomputed, unexplained": self.recomputed_unexplained,
            "left in the queue": self.left,
            "counted otherwise than the ledger": self.miscounted,
            "listed otherwise than in the ledger": self.mislisted,
            "worker fell": [str(pid) for pid in self.fallen],
        }
        return {name: tasks for name, tasks in found.items() if tasks}
