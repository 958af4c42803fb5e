"""What Redis or Valkey says about itself: INFO, the few settings that matter, and the time."""

import time
from collections.abc import Callable
from typing import Any

from redis.exceptions import AuthenticationError, RedisError, ResponseError

from contracts.errors import TaskloreError
from memory.sessions.pipeline_runs import PipelineRuns
from runtime.servers import valkey
from runtime.servers.endpoints import REDIS_VARIABLE, masked_url
from tasklore.doctor.facts import Answer, RedisFacts, Skew, Unanswered, reason_of

#: Seconds for one command; three are sent, one after another.
ANSWER_S = 2.0

#: What INFO does not tell.
_SETTINGS = ("appendfsync", "no-appendfsync-on-rewrite", "save")


async def examine_redis(url: str, supervisor_id: str, clock: Callable[[], float] = time.time) -> RedisFacts:
    """Ask the server at *url* about itself, and for runs of *supervisor_id* that were set aside.

    *clock* tells our time in seconds since 1970. A server that cannot be reached is a fact, not an error.
    """
    shown = masked_url(url)
    try:
        async with valkey.connect(url, name="tasklore-doctor", max_connections=1, deadline_s=ANSWER_S) as client:
            info = await _info(client)
            set_aside = await PipelineRuns(client, deadline_s=ANSWER_S).set_aside(supervisor_id)
            return RedisFacts(
                shown, None, info, await _settings(client), await _skew(client, clock), set_aside=set_aside
            )
    except AuthenticationError:
        return RedisFacts(shown, f"{shown} refuses the user or password in {REDIS_VARIABLE}")
    except (RedisError, OSError, TaskloreError) as error:
        return RedisFacts(shown, f"{shown} does not answer ({reason_of(error)})")


async def _info(client: valkey.Valkey) -> Answer | Unanswered:
    try:
        answer: dict[str, Any] = await client.info()
    except ResponseError as error:
        return Unanswered(str(error))
    return answer


async def _settings(client: valkey.Valkey) -> dict[str, str] | Unanswered:
    try:
        found = await client.config_get(*_SETTINGS)
    except ResponseError as error:
        return Unanswered(str(error))
    return {_text(name): _text(value) for name, value in found.items()}


async def _skew(client: valkey.Valkey, clock: Callable[[], float]) -> Skew | None:
    asked = clock()
    try:
        seconds, microseconds = await client.execute_command("TIME")
    except ResponseError:
        return None
    answered = clock()
    return Skew(seconds + microseconds / 1e6 - (asked + answered) / 2, (answered - asked) / 2)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
