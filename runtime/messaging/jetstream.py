"""JetStream's JSON API, asked directly: every configuration key of the server is reachable and comparable."""

import asyncio
import json
import random
from typing import Any

import nats.errors
import structlog
from nats.aio.client import Client

from tasklore.contracts.errors import Forbidden, TaskloreError, Unreachable

log = structlog.get_logger(__name__)

#: Seconds for an answer of the API; a leader election in a cluster takes less.
API_S = 5.0
#: Seconds that a start waits for a cluster which has no leader yet or misses nodes: an election takes up to 9 s, nodes
#: without a leader say nothing for 10 s before they admit it, and one that joins is asked to keep copies soon after.
FORMING_S = 20.0
#: Seconds between questions to a cluster that refuses: first, and at most.
_PAUSE_S = 0.1
_PAUSE_CAP_S = 1.0
#: Seconds that the last question gets, however little of the patience is left.
_LAST_ASK_S = 1.0

NOT_FOUND = 404

#: Codes of nats-server (its `server/errors.json`) for what a cluster that forms or elects will grant a little later.
_NO_PEERS = 10005
_NO_META_LEADER = 10008
_NOT_LEADER = 10009
#: For a consumer: most of the nodes that keep its stream are away.
_NO_RESOURCES = 10023
_STREAM_OFFLINE = 10118
_CONSUMER_OFFLINE = 10119
_PASSING = {
    _NO_PEERS,
    _NO_META_LEADER,
    _NOT_LEADER,
    _NO_RESOURCES,
    _STREAM_OFFLINE,
    _CONSUMER_OFFLINE,
}

_NODES_AWAY = "start the NATS nodes that are down"
#: What helps against a refusal that would otherwise leave its reader helpless, by code.
_CURES = {
    _NO_PEERS: "the NATS cluster has fewer nodes with room for it than TASKLORE_REPLICAS asks for, or some have not "
    "joined yet: start them, or lower the setting",
    _NO_META_LEADER: "most nodes of the NATS cluster are needed to elect a leader: "
    "start those that are down",
    _NO_RESOURCES: _NODES_AWAY,
    _STREAM_OFFLINE: _NODES_AWAY,
    _CONSUMER_OFFLINE: _NODES_AWAY,
    # A server alone, asked for more than one copy.
    10074: "this NATS server is not a cluster: set TASKLORE_REPLICAS=1, or "
    "TASKLORE_NATS_URL to a cluster",
}


class JetStreamRefused(TaskloreError):
    """The server refused a JetStream request; `code` is the HTTP-like code, `err_code` the precise one.

    *waited_s* is for how many seconds it had refused by then, 0 when it was asked once.
    """

    def __init__(
        self,
        what: str,
        code: int,
        err_code: int,
        description: str,
        waited_s: float = 0.0,
    ) -> None:
        still = f", still so after {waited_s:.0f} s" if waited_s else ""
        cure = f"; {_CURES[err_code]}" if err_code in _CURES else ""
        super().__init__(f"{what}: {description} ({err_code}){still}{cure}")
        self.what = what
        self.code = code
        self.err_code = err_code
        self.description = description

    @property
    def is_passing(self) -> bool:
        """Whether a cluster says so only while it forms or elects a leader, so that asking again may help."""
        return self.err_code in _PASSING


class _Silence(Unreachable):
    """No answer came in time; a cluster is silent, too, while it elects a leader."""


async def ask_jetstream(
    client: Client, call: str, body: Any = None, *, within_s: float = API_S
) -> dict[str, Any]:
    """Return the answer of `$JS.API.{call}`.

    Raises:
        JetStreamRefused: the server says no; its code says why.
        Forbidden: this user may not ask that.
        Unreachable: no answer within *within_s* seconds, or JetStream is not enabled.
    """
    payload = b"" if body is None else json.dumps(body).encode()
    try:
        async with asyncio.timeout(within_s + 1):
            message = await client.request(f"$JS.API.{call}", payload, timeout=within_s)
    except nats.errors.NoRespondersError as error:
        msg = "the NATS server does not run JetStream; start it with -js"
        raise Unreachable(msg) from error
    except Forbidden:
        raise
    except (TimeoutError, OSError, nats.errors.Error) as error:
        msg = f"the NATS server did not answer {call.split('.', 2)[0].lower()} request {call!r} within {within_s:.3g} s"
        raise _Silence(msg) from error
    answer: dict[str, Any] = json.loads(message.data)
    problem = answer.get("error")
    if problem:
        raise JetStreamRefused(
            call,
            problem.get("code", 0),
            problem.get("err_code", 0),
            problem.get("description", ""),
        )
    return answer


async def ask_or_none(
    client: Client, call: str, body: Any = None
) -> dict[str, Any] | None:
    """Return the answer of `$JS.API.{call}`, or None when the named object does not exist."""
    try:
        return await ask_jetstream(client, call, body)
    except JetStreamRefused as error:
        if error.code == NOT_FOUND:
            return None
        raise


class ClusterPatience:
    """Asks a cluster that may still be forming again and again, for at most *seconds* over all questions together.

    Only idempotent requests belong here: an answer may be lost after the server has acted. With 0
    seconds everything is asked once, for callers that repeat anyway.
    """

    def __init__(self, client: Client, seconds: float = FORMING_S) -> None:
        self._client = client
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()

    async def ask(self, call: str, body: Any = None) -> dict[str, Any]:
        """Return the answer of `$JS.API.{call}`, once the cluster gives one.

        Raises:
            JetStreamRefused: the server says no, and will not change its mind or did not in time.
            Unreachable: no answer in time, or JetStream is not enabled.
        """
        tries = 0
        while True:
            within_s = (
                min(API_S, max(_LAST_ASK_S, self._left_s)) if self._seconds else API_S
            )
            try:
                return await ask_jetstream(self._client, call, body, within_s=within_s)
            except JetStreamRefused as error:
                if not error.is_passing or not self._seconds:
                    raise
                if self._left_s <= 0:
                    raise self._last_word(error) from error
                trouble = str(error)
            except _Silence as error:
                if self._left_s <= 0:
                    raise
                trouble = str(error)
            tell = log.info if tries else log.warning
            tell(
                "jetstream_not_ready",
                asked=call,
                error=trouble,
                waits_s=round(self._left_s, 1),
            )
            pause_s = random.uniform(0.5, 1.0) * min(_PAUSE_CAP_S, _PAUSE_S * 2**tries)  # noqa: S311 - jitter
            await asyncio.sleep(min(pause_s, max(0.0, self._left_s)))
            tries += 1

    async def ask_or_none(self, call: str, body: Any = None) -> dict[str, Any] | None:
        """Return the answer of `$JS.API.{call}` as `ask` does, or None when the named object does not exist."""
        try:
            return await self.ask(call, body)
        except JetStreamRefused as error:
            if error.code == NOT_FOUND:
                return None
            raise

    @property
    def _left_s(self) -> float:
        return self._began_at + self._seconds - self._loop.time()

    def _last_word(self, error: JetStreamRefused) -> JetStreamRefused:
        waited_s = self._loop.time() - self._began_at
        return JetStreamRefused(
            error.what,
            code=error.code,
            err_code=error.err_code,
            description=error.description,
            waited_s=waited_s,
        )
