"""`tasklore bootstrap --ledger 2`: the ledger is taken to layout 2, once, while everything works on."""

import time
from functools import partial
from typing import Any

from tasklore.commands.endpoints import open_redis
from tasklore.commands.exits import FAILED, OK
from tasklore.contracts.errors import ConfigurationError
from tasklore.memory.ledger.migration import SETTLED_S, Migration, unknown_tasks
from tasklore.memory.long_term.index import EntryIndex
from tasklore.memory.schedules.store import UserSchedules
from tasklore.runtime.servers.valkey import Valkey, is_older

#: Seconds for one answer of a busy server.
_DEADLINE_S = 30.0


async def migrate_ledger(*, drops_unknown: bool, settled_s: float = SETTLED_S) -> int:
    """Take the ledger to layout 2, and return the exit code; broken off anywhere it is gone on with by the next call.

    Raises:
        ConfigurationError: processes are connected that do not know layout 2.
        MemoryUnavailable: the server did not answer.
        Unreachable: no server is there, or it does not let this user.
    """
    async with open_redis("tasklore-bootstrap", _DEADLINE_S) as redis:
        demand = partial(_demand_new_ones, redis)
        migration = Migration(redis, settled_s=settled_s, demand_new_ones=demand)
        if await migration.layout() == "2":
            print("The ledger has layout 2 already.")
            return OK
        await demand()

        async def complete_lists() -> None:
            # None of 0.2 may have come back meanwhile, nor may one store anything in no list from here on.
            await demand()
            now_ms = time.time_ns() // 1_000_000
            count = await EntryIndex(redis, deadline_s=_DEADLINE_S).build(now_ms)
            await UserSchedules(redis, deadline_s=_DEADLINE_S).build_index()
            print(f"{count:,} cached results, and all schedules, are listed")

        moved = await migration.run(
            print, drops_unknown=drops_unknown, before_last=complete_lists
        )
    if moved.twice:
        print(
            f"Left in both layouts: {unknown_tasks(moved.twice)}, as a process of 0.2 makes them. End it, let "
            "`tasklore trace` show each, remove the entry that is wrong, and run this again."
        )
    if moved.unknown and not drops_unknown:
        print(
            f"Left in layout 1: {unknown_tasks(moved.unknown)}, of which nothing says whose tasks they are. Run this "
            "again when they have ended, or with --drop-unknown, which forgets them."
        )
    if moved.twice or (moved.unknown and not drops_unknown):
        return FAILED
    print(
        f"The ledger has layout 2: {moved.entries:,} entries were moved. From here on no process of 0.2 may start."
    )
    return OK


async def _demand_new_ones(redis: Valkey) -> None:
    """Raise ConfigurationError while a process of before is connected, which would fence tasks on keys of its own."""
    clients: list[dict[str, Any]] = await redis.client_list()
    older = sorted(
        {f"{one['name']} ({one['addr']})" for one in clients if is_older(one["name"])}
    )
    if older:
        raise ConfigurationError(
            f"{', '.join(older)} may be of 0.2, which knows nothing of layout 2; end what is, or close what is no "
            "process of Tasklore, and run this again"
        )
