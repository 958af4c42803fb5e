"""Near matches in the long-term memory: which remembered questions differ from one in tolerant values alone.

Beside the entries of a task that declares a tolerance stands, for each frame, where they are: their places by the size
of each tolerant value. Redis narrows down by floats; nearness is decided here, exactly. Other tasks have none of
this.
"""

from collections.abc import Sequence

from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.long_term import scripts
from tasklore.memory.long_term.entries import IndexPosition, NearMatch, decode

#: Of one tolerant field, places that are looked at on either side of the asked value: the nearest are the first.
_WIDTH = 8
#: Of several, how many places are looked at in all before the nearest of them have to do: about a millisecond.
MOST_LOOKED_AT = 2000
#: Of the near ones, how many may be gone already before nobody looks any further: of one field, and of several.
_TRIED_OF_ONE = 8
_TRIED = 4
#: How many places of several fields are ranked exactly: those that floats cannot tell apart are among them.
_RANKED = 32


def remembering(
    entry_key: str,
    value: bytes,
    lifetime_ms: int | None,
    near: IndexPosition,
    now_ms: int,
) -> Command:
    """Return the command that stores *value* at *entry_key* and where it stands, in one step."""
    fields = near.place.count("|") + 1
    touched = (
        entry_key,
        keys.hits_of(entry_key),
        *keys.near(entry_key, near.frame, fields),
    )
    lifetime = "" if lifetime_ms is None else lifetime_ms
    words = value, lifetime, near.place, now_ms, scripts.MOST_EXPIRED
    return ("FCALL", scripts.REMEMBER, len(touched), *touched, *words)


def forgetting(entry_key: str) -> Command:
    """Return the command that removes an entry with its hits and its place; its reply is 1 when it was there."""
    hits = keys.hits_of(entry_key)
    begins = keys.near_of(entry_key)
    index, member = keys.ltm_listing(entry_key)
    return ("FCALL", scripts.FORGET, 3, entry_key, hits, index, begins, member)


async def find_nearest(
    exchange: CommandBatch, asked: Sequence[tuple[str, Neighbourhood]]
) -> list[NearMatch | None]:
    """Return the nearest living neighbour of each question, by its entry key; None for one that has none.

    Two round trips for all of them. The asked question's own entry is never among them.
    """
    looking = [_looking(key, near) for key, near in asked]
    listed = iter(
        await exchange.run([command for commands in looking for command in commands])
    )
    found: list[NearMatch | None] = [None] * len(asked)
    tried: list[tuple[int, list[tuple[str, str]]]] = []
    commands: list[Command] = []
    for number, (key, near) in enumerate(asked):
        places = [
            place.decode(errors="replace")
            for _ in looking[number]
            for place in next(listed)
        ]
        most = _TRIED_OF_ONE if len(near.fields) == 1 else _TRIED
        candidates = [
            (_entry_at(key, near, place), place) for place in near.nearest(places, most)
        ]
        if candidates:
            tried.append((number, candidates))
            touched = (
                *keys.near(key, near.frame, len(near.fields)),
                *(entry for entry, _ in candidates),
            )
            words = [place for _, place in candidates]
            commands.append(("FCALL", scripts.NEAREST, len(touched), *touched, *words))
    replies = await exchange.run(commands) if commands else []
    for (number, candidates), reply in zip(tried, replies, strict=True):
        answer = decode(reply[1]) if reply else None
        if answer is not None:
            entry, place = candidates[reply[0] - 1]
            found[number] = NearMatch(entry, place, answer)
    return found


def _looking(entry_key: str, near: Neighbourhood) -> tuple[Command, ...]:
    windows = near.windows
    by_value, _, *others = keys.near(entry_key, near.frame, len(windows))
    if not others:
        [window] = windows
        score = repr(window.score)
        return (
            ("ZRANGEBYSCORE", by_value, score, repr(window.high), "LIMIT", 0, _WIDTH),
            ("ZREVRANGEBYSCORE", by_value, score, repr(window.low), "LIMIT", 0, _WIDTH),
        )
    limits = MOST_LOOKED_AT, _TRIED, _RANKED
    bounds = [
        repr(bound)
        for one in windows
        for bound in (one.score, one.low, one.high, one.reach)
    ]
    return (
        ("FCALL", scripts.AROUND, len(windows), by_value, *others, *limits, *bounds),
    )


def _entry_at(entry_key: str, near: Neighbourhood, place: str) -> str:
    parts = keys.parse_ltm(entry_key)
    if parts is None:
        raise AssertionError(f"{entry_key!r} was made by `tasklore.memory.keys.ltm`")
    return keys.ltm(
        parts.agent_id, parts.version, near.question_at(place), parts.user_token
    )
