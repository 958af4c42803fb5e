"""The doctor's report: a list for people, JSON for programs, an exit code for scripts."""

import json

import pytest

from tasklore.commands.doctor.report import Report
from tasklore.commands.doctor.rules import Diagnosis, ok, unreachable

FINE = ok("nats.version", "nats-server 2.15.1")
NOTED = Diagnosis(check="nats.idle", mark="note", found="without a worker: A")
UNTOLD = Diagnosis(
    check="nats.sync_interval",
    mark="unknown",
    found="it is unknown",
    cure="say --monitor",
)
WARNED = Diagnosis(
    check="redis.eviction",
    mark="warning",
    found="it would forget",
    cure="tell it not to",
)
BROKEN = Diagnosis(
    check="redis.appendonly",
    mark="problem",
    found="nothing is kept on disk, and a restart loses all of it",
    cure="set `appendonly yes`",
)
AWAY = unreachable("nats.reachable", "nobody listens", "start it")


def report(*findings: Diagnosis) -> Report:
    return Report(
        findings,
        "standard",
        {"nats": "nats://127.0.0.1:4222", "redis": "redis://127.0.0.1:6379"},
    )


@pytest.mark.parametrize(
    ("findings", "code", "strict_code"),
    [
        ((FINE, NOTED), 0, 0),
        ((FINE, UNTOLD), 0, 1),
        ((FINE, WARNED), 0, 1),
        ((FINE, BROKEN), 1, 1),
        ((BROKEN, AWAY), 3, 3),
    ],
)
def test_the_exit_code_is_that_of_the_worst_finding(
    findings: tuple[Diagnosis, ...], code: int, strict_code: int
) -> None:
    assert report(*findings).exit_code(strict=False) == code
    assert report(*findings).exit_code(strict=True) == strict_code


def test_findings_are_listed_by_server_with_their_cures() -> None:
    assert list(report(FINE, UNTOLD, BROKEN, BROKEN).lines(None)) == [
        "NATS nats://127.0.0.1:4222",
        "  ok       nats-server 2.15.1",
        "  unknown  it is unknown",
        "           fix: say --monitor",
        "",
        "Redis or Valkey redis://127.0.0.1:6379",
        "  problem  nothing is kept on disk, and a restart loses all of it",
        "           fix: set `appendonly yes`",
        "  problem  nothing is kept on disk, and a restart loses all of it",
        "           fix: set `appendonly yes`",
        "",
        "Durability: standard - the crash of a process loses nothing, a power failure at most the last second.",
        "2 problems, 1 unknown, 1 ok.",
    ]


def test_a_narrow_terminal_folds_sentences() -> None:
    lines = list(report(FINE, BROKEN).lines(40))
    assert max(map(len, lines)) <= 40
    assert "           a restart loses all of it" in lines
    assert (
        " ".join(" ".join(lines).split()).count(
            "nothing is kept on disk, and a restart loses all of it"
        )
        == 1
    )


def test_control_characters_are_removed() -> None:
    (line,) = [
        one
        for one in report(
            Diagnosis(
                check="nats.x",
                mark="problem",
                found="evil\x1b[2J\nname",
                cure="cure\x07",
            )
        ).lines(None)
        if "evil" in one
    ]
    assert line == "  problem  evil[2J name"


def test_json_has_every_finding_and_the_counts() -> None:
    document = json.loads(json.dumps(report(FINE, WARNED).document(strict=True)))
    assert (document["exit_code"], document["durability"]) == (1, "standard")
    assert document["counts"] == {
        "problem": 0,
        "warning": 1,
        "unknown": 0,
        "note": 0,
        "ok": 1,
    }
    assert document["findings"][1] == {
        "check": "redis.eviction",
        "mark": "warning",
        "found": "it would forget",
        "cure": "tell it not to",
        "is_unreachable": False,
    }
