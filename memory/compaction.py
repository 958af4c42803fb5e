"""Rewrite the files of Redis, so that removed data is in none of them.

An append-only file holds every command since it was last rewritten, values and the removal itself included, and a
snapshot what there was when it was taken. Each server has files of its own: replicas, and the nodes of a cluster, are
to be asked one by one. What an administrator copied elsewhere is beyond our reach.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError, ResponseError

from tasklore.contracts.errors import ConfigurationError, MemoryUnavailable

#: Seconds between looks whether the server is done: first, and at most; a small store takes some 20 ms.
_PAUSE_S = 0.01
_PAUSE_CAP_S = 0.5

#: How the server says that it is still at an earlier one, or at the other of the two: it does one at a time.
_BUSY = ("in progress", "process is active")

_Info = dict[str, Any]


async def rewrite(client: Redis, deadline_s: float = 60.0) -> None:
    """Have the append-only file rewritten, when there is one, and a snapshot taken; return when both are on disk.

    Data removed before the call is then in none of the server's files. One that is under way already does not
    count, as it may have begun before the removal: it is waited for. Safe to repeat.

    Raises:
        MemoryUnavailable: it is not done within *deadline_s* seconds, or the server failed, as on a full disk.
        ConfigurationError: the server does not let us do it.
    """
    try:
        async with asyncio.timeout(deadline_s):
            if (await _persistence(client)).get("aof_enabled"):
                await _do(
                    client,
                    client.bgrewriteaof,
                    _is_rewriting,
                    "aof_last_bgrewrite_status",
                )
            # One that is only scheduled shows nowhere, and would be taken for done.
            await _do(
                client,
                lambda: client.bgsave(schedule=False),
                _is_saving,
                "rdb_last_bgsave_status",
            )
    except TimeoutError as error:
        raise MemoryUnavailable(
            f"Redis did not rewrite its files within {deadline_s:g} s; try again, with "
            "more time"
        ) from error
    except (OSError, RedisError) as error:
        raise MemoryUnavailable(
            f"Redis did not rewrite its files: {str(error) or type(error).__name__}; "
            "try again"
        ) from error


async def _do(
    client: Redis,
    start: Callable[[], Awaitable[Any]],
    is_under_way: Callable[[_Info], bool],
    status: str,
) -> None:
    """Start a job that is not yet under way, and return when it ended well."""
    while True:
        await _until_idle(client, lambda info: _is_rewriting(info) or _is_saving(info))
        try:
            await start()
            break
        except ResponseError as error:
            words = str(error)
            # Another client may have been quicker.
            if any(busy in words for busy in _BUSY):
                continue
            if isinstance(error, NoPermissionError) or "unknown command" in words:
                raise ConfigurationError(
                    f"Redis does not permit rewriting its files ({words}); ask the "
                    "administrator of the server to do it"
                ) from error
            raise
    info = await _until_idle(client, is_under_way)
    if info.get(status) != "ok":
        raise MemoryUnavailable(
            f"Redis failed to rewrite its files ({status}: {info.get(status)}); see its "
            "log, and check for free disk space"
        )


async def _until_idle(client: Redis, is_under_way: Callable[[_Info], bool]) -> _Info:
    pause_s = _PAUSE_S
    while is_under_way(info := await _persistence(client)):
        await asyncio.sleep(pause_s)
        pause_s = min(_PAUSE_CAP_S, 2 * pause_s)
    return info


async def _persistence(client: Redis) -> _Info:
    info: _Info = await client.info("persistence")
    return info


def _is_rewriting(info: _Info) -> bool:
    return bool(
        info.get("aof_rewrite_in_progress") or info.get("aof_rewrite_scheduled")
    )


def _is_saving(info: _Info) -> bool:
    return bool(info.get("rdb_bgsave_in_progress"))
