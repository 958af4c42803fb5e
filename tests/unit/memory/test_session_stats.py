"""What a session says of itself: what it saved, and what would have been worth keeping."""

from dataclasses import replace

from memory.sessions.pipeline_records import PhaseState
from memory.sessions.session import EntryInfo
from memory.sessions.stats import read_states, summarise

ENTRY = EntryInfo("a:x", "a", "x", None, 1_000, None, None, 120_000, "", 3, 1, 1)


def test_time_is_saved_by_each_use() -> None:
    """Not by being there."""
    entries = [ENTRY, replace(ENTRY, key="a:y", computation_ms=50_000, hits=0, created_ms=2_000)]
    stats = summarise(entries, {}, 4_000)
    assert (stats.total_entries, stats.total_hits, stats.total_saved_time_ms) == (2, 3, 360_000)
    assert stats.avg_entry_age_ms == 2_500


def test_what_took_under_a_second_was_not_worth_keeping() -> None:
    """An entry whose time nobody measured is not accused."""
    quick = [replace(ENTRY, key=f"a:{ms}", computation_ms=ms) for ms in (0, 999, 1_000)]
    entries = [*quick, replace(ENTRY, key="a:unknown", computation_ms=0, is_timed=False)]
    assert summarise(entries, {}, 0).not_worth_caching == ("a:0", "a:999")


def test_a_phase_of_over_ten_seconds_should_have_kept_something() -> None:
    """Unless it did."""
    took = {"a": 99_000, "b": 10_000, "d": 10_001, "c": 20_000}
    stats = summarise([ENTRY], {name: PhaseState(took_ms=ms) for name, ms in took.items()}, 0)
    assert stats.uncached_phases == ("c", "d")


def test_states_that_cannot_be_read_tell_no_time() -> None:
    """They stop nobody."""
    odd = [b"a", b'{"took_ms": 5}', b"b", b"{", b"c", b"[]", b"d", b"{}", b"e", b'{"took_ms": null}', b"f", b"\xff"]
    assert {name: state.took_ms for name, state in read_states(odd).items()} == {"a": 5, "d": 0}
