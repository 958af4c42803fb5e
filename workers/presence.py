"""What a worker says about itself: the card of its agent, and every five seconds that it is alive.

It is for lists and for choosing an agent; a worker that dies is noticed by the leases of its tasks
(`tasklore.memory.ledger`).
"""

import asyncio
from collections.abc import Awaitable, Callable

import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.js.kv import KeyValue
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import AgentConflict, TaskloreError, Unreachable
from tasklore.contracts.messages import AgentCard, AwayModel, WorkerPresence
from tasklore.runtime.messaging.buckets import BUCKET_FAILURES, BUCKET_S
from tasklore.runtime.messaging.presences import key_of_presence, live_workers
from tasklore.workers.card import same_contract

log = structlog.get_logger(__name__)

#: Seconds between two signs of life; the bucket forgets a worker after 15.
REFRESH_S = 5.0
#: How often a card is put against a newer revision before giving up: each loss means that somebody else put one.
_TRIES = 5


async def announce(
    client: Client, card: AgentCard, forget: Callable[[str], Awaitable[None]]
) -> None:
    """Put *card* into the bucket unless a higher version lies there.

    *forget* is awaited with each task whose parameters changed without a new version: what was remembered under the old
    ones would answer other questions.

    Raises:
        AgentConflict: a live worker serves this agent and version with other tasks or parameters.
        Unreachable: the bucket did not answer.
    """
    try:
        async with asyncio.timeout(BUCKET_S * _TRIES):
            bucket = await client.jetstream().key_value(subjects.AGENTS_BUCKET)
            for _ in range(_TRIES):
                if await _put_card(client, bucket, card, forget):
                    return
    except BUCKET_FAILURES as error:
        msg = f"the bucket {subjects.AGENTS_BUCKET!r} did not take the card of {card.agent_id}: {error}"
        raise Unreachable(msg) from error
    msg = f"the card of {card.agent_id} was replaced {_TRIES} times by others; start one worker after another"
    raise AgentConflict(msg)


async def _put_card(
    client: Client,
    bucket: KeyValue,
    card: AgentCard,
    forget: Callable[[str], Awaitable[None]],
) -> bool:
    body = card.model_dump_json().encode()
    try:
        entry = await bucket.get(card.agent_id)
    except nats.js.errors.KeyNotFoundError as error:
        # A retired card leaves a marker, over which the next one is put.
        revision = error.entry.revision if error.entry is not None else 0
        return await _update(bucket, card.agent_id, body, revision or 0)
    known = _read_card(card.agent_id, entry.value or b"")
    if known is not None and known.version > card.version:
        log.warning(
            "newer_card_kept",
            agent=card.agent_id,
            version=card.version,
            newer=known.version,
        )
        return True
    if (
        known is not None
        and known.version == card.version
        and not same_contract(known, card)
    ):
        await _refuse_conflict(client, card)
        for task in changed_tasks(known, card):
            log.warning(
                "parameters_changed",
                agent=card.agent_id,
                task=task,
                cure="raise the task's version",
            )
            await forget(task)
    return await _update(bucket, card.agent_id, body, entry.revision or 0)


async def _update(bucket: KeyValue, key: str, body: bytes, revision: int) -> bool:
    try:
        await bucket.update(key, body, last=revision)
    except nats.js.errors.KeyWrongLastSequenceError:
        return False
    return True


def changed_tasks(old: AgentCard, new: AgentCard) -> list[str]:
    """Return the tasks of one version whose parameters have changed."""
    before = {task.name: task for task in old.tasks}
    return [
        task.name
        for task in new.tasks
        if task.name in before
        and before[task.name].version == task.version
        and before[task.name].parameters != task.parameters
    ]


async def _refuse_conflict(client: Client, card: AgentCard) -> None:
    for worker in await live_workers(client):
        if (
            worker.agent_id == card.agent_id
            and worker.version == card.version
            and worker.digest != card.digest
        ):
            msg = (
                f"worker {worker.worker_id} serves {card.agent_id} version {card.version} with other tasks or "
                f"parameters (its digest {worker.digest}, ours {card.digest}); raise the version of one, or rename it"
            )
            raise AgentConflict(msg)


async def show_presence(
    client: Client,
    presence: WorkerPresence,
    card: AgentCard,
    heal: Callable[[], Awaitable[object]],
    *,
    read_away: Callable[[], tuple[AwayModel, ...]] = tuple,
) -> None:
    """Refresh *presence* until cancelled, and put *card* again where it is gone; an outage is waited out.

    *heal* makes the buckets anew where that is allowed, when one of them is no longer there. *read_away* returns the
    models that do not answer now.
    """
    while True:
        presence = presence.model_copy(update={"away": read_away()})
        try:
            await _show(client, presence, card)
        except nats.js.errors.BucketNotFoundError:
            await _show_anew(client, presence, card, heal)
        except BUCKET_FAILURES as error:
            _note_hidden(presence, error)
        if _is_cancelled():
            return
        await asyncio.sleep(REFRESH_S)


def _is_cancelled() -> bool:
    """Return whether this task was cancelled without a CancelledError.

    The client library waits with `asyncio.wait_for`, which up to Python 3.11 forgets a cancellation that comes together
    with what it waits for.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _show(client: Client, presence: WorkerPresence, card: AgentCard) -> None:
    async with asyncio.timeout(BUCKET_S):
        bucket = await client.jetstream().key_value(subjects.WORKERS_BUCKET)
        await bucket.put(key_of_presence(presence), presence.model_dump_json().encode())
        await _restore_card(client, card)


async def _show_anew(
    client: Client,
    presence: WorkerPresence,
    card: AgentCard,
    heal: Callable[[], Awaitable[object]],
) -> None:
    log.warning("bucket_lost", agent=presence.agent_id)
    try:
        await heal()
        await _show(client, presence, card)
    except (TaskloreError, *BUCKET_FAILURES) as error:
        _note_hidden(presence, error)


def _note_hidden(presence: WorkerPresence, error: Exception) -> None:
    log.info(
        "presence_not_shown",
        agent=presence.agent_id,
        error=str(error) or type(error).__name__,
    )


async def _restore_card(client: Client, card: AgentCard) -> None:
    """Put *card* when nothing lies under its name; the mark of a retired one is something."""
    bucket = await client.jetstream().key_value(subjects.AGENTS_BUCKET)
    try:
        await bucket.get(card.agent_id)
    except nats.js.errors.KeyNotFoundError as error:
        if error.entry is None:
            await _update(bucket, card.agent_id, card.model_dump_json().encode(), 0)


async def end_presence(client: Client, presence: WorkerPresence) -> None:
    """Take *presence* out of the bucket, when the server can be reached."""
    try:
        async with asyncio.timeout(1.0):
            bucket = await client.jetstream().key_value(subjects.WORKERS_BUCKET)
            await bucket.delete(key_of_presence(presence))
    except BUCKET_FAILURES:
        return  # it ends by itself after 15 s


def _read_card(agent_id: str, body: bytes) -> AgentCard | None:
    """Return the card that *body* is, None when it is none of *agent_id*: anything else is written over."""
    try:
        card = AgentCard.model_validate_json(body)
    except ValidationError:
        return None
    return card if card.agent_id == agent_id else None
