"""What 0.2 left, put back into new servers: relative to now, and as if it had lain there for some time.

The dump is from one moment. What counts from then (`LISTED`) is moved to now; all other
times stay as they were, as in a system that was switched off.
"""

import asyncio
import base64
import json
import lzma
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import nats
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.runtime.servers.embedded import EmbeddedServers

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "0.2"
#: Seconds from the restore until what was due in days is due.
SOON_S = 3.0
PATIENCE_S = 60.0

Json = dict[str, Any]


class Listed(NamedTuple):
    """Times that are moved: in which key or stream, in which part of it, and why.

    A part is `key`, `field NAME`, `member`, `score`, `header NAME` or `body`; *name*
    picks those of a JSON object. Those of a task or schedule that is to go on are set to
    `SOON_S` from now.
    """

    place: str
    part: str
    name: str
    why: str


LISTED = (
    Listed("tl:task:*", "field due_at:1", "", "its next run may begin then"),
    Listed("tl:task:*", "field assignment:1", "not_before", "the same, of its first"),
    Listed("tl:task:*", "field assignment:1", "deadline", "it expires then"),
    Listed("LATER", "header Nats-Schedule", "", "the server publishes it then"),
    Listed("LATER", "body", "not_before", "its first run may begin then"),
    Listed("TASKS", "body", "deadline", "it expires then"),
    Listed("tl:task:*", "field wait.1", "until", "the question is open until then"),
    Listed("tl:waits:{index}", "score", "", "the question is looked at then"),
    Listed("tl:schedules:*:due", "score", "", "the schedule is looked at then"),
    Listed("tl:schedules:*:state", "field *", "", "its next tick"),
    Listed("tl:schedules:{*}", "field *", "anchor", "its ticks are counted from there"),
    Listed("tl:webhooks:*:queue", "member", "", "it is sent again then"),
    Listed("tl:webhooks:*:hosts", "score", "", "its host is looked at then"),
    Listed("tl:webhooks:*:states", "field *", "", "given up a day after the second"),
    Listed("tl:webhooks:*:expiry", "score", "", "the address of a task goes then"),
    Listed("tl:budget:*:book:*", "key", "", "a book counts for 62 days from then"),
    Listed("tl:ltm-users:*", "score", "", "what a task stored of a person goes then"),
    Listed("tl:turns:*:closed", "score", "", "it goes seven days after that"),
    Listed("tl:facts:*:closed", "score", "", "it goes seven days after that"),
)

#: A time that no age is given: the ids of a run's tasks are made of it.
NAMING = ("tl:session:*", "field created_at")

_DAY_MS = 24 * 3600 * 1000
#: Times in JSON and text: RFC 3339, days, and digits of seconds, ms and us since 1970.
_TIME = re.compile(
    r"(?<![\w.])20\d\d-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00))?(?![\w])"
    r"|(?<![\w.])1[789]\d{8}(?:\d{3}|\d{6})?(?![\w])"
)


@dataclass(frozen=True)
class Clock:
    """How far times are moved: all by *age* into the past, listed ones to now."""

    taken_at_ms: int
    now_ms: int
    age: timedelta

    def aged(self, text: str) -> str:
        """Return *text* as if the dump had been made *age* earlier."""
        by_ms = -int(self.age.total_seconds() * 1000)
        return _TIME.sub(lambda found: self._moved(found[0], by_ms), text)

    def shifted(self, text: str, name: str, *, soon: bool) -> str:
        """Return *text* with its times, those called *name* if given, as far from now as they were from the dump."""

        def move(found: re.Match[str]) -> str:
            ahead_ms = self._ms(found[0]) - self._taken_aged_ms
            if name == "anchor":
                ahead_ms += _every_ms(text)
            if soon and ahead_ms > 0:
                by_ms = (
                    self.now_ms - self._taken_aged_ms + int(SOON_S * 1000) - ahead_ms
                )
            else:
                by_ms = self.now_ms - self._taken_aged_ms
            return self._moved(found[0], by_ms)

        if not name:
            return _TIME.sub(move, text)
        named = re.compile(rf'("{name}":")([^"]*)')
        return named.sub(lambda found: found[1] + _TIME.sub(move, found[2]), text)

    @property
    def _taken_aged_ms(self) -> int:
        return self.taken_at_ms - int(self.age.total_seconds() * 1000)

    def _ms(self, text: str) -> int:
        if "-" not in text:
            return int(text[:13].ljust(13, "0"))
        if "T" not in text:
            text = f"{text}T00:00:00Z"
        return int(datetime.fromisoformat(text).timestamp() * 1000)

    def _moved(self, text: str, by_ms: int) -> str:
        near_ms = 400 * _DAY_MS
        if abs(self._ms(text) - self.taken_at_ms) > near_ms:
            return text
        if "-" not in text:
            return str(int(text) + by_ms * 10 ** (len(text) - 10) // 1000)
        if "T" not in text:
            day = datetime.fromisoformat(text) + timedelta(days=by_ms // _DAY_MS)
            return f"{day:%Y-%m-%d}"
        moved = datetime.fromisoformat(text) + timedelta(milliseconds=by_ms)
        spelled = moved.astimezone(UTC).isoformat()
        return spelled.replace("+00:00", "Z") if text.endswith("Z") else spelled


def _every_ms(schedule: str) -> int:
    """Return how long after its anchor a schedule makes its first tick, 0 for one by the clock."""
    found = re.search(r'"every_s":(\d+)', schedule)
    return int(found[1]) * 1000 if found else 0


def expected() -> Json:
    """Return what the seed saw of what it left."""
    return dict(json.loads((FIXTURE / "expected.json").read_text("utf-8")))


async def restore(
    servers: EmbeddedServers, age: timedelta, *, elsewhere: str, soon: tuple[str, ...]
) -> None:
    """Put the dump into empty *servers*, as if it was made *age* earlier.

    Receivers of webhooks are at *elsewhere*; *soon* names what is due soon.
    """
    dump = json.loads(lzma.decompress((FIXTURE / "dump.json.xz").read_bytes()))
    clock = Clock(dump["taken_at_ms"], int(time.time() * 1000), age)
    old = expected()["elsewhere"].removeprefix("http://")

    def change(place: str, part: str, text: str, of: str) -> str:
        text = text.replace(old, elsewhere.removeprefix("http://"))
        if not (fnmatchcase(place, NAMING[0]) and fnmatchcase(part, NAMING[1])):
            text = clock.aged(text)
        for listed in LISTED:
            if fnmatchcase(place, listed.place) and fnmatchcase(part, listed.part):
                is_soon = any(one in of for one in soon)
                text = clock.shifted(text, listed.name, soon=is_soon)
        return text

    client = await nats.connect(servers.nats_url)
    async with Redis.from_url(servers.redis_url) as redis:
        for kept in dump["keys"]:
            body = base64.b64decode(kept["dump"])
            key = change(kept["key"], "key", kept["key"], "")
            await redis.restore(key, max(kept["left_ms"], 0), body)
            await _change_key(redis, key, change)
        # A stream is read before that which takes from it.
        for stream in sorted(dump["streams"], key=_takes):
            made = await _restore_stream(client, stream, change)
            name = f"tl:stream:{{{stream['config']['name']}}}"
            # The restored stream has every open task, as the lost one had.
            await redis.set(name, made, xx=True)
    await client.close()


def _takes(stream: Json) -> bool:
    return "sources" in stream["config"]


Change = Callable[[str, str, str, str], str]


async def _change_key(redis: Redis, key: str, change: Change) -> None:
    kind = (await redis.type(key)).decode()
    if kind == "string":
        text = (await redis.get(key)).decode("latin-1")
        changed = change(key, "body", text, key)
        await redis.set(key, changed.encode("latin-1"), keepttl=True)
    elif kind == "hash":
        for field, value in (await redis.hgetall(key)).items():
            part = f"field {field.decode('latin-1')}"
            changed = change(key, part, value.decode("latin-1"), f"{key} {part}")
            await redis.hset(key, field, changed.encode("latin-1"))
    elif kind == "zset":
        for member, score in await redis.zrange(key, 0, -1, withscores=True):
            text = member.decode("latin-1")
            changed = change(key, "member", text, text)
            moved = change(key, "score", str(int(score)), text)
            if changed != text:
                await redis.zrem(key, member)
            await redis.zadd(key, {changed.encode("latin-1"): int(moved)})
    elif kind == "list":
        for position, item in enumerate(await redis.lrange(key, 0, -1)):
            changed = change(key, "item", item.decode("latin-1"), key)
            await redis.lset(key, position, changed.encode("latin-1"))


async def _restore_stream(client: Client, stream: Json, change: Change) -> str:
    """Make a stream anew and return when it was made, as the server spells it."""
    config = stream["config"]
    name = config["name"]
    made = await _api(client, f"STREAM.CREATE.{name}", config)
    for message in stream["messages"]:
        subject = message["subject"]
        # It was taken into TASKS already, or else would be taken again.
        if subject.startswith("due."):
            continue
        headers = {
            header: change(name, f"header {header}", text, subject)
            for header, text in message["headers"].items()
            if not header.startswith("Nats-Expected-")
        }
        body = change(name, "body", message["body"], message["body"][:200])
        await _store(client, subject, body, headers)
    for consumer in stream["consumers"]:
        durable = consumer["config"]["durable_name"]
        wanted = {"stream_name": name, "config": consumer["config"]}
        await _api(client, f"CONSUMER.DURABLE.CREATE.{name}.{durable}", wanted)
        read = [
            message
            for message in stream["messages"]
            if message["sequence"] <= consumer["acknowledged"]
            and message["subject"].startswith(
                consumer["config"]["filter_subject"].removesuffix(">")
            )
        ]
        if read and config["retention"] == "limits":
            await _acknowledge(client, name, durable, len(read))
    return str(made["created"])


async def _acknowledge(client: Client, stream: str, durable: str, count: int) -> None:
    reader = await client.jetstream().pull_subscribe_bind(durable, stream)
    while count:
        for message in await reader.fetch(min(count, 100), timeout=PATIENCE_S):
            await message.ack_sync()
            count -= 1
    await reader.unsubscribe()


async def _store(
    client: Client, subject: str, body: str, headers: Mapping[str, str]
) -> None:
    answer = await client.request(
        subject, body.encode(), timeout=PATIENCE_S, headers=dict(headers)
    )
    told = json.loads(answer.data)
    assert "error" not in told, (subject, told)


async def _api(client: Client, call: str, body: Json) -> Json:
    answer = await client.request(
        f"$JS.API.{call}", json.dumps(body).encode(), timeout=PATIENCE_S
    )
    told = dict(json.loads(answer.data))
    assert "error" not in told, (call, told)
    return told


def restored(servers: EmbeddedServers, age: timedelta, **more: Any) -> None:
    """Do it from a fixture that has no event loop."""
    asyncio.run(restore(servers, age, **more))
