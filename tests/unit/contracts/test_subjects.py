"""Subjects and identifiers: what crosses the wire is spelled once, and nothing can break out of its part."""

import pytest

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import new_id, partition_of, user_token


def test_subjects_are_spelled_as_the_wire_contract_says() -> None:
    """Programs in other languages publish and subscribe to exactly these."""
    assert (
        subjects.task("BudgetTrackerAgent", "analyze_budget")
        == "tasks.BudgetTrackerAgent.analyze_budget"
    )
    assert subjects.report("SupervisorAgent", "t1", 2) == "reports.SupervisorAgent.t1.2"
    assert subjects.due("A", "x") == "due.tasks.A.x"
    assert subjects.progress("S", "t1") == "progress.S.t1"
    assert subjects.cancel("t1") == "cancel.t1"
    assert subjects.requests("S") == "requests.S"
    assert subjects.dead("tasks.A.x") == "dead.tasks.A.x"
    assert subjects.task_message_id("t1", 1) == "t1:1"
    assert subjects.report_message_id("t1", 1) == "t1:1:report"


def test_a_user_keeps_one_partition_and_any_id_fits_a_subject() -> None:
    """Tokens are unpadded base64url and the partition is CRC-32 modulo 16, also for ids with dots and umlauts."""
    assert user_token("jörg.müller@example.org") == "asO2cmcubcO8bGxlckBleGFtcGxlLm9yZw"
    assert subjects.turns("alice") == f"turns.{partition_of('alice')}.YWxpY2U"
    assert subjects.partition_filter(subjects.TURNS, 7) == "turns.7.>"
    assert (
        subjects.messages("coins.alice", "Bob")
        == f"messages.{partition_of('coins.alice')}.Y29pbnMuYWxpY2U.Qm9i"
    )
    assert (
        subjects.agent_message_id("coins.alice", "Bob", "m1")
        == "Y29pbnMuYWxpY2U.Qm9i:m1"
    )


@pytest.mark.parametrize("name", ["", "a.b", "a b", "*", ">", "ä", "x" * 65, "a\n"])
def test_a_name_that_could_act_as_a_delimiter_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="agent_id"):
        subjects.tasks_of(name)


def test_a_subject_of_waiting_is_read_as_it_was_spelled() -> None:
    """One of no task is refused: of another stream, too short, or with a name that could act as a delimiter."""
    spelled = subjects.waiting("A", "batch", "jörg & co", "run")
    agent_id, priority, token, task_name = subjects.read_waiting(spelled)
    assert (agent_id, priority, task_name) == ("A", "batch", "run")
    assert (
        subjects.waiting_of(agent_id, priority=priority, token=token)
        == f"{spelled.rpartition('.')[0]}.*"
    )
    for other in (
        subjects.task("A", "run"),
        "waiting.A.batch.run",
        "waiting.A!.batch.YQ.run",
        "tasks.A.batch.YQ.run",
    ):
        with pytest.raises(InvalidInput):
            subjects.read_waiting(other)


def test_ids_sort_by_time_and_carry_their_version() -> None:
    """A task id is a UUID version 7."""
    early = new_id(1_700_000_000_000)
    late = new_id(1_700_000_000_001)

    assert early < late
    assert early[14] == "7"
    assert early[19] in "89ab"
    assert len(early) == 36
