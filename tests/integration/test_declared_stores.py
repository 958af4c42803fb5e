"""What every store in Redis promises by its declaration, tried on all that two people leave in a system."""

import re
from collections.abc import AsyncIterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from deploy.privileges.roles import Cast
from deploy.privileges.valkey_users import valkey_users
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.declarations import AGENT, Store, StoreKey
from tasklore.memory.stores import STORES
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.forgetting import Town, town_on

#: Whoever does the work of the town's agent, by the roles of stores.
USERS = {
    "supervisor": "supervisor",
    "memory": "memory",
    "worker": "worker-probe",
}
CAST = Cast(workers={"probe": ("Probe",)})
#: Commands that change nothing, of those that stores use on their own.
READING = {b"GET", b"EXISTS", b"HMGET", b"HGETALL", b"HGET", b"LRANGE", b"ZRANGE"}
#: What stands in declared names for any text, beside tags and `...`.
PLACEHOLDERS = {
    "v1.1": "v[^:]+",
    "question": ".+",
    "frame": "[^:]+",
    "u:token": "u:[^:]+",
    "user:token": "user:[^:]+",
    "resource": "[^:]+",
    "AGENT": "[^:]+",
    "report:N": "report:[0-9]+",
    "...": ".+",
}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """Note every command of every store: none of them has another way to the server."""
    commands: list[Command] = []
    run = CommandBatch.run

    async def note(self: CommandBatch, given: Any, *rest: Any, **named: Any) -> Any:
        commands.extend(given)
        return await run(self, given, *rest, **named)

    monkeypatch.setattr(CommandBatch, "run", note)
    return commands


@pytest.fixture
async def town(own_servers: EmbeddedServers) -> AsyncIterator[Town]:
    async with town_on(own_servers) as opened:
        yield opened


def pattern_of(spelled: str) -> re.Pattern[str]:
    """Return what keys match that are declared as *spelled*."""
    words = "|".join(map(re.escape, PLACEHOLDERS))
    parts = re.split(rf"(\{{[^}}]*\}}|{words})", spelled)
    return re.compile(
        "".join(
            r"\{[^{}]*\}"
            if one.startswith("{")
            else PLACEHOLDERS.get(one, re.escape(one))
            for one in parts
        )
    )


DECLARED: list[tuple[re.Pattern[str], Store, StoreKey]] = [
    (pattern_of(spelled), store, key)
    for store in STORES
    for key in store.keys
    for spelled in key.spelled
]


def declared_for(key: str) -> list[tuple[Store, StoreKey]]:
    """Return each declaration of a key, most often one."""
    return [
        (store, declared)
        for pattern, store, declared in DECLARED
        if pattern.fullmatch(key)
    ]


def users_of(key: str, *, reads: bool) -> set[str]:
    """Return the users of the town's agent that may write *key*, as stores declare it, or may read it."""
    return {
        USERS[role]
        for store in STORES
        for right in store.rights
        if 1 in right.layouts and fnmatchcase(key, _glob(right.pattern))
        for role in (*right.writers, *(right.readers if reads else ()))
        if role != "memory" or AGENT not in right.pattern
    }


def _glob(pattern: str) -> str:
    return pattern.replace(AGENT, "Probe")


async def test_each_key_that_a_store_writes_is_declared_and_ends_as_it_says(
    town: Town, called: list[Command]
) -> None:
    """By a time to live, or by none where the declaration says so."""
    for user in ("ann", "bob"):
        await town.live(user)
    found = [key.decode() for key in await town.redis.keys("*")]
    assert len(found) > 40
    assert [key for key in found if not declared_for(key)] == []
    wrong = []
    for key in found:
        lasts = {declared.lasts for _, declared in declared_for(key)}
        has_end = await town.redis.pttl(key) != -1
        if not any(one != "none" if has_end else "none" in one for one in lasts):
            wrong.append((key, has_end, lasts))
    # What the town leaves by hand in keys that nothing else writes has no end.
    by_hand = {key for key in found if key not in _named(called)}
    assert len(found) - len(by_hand) > 40
    assert [one for one in wrong if one[0] not in by_hand] == []


def _named(called: list[Command]) -> set[str]:
    """Return every word of the commands, keys among them."""
    return {
        word.decode(errors="replace") if isinstance(word, bytes) else str(word)
        for command in called
        for word in command
    }


async def test_whoever_may_write_a_store_may_do_all_that_it_does(
    town: Town, called: list[Command]
) -> None:
    """Each command of the stores, under the rights of each role that its keys are declared for."""
    await town.live("ann")
    commands = list({tuple(map(_as_bytes, one)): None for one in called})
    for line in valkey_users(CAST.roles()).splitlines():
        if line.startswith("user ") and "@" in line:
            _, name, *words = line.split()
            open_words = ["nopass" if one.startswith("#") else one for one in words]
            await town.redis.execute_command("ACL SETUSER", name, *open_words)
    reached = set()
    for command in commands:
        keys = await keys_of(town, command)
        if not keys:
            continue
        reads = command[0] in READING
        users = set.intersection(*(users_of(key, reads=reads) for key in keys))
        assert users, f"no role may reach all of {keys}, as {command[:2]} does"
        for user in sorted(users):
            answer = await town.redis.execute_command("ACL DRYRUN", user, *command)
            assert answer == b"OK", (user, command[:2], keys, answer)
        reached |= {store.name for key in keys for store, _ in declared_for(key)}
    assert reached >= {
        *("schedules", "sessions", "tasks", "task list", "turns", "facts"),
        *("episodes", "documents", "conversations", "inboxes", "notices"),
        *("webhooks", "answers", "owners of answers", "projects"),
    }


async def keys_of(town: Town, command: tuple[bytes, ...]) -> list[str]:
    """Return the keys of *command*, as the server finds them."""
    if command[0] in (b"TIME", b"SCAN", b"PUBLISH"):
        return []
    found = await town.redis.execute_command("COMMAND GETKEYS", *command)
    return [one.decode() if isinstance(one, bytes) else one for one in found]


def _as_bytes(word: str | bytes | float) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()


def test_each_store_is_bounded_and_has_roles_that_write_it() -> None:
    """Its keys do not grow without a bound, and some process may use it."""
    assert [one.name for one in STORES if not one.bound] == []
    unused = [
        one.name
        for one in STORES
        if not any(right.writers for right in one.rights) and not one.channels
    ]
    assert unused == []
    names = [one.name for one in STORES]
    assert len(names) == len(set(names))
