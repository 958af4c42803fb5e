"""Gathering the facts about Redis or Valkey: INFO, the few settings that matter, and the time."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from redis.exceptions import AuthenticationError, RedisError, ResponseError

from tasklore.commands.doctor.facts import RedisFacts, Skew, Unanswered, reason_of
from tasklore.contracts.errors import TaskloreError
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.endpoints import REDIS_VARIABLE, masked_url

#: Seconds for one command; three are sent, one after another.
ANSWER_S = 2.0

#: Settings that INFO leaves out.
_SETTINGS = ("appendfsync", "no-appendfsync-on-rewrite", "save")


async def examine_redis(
    url: str, supervisor_id: str, clock: Callable[[], float] = time.time
) -> RedisFacts:
    """Ask the server at *url* about itself, and for runs of *supervisor_id* that were set aside.

    *clock* returns our time in seconds since 1970. A server that cannot be reached is a fact, not an error.
    """
    shown = masked_url(url)
    try:
        async with valkey.connect(
            url, name="tasklore-doctor", max_connections=1, deadline_s=ANSWER_S
        ) as client:
            info = await _unless_refused(client.info())
            set_aside = await PipelineRuns(client, deadline_s=ANSWER_S).set_aside(
                supervisor_id
            )
            config = await _unless_refused(client.config_get(*_SETTINGS))
            asked = clock()
            time_there = await _unless_refused(client.execute_command("TIME"))
            answered = clock()
    except AuthenticationError:
        return RedisFacts(
            url=shown,
            refusal=f"{shown} refuses the user or password in {REDIS_VARIABLE}",
        )
    except (RedisError, OSError, TaskloreError) as error:
        return RedisFacts(
            url=shown, refusal=f"{shown} does not answer ({reason_of(error)})"
        )
    skew = None
    if not isinstance(time_there, Unanswered):
        seconds, microseconds = time_there
        skew = Skew(
            seconds + microseconds / 1e6 - (asked + answered) / 2,
            (answered - asked) / 2,
        )
    settings = (
        config
        if isinstance(config, Unanswered)
        else {_decode(name): _decode(value) for name, value in config.items()}
    )
    return RedisFacts(
        url=shown,
        refusal=None,
        info=info,
        settings=settings,
        skew=skew,
        set_aside=set_aside,
    )


async def _unless_refused(command: Awaitable[Any]) -> Any | Unanswered:
    """Return the answer of *command*, or why this user does not get one."""
    try:
        return await command
    except ResponseError as error:
        return Unanswered(str(error))


def _decode(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
