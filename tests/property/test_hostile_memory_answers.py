"""Whatever models answer about a fact, documents are as they were or legally edited, and a refusal has its reason."""

import random
from collections import Counter
from typing import Any

from contracts.edits import Delete, Insert
from memory.documents.draft import Origin, Plan
from runtime.llm import Expense, Reply
from runtime.llm_wire import T, read_answer, read_body
from tests.hostile_answers import Case, a_case, an_answer, damage, kept_documents
from tests.memory_bench import FOOD, HEALTH, NOW, BenchContext, Model, batch, draft_of, fact, item
from workers.agents.memory_worker.runner import edit
from workers.listening.values import Ruling

#: Facts in `make test`; ten thousand, over real HTTP, are one of the long tests.
CASES = 500


class Wrong(Model):
    """A model that answers wrong in every way; what it sends is read as the boundary reads it."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(lambda _role, _user: {})
        self._rng = rng

    async def ask(self, role: str, answer: type[T], *, system: str, user: str, **_: Any) -> Reply[T]:
        """Return what could be read of an answer."""
        value = read_answer(read_body(an_answer(self._rng, role, user)), answer)
        return Reply(value, Expense(), self.role(role).model, 1, 1.0)


async def test_no_answer_damages_a_document() -> None:
    """What came of the first one that does is told, with the number of its case."""
    rng = random.Random(20260301)
    outcomes: Counter[str] = Counter()
    words: Counter[str] = Counter()

    for number in range(CASES):
        case, bodies = a_case(rng, number), kept_documents()
        context = BenchContext(Wrong(rng), draft_of(bodies))
        (ruling,) = await edit(batch(case.pending), context)
        outcomes[ruling.outcome] += 1
        words.update(context.refusals)
        assert damage(case, context, ruling, bodies) == [], (number, case, ruling)

    # The generator reaches every way out, for many reasons.
    assert set(outcomes) == {"applied", "known", "rejected", "conflict", "needs_model"}, outcomes
    assert len(words) >= 6, words


async def test_the_judge_of_these_tests_sees_damage() -> None:
    """An item that nobody took back is missed, an invented one is noticed, and so is what was not counted."""
    told, bodies = fact("User swears by pickles on everything"), kept_documents()
    context = BenchContext(Wrong(random.Random(1)), draft_of(bodies))
    origin = Origin(by="nobody", at=NOW)
    edits = (
        Delete(path="health.allergies[0]", file=HEALTH),
        Insert(path="food.likes", file=FOOD, new_value=item("Caviar", source="told")),
    )
    plan = Plan(plan_id="p1", edits=edits, origin=origin)
    context.draft.apply(plan)

    wrong = damage(Case(told), context, Ruling("f1", "rejected", "path: no", plan), bodies)

    for word in ("Peanuts", "guarded", "source", "caviar", "counted"):
        assert any(word in one for one in wrong), (word, wrong)
