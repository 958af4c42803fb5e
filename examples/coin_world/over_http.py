"""Asking an agent by the HTTP API of a supervisor, as a world does that knows nothing but HTTP."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from examples.coin_world.agents import AGENT, answer_in
from examples.coin_world.running import Answer
from tasklore.contracts.errors import ConfigurationError, NotAccepted, Unreachable

#: Where a key comes from, for an API that demands one: in an option it would be in every list of processes.
KEY_VARIABLE = "COIN_WORLD_API_KEY"
#: Agents asked at once; each waits for its answer in a thread.
_AT_ONCE = 32
#: Seconds past what the agent is given, for the way there and back.
_ON_THE_WAY_S = 5.0
#: What ends a step without an answer, and not the world: too many ask, or nobody decided in time.
_LATER = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class OverHttp:
    """Asks the supervisor at *url*, with the API key *key* unless that is empty."""

    def __init__(self, url: str, key: str = "") -> None:
        self._address = f"{url.rstrip('/')}/v1/agents/{AGENT}/brain/decide"
        self._headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ask")

    async def answer(
        self,
        moment: Mapping[str, Any],
        *,
        task_id: str,
        conversation_id: str,
        within: timedelta,
    ) -> Answer:
        """Return what the agent decides.

        Raises:
            NotAccepted: nobody decided in time, or too many ask.
            ConfigurationError: it is not let in, or there is no such agent.
            Unreachable: nobody answers there.
        """
        body = {
            **moment,
            "conversation": conversation_id,
            "wait_seconds": within.total_seconds(),
        }
        asked = urllib.request.Request(  # noqa: S310 - the address is checked where it is read
            self._address,
            json.dumps(body).encode(),
            {**self._headers, "Idempotency-Key": task_id},
        )
        loop = asyncio.get_running_loop()
        status, told = await loop.run_in_executor(
            self._threads, _sent, asked, within.total_seconds() + _ON_THE_WAY_S
        )
        if status == HTTPStatus.OK:
            return answer_in(told)
        detail = told.get("detail", "") if isinstance(told, dict) else ""
        if status in _LATER:
            raise NotAccepted(str(detail))
        if status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return Answer(None, problem=str(detail))
        msg = f"{self._address} answers with {status}: {detail or 'no reason'}"
        raise ConfigurationError(msg)


def _sent(request: urllib.request.Request, within_s: float) -> tuple[int, Any]:
    try:
        try:
            with urllib.request.urlopen(request, timeout=within_s) as reply:  # noqa: S310 - as above
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as refused:
            return refused.code, _read(refused.read())
    except (OSError, ValueError) as error:
        msg = f"{request.full_url} cannot be asked: {error}; is that the address of the API, as `tasklore up` tells it?"
        raise Unreachable(msg) from error


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return {}
