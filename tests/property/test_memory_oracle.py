"""Updates with a right answer for each: what our own checks and edits make of them."""

from tests.memory_reading.updating import Outcome, pairs, run

#: Shares, in percent: of right facts that the checks let pass, and of turns that no model was shown.
ACCEPTED, UNSEEN = 98, 1


async def test_what_is_right_is_done_and_nothing_else() -> None:
    """The newer is current and the older is not, undo brings it back, and who stands by stays."""
    outcome: Outcome = await run()
    assert outcome.failures == []
    assert outcome.newer_current == outcome.older_gone == outcome.undone == outcome.pairs
    assert (outcome.bystanders, outcome.bystanders_retired) == (1_000, 0)
    assert 100 * outcome.facts_accepted >= ACCEPTED * outcome.facts_right
    assert 100 * (outcome.turns - outcome.turns_shown) <= UNSEEN * outcome.turns


def test_there_are_pairs_of_many_domains() -> None:
    """Told in ordinary words; each is a case of its own."""
    assert len(pairs()) >= 60
    assert len({pair.domain for pair in pairs()}) >= 10
