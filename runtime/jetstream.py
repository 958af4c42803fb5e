"""JetStream's JSON API, asked directly: every configuration key of the server is reachable and comparable."""

import asyncio
import json
from typing import Any

import nats.errors
from nats.aio.client import Client

from contracts.errors import TaskloreError, Unreachable

#: Seconds for an answer of the API; a leader election in a cluster takes less.
API_S = 5.0

NOT_FOUND = 404


class JetStreamRefused(TaskloreError):
    """The server refused a JetStream request; `code` is the HTTP-like code, `err_code` the precise one."""

    def __init__(self, what: str, code: int, err_code: int, description: str) -> None:
        super().__init__(f"{what}: {description} ({err_code})")
        self.code = code
        self.err_code = err_code


async def ask_jetstream(client: Client, call: str, body: Any = None, *, within_s: float = API_S) -> dict[str, Any]:
    """Return the answer of `$JS.API.{call}`.

    Raises:
        JetStreamRefused: the server says no; its code says why.
        Unreachable: no answer within *within_s* seconds, or JetStream is not enabled.
    """
    payload = b"" if body is None else json.dumps(body).encode()
    try:
        async with asyncio.timeout(within_s + 1):
            message = await client.request(f"$JS.API.{call}", payload, timeout=within_s)
    except nats.errors.NoRespondersError as error:
        msg = "the NATS server does not run JetStream; start it with -js"
        raise Unreachable(msg) from error
    except (TimeoutError, OSError, nats.errors.Error) as error:
        msg = f"the NATS server did not answer {call.split('.', 2)[0].lower()} request {call!r} within {within_s} s"
        raise Unreachable(msg) from error
    answer: dict[str, Any] = json.loads(message.data)
    problem = answer.get("error")
    if problem:
        raise JetStreamRefused(call, problem.get("code", 0), problem.get("err_code", 0), problem.get("description", ""))
    return answer


async def ask_or_none(client: Client, call: str, body: Any = None) -> dict[str, Any] | None:
    """Return the answer of `$JS.API.{call}`, or None when what it names does not exist."""
    try:
        return await ask_jetstream(client, call, body)
    except JetStreamRefused as error:
        if error.code == NOT_FOUND:
            return None
        raise
