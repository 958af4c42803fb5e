"""What NATS says about itself and about our streams: read-only questions side by side, each with a deadline."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import nats
import nats.errors
from nats.aio.client import Client

from contracts import subjects
from contracts.errors import TaskloreError, Unreachable
from runtime.access import access_of
from runtime.messaging.jetstream import NOT_FOUND, JetStreamRefused, ask_jetstream
from runtime.servers.endpoints import NATS_VARIABLE, masked_url
from supervisor.cards import read_cards
from tasklore.doctor.facts import Answer, NatsFacts, Skew, Unanswered, reason_of
from tasklore.places import demand_listener
from workers.presence import live_workers

#: Seconds for a connection: a server that is well needs milliseconds, one behind a tunnel half a second.
CONNECT_S = 2.5
#: Seconds for one answer; a leader election in a cluster, the slowest thing to wait for, is told as what it is.
ANSWER_S = 2.0

#: Answered by the server of the connection itself, with its clock; every user may ask unless it is forbidden.
_WHO = "$SYS.REQ.USER.INFO"
#: An offset past every subject of a stream: the answer then counts them and lists none.
_PAST_ALL = 2**31
#: Consumers of one stream that are read; there is one for each agent.
_MOST_CONSUMERS = 4096

T = TypeVar("T")


class _Asker:
    """A connection to ask on, which notes how far the clocks of the answers are from ours."""

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self.client = client
        self._clock = clock
        self._skews: list[Skew] = []

    @property
    def skew(self) -> Skew | None:
        """The most precise comparison of clocks so far."""
        return min(self._skews, key=lambda skew: skew.error_s, default=None)

    async def api(self, call: str, body: Any = None) -> Answer | Unanswered | None:
        """Return the answer of `$JS.API.{call}`, or None for what does not exist."""
        asked = self._clock()
        try:
            answer = await ask_jetstream(self.client, call, body, within_s=ANSWER_S)
        except JetStreamRefused as error:
            return None if error.code == NOT_FOUND else Unanswered(str(error))
        except Unreachable as error:
            return Unanswered(str(error))
        self._compare(asked, answer.get("ts"))
        return answer

    async def who(self) -> Answer | Unanswered:
        """Return what the server of this connection says of itself."""
        asked = self._clock()
        try:
            async with asyncio.timeout(ANSWER_S):
                message = await self.client.request(_WHO, b"", timeout=ANSWER_S)
            server: Answer = json.loads(message.data)["server"]
        except (TimeoutError, OSError, nats.errors.Error, ValueError, KeyError, TypeError) as error:
            return Unanswered(str(error) or "no answer")
        self._compare(asked, server.get("time"))
        return server

    async def consumers(self, stream: str) -> list[Answer] | Unanswered:
        """Return every consumer of *stream*; none when there is no such stream."""
        found: list[Answer] = []
        while len(found) < _MOST_CONSUMERS:
            answer = await self.api(f"CONSUMER.LIST.{stream}", {"offset": len(found)})
            if isinstance(answer, Unanswered):
                return answer
            page = (answer or {}).get("consumers") or []
            found += page
            if answer is None or not page or len(found) >= answer.get("total", 0):
                break
        return found

    def _compare(self, asked: float, said: Any) -> None:
        answered = self._clock()
        with contextlib.suppress(ValueError, TypeError):
            there = datetime.fromisoformat(said).timestamp()
            self._skews.append(Skew(there - (asked + answered) / 2, (answered - asked) / 2))


async def examine_nats(url: str, streams: Sequence[str], clock: Callable[[], float] = time.time) -> NatsFacts:
    """Ask the NATS at *url* about itself, about *streams* and about who works there.

    *clock* tells our time in seconds since 1970. A server that cannot be reached is a fact, not an error.
    """
    facts = NatsFacts(masked_url(url))
    try:
        await demand_listener(url)
    except Unreachable as error:
        return replace(facts, refusal=f"nobody listens at {facts.url} ({reason_of(error.__cause__ or error)})")
    try:
        async with _connected(url) as client:
            return await _ask_all(_Asker(client, clock), facts, streams)
    except Unreachable as error:
        return replace(facts, refusal=str(error))


async def _ask_all(asker: _Asker, facts: NatsFacts, streams: Sequence[str]) -> NatsFacts:
    reading = (subjects.TASKS, subjects.REPORTS, subjects.TURNS, subjects.FACTS, subjects.MESSAGES)
    async with asyncio.TaskGroup() as group:
        server = group.create_task(asker.who())
        account = group.create_task(asker.api("INFO"))
        infos = {name: group.create_task(asker.api(f"STREAM.INFO.{name}", _details(name))) for name in streams}
        consumers = {name: group.create_task(asker.consumers(name)) for name in reading}
        cards = group.create_task(_in_time(read_cards(asker.client)))
        workers = group.create_task(_in_time(live_workers(asker.client)))
    told = {name: info.result() for name, info in infos.items()}
    return replace(
        facts,
        version=_version(asker.client),
        max_payload=asker.client.max_payload,
        others=len(asker.client.discovered_servers),
        server=server.result(),
        account=account.result() or Unanswered("no such account"),
        streams=told,
        consumers={name: found.result() for name, found in consumers.items()},
        waiting=_by_agent(told.get(subjects.TASKS)),
        schedules=_schedules(told.get(subjects.LATER)),
        cards=cards.result(),
        workers=workers.result(),
        skew=asker.skew,
    )


def _version(client: Client) -> str:
    """Return the version of the server as `2.15.1`; "" for a build that has none."""
    version = client.connected_server_version
    try:
        return f"{version.major}.{version.minor}.{version.patch}"
    except ValueError:
        return ""


def _details(stream: str) -> Answer | None:
    """Return what to ask of *stream* beyond its state: the tasks by subject, and how many schedules there are."""
    if stream == subjects.TASKS:
        return {"subjects_filter": subjects.TASKS_ALL}
    if stream == subjects.LATER:
        # What fell due stays in the stream: only the schedules themselves are yet to come.
        return {"subjects_filter": subjects.SCHEDULES_ALL, "offset": _PAST_ALL}
    return None


def _by_agent(tasks: Answer | Unanswered | None) -> dict[str, int]:
    found: dict[str, int] = {}
    if isinstance(tasks, dict):
        for subject, number in (tasks["state"].get("subjects") or {}).items():
            agent_id = subject.split(".")[1]
            found[agent_id] = found.get(agent_id, 0) + number
    return found


def _schedules(later: Answer | Unanswered | None) -> int:
    return int(later.get("total") or 0) if isinstance(later, dict) else 0


async def _in_time(reading: Coroutine[Any, Any, T]) -> T | Unanswered:
    try:
        async with asyncio.timeout(ANSWER_S):
            return await reading
    except TimeoutError:
        return Unanswered(f"no answer within {ANSWER_S:g} s")
    except TaskloreError as error:
        return Unanswered(str(error))


@contextlib.asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Client]:
    """Connect once, with the reason when that fails: the connections of the house would try for ever.

    Raises:
        Unreachable: nobody answers in time, or we are refused.
    """
    errors: list[str] = []

    async def on_error(error: Exception) -> None:
        errors.append(reason_of(error))

    try:
        async with asyncio.timeout(CONNECT_S):
            client = await nats.connect(
                url.split(","),
                name="tasklore-doctor",
                connect_timeout=2,
                max_reconnect_attempts=1,
                reconnect_time_wait=0.1,
                error_cb=on_error,
                **access_of().nats_options(),
            )
    except TimeoutError as error:
        raise Unreachable(_why(url, errors)) from error
    except (OSError, nats.errors.Error) as error:
        raise Unreachable(_why(url, errors or [str(error)])) from error
    try:
        yield client
    finally:
        with contextlib.suppress(TimeoutError, OSError, nats.errors.Error):
            async with asyncio.timeout(ANSWER_S):
                await client.close()


def _why(url: str, errors: list[str]) -> str:
    told = " ".join(errors).lower()
    if "authorization" in told or "authentication" in told:
        return f"{masked_url(url)} refuses the user or password in {NATS_VARIABLE}"
    last = next((error for error in reversed(errors) if error != "TimeoutError"), None)
    if last is None:
        return f"{masked_url(url)} accepts connections and says nothing within {CONNECT_S:g} s"
    return f"{masked_url(url)} cannot be connected: {last}"
