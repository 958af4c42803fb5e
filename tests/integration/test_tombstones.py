"""What a tombstone hides is nowhere to be read, and comes back byte for byte."""

from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.memory.tombstones.store import Tombstones
from tests.integration.documents import commit, like, liked, plan

USER = "user-1"
TOKEN = user_token(USER)
NOW = datetime.now(UTC)
PATIENCE_S = 60.0
#: What is no memory: the owners of rows, and the numbers that rows are given.
NEITHER = (b"tl:owners:", b":fence")


class Person:
    """Somebody with something in every place of the memory."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.documents = DocumentStore(redis, Kinds.load(), deadline_s=PATIENCE_S)
        self.episodes = Episodes(redis, deadline_s=PATIENCE_S)
        self.turns = PersonalQueue(redis, "turns", deadline_s=PATIENCE_S)
        self.facts = PersonalQueue(redis, "facts", deadline_s=PATIENCE_S)
        self.notices = Notices(redis, deadline_s=PATIENCE_S)
        self.conversations = Conversations(redis, deadline_s=PATIENCE_S)
        self.stones = Tombstones(redis, deadline_s=PATIENCE_S)

    async def live(self, what: str) -> None:
        """Leave *what* everywhere."""
        await commit(self.documents, plan(f"p-{what}", like(what)))
        turn = Episode(
            turn_id=what, conversation_id="c", speaker="person", at=NOW, text=what
        )
        await self.episodes.append(USER, [turn])
        await self.turns.append(USER, [(what, what.encode())])
        await self.facts.append(USER, [(what, what.encode())])
        await self.notices.put(USER, what, [what])
        await self.conversations.append("c", what.encode(), what, user_id=USER)

    async def everything(self) -> dict[bytes, tuple[bytes, int]]:
        """Return each key of the memory as it is stored, with its end."""
        found = {}
        for key in await self.redis.keys(f"tl:*{{{TOKEN}}}*"):
            if not key.endswith(NEITHER[1]) and not key.endswith(b":lease"):
                found[key] = (
                    await self.redis.dump(key),
                    await self.redis.pexpiretime(key),
                )
        return found

    async def visible(self) -> list[bytes]:
        """Return the keys that a reader would look at."""
        return [
            key
            for key in await self.everything()
            if not key.startswith(b"tl:forgotten:")
        ]


@pytest.fixture
async def person(redis: Redis) -> Person:
    found = Person(redis)
    await found.live("Eggs")
    return found


async def test_all_is_hidden_at_once_and_comes_back_as_it_was(person: Person) -> None:
    """With the time to live of each key."""
    before = await person.everything()
    assert {key.split(b":")[1] for key in before} == {
        b"doc",
        b"episodes",
        b"turns",
        b"facts",
        b"notices",
        b"user-conversations",
    }
    hidden = await person.stones.hide(USER, by="t1", now=NOW)
    assert hidden == len(before) == await person.stones.count(USER)
    assert await person.visible() == []
    assert await liked(person.documents) == []
    assert (await person.episodes.search(USER, "eggs")).hits == ()
    assert await person.conversations.of_user(USER) == []
    assert (
        await person.turns.claim(USER, holder="h", limit=9, lease_ms=1000, now_ms=0)
        is None
    )
    assert await person.stones.bring_back(USER, by="t2", now=NOW)
    assert await person.everything() == before
    assert await person.stones.count(USER) == 0


async def test_it_ends_by_itself_when_its_day_is_over(person: Person) -> None:
    """Also what has no end of its own; what would have ended sooner does."""
    before = await person.everything()
    await person.stones.hide(USER, by="t1", now=NOW)
    until = int((NOW + timedelta(days=1)).timestamp() * 1000)
    after = await person.everything()
    ends = sorted(end for _, end in after.values())
    own = [end for _, end in before.values() if 0 < end < until]
    assert ends == sorted([*own, *[until] * (len(after) - len(own))])


async def test_hiding_again_hides_nothing_more(person: Person) -> None:
    """A task that is run again has done it; what was said since stays, and another task hides that too."""
    first = await person.stones.hide(USER, by="t1", now=NOW)
    await person.live("Ham")
    assert await person.stones.hide(USER, by="t1", now=NOW) == first
    assert await liked(person.documents) == ["Ham"]
    await person.stones.hide(USER, by="t2", now=NOW)
    assert await liked(person.documents) == []
    assert await person.stones.bring_back(USER, by="t3", now=NOW)
    assert await liked(person.documents) == ["Ham"]


async def test_what_was_said_since_is_put_aside_whole(person: Person) -> None:
    """And found there again, until it was told again."""
    before = await person.everything()
    await person.stones.hide(USER, by="t1", now=NOW)
    await person.live("Ham")
    since = await person.everything()
    for _ in range(2):
        assert await person.stones.bring_back(USER, by="t2", now=NOW)
    back = await person.everything()
    assert {key: back[key] for key in before} == before
    aside = await person.stones.aside(USER)
    assert aside is not None
    assert set(aside.held) == {
        key.decode() for key in since if not key.startswith(b"tl:forgotten:")
    }
    assert await person.stones.count(USER) == len(aside.held)


async def test_forgetting_for_good_wins(person: Person) -> None:
    """Nothing is left to bring back, and nothing in any key."""
    hidden = await person.stones.hide(USER, by="t1", now=NOW)
    assert await person.stones.forget(USER) == hidden
    assert not await person.stones.bring_back(USER, by="t2", now=NOW)
    assert await person.everything() == {}
    assert await person.stones.forget(USER) == 0


async def test_a_worker_that_reads_old_words_stores_nothing(person: Person) -> None:
    """Its lease went with the rows."""
    claim = await person.turns.claim(
        USER, holder="h", limit=9, lease_ms=60_000, now_ms=int(NOW.timestamp() * 1000)
    )
    assert claim is not None
    await person.stones.hide(USER, by="t1", now=NOW)
    assert await person.redis.exists(keys.queue("turns", TOKEN).lease) == 0
    await person.live("Ham")
    again = await person.turns.claim(
        USER, holder="i", limit=9, lease_ms=60_000, now_ms=int(NOW.timestamp() * 1000)
    )
    assert again is not None
    assert again.fence > claim.fence
    assert [row.row_id for row in again.rows] == ["Ham"]
