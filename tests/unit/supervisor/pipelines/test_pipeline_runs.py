"""States of phases, without a server."""

from memory.sessions.pipeline_records import PhaseState, PhaseStatus, phase_in


def test_a_phase_is_over_once_it_ended_in_any_way() -> None:
    """Only a reset lets it begin again."""
    statuses: tuple[PhaseStatus, ...] = ("pending", "running", "done", "failed", "skipped")
    assert [status for status in statuses if PhaseState(status).is_over] == ["done", "failed", "skipped"]


def test_what_a_newer_writer_adds_to_a_phase_is_passed_over() -> None:
    """And what an older one did not know has its default."""
    assert phase_in(b'{"status":"done","run":2,"novelty":[1]}') == PhaseState("done", 2)
