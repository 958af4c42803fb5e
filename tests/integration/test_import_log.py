"""Which files were imported, on a real server."""

from redis.asyncio import Redis

from tasklore.memory.long_term.owners import ImportLog
from tasklore.memory.long_term.store import LongTermMemory
from tests.servers import PATIENCE_S


async def test_a_file_is_known_by_its_content_and_agent(redis: Redis) -> None:
    log = ImportLog(redis)
    assert not await log.knows("A", b"one")
    await log.note("A", b"one")
    assert await log.knows("A", b"one")
    assert not await log.knows("A", b"two")
    assert not await log.knows("B", b"one")


async def test_forgetting_answers_keeps_the_note_of_their_import(redis: Redis) -> None:
    """Or the next worker would bring the answers back."""
    log = ImportLog(redis)
    await log.note("A", b"one")
    await LongTermMemory(redis, budget_s=PATIENCE_S).forget(everything=True)
    assert await log.knows("A", b"one")
