"""What the ledger holds, counted task by task, for whoever compares it with the counts and the list beside it."""

import collections
from collections.abc import AsyncIterator

from redis.asyncio import Redis

from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.memory.command_batch import as_mapping
from tasklore.memory.ledger.layouts import read_mark
from tasklore.memory.ledger.ledger import LedgerEntry, entry_of
from tasklore.memory.ledger.task_list import MOST_OF_PAGE, TaskFilter, TaskList

#: Entries asked for at once, and seconds for each answer.
_AT_ONCE = 500
_DEADLINE_S = 30.0


async def entries_in(redis: Redis) -> AsyncIterator[LedgerEntry]:
    """Yield every entry of either layout, with its reports."""
    found = {
        key async for key in redis.scan_iter(keys.task_pattern(), 1000, _type="hash")
    }
    names = sorted(found)
    for first in range(0, len(names), _AT_ONCE):
        page = names[first : first + _AT_ONCE]
        async with redis.pipeline(transaction=False) as asked:
            for key in page:
                asked.hgetall(key)
            hashes = list(map(as_mapping, await asked.execute()))
        beside = {
            (key, number): keys.entry_report(key.decode(), number)
            for key, fields in zip(page, hashes, strict=True)
            for number in _numbers_of_reports_beside(key, fields)
        }
        async with redis.pipeline(transaction=False) as asked:
            for place in beside.values():
                asked.get(place)
            reports = dict(zip(beside, await asked.execute(), strict=True))
        for key, fields in zip(page, hashes, strict=True):
            own = {
                b"report:%d" % number: report
                for number in _numbers_of_reports_beside(key, fields)
                if (report := reports[key, number]) is not None
            }
            entry = entry_of(keys.parse_task(key), fields | own)
            if entry is not None:
                yield entry


def _numbers_of_reports_beside(key: bytes, fields: dict[bytes, bytes]) -> list[int]:
    """Return which generations have a report beside the entry at *key*, none in layout 1: it holds them itself."""
    if not isinstance(keys.parse_task(key), TaskName):
        return []
    return [
        int(field.rpartition(b":")[2])
        for field in fields
        if field.startswith(b"finished_at:")
    ]


async def reports_in(redis: Redis) -> dict[tuple[str, int], tuple[str, bytes]]:
    """Return state and report of every generation that has one in the ledger, by task and generation."""
    return {
        (str(entry.task_id), number): (known.state, known.report)
        async for entry in entries_in(redis)
        for number, known in entry.generations.items()
        if known.report is not None
    }


async def ended(redis: Redis) -> dict[str, int]:
    """Return how many generations have a report in the ledger, by state: every task read one by one."""
    return dict(
        collections.Counter(state for state, _ in (await reports_in(redis)).values())
    )


async def mislisted(redis: Redis, agent_id: str) -> dict[str, str]:
    """Return what of the list of tasks of *agent_id* is not as the ledger has it, by task, in words.

    Each task is listed once, in the state of its newest generation, and among those that are open if it has no report.
    Its entry is the only one, and lies in layout 2 where the ledger has come to that.
    """
    layout = read_mark(await redis.get(keys.ledger_layout()))
    ledger = collections.defaultdict(list)
    left_behind = set()
    async for entry in entries_in(redis):
        newest = entry.generations[entry.newest]
        if layout == "2" and not isinstance(entry.task_id, TaskName):
            left_behind.add(entry.task_id)
        ledger[str(entry.task_id)].append((newest.state, newest.report is not None))
    listed = collections.defaultdict(list)
    tasks = TaskList(redis, deadline_s=_DEADLINE_S)
    after: str | None = ""
    while after is not None:
        page = await tasks.read(
            TaskFilter(agent_id=agent_id), after=after, limit=MOST_OF_PAGE
        )
        for task in page.tasks:
            listed[task.task_id].append(str(task.state))
        after = page.after
    own = keys.runs(agent_id)
    still_open = {name.decode() for name in await redis.zrange(own.open, 0, -1)}
    rows = {name.decode() for name in await redis.hkeys(own.rows)}
    found = {}
    for task_id in ledger.keys() | listed.keys() | still_open | rows:
        entries = ledger.get(task_id, [])
        said = [
            f"in the ledger {entries}, listed {listed.get(task_id, [])}",
            "a row" if task_id in rows else "no row",
            "open" if task_id in still_open else "not open",
        ]
        is_right = (
            len(entries) == 1
            and listed.get(task_id) == [entries[0][0]]
            and task_id in rows
            and task_id not in left_behind
            and (task_id in still_open) is not entries[0][1]
        )
        if not is_right:
            found[task_id] = ", ".join(said)
    return found
