"""Gathering the facts about NATS and our streams: read-only questions side by side, each with a deadline."""

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import nats
import nats.errors
from nats.aio.client import Client

from tasklore.commands.doctor.facts import (
    Answer,
    NatsFacts,
    Skew,
    Unanswered,
    reason_of,
)
from tasklore.commands.endpoints import demand_listener
from tasklore.contracts import subjects
from tasklore.contracts.errors import TaskloreError, Unreachable
from tasklore.runtime.access import access_of
from tasklore.runtime.messaging.jetstream import (
    NOT_FOUND,
    JetStreamRefused,
    ask_jetstream,
)
from tasklore.runtime.messaging.presences import live_workers
from tasklore.runtime.servers.endpoints import NATS_VARIABLE, masked_url
from tasklore.supervisor.cards import read_cards

#: Seconds for a connection: a server that is well needs milliseconds, one behind a tunnel half a second.
CONNECT_S = 2.5
#: Seconds for one answer; a leader election in a cluster, the slowest thing to wait for, is reported as such.
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

    async def ask(self, call: str, body: Any = None) -> Answer | Unanswered | None:
        """Return the answer of `$JS.API.{call}`; None when its subject does not exist."""
        asked = self._clock()
        try:
            answer = await ask_jetstream(self.client, call, body, within_s=ANSWER_S)
        except JetStreamRefused as error:
            return None if error.code == NOT_FOUND else Unanswered(str(error))
        except Unreachable as error:
            return Unanswered(str(error))
        self._compare(asked, answer.get("ts"))
        return answer

    async def ask_server(self) -> Answer | Unanswered:
        """Return the `server` object of the server of this connection."""
        asked = self._clock()
        try:
            async with asyncio.timeout(ANSWER_S):
                message = await self.client.request(_WHO, b"", timeout=ANSWER_S)
            server: Answer = json.loads(message.data)["server"]
        except (
            TimeoutError,
            OSError,
            nats.errors.Error,
            ValueError,
            KeyError,
            TypeError,
        ) as error:
            return Unanswered(str(error) or "no answer")
        self._compare(asked, server.get("time"))
        return server

    async def list_consumers(self, stream: str) -> list[Answer] | Unanswered:
        """Return every consumer of *stream*; none when there is no such stream."""
        found: list[Answer] = []
        while len(found) < _MOST_CONSUMERS:
            answer = await self.ask(f"CONSUMER.LIST.{stream}", {"offset": len(found)})
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
            self._skews.append(
                Skew(there - (asked + answered) / 2, (answered - asked) / 2)
            )


async def examine_nats(
    url: str, streams: Sequence[str], clock: Callable[[], float] = time.time
) -> NatsFacts:
    """Ask the NATS at *url* about itself, about *streams*, and about agents and workers.

    *clock* returns our time in seconds since 1970. A server that cannot be reached is a fact, not an error.
    """
    facts = NatsFacts(url=masked_url(url))
    try:
        await demand_listener(url)
    except Unreachable as error:
        return replace(
            facts,
            refusal=f"no NATS server is reachable at {facts.url} "
            f"({reason_of(error.__cause__ or error)})",
        )
    try:
        async with _connect(url) as client:
            return await _ask_all(_Asker(client, clock), facts, streams)
    except Unreachable as error:
        return replace(facts, refusal=str(error))


async def _ask_all(
    asker: _Asker, facts: NatsFacts, streams: Sequence[str]
) -> NatsFacts:
    # Beyond the state: the tasks by subject, and the number of schedules, without those that fell due and stay.
    details: dict[str, Answer] = {
        subjects.TASKS: {"subjects_filter": subjects.TASKS_ALL},
        subjects.LATER: {
            "subjects_filter": subjects.SCHEDULES_ALL,
            "offset": _PAST_ALL,
        },
    }
    reading = (
        subjects.TASKS,
        subjects.REPORTS,
        subjects.TURNS,
        subjects.FACTS,
        subjects.MESSAGES,
    )
    async with asyncio.TaskGroup() as group:
        server = group.create_task(asker.ask_server())
        account = group.create_task(asker.ask("INFO"))
        infos = {
            name: group.create_task(asker.ask(f"STREAM.INFO.{name}", details.get(name)))
            for name in streams
        }
        consumers = {
            name: group.create_task(asker.list_consumers(name)) for name in reading
        }
        cards = group.create_task(_within_deadline(read_cards(asker.client)))
        workers = group.create_task(_within_deadline(live_workers(asker.client)))
    found = {name: info.result() for name, info in infos.items()}
    tasks = found.get(subjects.TASKS)
    later = found.get(subjects.LATER)
    waiting: Counter[str] = Counter()
    for subject, number in (
        (tasks["state"].get("subjects") or {}) if isinstance(tasks, dict) else {}
    ).items():
        waiting[subject.split(".")[1]] += number
    version = asker.client.connected_server_version
    try:
        numbers = f"{version.major}.{version.minor}.{version.patch}"
    except ValueError:
        # A build without a version.
        numbers = ""
    return replace(
        facts,
        version=numbers,
        max_payload=asker.client.max_payload,
        others=len(asker.client.discovered_servers),
        server=server.result(),
        account=account.result() or Unanswered("no such account"),
        streams=found,
        consumers={name: consumer.result() for name, consumer in consumers.items()},
        waiting=waiting,
        schedules=int(later.get("total") or 0) if isinstance(later, dict) else 0,
        cards=cards.result(),
        workers=workers.result(),
        skew=asker.skew,
    )


async def _within_deadline(reading: Coroutine[Any, Any, T]) -> T | Unanswered:
    try:
        async with asyncio.timeout(ANSWER_S):
            return await reading
    except TimeoutError:
        return Unanswered(f"no answer within {ANSWER_S:g} s")
    except TaskloreError as error:
        return Unanswered(str(error))


@contextlib.asynccontextmanager
async def _connect(url: str) -> AsyncIterator[Client]:
    """Connect once; `tasklore.runtime.messaging.connection` would try for ever and drop the reason of a failure.

    Raises:
        Unreachable: the server does not answer in time, or refuses us.
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
    except (TimeoutError, OSError, nats.errors.Error) as error:
        if not isinstance(error, TimeoutError):
            errors = errors or [str(error)]
        words = " ".join(errors).lower()
        last = next((one for one in reversed(errors) if one != "TimeoutError"), None)
        if "authorization" in words or "authentication" in words:
            why = f"refuses the user or password in {NATS_VARIABLE}"
        elif last is None:
            why = f"accepts connections and says nothing within {CONNECT_S:g} s"
        else:
            why = f"cannot be connected: {last}"
        raise Unreachable(f"{masked_url(url)} {why}") from error
    try:
        yield client
    finally:
        with contextlib.suppress(TimeoutError, OSError, nats.errors.Error):
            async with asyncio.timeout(ANSWER_S):
                await client.close()
