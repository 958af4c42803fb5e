"""Limits as they are stored, with their history, and the books: spending by day, tenant, agent and model."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from redis.asyncio import Redis

from tasklore.contracts.admission.limits import (
    NANO_USD,
    Account,
    Limit,
    Limits,
    Payer,
    parse_limits,
)
from tasklore.contracts.errors import InvalidInput, VersionConflict
from tasklore.memory import keys
from tasklore.memory.budgets import scripts
from tasklore.memory.command_batch import CommandBatch, as_mapping

#: How long a day stays in the books, and a tree; and versions of the limits that are kept.
KEEP = timedelta(days=62)
_VERSIONS = 100
#: How `who` begins for limits that a file of a supervisor's brought.
FROM_FILE = "file:"
_DEADLINE_S = 5.0
#: Accounts shown at once, those used last.
MOST_ACCOUNTS = 1_000
#: Costs of its last reports that are kept of a task.
KEPT_COSTS = 20
#: Ms in which a rate counts, see accounts.lua, and after which a waiter that did not come back is not shown any more.
_SLOT_MS = 500
_MINUTE_MS = 60_000
_LOST_MS = 10_000
_SLOT = re.compile(r"s\d+")
#: The keys of those that wait for room, see wake.lua.
WAITING = ("waiters", "looks", "lined", "freed")
#: What supervisors keep of them: limits that changed, and who wakes them.
WAKING = ("moves", "waking")


@dataclass(frozen=True)
class StoredLimits:
    """One version of the limits, and who stored it when."""

    version: int
    limits: Limits
    who: str = ""
    when: str = ""


@dataclass(frozen=True)
class Spending:
    """Spending in US dollars and tokens; `unconfirmed` is of calls whose worker died in the middle.

    `saved` is what recalled answers had cost when they were computed.
    """

    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    usd: float = 0.0
    unconfirmed: float = 0.0
    saved: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BookLine:
    """What one agent spent on one model for one tenant in one day; names are empty where there is none."""

    day: str
    tenant: str
    agent: str
    model: str
    spending: Spending


@dataclass(frozen=True, kw_only=True)
class AccountState:
    """An account as it stands, in whole units of its limit: `key` is the limit's name and whose it is.

    `window` is the day or month that a budget was last used in; `refills_in_s` is for a rate, None when it is unused.
    """

    key: str
    spent: int
    reserved: int
    unconfirmed: int
    waiting: int
    window: str = ""
    refills_in_s: float | None = None


class Budgets:
    """Reads and changes limits, and reads accounts and books; every method may raise MemoryUnavailable."""

    def __init__(self, client: Redis, *, deadline_s: float = _DEADLINE_S) -> None:
        self._batch = CommandBatch(client, deadline_s)

    async def read(self) -> StoredLimits:
        """Return the limits that hold; version 0 has none."""
        found = as_mapping(
            (await self._batch.run([("HGETALL", keys.budget("limits"))]))[0]
        )
        return _stored({name.decode(): value.decode() for name, value in found.items()})

    async def history(self) -> list[StoredLimits]:
        """Return the versions that are kept, the newest first."""
        lines = (
            await self._batch.run([("LRANGE", keys.budget("limits", "history"), 0, -1)])
        )[0]
        return [_stored(json.loads(line)) for line in lines]

    async def change(self, limits: Limits, who: str, *, over: int | None = None) -> int:
        """Store *limits* and return their version; processes hold to them within a second.

        Raises:
            VersionConflict: version *over* is not the one that stands there any more.
        """
        places = (
            keys.budget("limits"),
            keys.budget("limits", "history"),
            keys.budget("accounts"),
            *(keys.budget(one) for one in ("lined", "moves")),
        )
        when = datetime.now(UTC).isoformat(timespec="seconds")
        given = (
            "",
            "" if over is None else over,
            limits.model_dump_json(),
            who,
            when,
            _VERSIONS,
        )
        version: int = (
            await self._batch.run(
                [("FCALL", scripts.CHANGE, len(places), *places, *given)]
            )
        )[0]
        if version < 0:
            raise VersionConflict(
                "the limits were changed meanwhile; read them again, then repeat the change"
            )
        return version

    async def apply_file(self, limits: Limits, name: str) -> int | None:
        """Store *limits* of the file *name* unless the last ones that came from a file are equal; return the version.

        What a person has changed since stands until the file differs.
        """
        place = keys.budget("limits")
        while True:
            noted, present = await self._batch.run(
                [("HGET", place, "file"), ("HGET", place, "version")]
            )
            # The note outlives the history; a process that died before it wrote one is found in the history.
            known = [
                one.limits
                for one in await self.history()
                if one.who.startswith(FROM_FILE)
            ]
            last = (
                known[0]
                if known
                else Limits.model_validate_json(noted)
                if noted
                else None
            )
            note = ("HSET", place, "file", limits.model_dump_json())
            if limits == last:
                await self._batch.run([note])
                return None
            try:
                version = await self.change(
                    limits, f"{FROM_FILE}{name}", over=int(present or 0)
                )
            except VersionConflict:
                continue
            await self._batch.run([note])
            return version

    async def book(self, days: Sequence[str]) -> list[BookLine]:
        """Return the lines of *days*, each as `2026-11-27`."""
        found = await self._batch.run(
            [("HGETALL", keys.budget("book", day)) for day in days]
        )
        lines = []
        for day, fields in zip(days, map(as_mapping, found), strict=True):
            by_line: dict[str, dict[str, int]] = {}
            for name, amount in fields.items():
                line, _, measure = name.decode().rpartition("|")
                by_line.setdefault(line, {})[measure] = int(amount)
            for line, amounts in sorted(by_line.items()):
                tenant, agent, model = map(unquote, line.split("|"))
                lines.append(
                    BookLine(
                        day=day,
                        tenant=tenant,
                        agent=agent,
                        model=model,
                        spending=_spending(amounts),
                    )
                )
        return lines

    async def tree(self, root_id: str) -> Spending:
        """Return what the tree under the task *root_id* has spent."""
        found = as_mapping(
            (await self._batch.run([("HGETALL", keys.budget("tree", root_id))]))[0]
        )
        return _spending({name.decode(): int(amount) for name, amount in found.items()})

    async def standings(self) -> list[AccountState]:
        """Return the accounts that were used last, as they stand; those whose time is over are left out."""
        time, listed = await self._batch.run(
            [("TIME",), ("ZREVRANGE", keys.budget("accounts"), 0, MOST_ACCOUNTS - 1)],
        )
        now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
        kinds = await self._batch.run([("TYPE", key) for key in listed])
        reads: list[Any] = [
            ("SCARD" if kind == b"set" else "HGETALL", key)
            for key, kind in zip(listed, kinds, strict=True)
        ]
        waits = [
            ("ZCOUNT", key.decode() + ":queue", now_ms - _LOST_MS, "+inf")
            for key in listed
        ]
        found = await self._batch.run([*reads, *waits])
        standings = []
        for key, kind, content, waiting in zip(
            listed, kinds, found, found[len(listed) :], strict=False
        ):
            name = key.decode().removeprefix(keys.budget("account", ""))
            if kind == b"set":
                standings.append(
                    AccountState(
                        key=name,
                        spent=0,
                        reserved=content,
                        unconfirmed=0,
                        waiting=waiting,
                    )
                )
            elif kind == b"hash" or waiting:
                fields = {
                    field.decode(): value.decode()
                    for field, value in as_mapping(content).items()
                }
                standings.append(_standing(name, fields, waiting, now_ms))
        return standings

    async def runs_under(self, bounds: Collection[str]) -> list[tuple[int, int]]:
        """Return how many runs hold a place under each of *bounds*, and how many tasks wait for one."""
        places = [keys.places(bound) for bound in bounds]
        found = await self._batch.run(
            [("ZCARD", key) for held, _, queue, _ in places for key in (held, queue)]
        )
        return list(zip(found[::2], found[1::2], strict=True))

    async def note_costs(self, costs: Mapping[tuple[str, str], Sequence[int]]) -> None:
        """Keep what reports of tasks, by agent and task, had cost: nano-dollars, the newest last."""
        commands: list[Any] = []
        for name, amounts in costs.items():
            place = keys.budget("costs", ".".join(name))
            commands += [
                ("RPUSH", place, *amounts),
                ("LTRIM", place, -KEPT_COSTS, -1),
                ("PEXPIRE", place, KEEP // timedelta(milliseconds=1)),
            ]
        await self._batch.run(commands)

    async def costs_of(
        self, names: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], list[int]]:
        """Return what the last reports of each of *names*, an agent and its task, had cost, in nano-dollars."""
        found = await self._batch.run(
            [("LRANGE", keys.budget("costs", ".".join(name)), 0, -1) for name in names]
        )
        return {
            name: [int(one) for one in amounts]
            for name, amounts in zip(names, found, strict=True)
        }


def _standing(
    name: str, fields: Mapping[str, str], waiting: int, now_ms: int
) -> AccountState:
    """Return an account by its hash; of a rate only the slots of the last minute count, tidied or not."""
    spent, reserved, unconfirmed = (int(fields.get(field, 0)) for field in "sru")
    ends = {
        (int(field[1:]) + 1) * _SLOT_MS + _MINUTE_MS: int(fields[field])
        for field in fields
        if _SLOT.fullmatch(field)
    }
    present = {end: amount for end, amount in ends.items() if end > now_ms}
    blocked = int(fields.get("blocked", 0))
    at_ms = blocked if blocked > now_ms else min(present, default=None)
    refills_in_s = None if at_ms is None else math.ceil((at_ms - now_ms) / 100) / 10
    spent += sum(present.values())
    return AccountState(
        key=name,
        spent=spent,
        reserved=reserved,
        unconfirmed=unconfirmed,
        waiting=waiting,
        window=fields.get("win", ""),
        refills_in_s=refills_in_s,
    )


def read_limits_file(path: Path) -> Limits:
    """Return the limits in the file at *path*, in TOML.

    Raises:
        InvalidInput: it cannot be read, or a field does not fit; the message names it and the cure.
    """
    try:
        return parse_limits(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}"
        ) from error
    except InvalidInput as error:
        raise InvalidInput(f"{str(path)!r}: {error}") from error


def kind_of(limit: Account | Limit) -> str:
    """Return what the scripts call it: a rate ("w"), a budget ("c"), or a count of calls under way ("l")."""
    if limit.every is None:
        return "l"
    return "w" if limit.every == "minute" else "c"


def book_of(now: datetime) -> str:
    """Return the key of the book of *now*'s day, in UTC."""
    return keys.budget("book", f"{now.astimezone(UTC):%Y-%m-%d}")


def book_field(payer: Payer, model: str) -> str:
    """Return the line of *payer* and *model* in a book."""
    return "|".join(quote(part, safe="") for part in (payer.tenant, payer.agent, model))


async def read_stored(batch: CommandBatch) -> tuple[bytes | None, Limits]:
    """Return the version of the limits that hold, None without any, and the limits."""
    version, limits = (
        await batch.run([("HMGET", keys.budget("limits"), "version", "limits")])
    )[0]
    return version, Limits.model_validate_json(limits) if limits else Limits()


def _stored(found: Mapping[str, Any]) -> StoredLimits:
    if not found:
        return StoredLimits(0, Limits())
    limits = Limits.model_validate_json(found["limits"])
    return StoredLimits(int(found["version"]), limits, found["who"], found["when"])


def _spending(amounts: Mapping[str, int]) -> Spending:
    numbers = [amounts.get(name, 0) for name in ("calls", "input", "output", "cached")]
    return Spending(
        *numbers,
        *(amounts.get(name, 0) / NANO_USD for name in ("usd", "unconfirmed", "saved")),
    )
