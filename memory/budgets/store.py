"""Limits as they are stored, with their history, and the books: what was spent, by day, tenant, agent and model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from redis.asyncio import Redis

from contracts.errors import InvalidInput
from contracts.limits import NANO_USD, Limits, Payer
from memory import keys
from memory.budgets import scripts
from memory.command_batch import CommandBatch, as_mapping

#: How long a day stays in the books, and a tree; and versions of the limits that are kept.
KEEP = timedelta(days=62)
_VERSIONS = 100
_DEADLINE_S = 5.0
#: Accounts shown at once, those used last.
MOST_ACCOUNTS = 1_000


@dataclass(frozen=True)
class StoredLimits:
    """One version of the limits, and who stored it when."""

    version: int
    limits: Limits
    who: str = ""
    when: str = ""


@dataclass(frozen=True)
class Spending:
    """What was spent, in US dollars and tokens; `unconfirmed` may have been: its worker died in the middle.

    `saved` is what recalled answers had cost when they were computed.
    """

    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    usd: float = 0.0
    unconfirmed: float = 0.0
    saved: float = 0.0


@dataclass(frozen=True)
class BookLine:
    """What one agent spent on one model for one tenant in one day; names are empty where there is none."""

    day: str
    tenant: str
    agent: str
    model: str
    spending: Spending


@dataclass(frozen=True)
class Standing:
    """An account as it stands, in whole units of its limit: `key` is the limit's name and whose it is."""

    key: str
    spent: int
    reserved: int
    unconfirmed: int
    waiting: int


class Budgets:
    """Reads and changes limits, and reads accounts and books; every method may raise MemoryUnavailable."""

    def __init__(self, client: Redis, *, deadline_s: float = _DEADLINE_S) -> None:
        self._batch = CommandBatch(client, deadline_s)

    async def read(self) -> StoredLimits:
        """Return the limits that hold; version 0 has none."""
        found = as_mapping((await self._batch.run([("HGETALL", keys.budget("limits"))]))[0])
        return _stored({name.decode(): value.decode() for name, value in found.items()})

    async def history(self) -> list[StoredLimits]:
        """Return the versions that are kept, the newest first."""
        lines = (await self._batch.run([("LRANGE", keys.budget("limits", "history"), 0, -1)]))[0]
        return [_stored(json.loads(line)) for line in lines]

    async def change(self, limits: Limits, who: str, *, over: int | None = None) -> int:
        """Store *limits* and return their version; processes hold to them within a second.

        Raises:
            InvalidInput: version *over* is not the one that stands there any more.
        """
        places = keys.budget("limits"), keys.budget("limits", "history"), keys.budget("accounts")
        when = datetime.now(UTC).isoformat(timespec="seconds")
        given = "" if over is None else over, limits.model_dump_json(), who, when, _VERSIONS
        version: int = (await self._batch.run([("FCALL", scripts.CHANGE, 3, *places, *given)]))[0]
        if version < 0:
            raise InvalidInput("the limits were changed meanwhile; read them again, then repeat the change")
        return version

    async def book(self, days: Sequence[str]) -> list[BookLine]:
        """Return the lines of *days*, each as `2026-11-27`."""
        found = await self._batch.run([("HGETALL", keys.budget("book", day)) for day in days])
        lines = []
        for day, fields in zip(days, map(as_mapping, found), strict=True):
            by_line: dict[str, dict[str, int]] = {}
            for name, amount in fields.items():
                line, _, measure = name.decode().rpartition("|")
                by_line.setdefault(line, {})[measure] = int(amount)
            for line, amounts in sorted(by_line.items()):
                tenant, agent, model = map(unquote, line.split("|"))
                lines.append(BookLine(day, tenant, agent, model, _spending(amounts)))
        return lines

    async def tree(self, root_id: str) -> Spending:
        """Return what the tree under the task *root_id* has spent."""
        found = as_mapping((await self._batch.run([("HGETALL", keys.budget("tree", root_id))]))[0])
        return _spending({name.decode(): int(amount) for name, amount in found.items()})

    async def standings(self) -> list[Standing]:
        """Return the accounts that were used last, as they stand."""
        listed = (await self._batch.run([("ZREVRANGE", keys.budget("accounts"), 0, MOST_ACCOUNTS - 1)]))[0]
        kinds = await self._batch.run([("TYPE", key) for key in listed])
        reads: list[Any] = [
            ("SCARD" if kind in (b"set", "set") else "HGETALL", key) for key, kind in zip(listed, kinds, strict=True)
        ]
        waits = await self._batch.run([("ZCARD", key.decode() + ":queue") for key in listed])
        standings = []
        for key, found, waiting in zip(listed, await self._batch.run(reads), waits, strict=True):
            name = key.decode().removeprefix(keys.budget("account", ""))
            if isinstance(found, int):
                standings.append(Standing(name, 0, found, 0, waiting))
                continue
            fields = {field.decode(): value for field, value in as_mapping(found).items()}
            spent = int(fields.get("s", 0)) + int(fields.get("t", 0))
            standings.append(Standing(name, spent, int(fields.get("r", 0)), int(fields.get("u", 0)), waiting))
        return standings


def book_of(now: datetime) -> str:
    """Return the key of the book of *now*'s day, in UTC."""
    return keys.budget("book", f"{now.astimezone(UTC):%Y-%m-%d}")


def book_field(payer: Payer, model: str) -> str:
    """Return the line of *payer* and *model* in a book."""
    return "|".join(quote(part, safe="") for part in (payer.tenant, payer.agent, model))


async def read_stored(batch: CommandBatch) -> tuple[bytes | None, Limits]:
    """Return the version of the limits that hold, None without any, and the limits."""
    version, limits = (await batch.run([("HMGET", keys.budget("limits"), "version", "limits")]))[0]
    return version, Limits.model_validate_json(limits) if limits else Limits()


def _stored(found: Mapping[str, Any]) -> StoredLimits:
    if not found:
        return StoredLimits(0, Limits())
    limits = Limits.model_validate_json(found["limits"])
    return StoredLimits(int(found["version"]), limits, found["who"], found["when"])


def _spending(amounts: Mapping[str, int]) -> Spending:
    numbers = [amounts.get(name, 0) for name in ("calls", "input", "output", "cached")]
    return Spending(*numbers, *(amounts.get(name, 0) / NANO_USD for name in ("usd", "unconfirmed", "saved")))
