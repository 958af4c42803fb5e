"""The store of webhooks until they are delivered: one outbox for all supervisors of a deployment.

What waits is kept by host, so that the receivers of one host delay no others. A process takes due webhooks of a host
under a lease each, sends them, and notes the outcome; one that dies in between leaves them to be sent again.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, computed_field
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller, owner_of
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.records.owned import RecordReader
from tasklore.memory.webhooks import scripts

#: Webhooks that are kept at most: of all, and of those that wait for one host.
MOST = 20_000
MOST_OF_HOST = 12_000
#: How many of all, and of those for one host, are kept free for the addresses of the deployment.
RESERVED = 4_000
RESERVED_OF_HOST = 8_000
#: Webhooks that wait for the addresses of one maker: a tenant, or a key without one.
MOST_OF_MAKER = 4_000
#: How long the id of a delivered webhook is known, so that its event is not sent anew, and that of an ended task.
KNOWN = timedelta(days=2)

Outcome = Literal["delivered", "waits", "failed"]
#: Webhooks that are not delivered: those that wait to be sent, or were given up.
Undelivered = Literal["waiting", "failed"]


class Callback(BaseModel):
    """An address: *host* with its port; *owner* is the token of the user it concerns, "" for none.

    *caller* is who named it, None for the deployment's own, and in a record of 0.2.
    """

    model_config = ConfigDict(frozen=True)

    url: str
    host: str
    owner: str = ""
    caller: Caller | None = None

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated property
    @property
    def maker(self) -> str:
        """The token of those whose bounds count, "" for the deployment itself."""
        return owner_of(self.caller)


class Webhook(Callback):
    """One event for one address; `id` is the same whenever it is sent. `body` is JSON."""

    id: str
    type: str
    body: str
    created_at: datetime


class WebhookState(NamedTuple):
    """How far a webhook is: when it is due, since when it is tried, how often it was, and what the last one met."""

    due: datetime
    since: datetime
    attempts: int = 0
    problem: str = ""

    def spell(self) -> str:
        """Return it as it is stored."""
        return f"{_ms(self.due)} {_ms(self.since)} {self.attempts} {self.problem}"

    @classmethod
    def read(cls, text: bytes) -> "WebhookState":
        """Return the state that *text* spells."""
        due, since, attempts, problem = text.decode().split(" ", 3)
        first, second = (
            datetime.fromtimestamp(int(one) / 1000, UTC) for one in (due, since)
        )
        return cls(first, second, int(attempts), problem)


class Kept(NamedTuple):
    """A webhook and how far it is."""

    webhook: Webhook
    state: WebhookState


class WebhookOutbox:
    """Keeps webhooks in Redis; every method may raise MemoryUnavailable."""

    def __init__(self, client: Redis, *, deadline_s: float = 2.0) -> None:
        self._batch = CommandBatch(client, deadline_s)
        own = keys.WEBHOOKS
        self._reader = RecordReader[Kept](
            self._batch,
            records=own.records,
            states=own.states,
            owned=own.owned,
            read=_read,
        )

    async def put(self, webhook: Webhook, now: datetime) -> int:
        """Store *webhook*; return 1 when that is done, 0 when its event is known, -1 when there is no room."""
        is_own = not webhook.maker
        words = (
            webhook.id,
            webhook.model_dump_json(),
            WebhookState(now, now).spell(),
            MOST if is_own else MOST - RESERVED,
            MOST_OF_HOST if is_own else MOST_OF_HOST - RESERVED_OF_HOST,
            MOST_OF_MAKER,
        )
        return int(await self._call(scripts.PUT, *words))

    async def await_task(
        self, task_id: str, callback: Callback, until: datetime
    ) -> None:
        """Keep the address that is to hear of a task, until then at most."""
        await self._call(
            scripts.AWAIT, f"task:{task_id}", callback.model_dump_json(), _ms(until)
        )

    async def callbacks(self, task_ids: Sequence[str]) -> list[Callback | None]:
        """Return the address that is to hear of each task."""
        if not task_ids:
            return []
        found = (
            await self._batch.run(
                [
                    (
                        "HMGET",
                        keys.WEBHOOKS.callbacks,
                        *(f"task:{one}" for one in task_ids),
                    )
                ]
            )
        )[0]
        return [body and Callback.model_validate_json(body) for body in found]

    async def open_tasks(self, now: datetime, after: int, limit: int) -> list[str]:
        """Return up to *limit* tasks that are not known to have ended, *after* so many; one may come twice."""
        first = _ms(now + KNOWN + timedelta(minutes=1))
        page = (
            "ZRANGE",
            keys.WEBHOOKS.expiry,
            first,
            "+inf",
            "BYSCORE",
            "LIMIT",
            after,
            limit,
        )
        return [
            one.decode().removeprefix("task:")
            for one in (await self._batch.run([page]))[0]
        ]

    async def note_ended(self, task_ids: Iterable[str], now: datetime) -> None:
        """Keep the addresses of ended tasks for `KNOWN` more, in which a task may run anew."""
        scores = [
            word for one in task_ids for word in (_ms(now + KNOWN), f"task:{one}")
        ]
        if scores:
            await self._batch.run([("ZADD", keys.WEBHOOKS.expiry, "XX", *scores)])

    async def is_idle(self) -> bool:
        """Return whether nothing is to be sent, or to be dropped at its time."""
        listed = await self._batch.exists(keys.WEBHOOKS.hosts, keys.WEBHOOKS.expiry)
        return not listed

    async def due(self, now: datetime, limit: int) -> list[str]:
        """Return up to *limit* hosts with webhooks that are due."""
        return [one.decode() for one in await self._call(scripts.DUE, _ms(now), limit)]

    async def take(
        self, host: str, now: datetime, lease: timedelta, limit: int
    ) -> list[Kept]:
        """Return up to *limit* due webhooks of *host*, which no other process is given within *lease*."""
        found = await self._call(scripts.TAKE, host, _ms(now), _ms(now + lease), limit)
        return [
            _read(record, state)
            for record, state in zip(found[1::3], found[2::3], strict=True)
        ]

    async def note(
        self, kept: Kept, outcome: Outcome, state: WebhookState, at: datetime
    ) -> bool:
        """Note what became of *kept*, at that time; False when it is gone, or somebody else did."""
        until = at + KNOWN if outcome == "delivered" else at
        words = kept.webhook.id, kept.state.spell(), outcome, state.spell(), _ms(until)
        return bool(await self._call(scripts.NOTE, *words))

    async def read(self, *ids: str) -> list[Kept | None]:
        """Return the webhook of each of *ids*, None for one that is not there."""
        return await self._reader.read(*ids)

    async def find(self, which: Undelivered, limit: int) -> list[Kept]:
        """Return up to *limit* webhooks: those that wait, by host, or that were given up, the last ones first."""
        own = keys.WEBHOOKS
        words = (
            (own.queue, 0, limit - 1)
            if which == "waiting"
            else (own.failed, 0, limit - 1, "REV")
        )
        members = (await self._batch.run([("ZRANGE", *words)]))[0]
        found = await self.read(*(one.decode().rpartition(" ")[2] for one in members))
        return [one for one in found if one is not None]

    async def retry(
        self, kept: Kept, now: datetime, problem: str | None = None
    ) -> bool:
        """Let *kept* be due at once, for a whole day anew; False when it is gone.

        *problem* takes the place of what its last attempt met.
        """
        told = kept.state.problem if problem is None else problem
        return await self.note(kept, "waits", WebhookState(now, now, 0, told), now)

    async def remove(self, *ids: str) -> int:
        """Remove webhooks, and return how many were there."""
        return int(await self._call(scripts.REMOVE, *ids)) if ids else 0

    async def counts(self) -> tuple[int, int]:
        """Return how many wait, and how many were given up."""
        waiting, failed = await self._batch.run(
            [("ZCARD", keys.WEBHOOKS.queue), ("ZCARD", keys.WEBHOOKS.failed)]
        )
        return waiting, failed

    async def oldest(self) -> datetime | None:
        """Return since when the webhook that waits longest is tried, None when none waits."""
        if not await self._batch.exists(keys.WEBHOOKS.queue):
            return None
        since = await self._call(scripts.OLDEST)
        return None if since is None else datetime.fromtimestamp(int(since) / 1000, UTC)

    async def forget(self, user_id: str) -> int:
        """Remove what concerns a user, and return how many webhooks and addresses there were."""
        return await self.remove(*await self._reader.ids(user_token(user_id)))

    async def count(self, user_id: str) -> int:
        """Return how many webhooks and addresses concern a user."""
        return await self._reader.count(user_token(user_id))

    async def _call(self, script: str, *words: str | int) -> Any:
        return (
            await self._batch.run(
                [("FCALL", script, len(keys.WEBHOOKS), *keys.WEBHOOKS, *words)]
            )
        )[0]


def _read(record: bytes, state: bytes) -> Kept:
    return Kept(Webhook.model_validate_json(record), WebhookState.read(state))


def _ms(moment: datetime) -> str:
    """Return *moment* in ms since 1970, of 13 digits: their texts are in the order of the times."""
    return f"{round(moment.timestamp() * 1000):013d}"
