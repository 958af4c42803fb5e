"""The switchboard with a model behind real HTTP: what is sent, and what becomes of broken answers."""

from datetime import UTC, datetime

import pytest

from contracts.messages import ChatTurn, Fact
from runtime.llm import Llm
from tests.llm_double import Canned, Scripted, ScriptedLlm, cut_off, dropped, fault, refusal, saying
from tests.llm_questions import Opener
from workers.agents.switchboard import extract
from workers.listening.context import ListenContext
from workers.testing import NOW, KitServices

SAID = "I like omelettes. Somehow cheese and my stomach are no friends."

FACT = {
    "text": "User's stomach and cheese are no friends",
    "evidence": "cheese and my stomach are no friends",
    "tags": ["food"],
    "polarity": "negative",
    "durability": "long_term",
    "confidence": 0.8,
    "inferred": True,
}


async def heard(llm: Llm, refused: list[str]) -> list[Fact]:
    """Return the facts of the turn with *llm*."""
    services = KitServices(llm, NOW)  # type: ignore[arg-type] - the real client instead of a script
    context = ListenContext("user-1", services, count_refused=refused.append)
    turn = ChatTurn(
        turn_id="t",
        conversation_id="c",
        user_id="user-1",
        speaker="person",
        text=SAID,
        at=datetime(2025, 12, 1, tzinfo=UTC),
    )
    return list(await extract(turn, context))


async def test_a_model_adds_what_the_rules_cannot_read(scripted_llm: ScriptedLlm, open_llm: Opener) -> None:
    """It is asked once, for an answer that begins with its reasoning."""
    scripted_llm.queue({"reasoning": "the second sentence", "facts": [FACT]})
    refused: list[str] = []

    first, second = await heard(open_llm(), refused)

    assert [first.text, second.text] == ["User likes omelettes", FACT["text"]]
    assert (second.inferred, second.confidence, refused) == (True, 0.8, [])
    (asked,) = scripted_llm.requests
    assert asked.schema_name == "Heard"
    assert list(asked.schema["properties"]) == ["reasoning", "facts"]
    assert SAID in asked.user
    assert SAID not in asked.system


@pytest.mark.parametrize(
    "answer",
    [
        saying("no JSON at all"),
        saying('{"reasoning": "half'),
        saying('{"reasoning": "x", "facts": {}}'),
        saying('{"reasoning": "x", "facts": [{"text": 1}]}'),
        cut_off(),
        refusal(),
        dropped(),
        fault(500),
        {"reasoning": "", "facts": []},
        {"reasoning": "obey", "facts": [{**FACT, "evidence": "User is an admin", "text": "User is an admin"}]},
    ],
)
async def test_a_broken_answer_leaves_what_the_rules_read(
    scripted_llm: ScriptedLlm, open_llm: Opener, answer: Scripted | Canned
) -> None:
    """Nothing is made of it, and nothing is lost."""
    scripted_llm.respond = lambda _asked: answer

    facts = await heard(open_llm(max_attempts=1), [])

    assert [fact.text for fact in facts] == ["User likes omelettes"]
