"""Nobody reads or edits what is somebody else's, however it is tried."""

from random import Random

from redis.asyncio import Redis

from memory.queues.queue import PersonalQueue
from tests.integration.documents import store_on
from tests.strangers import Strangers

#: Accesses that every run of the tests tries on each store; a hundred thousand are tried by the long ones.
ACCESSES = 2_000


async def test_no_user_reaches_the_documents_of_another(redis: Redis) -> None:
    """Thousands of tries by everybody on everybody, a tenth of them by nobody; all of them can be tried again."""
    strangers = Strangers(store_on(redis), PersonalQueue(redis, "facts", deadline_s=60.0), Random(7))
    await strangers.settle()
    await strangers.intrude(ACCESSES)
    await strangers.check()
    assert strangers.outcomes["served"] > ACCESSES / 4
    assert {"InvalidInput", "UndoRefused"} <= strangers.outcomes.keys()
