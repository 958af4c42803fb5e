"""The memory chain under attack and against an oracle: strangers, hostile models, and updates with a right answer."""

from random import Random

from redis.asyncio import Redis

from tasklore.memory.queues.queue import PersonalQueue
from tests.integration.documents import store_on
from tests.memory_reading import hostile, updating
from tests.property.examples import scale
from tests.strangers import Strangers

#: Accesses that every run of the tests tries on each store; a hundred thousand are tried by the long ones.
ACCESSES = 2_000


async def test_no_user_reaches_the_documents_of_another(redis: Redis) -> None:
    strangers = Strangers(
        store_on(redis), PersonalQueue(redis, "facts", deadline_s=60.0), Random(7)
    )
    await strangers.settle()
    await strangers.intrude(ACCESSES)
    await strangers.check()
    assert strangers.outcomes["served"] > ACCESSES / 4
    assert {"InvalidInput", "UndoRefused"} <= strangers.outcomes.keys()


SAMPLE = scale(150)


async def test_no_hostile_answer_damages_a_document_or_shows_anothers_words() -> None:
    outcome = await hostile.run(SAMPLE, first=50_000)
    assert outcome.damages == []
    # Some get through, or nothing was tried.
    assert outcome.rulings["applied"] > SAMPLE
    assert outcome.rulings["conflict"] > SAMPLE // 10
    assert outcome.flagged > SAMPLE // 10


#: Shares, in percent: of right facts that the checks let pass, and of turns that no model was shown.
ACCEPTED = 98
UNSEEN = 1


async def test_what_is_right_is_done_and_nothing_else() -> None:
    """The newer is current and the older is not, undo brings it back, and who stands by stays."""
    outcome = await updating.run()
    assert outcome.failures == []
    assert (
        outcome.newer_current == outcome.older_gone == outcome.undone == outcome.pairs
    )
    assert (outcome.bystanders, outcome.bystanders_retired) == (1_000, 0)
    assert 100 * outcome.facts_accepted >= ACCEPTED * outcome.facts_right
    assert 100 * (outcome.turns - outcome.turns_shown) <= UNSEEN * outcome.turns


def test_there_are_pairs_of_many_domains() -> None:
    assert len(updating.pairs()) >= 60
    assert len({pair.domain for pair in updating.pairs()}) >= 10
