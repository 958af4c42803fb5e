"""What a tombstone hides is nowhere to be read, and comes back byte for byte."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import ExtractedFacts
from tasklore.memory import keys
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.memory.tombstones.store import Tombstones
from tasklore.workers.context.edits import HeldMemory, UserEdits
from tasklore.workers.forgetting.hidden_memory import AddedAgain, HiddenMemory
from tests.integration.documents import FOOD, commit, like, liked, plan

USER = "user-1"
TOKEN = user_token(USER)
NOW = datetime.now(UTC).replace(microsecond=0)
PATIENCE_S = 60.0
LATER = NOW + timedelta(minutes=1)
DAY_MS = 86_400_000
STONE = f"tl:forgotten:{{{TOKEN}}}".encode()
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

    async def live(self, what: str, at: datetime = NOW) -> None:
        """Leave *what* everywhere, said at *at*."""
        await commit(self.documents, plan(f"p-{what}", like(what)))
        turn = Episode(
            turn_id=what, conversation_id="c", speaker="person", at=at, text=what
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

    async def milliseconds(self) -> int:
        """Return the server's time in ms since 1970."""
        seconds, microseconds = await self.redis.time()
        return int(seconds) * 1000 + int(microseconds) // 1000

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
    """With the time to live of each key, and each message in its place."""
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
    assert hidden.keys == len(before)
    assert await person.stones.count(USER) == len(before) + 1
    assert await person.visible() == []
    assert await liked(person.documents) == []
    assert (await person.episodes.search(USER, "eggs")).hits == ()
    assert await person.conversations.of_user(USER) == []
    assert await person.conversations.recent("c") == []
    assert (
        await person.turns.claim(USER, holder="h", limit=9, lease_ms=1000, now_ms=0)
        is None
    )
    assert await person.stones.bring_back(USER, by="t2", now=NOW)
    await person.stones.settle(USER)
    assert await person.everything() == {
        **before,
        **{
            key: one for key, one in (await person.everything()).items() if key == STONE
        },
    }
    assert await person.conversations.recent("c") == [b"Eggs"]
    assert await person.stones.count(USER) == 0


async def test_how_much_would_be_lost_is_what_is_there(person: Person) -> None:
    """Documents, items and turns, since the first of these; nothing once it is hidden."""
    edits = UserEdits(
        user_id=USER,
        store=person.documents,
        attempt=1,
        now=LATER,
        episodes=person.episodes,
    )
    later = Episode(
        turn_id="two", conversation_id="c", speaker="person", at=LATER, text="hello"
    )
    await person.episodes.append(USER, [later])
    held = await edits.held(Kinds.load())
    assert held == HeldMemory(documents=1, items=1, turns=2, since=NOW)
    await person.stones.hide(USER, by="t1", now=LATER)
    nothing = await edits.held(Kinds.load())
    assert (nothing.is_empty, nothing.since) == (True, None)


async def test_it_ends_by_itself_when_its_day_is_over(person: Person) -> None:
    """Also what has no end of its own; what would have ended sooner does."""
    before = await person.everything()
    began = await person.milliseconds()
    hidden = await person.stones.hide(USER, by="t1", now=NOW)
    latest = await person.milliseconds() + DAY_MS
    assert hidden.until == NOW + timedelta(days=1)
    after = await person.everything()
    own = sorted(end for _, end in before.values() if 0 < end < began + DAY_MS)
    talks = await person.redis.keys("tl:forgotten-talk:*")
    ends = [end for _, end in after.values()]
    ends += [await person.redis.pexpiretime(key) for key in talks]
    assert (len(talks), sorted(ends)[: len(own)]) == (1, own)
    assert all(began + DAY_MS <= end <= latest for end in sorted(ends)[len(own) :])
    late = NOW + timedelta(days=1)
    assert await person.stones.latest(USER, late) is None
    assert not await person.stones.bring_back(USER, by="t2", now=late)


async def test_hiding_again_hides_nothing_more(person: Person) -> None:
    """A task that is run again has done it; what was said since stays, and another task hides that too."""
    first = await person.stones.hide(USER, by="t1", now=NOW)
    await person.live("Ham")
    assert await person.stones.hide(USER, by="t1", now=NOW) == first
    assert await person.stones.hidden_by(USER, "t1") == first
    assert await liked(person.documents) == ["Ham"]
    await person.stones.hide(USER, by="t2", now=NOW)
    assert await liked(person.documents) == []
    assert await person.stones.bring_back(USER, by="t3", now=NOW)
    assert await liked(person.documents) == ["Ham"]


async def test_what_was_said_since_is_put_aside_whole(person: Person) -> None:
    """And found there again, however often it is asked for, until it was told again."""
    before = await person.everything()
    await person.stones.hide(USER, by="t1", now=NOW)
    await person.live("Ham", at=LATER)
    for _ in range(2):
        assert await person.stones.bring_back(USER, by="t2", now=NOW)
    back = await person.everything()
    assert {key: back[key] for key in before} == before
    aside = await person.stones.put_aside(USER)
    assert aside is not None
    assert b"Ham" in aside.bodies[FOOD]
    assert [Episode.model_validate_json(one).text for one in aside.episodes] == ["Ham"]
    assert aside.rows == {"turns": (("Ham", b"Ham"),), "facts": (("Ham", b"Ham"),)}
    assert list(aside.conversations) == ["c"]
    assert await person.conversations.recent("c") == [b"Eggs", b"Ham"]
    await person.stones.settle(USER)
    assert await person.stones.put_aside(USER) is None
    assert await person.stones.count(USER) == 0


async def test_what_was_said_since_is_told_again(person: Person) -> None:
    """Turns by their ids, what was learned as facts, and what waited waits again; a repeat adds nothing."""
    hiding = HiddenMemory(
        redis=person.redis,
        kinds=Kinds.load(),
        episodes=person.episodes,
        deadline_s=PATIENCE_S,
    )
    await hiding.hide(USER, by="t1", now=NOW)
    await person.live("Ham", at=LATER)
    await person.episodes.settle(USER, is_on=True, days=9)
    told = await hiding.bring_back(USER, by="t2", now=NOW)
    assert told == AddedAgain(turns=1, items=1)
    assert await hiding.bring_back(USER, by="t2", now=NOW) == AddedAgain()
    assert await hiding.bring_back(USER, by="t3", now=NOW) is None
    assert await liked(person.documents) == ["Eggs"]
    recent = await person.episodes.recent(USER, 9)
    assert [one.text for one in recent] == ["Eggs", "Ham"]
    assert await person.episodes.settings(USER) == (True, 9)
    assert [row.row_id for row in await person.turns.rows(USER, 9)] == ["Eggs", "Ham"]
    eggs, learned, ham = await person.facts.rows(USER, 9)
    assert (eggs.row_id, learned.row_id, ham.row_id) == ("Eggs", "t2-1", "Ham")
    (fact,) = ExtractedFacts.model_validate_json(learned.body).facts
    assert (fact.category, fact.value, fact.relation) == ("food.likes", "Ham", "new")
    due = await person.facts.owners_due(int(NOW.timestamp() * 1000), 9)
    assert due == [USER]
    assert await person.stones.count(USER) == 0


async def test_a_long_turn_is_told_again_whole(person: Person) -> None:
    """It is found by its passages, and is one turn."""
    hiding = HiddenMemory(
        redis=person.redis,
        kinds=Kinds.load(),
        episodes=person.episodes,
        deadline_s=PATIENCE_S,
    )
    await hiding.hide(USER, by="t1", now=NOW)
    text = " ".join(f"The ham of day {day} was good." for day in range(300))
    turn = Episode(
        turn_id="long", conversation_id="c", speaker="person", at=LATER, text=text
    )
    assert await person.episodes.append(USER, [turn]) == 1
    told = await hiding.bring_back(USER, by="t2", now=NOW)
    assert told == AddedAgain(turns=1, items=0)
    recent = await person.episodes.recent(USER, 9)
    assert [one.text for one in recent] == ["Eggs", text]
    (hit, *_) = (await person.episodes.search(USER, "ham of day 250")).hits
    assert hit.episode.turn_id == "long"


async def test_what_is_told_again_is_hidden_by_the_next_wish(person: Person) -> None:
    """A process that died before it told all of it leaves nothing behind that outlives the day."""
    hiding = HiddenMemory(
        redis=person.redis,
        kinds=Kinds.load(),
        episodes=person.episodes,
        deadline_s=PATIENCE_S,
    )
    await hiding.hide(USER, by="t1", now=NOW)
    await person.live("Ham", at=LATER)
    assert await person.stones.bring_back(USER, by="t2", now=NOW)
    await hiding.hide(USER, by="t3", now=LATER)
    assert await person.visible() == []
    assert await person.stones.put_aside(USER) is None
    ends = [end for _, end in (await person.everything()).values()]
    assert all(end > 0 for end in ends)


async def test_what_comes_late_is_hidden_too(person: Person) -> None:
    """A turn that was said before lies on its way in a stream, and so do facts of it."""
    await person.stones.hide(USER, by="t1", now=NOW)
    before, after = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)
    for name, at in (("late", before), ("new", after)):
        turn = Episode(
            turn_id=name, conversation_id="c", speaker="person", at=at, text=name
        )
        assert await person.episodes.append(USER, [turn]) == int(name == "new")
        for queue in (person.turns, person.facts):
            await queue.append(USER, [(name, name.encode())], said=at)
            assert [row.row_id for row in await queue.rows(USER, 9)] == ["new"] * (
                name == "new"
            )
    assert [one.text for one in await person.episodes.recent(USER, 9)] == ["new"]
    late = await person.redis.keys("tl:forgotten:*:late:*")
    end = await person.redis.pexpiretime(STONE)
    assert [0 < await person.redis.pexpiretime(key) <= end for key in late] == [
        True
    ] * 2
    assert await person.stones.bring_back(USER, by="t2", now=NOW)
    aside = await person.stones.put_aside(USER)
    assert aside is not None
    assert aside.late == {"turns": (("late", b"late"),), "facts": (("late", b"late"),)}
    assert await person.turns.append(USER, [("x", b"x")], said=before) == 1


def turn_of(user: str | None, text: str) -> bytes:
    """Return a turn as a conversation keeps it."""
    return json.dumps({"user_id": user, "text": text}).encode()


async def test_of_a_shared_conversation_their_own_words_are_hidden(
    person: Person,
) -> None:
    """And come back to their places among what others said meanwhile."""
    talk = person.conversations
    for number, (user, text) in enumerate(
        [(USER, "one"), ("bob", "two"), (None, "three"), (USER, "four")]
    ):
        await talk.append("town", turn_of(user, text), str(number), user_id=user)
    whole = await talk.recent("town")
    await person.stones.hide(USER, by="t1", now=NOW)
    assert await talk.recent("town") == [whole[1], whole[2]]
    await talk.append("town", turn_of("bob", "five"), "5", user_id="bob")
    assert not await talk.append("town", turn_of(USER, "one"), "0", user_id=USER)
    await person.stones.bring_back(USER, by="t2", now=NOW)
    assert await talk.recent("town") == [*whole, turn_of("bob", "five")]


async def test_what_an_agent_observed_and_summed_up_is_hidden_with_it(
    person: Person,
) -> None:
    """Neither says whose words it holds; what it observes meanwhile stands behind that."""
    of = keys.conversation("c")
    await person.redis.rpush(of.observed, "saw eggs")
    await person.redis.zadd(of.observed_in, {"t-eggs": 1})
    await person.redis.hset(of.digest, mapping={"summary": "eggs", "summarised": 1})
    await person.redis.zadd(of.ids, {"waits": float("inf")})
    await person.redis.rpush(of.inbox, "waits", turn_of(USER, "hello"))
    await person.stones.hide(USER, by="t1", now=NOW)
    assert await person.redis.exists(of.observed, of.observed_in) == 0
    assert await person.redis.hget(of.digest, "summary") is None
    assert await person.conversations.waiting("c") == []
    await person.redis.rpush(of.observed, "saw ham")
    await person.redis.zadd(of.observed_in, {"t-ham": 1})
    await person.stones.bring_back(USER, by="t2", now=NOW)
    assert await person.redis.lrange(of.observed, 0, -1) == [b"saw eggs", b"saw ham"]
    assert await person.redis.zrange(of.observed_in, 0, -1) == [b"t-eggs", b"t-ham"]
    assert await person.redis.hget(of.digest, "summary") == b"eggs"
    assert await person.conversations.waiting("c") == [turn_of(USER, "hello")]


async def test_forgetting_for_good_wins(person: Person) -> None:
    """Nothing is left to bring back, and nothing in any key, nor of a conversation that nobody went on with."""
    hidden = await person.stones.hide(USER, by="t1", now=NOW)
    await person.turns.append(USER, [("l", b"l")], said=NOW - timedelta(seconds=1))
    assert await person.stones.forget(USER) == hidden.keys + 2
    assert not await person.stones.bring_back(USER, by="t2", now=NOW)
    assert await person.everything() == {}
    assert await person.stones.forget(USER) == 0
    left = await person.redis.keys("*")
    assert {
        key for key in left if b"owners" not in key and b":fence" not in key
    } == set()


async def test_purging_what_is_hidden_leaves_what_was_said_since(
    person: Person,
) -> None:
    await person.stones.hide(USER, by="t1", now=NOW)
    await person.live("Ham", at=LATER)
    await person.stones.forget(USER)
    assert await liked(person.documents) == ["Ham"]
    assert await person.conversations.recent("c") == [b"Ham"]
    assert await person.stones.count(USER) == 0


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
