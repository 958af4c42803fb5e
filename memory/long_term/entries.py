"""What a remembered answer is, how it is written in Redis, and how entries are chosen and summed up; pure functions.

The value of an entry is one JSON object. We write its head in a fixed order, so that serving it is one match and one
slice, with no JSON parsed:

    {"format":1,"created_at":1763690000000,"computed_ms":103,"check":2774489511,"size":23,"result":{"remaining":8000.0},
     "agent_version":"1.1","parameters":{"budget_limit":50000}}

Where it may be near to others it ends with where it stands among them, `"near":{"frame":"...","place":"50000"}`.

`created_at` is milliseconds since 1970, `size` the bytes of `result`, `check` their CRC-32. Another program may write
any JSON object with `created_at`, `computed_ms` and `result`: it is read too, only slower.
"""

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.keys import LongTermKey, parse_ltm

_STANDING = re.compile(r"[a-z2-7]{26}(\|-?\d+(\.\d+)?(E[+-]\d+)?)+")
_HEAD = re.compile(
    rb'\{"format":1,"created_at":(\d+),"computed_ms":(\d+),"check":(\d+),"size":(\d+),"result":',
)


#: Stands behind the result where it cost something, in billionths of a dollar.
_COST = b',"nano_usd":'


class IndexPosition(Protocol):
    """Where an entry stands among those that differ from it in tolerant values alone: a `Neighbourhood` fits."""

    @property
    def frame(self) -> str:
        """What all of them have in common, as a digest."""

    @property
    def place(self) -> str:
        """Its own tolerant values, spelled."""


class CachedResult(NamedTuple):
    """An answer as it is served: the time and duration of its computation, its JSON, not parsed, and its cost."""

    created_at_ms: int
    computed_ms: int
    result_json: bytes
    nano_usd: int = 0


class Stood(NamedTuple):
    """The `IndexPosition` of an entry as it was written down."""

    frame: str
    place: str


class NearMatch(NamedTuple):
    """An answer that was computed for a neighbour: the *key* of its entry, its *place* in the frame, and the answer."""

    key: str
    place: str
    answer: CachedResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An answer as it is listed; `expires_in_ms` is None when it is kept for ever, `standing` without neighbours."""

    key: str
    parts: LongTermKey
    answer: CachedResult
    parameters_json: bytes
    hits: int
    expires_in_ms: int | None
    standing: Stood | None = None


@dataclass(frozen=True, slots=True)
class TaskStats:
    """What the entries of one task have saved: `saved_ms` is hits times the time each answer took to compute."""

    entries: int = 0
    hits: int = 0
    saved_ms: int = 0


@dataclass(frozen=True, slots=True)
class LongTermStats:
    """Entries in all, and by task name; misses leave nothing behind and are counted by metrics only."""

    entries: int
    hits: int
    saved_ms: int
    by_task: Mapping[str, TaskStats]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An imported entry that is never served: its key may have been cut, so it may answer another question."""

    agent_id: str
    file_key: str
    result_json: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySelection:
    """Which entries are meant: those that satisfy every condition that is not None."""

    agent_id: str | None = None
    task: str | None = None
    created_before_ms: int | None = None
    created_since_ms: int | None = None
    #: The version in force of each agent and task; meant are entries of another one.
    in_force: Mapping[tuple[str, str], str] | None = None

    def names(self, parts: LongTermKey) -> bool:
        """Return whether the key alone does not rule the entry out."""
        return (
            (self.agent_id is None or parts.agent_id == self.agent_id)
            and (self.task is None or parts.task_name == self.task)
            and (self.in_force is None or is_left_behind(parts, self.in_force))
        )

    @property
    def needs_values(self) -> bool:
        """Whether the key is not enough to decide."""
        return self.created_before_ms is not None or self.created_since_ms is not None

    def holds(self, answer: CachedResult) -> bool:
        """Return whether the entry's age fits."""
        created = answer.created_at_ms
        return (
            self.created_before_ms is None or created < self.created_before_ms
        ) and (self.created_since_ms is None or created >= self.created_since_ms)


def is_left_behind(parts: LongTermKey, in_force: Mapping[tuple[str, str], str]) -> bool:
    """Return whether no worker serves the entry: its task has another version *in_force*. Settings do not count.

    A version without a digest of code, of an older worker, is that of every code.
    """
    version = in_force.get((parts.agent_id, parts.task_name))
    mine = f"v{parts.version}".partition("+")[0]
    return (
        version is not None
        and mine != version
        and ("-" in version or mine.partition("-")[0] != version)
    )


def encode(
    result_json: bytes,
    *,
    created_at_ms: int,
    computed_ms: int,
    agent_version: str,
    parameters_json: bytes,
    near: IndexPosition | None = None,
    nano_usd: int = 0,
) -> bytes:
    """Return the value of an entry; both JSON texts are taken as they are."""
    cost = b"%b%d," % (_COST, nano_usd) if nano_usd else b","
    # At the very end, where forgetting looks for it; neither part has a character that JSON would escape.
    stands = (
        b',"near":{"frame":"%b","place":"%b"}'
        % (near.frame.encode(), near.place.encode())
        if near
        else b""
    )
    return (
        b'{"format":1,"created_at":%d,"computed_ms":%d,"check":%d,"size":%d,'
        b'"result":%b%b"agent_version":"%b","parameters":%b%b}'
    ) % (
        created_at_ms,
        computed_ms,
        zlib.crc32(result_json),
        len(result_json),
        result_json,
        cost,
        agent_version.encode(),
        parameters_json,
        stands,
    )


def decode(value: bytes) -> CachedResult | None:
    """Return the answer in *value*, or None when it is not an entry of anybody's."""
    head = _HEAD.match(value)
    if head is not None:
        created_at, computed, check, size = map(int, head.groups())
        start = head.end()
        result = value[start : start + size]
        if zlib.crc32(result) == check and value[-1:] == b"}":
            end = start + size
            cost = (
                value[end + len(_COST) : value.index(b",", end + 1)]
                if value.startswith(_COST, end)
                else b"0"
            )
            return CachedResult(created_at, computed, result, int(cost))
    return _decode_foreign(value)


def _decode_foreign(value: bytes) -> CachedResult | None:
    document = _parse(value)
    if document is None or "result" not in document:
        return None
    created_at = document.get("created_at")
    computed = document.get("computed_ms")
    if not (isinstance(created_at, int | float) and isinstance(computed, int | float)):
        return None
    try:
        result = json.dumps(document["result"], allow_nan=False, separators=(",", ":"))
        return CachedResult(int(created_at), int(computed), result.encode())
    except (ValueError, OverflowError):
        return None


def decode_entry(
    key: str, value: bytes, hits: int, expires_in_ms: int | None
) -> Entry | None:
    """Return the entry at *key* for a listing, or None when key or value is not one of ours."""
    parts = parse_ltm(key)
    answer = decode(value)
    if parts is None or answer is None:
        return None
    document = _parse(value) or {}
    parameters = json.dumps(
        document.get("parameters", {}), separators=(",", ":")
    ).encode()
    return Entry(
        key=key,
        parts=parts,
        answer=answer,
        parameters_json=parameters,
        hits=hits,
        expires_in_ms=expires_in_ms,
        standing=read_standing(document.get("near")),
    )


def read_standing(near: object) -> Stood | None:
    """Return the position that the JSON *near* says, None where it says none."""
    if not isinstance(near, dict) or not all(
        isinstance(near.get(part), str) for part in Stood._fields
    ):
        return None
    return (
        Stood(near["frame"], near["place"])
        if _STANDING.fullmatch(near["frame"] + "|" + near["place"])
        else None
    )


def summarise(served: Iterable[tuple[str, int, int]]) -> LongTermStats:
    """Return the statistics of entries given as (task name, hits, computed_ms)."""
    tallies: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for task, hits, computed_ms in served:
        tally = tallies[task]
        tally[0] += 1
        tally[1] += hits
        tally[2] += hits * computed_ms
    by_task = {task: TaskStats(*tally) for task, tally in sorted(tallies.items())}
    total = [sum(column) for column in zip(*tallies.values(), strict=True)] or [0, 0, 0]
    return LongTermStats(total[0], total[1], total[2], by_task)


def _parse(value: bytes) -> dict[str, object] | None:
    try:
        document = json.loads(value, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def check_entry(key: str, ttl: timedelta | None) -> tuple[LongTermKey, int | None]:
    """Return the parts of *key* and the milliseconds of *ttl*.

    Raises:
        InvalidInput: *key* is not a long-term memory key, or *ttl* is under a millisecond.
    """
    parts = parse_ltm(key)
    if parts is None:
        raise InvalidInput(
            f"{key!r} is not a long-term memory key; make it with `tasklore.memory.keys.ltm`"
        )
    lifetime_ms = None if ttl is None else ttl // timedelta(milliseconds=1)
    if lifetime_ms is not None and lifetime_ms < 1:
        raise InvalidInput(
            f"a time to live of {ttl} caches nothing; use None for no expiry, or "
            "disable the cache"
        )
    return parts, lifetime_ms


def check_selection(
    key: str | None,
    agent_id: str | None,
    task: str | None,
    created_before_ms: int | None,
    user_token: str | None,
    everything: bool,
    in_force: Mapping[tuple[str, str], str] | None = None,
) -> EntrySelection:
    """Return the selection that a `forget` means.

    Raises:
        InvalidInput: no condition is given.
    """
    given = (key, agent_id, task, created_before_ms, user_token, in_force)
    if not everything and all(condition is None for condition in given):
        raise InvalidInput(
            "say what to forget: a key, agent, task, age or user, or everything=True"
        )
    return EntrySelection(
        agent_id=agent_id,
        task=task,
        created_before_ms=created_before_ms,
        in_force=in_force,
    )
