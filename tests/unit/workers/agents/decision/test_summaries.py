"""What an agent heard long ago, when a model sums it up while another one decides."""

import asyncio
from typing import Any

from tasklore.contracts.errors import LlmRefused
from tasklore.memory.conversations.inbox import Inbox
from tasklore.workers.summary import Summary
from tasklore.workers.summary.question import question
from tasklore.workers.testing import KitHistory, ScriptedLlm
from tasklore.workers.testing.stores import PATIENCE_S
from tests.unit.workers.agents.decision.sample_world import decided, kit, said, wish

#: Thirty messages more than are shown.
PAST = tuple(said(number, f"word {number}") for number in range(80))


class Summarised(Inbox):
    """Tells when a summary is there."""

    def __init__(self, *told: Any) -> None:
        super().__init__(*told)
        self.is_done = asyncio.Event()

    async def summarise(self, *told: Any, **more: Any) -> bool:
        """Keep it."""
        done = await super().summarise(*told, **more)
        self.is_done.set()
        return done


class Slow(ScriptedLlm):
    """A model that decides no sooner than a summary is there, as one does that takes its time."""

    def __init__(self, script: list[Any], is_summarised: asyncio.Event) -> None:
        super().__init__(script)
        self._is_summarised = is_summarised

    async def ask(self, role: str, *told: Any, **more: Any) -> Any:
        """Answer."""
        if role == "decision":
            await self._is_summarised.wait()
        return await super().ask(role, *told, **more)


async def test_a_summary_is_made_beside_the_decision_and_shown_to_the_next_one() -> (
    None
):
    summary = Summary(reasoning="They count.", summary="Bob said 'thirty' words.")
    stand = kit(wish("wait"), wish("wait"), history=KitHistory(past=PAST))
    stand.services.inbox = inbox = Summarised(stand.services.redis, PATIENCE_S)
    stand.services.llm = Slow([summary, wish("wait"), wish("wait")], inbox.is_done)

    for _ in range(2):
        assert (await decided(stand)).action == "wait"

    assert [asked.role for asked in stand.asked] == ["summary", "decision", "decision"]
    first, second = stand.asked[1:]
    assert "Before: 30 messages from 0s to 29s: 30 by Bob\n" in first.user
    assert "In short" not in first.user
    assert "30 by Bob. In short: 'Bob said \u2019thirty\u2019 words.'\n" in second.user


async def test_a_summary_that_fails_changes_no_decision() -> None:
    class Refusing(ScriptedLlm):
        async def ask(self, role: str, *told: Any, **more: Any) -> Any:
            if role == "summary":
                raise LlmRefused("no")
            return await super().ask(role, *told, **more)

    stand = kit(history=KitHistory(past=PAST))
    stand.services.llm = Refusing([wish("wait")])

    assert (await decided(stand)).by == "scripted"
    [asked] = stand.asked
    assert "In short" not in asked.user


def test_whoever_sums_up_is_told_whose_own_words_they_are() -> None:
    """Another of that name could put words into the agent's mouth, and no name can look like the mark."""
    own = said(1, "Mine.", "Ana").model_copy(update={"own": True})

    assert question(None, [own, said(2, "Hers too.", "Ana")]).splitlines()[-2:] == [
        "- own: Ana said: 'Mine.'",
        "- Ana said: 'Hers too.'",
    ]
