"""The checker: each broken promise is found in a history that shows it, and a clean history shows none."""

from collections.abc import Callable

import pytest

from tests.acceptance.chaos.checker import check
from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.history import Event, Kind


class Writing:
    """A history written by hand: seconds are counted from the beginning, workers are numbers."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def note(self, at: float, kind: Kind, pid: int = 1, **facts: object) -> "Writing":
        """Add an event."""
        self.events.append(Event(kind, at, pid, **facts))  # type: ignore[arg-type]  # checked by the class
        return self

    def submitted(self, at: float, *tasks: str) -> "Writing":
        """Add tasks that were submitted and accepted."""
        for task in tasks:
            self.note(at, "submit", 0, task=task, about="effect").note(
                at, "accepted", 0, task=task
            )
        return self

    def run(
        self,
        start: float,
        end: float | None,
        task: str,
        pid: int = 1,
        *,
        effect: bool = True,
    ) -> "Writing":
        """Add a run, to its end unless that is None; its effect comes at its beginning."""
        name = f"{task}-{start}"
        self.note(start, "run-start", pid, task=task, run=name)
        if effect:
            self.note(start, "effect", pid, task=task, run=name)
        return (
            self if end is None else self.note(end, "run-end", pid, task=task, run=name)
        )

    def reported(
        self,
        at: float,
        task: str,
        digest: str = "a",
        sequence: int = 1,
        about: str = "completed",
    ) -> "Writing":
        """Add a stored report that also passed by on the core subject."""
        facts = {"task": task, "digest": digest, "about": about, "fence": "ledger"}
        return self.note(at, "report", 0, sequence=sequence, **facts).note(
            at, "heard", 0, **facts
        )

    def killed(self, at: float, pid: int = 1) -> "Writing":
        """Add a kill, and the death a moment later."""
        return self.note(at, "kill", pid).note(at + 0.01, "died", pid, about="-9")

    def check(self) -> Findings:
        """Return what the checker finds."""
        return check(sorted(self.events, key=lambda event: event.at))


def clean() -> Writing:
    """Return a history in which a kill, an outage and a stop harm nothing."""
    writing = Writing().submitted(0, "t1", "t2", "t3")
    for pid in (1, 2):
        writing.note(-1, "forked", pid).note(-0.5, "ready", pid)
    writing.run(1, None, "t1").killed(2).run(4, 5, "t1", 2, effect=False).reported(
        6, "t1"
    )
    writing.run(10, 11, "t2", 2).reported(12, "t2")
    writing.note(12.1, "outage", 9, about="nats").note(
        12.2, "restored", 9, about="nats"
    )
    writing.run(20, 29, "t3", 2).note(21, "stop", 2).run(
        24, 25, "t3", 3, effect=False
    ).note(27, "continue", 2)
    return writing.reported(26, "t3")


def test_a_history_in_which_every_promise_was_kept_shows_no_violation() -> None:
    findings = clean().check()

    assert findings.violations == {}
    assert (findings.accepted, findings.runs, findings.hits) == (3, 5, 1)
    assert findings.recomputed == {"kill": 1, "stop": 1}
    assert findings.troubles == {"kill": 1, "stop": 1, "outage nats": 1}


VIOLATIONS: dict[str, Callable[[Writing], object]] = {
    "lost": lambda writing: writing.submitted(0, "t9"),
    "stored twice": lambda writing: writing.reported(30, "t2", sequence=2),
    "different reports, unexplained": lambda writing: writing.note(
        30, "heard", 0, task="t2", digest="b", about="completed"
    ),
    "not completed": lambda writing: writing.submitted(0, "t9").reported(
        30, "t9", about="failed"
    ),
    "unasked": lambda writing: writing.reported(30, "stranger").note(
        30, "effect", task="stranger"
    ),
    "effect twice": lambda writing: writing.note(30, "effect", 2, task="t2"),
    "effect missing, unexplained": lambda writing: (
        writing.submitted(0, "t9").run(30, 31, "t9", effect=False).reported(32, "t9")
    ),
    "recomputed, unexplained": lambda writing: writing.run(
        16, 17, "t2", 2, effect=False
    ),
    "not in the ledger": lambda writing: writing.note(
        41, "ledger", 0, task="t1", digest="a"
    ).note(41, "ledger", 0, task="t2", digest="a"),
    "another report in the ledger": lambda writing: [
        writing.note(41, "ledger", 0, task=task, digest="b" if task == "t1" else "a")
        for task in ("t1", "t2", "t3")
    ],
    "left in the queue": lambda writing: writing.note(
        40, "left", 0, about="1 on tasks.X.y"
    ),
    "worker fell": lambda writing: writing.note(40, "died", 2, about="1"),
}


@pytest.mark.parametrize("promise", VIOLATIONS)
def test_each_broken_promise_is_found_and_nothing_else(promise: str) -> None:
    writing = clean()
    VIOLATIONS[promise](writing)

    assert list(writing.check().violations) == [promise]


def test_a_kill_before_or_after_a_run_explains_nothing() -> None:
    """Only what befell the very process, while its run was open, is a cause."""
    before = (
        Writing()
        .submitted(0, "t")
        .killed(1, 7)
        .run(2, 3, "t", 7)
        .run(4, 5, "t", 2, effect=False)
        .reported(6, "t")
    )
    other = (
        Writing()
        .submitted(0, "t")
        .run(2, 3, "t", 7)
        .killed(2.5, 8)
        .run(4, 5, "t", 2, effect=False)
        .reported(6, "t")
    )
    after = (
        Writing()
        .submitted(0, "t")
        .run(2, 3, "t", 7)
        .reported(4, "t")
        .killed(5, 7)
        .run(6, 7, "t", 2, effect=False)
    )

    for writing in (before, other, after):
        assert writing.check().recomputed_unexplained == ["t"]


def test_an_outage_of_nats_explains_no_further_run() -> None:
    """The run goes on under its lease in the ledger; without Valkey nobody knows of it."""

    def writing(server: str) -> Writing:
        away = (
            Writing()
            .submitted(0, "t")
            .run(1, 3, "t")
            .note(2, "outage", 9, about=server)
        )
        return (
            away.note(2.1, "restored", 9, about=server)
            .run(4, 5, "t", 2, effect=False)
            .reported(6, "t")
        )

    assert writing("nats").check().recomputed_unexplained == ["t"]
    assert writing("valkey").check().recomputed == {"outage valkey": 1}


def test_a_kill_between_the_end_of_a_run_and_its_report_explains_the_next_run() -> None:
    writing = (
        Writing()
        .submitted(0, "t")
        .run(2, 3, "t", 7)
        .killed(3.01, 7)
        .run(6, 7, "t", 2, effect=False)
    )

    assert writing.reported(8, "t").check().recomputed == {"kill": 1}


def test_every_run_after_the_first_needs_a_cause_of_its_own() -> None:
    writing = (
        Writing()
        .submitted(0, "t")
        .run(1, None, "t", 7)
        .killed(2, 7)
        .run(4, 5, "t", 2, effect=False)
    )
    findings = writing.run(6, 7, "t", 3, effect=False).reported(8, "t").check()

    assert findings.recomputed == {"kill": 1}
    assert findings.recomputed_unexplained == ["t"]


def test_a_worker_that_was_frozen_before_its_run_may_run_what_is_done() -> None:
    """It was told that it may before it froze; a freeze long ago explains nothing."""

    def writing(woken_at: float) -> Writing:
        frozen = (
            Writing()
            .submitted(0, "t")
            .note(1, "stop", 7)
            .run(4, 5, "t", 2)
            .reported(6, "t")
        )
        return frozen.note(woken_at, "continue", 7).run(10, 11, "t", 7, effect=False)

    assert writing(9.9).check().recomputed == {"stop": 1}
    assert writing(7.0).check().recomputed_unexplained == ["t"]


def test_a_worker_that_was_frozen_before_its_run_may_be_replaced_in_it() -> None:
    """Its lease went while it was frozen; after a freeze long before the run it had another."""

    def writing(woken_at: float) -> Writing:
        frozen = (
            Writing().submitted(0, "t").note(1, "stop", 7).note(woken_at, "continue", 7)
        )
        return (
            frozen.run(5, 5.2, "t", 7, effect=False)
            .run(5.1, 6, "t", 2)
            .reported(7, "t")
        )

    assert writing(4.9).check().recomputed == {"stop": 1}
    assert writing(3.0).check().recomputed_unexplained == ["t"]


def test_an_effect_that_a_kill_prevented_is_counted_as_explained() -> None:
    """The claim was made by a run that died before the deed; the next one may not make it."""
    writing = (
        Writing().submitted(0, "t").run(1, None, "t", 7, effect=False).killed(2, 7)
    )
    findings = writing.run(4, 5, "t", 2, effect=False).reported(6, "t").check()

    assert findings.effects_missing == {"kill": 1}
    assert findings.violations == {}


def test_a_report_that_no_ledger_fenced_may_differ_while_the_ledger_is_away() -> None:
    """The stream keeps one of them; two that were fenced, or one that differs without cause, break the promise."""

    def writing(fence: str, outage_at: float) -> Writing:
        both = Writing().submitted(0, "t").run(1, 2, "t").reported(3, "t")
        both.note(4, "heard", 0, task="t", digest="b", about="completed", fence=fence)
        return both.note(outage_at, "outage", 9, about="valkey").note(
            outage_at, "restored", 9, about="valkey"
        )

    assert writing("none", 3.5).check().told_apart == {"outage valkey": 1}
    assert writing("ledger", 3.5).check().told_apart_unexplained == ["t"]
    assert writing("none", 20.0).check().told_apart_unexplained == ["t"]


def test_a_run_after_the_report_is_explained_while_the_ledger_is_away_unless_it_must_be_fenced() -> (
    None
):
    """Nobody could know of the first run; a task that must not run twice has to wait."""

    def writing(owes: str) -> Writing:
        first = (
            Writing()
            .note(0, "submit", 0, task="t", about=owes)
            .run(1, 2, "t")
            .reported(3, "t")
        )
        away = first.note(19, "outage", 9, about="valkey").note(
            20, "restored", 9, about="valkey"
        )
        return away.run(20.5, 21, "t", 2, effect=False)

    assert writing("effect").check().recomputed == {"outage valkey": 1}
    assert writing("effect fence").check().recomputed_unexplained == ["t"]


def test_a_kill_counts_as_a_hit_when_a_run_of_that_worker_never_ended() -> None:
    """A kill of an idle worker, and one of a worker whose runs are through, hit nothing."""
    writing = (
        Writing()
        .submitted(0, "t", "u")
        .run(1, 2, "t", 7)
        .reported(3, "t")
        .killed(4, 7)
        .killed(4, 8)
    )

    assert writing.check().hits == 0
    assert writing.run(5, None, "u", 9).killed(6, 9).check().hits == 1


def test_a_worker_that_finds_no_server_when_it_starts_may_end() -> None:
    """It is started again; one that took tasks already, or had servers, may not."""
    outage = (
        Writing()
        .note(1, "outage", 5, about="nats")
        .note(2, "restored", 5, about="nats")
    )
    early = outage.note(0.5, "forked", 7).note(2.5, "died", 7, about="1")

    assert early.check().fallen == []
    assert early.note(0.7, "ready", 7).check().fallen == [7]
    assert Writing().note(0.5, "forked", 7).note(
        2.5, "died", 7, about="1"
    ).check().fallen == [7]
