"""Ten thousand facts whose models answer wrong in every way, behind real HTTP and the real client."""

import random
from collections import Counter

import pytest

from runtime.llm import Llm, LlmSettings
from tests.hostile_answers import a_case, an_answer, damage, kept_documents
from tests.llm_double import Asked, Canned, ScriptedLlm, dropped, raw, truncated
from tests.memory_bench import BenchContext, batch, draft_of
from workers.agents.memory_worker.runner import edit


@pytest.mark.long
@pytest.mark.parametrize("cases", [10_000])
async def test_no_answer_damages_a_document(cases: int) -> None:
    """Every refusal has its reason and is counted; what no model answers for waits."""
    rng = random.Random(20260302)
    outcomes: Counter[str] = Counter()

    def respond(asked: Asked) -> Canned:
        if rng.random() < 0.01:
            return rng.choice((dropped(), truncated()))
        return raw(an_answer(rng, "finder" if asked.schema_name == "Found" else "editor", asked.user))

    async with ScriptedLlm(respond) as server, _llm(server) as llm:
        for number in range(cases):
            case, bodies = a_case(rng, number), kept_documents()
            context = BenchContext(llm, draft_of(bodies))
            (ruling,) = await edit(batch(case.pending), context)
            outcomes[ruling.outcome] += 1
            assert damage(case, context, ruling, bodies) == [], (number, case, ruling)
            server.requests.clear()

    assert sum(outcomes.values()) == cases
    assert set(outcomes) == {"applied", "known", "rejected", "conflict", "needs_model"}, outcomes


def _llm(server: ScriptedLlm) -> Llm:
    """Return a client that asks twice where an answer cannot be read, without a pause."""
    return Llm(LlmSettings(base_url=server.base_url, max_attempts=2, backoff_base_s=0.0))
