"""What an agent heard long ago, when a model sums it up while another one decides."""

from tasklore.contracts.errors import LlmRefused
from tasklore.workers.summary import Summary
from tasklore.workers.summary.question import question
from tasklore.workers.testing import KitHistory
from tests.unit.workers.agents.decision.sample_world import decided, kit, said, wish

#: Thirty messages more than are shown.
PAST = tuple(said(number, f"word {number}") for number in range(80))


async def test_a_summary_is_made_beside_the_decision_and_shown_to_the_next_one() -> (
    None
):
    summary = Summary(reasoning="They count.", summary="Bob said 'thirty' words.")
    stand = kit(summary, wish("wait"), wish("wait"), history=KitHistory(past=PAST))

    for _ in range(2):
        assert (await decided(stand)).action == "wait"

    assert [asked.role for asked in stand.asked] == ["summary", "decision", "decision"]
    first, second = stand.asked[1:]
    assert "Before: 30 messages from 0s to 29s: 30 by Bob\n" in first.user
    assert "In short" not in first.user
    assert "30 by Bob. In short: 'Bob said \u2019thirty\u2019 words.'\n" in second.user


async def test_a_summary_that_fails_changes_no_decision() -> None:
    stand = kit(LlmRefused("no"), wish("wait"), history=KitHistory(past=PAST))

    assert (await decided(stand)).by == "scripted"
    assert "In short" not in stand.asked[1].user


def test_whoever_sums_up_is_told_whose_own_words_they_are() -> None:
    """Another of that name could put words into the agent's mouth, and no name can look like the mark."""
    own = said(1, "Mine.", "Ana").model_copy(update={"own": True})

    assert question(None, [own, said(2, "Hers too.", "Ana")]).splitlines()[-2:] == [
        "- own: Ana said: 'Mine.'",
        "- Ana said: 'Hers too.'",
    ]
