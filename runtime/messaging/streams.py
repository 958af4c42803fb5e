"""The streams, buckets and consumers of the house, declared again and again without harm."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog
from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError, DriftedConfiguration
from tasklore.runtime.messaging.jetstream import (
    FORMING_S,
    ClusterPatience,
    JetStreamRefused,
)

if TYPE_CHECKING:
    from tasklore.runtime.settings import Settings

log = structlog.get_logger(__name__)

_SECOND = 1_000_000_000
_DAY = 24 * 3600 * _SECOND

#: Nanoseconds in which a repeated publish of one message id is swallowed: above the publish retry horizon of 4 min.
DUPLICATE_WINDOW = 300 * _SECOND
#: Seconds that a report lies in its stream.
REPORTS_KEPT_S = 3600
#: Seconds that the output of a task lies in its stream.
OUTPUT_KEPT_S = 3600
#: Nanoseconds in which a repeated publish of output is swallowed: thousands come a second, each id takes memory of the
#: server, and a reader passes over what it has by its numbers.
_OUTPUT_WINDOW = 10 * _SECOND
#: Nanoseconds a dead worker stays listed: three missed refreshes of 5 s.
PRESENCE_TTL = 15 * _SECOND

#: Seconds to wait before a stream is made anew that somebody deleted: the server says that it is gone before it has
#: cleared its files away, and a stream made in between keeps their numbers and takes no message (nats-server 2.15).
CLEARED_S = 0.5

#: Changes of a consumer that the server takes over without losing its place.
_ADJUSTABLE = {"ack_wait", "max_waiting", "description", "max_ack_pending"}
#: Those of them that are ours to set: whoever changed another by hand may have meant it.
_ADJUSTED = ("ack_wait", "max_ack_pending")
#: Changes of a stream that follow a setting and cost nothing that lies in it but what no longer fits.
_ADJUSTABLE_STREAM = {"max_bytes"}

#: Bytes of each stream of words, which lie there until they are read.
_WORDS_BYTES = 1024**3


@dataclass(frozen=True, slots=True)
class StreamSizes:
    """Limits of backlog: bytes of waiting tasks, dead letters and output, copies of each stream in a cluster."""

    tasks_max_bytes: int = 1024**3
    replicas: int = 1
    dead_max_bytes: int = 256 * 1024**2
    output_max_bytes: int = 512 * 1024**2

    @classmethod
    def of(cls, settings: "Settings") -> "StreamSizes":
        """Return the limits in *settings*."""
        return cls(
            tasks_max_bytes=settings.tasks_max_bytes,
            replicas=settings.replicas,
            dead_max_bytes=settings.dead_max_bytes,
            output_max_bytes=settings.output_max_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSource:
    """What a pull engine reads: a durable consumer of a stream, and how long an unheard-of delivery stays leased.

    *max_ack_pending* bounds unacknowledged messages over all readers; -1 is no bound, 1 keeps the order of the stream.
    """

    stream: str
    durable: str
    filter_subject: str
    ack_wait_s: float
    max_ack_pending: int = -1

    def configuration(self) -> dict[str, Any]:
        """Return the consumer as the server stores it; unlimited deliveries, since attempts are counted by us."""
        return {
            "durable_name": self.durable,
            "filter_subject": self.filter_subject,
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": int(self.ack_wait_s * _SECOND),
            "max_deliver": -1,
            "max_ack_pending": self.max_ack_pending,
            "max_waiting": 512,
        }


def task_sources(agent_id: str, ack_wait_s: float) -> tuple[PullSource, PullSource]:
    """Return what workers of *agent_id* read, and its consumer of WAITING: none reads that, autoscalers count by it."""
    return (
        PullSource(
            stream=subjects.TASKS,
            durable=agent_id,
            filter_subject=subjects.tasks_of(agent_id),
            ack_wait_s=ack_wait_s,
        ),
        PullSource(
            stream=subjects.WAITING,
            durable=agent_id,
            filter_subject=subjects.waiting_of(agent_id),
            ack_wait_s=ack_wait_s,
        ),
    )


def stream_configurations(sizes: StreamSizes) -> list[dict[str, Any]]:
    """Return the wanted configuration of every stream and bucket, in the order in which they can be made."""
    return [
        _stream(subjects.LATER, [subjects.SCHEDULES_ALL, subjects.DUE_ALL], sizes)
        # What is due may go after a day (see `tasklore.workers.execution.retry_scheduling`), what is scheduled after
        # thirty.
        | {
            "discard": "old",
            "allow_msg_schedules": True,
            "allow_msg_ttl": True,
            "max_age": 30 * _DAY,
        },
        _stream(subjects.TASKS, [subjects.TASKS_ALL], sizes)
        | {
            "retention": "workqueue",
            "max_bytes": sizes.tasks_max_bytes,
            "sources": [
                {
                    "name": subjects.LATER,
                    "subject_transforms": [
                        {"src": subjects.DUE_TASKS_ALL, "dest": subjects.TASKS_ALL}
                    ],
                }
            ],
        },
        _stream(subjects.WAITING, [subjects.WAITING_ALL], sizes)
        | {"max_bytes": sizes.tasks_max_bytes},
        _stream(subjects.REPORTS, [subjects.REPORTS_ALL], sizes)
        | {
            "max_age": REPORTS_KEPT_S * _SECOND,
            "max_msgs_per_subject": 1,
            "discard_new_per_subject": True,
        },
        _words(subjects.TURNS, [subjects.TURNS_ALL], sizes),
        _words(subjects.FACTS, [subjects.FACTS_ALL], sizes),
        _words(subjects.MESSAGES, subjects.message_filters(), sizes),
        _stream(subjects.DEAD, [subjects.DEAD_ALL], sizes)
        | {"discard": "old", "max_age": 30 * _DAY, "max_bytes": sizes.dead_max_bytes},
        _stream(subjects.OUTPUT, [subjects.OUTPUT_ALL], sizes)
        | {
            "discard": "old",
            "max_age": OUTPUT_KEPT_S * _SECOND,
            "max_bytes": sizes.output_max_bytes,
            "duplicate_window": _OUTPUT_WINDOW,
        },
        _bucket(subjects.AGENTS_BUCKET, sizes),
        _bucket(subjects.WORKERS_BUCKET, sizes)
        | {
            "max_age": PRESENCE_TTL,
            "duplicate_window": PRESENCE_TTL,
            "allow_msg_ttl": True,
            "subject_delete_marker_ttl": PRESENCE_TTL,
        },
    ]


async def declare_streams(
    client: Client,
    sizes: StreamSizes,
    *,
    despite_drift: bool = False,
    patience_s: float = FORMING_S,
) -> None:
    """Create every stream and bucket that is missing; leave those that fit, and adjust the bytes that one may hold.

    Of processes with different sizes the last to start decides. *despite_drift* is for running processes: it
    creates missing streams, and only logs those with another configuration. A start waits *patience_s* seconds for a
    cluster that has no leader or too few nodes yet; who is at work asks again by itself, and here only once.

    Raises:
        DriftedConfiguration: one exists with another configuration; names each difference and changes nothing.
        JetStreamRefused: the server has no room for one that is missing, or too few nodes to keep its copies.
        Unreachable: the server does not answer.
    """
    server = ClusterPatience(client, 0.0 if despite_drift else patience_s)
    existing = [
        (wanted, await server.ask_or_none(f"STREAM.INFO.{wanted['name']}"))
        for wanted in stream_configurations(sizes)
    ]
    found = [(wanted, info["config"]) for wanted, info in existing if info is not None]
    drift = [
        line
        for wanted, config in found
        if despite_drift or _is_fixed(wanted, config)
        for line in differences(wanted, config)
    ]
    if drift and despite_drift:
        log.warning("streams_drifted", differences=drift)
    elif drift:
        msg = f"{'; '.join(drift)}. Delete or edit the stream with the nats command, or correct the setting"
        raise DriftedConfiguration(msg)
    for wanted, config in found if not despite_drift else ():
        await _adjust(server, wanted, config)
    missing = [wanted for wanted, info in existing if info is None]
    if missing and despite_drift:
        await asyncio.sleep(CLEARED_S)
    for wanted in missing:
        # Creating a stream that exists with this very configuration is no error: two processes may both do it.
        made = await server.ask(f"STREAM.CREATE.{wanted['name']}", wanted)
        if stands_on_remains(made):
            log.error(
                "stream_takes_nothing",
                stream=wanted["name"],
                cure=f"nats stream rm -f {wanted['name']}",
            )


def stands_on_remains(info: Mapping[str, Any]) -> bool:
    """Return whether the stream of *info* was made over files of one that was just being deleted: it stores nothing.

    It has a message from before it was made: of a stream that was read back from disk, that time is kept too.
    """
    state = info.get("state", {})
    return bool(state.get("last_seq")) and _moment(state["last_ts"]) < _moment(
        info["created"]
    )


def _moment(text: str) -> datetime:
    # The server writes nanoseconds.
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text))


def _is_fixed(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Return whether *found* differs in more than may be adjusted."""
    return bool(
        differences(
            {
                key: value
                for key, value in wanted.items()
                if key not in _ADJUSTABLE_STREAM
            },
            found,
        )
    )


async def _adjust(
    server: ClusterPatience, wanted: Mapping[str, Any], found: Mapping[str, Any]
) -> None:
    """Update the adjustable part of the configuration; where the server has no room, the stream serves as it is."""
    changes = {
        key: wanted[key]
        for key in _ADJUSTABLE_STREAM & wanted.keys()
        if found.get(key) != wanted[key]
    }
    if not changes:
        return
    name = wanted["name"]
    try:
        await server.ask(f"STREAM.UPDATE.{name}", {**found, **changes})
    except JetStreamRefused as error:
        log.warning(
            "stream_not_adjusted", stream=name, wanted=changes, error=str(error)
        )
        return
    log.info(
        "stream_adjusted",
        stream=name,
        before={key: found.get(key) for key in changes},
        after=changes,
    )


async def declare_consumer(
    client: Client,
    source: PullSource,
    *,
    may_create: bool = True,
    patience_s: float = FORMING_S,
) -> str:
    """Create the durable consumer of *source*, or adjust its timing; return when it was made, as the server says it.

    A cluster that elects a leader, or whose nodes are away, is waited for *patience_s* seconds.

    Raises:
        ConfigurationError: it is missing and *may_create* is False: the bootstrap has to make it.
        DriftedConfiguration: it exists and reads something else.
        JetStreamRefused: the server does not make it, for instance since most of the stream's nodes are away.
        Unreachable: the server does not answer.
    """
    wanted = source.configuration()
    server = ClusterPatience(client, patience_s)
    info = await server.ask_or_none(f"CONSUMER.INFO.{source.stream}.{source.durable}")
    if info is not None:
        fixed = {key: value for key, value in wanted.items() if key not in _ADJUSTABLE}
        drift = differences(
            {"name": f"consumer {source.durable}"} | fixed, info["config"]
        )
        if drift:
            msg = f"{'; '.join(drift)}. Delete the consumer with the nats command"
            raise DriftedConfiguration(msg)
        if (
            all(info["config"].get(key) == wanted[key] for key in _ADJUSTED)
            or not may_create
        ):
            return str(info["created"])
    elif not may_create:
        msg = f"stream {source.stream} has no consumer {source.durable!r}; TASKLORE_PROVISION=never leaves it to others"
        raise ConfigurationError(msg)
    made = await server.ask(
        f"CONSUMER.DURABLE.CREATE.{source.stream}.{source.durable}",
        {"stream_name": source.stream, "config": wanted},
    )
    return str(made["created"])


async def find_consumer(
    client: Client, source: PullSource, sizes: StreamSizes, *, may_create: bool
) -> str:
    """Return when the consumer of *source* was made; one that is missing is made anew, its stream before it.

    A change by hand while the process runs is accepted: not to work would be worse. The next start refuses
    it, and `tasklore doctor` names it. A cluster is asked once: a running process asks again by itself.

    Raises:
        ConfigurationError: it is missing and *may_create* is False.
        JetStreamRefused: the server does not make it now.
        Unreachable: the server does not answer.
    """
    info = await ClusterPatience(client, 0.0).ask_or_none(
        f"CONSUMER.INFO.{source.stream}.{source.durable}"
    )
    if info is not None:
        return str(info["created"])
    if may_create:
        await declare_streams(client, sizes, despite_drift=True)
    return await declare_consumer(client, source, may_create=may_create, patience_s=0.0)


def _stream(name: str, subject_list: list[str], sizes: StreamSizes) -> dict[str, Any]:
    return {
        "name": name,
        "subjects": subject_list,
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "duplicate_window": DUPLICATE_WINDOW,
        "num_replicas": sizes.replicas,
        "allow_direct": True,
    }


def _words(name: str, subject_list: list[str], sizes: StreamSizes) -> dict[str, Any]:
    return _stream(name, subject_list, sizes) | {
        "retention": "workqueue",
        "max_age": 7 * _DAY,
        "max_bytes": _WORDS_BYTES,
    }


def _bucket(name: str, sizes: StreamSizes) -> dict[str, Any]:
    return _stream(
        subjects.bucket_stream(name), [subjects.bucket_keys(name)], sizes
    ) | {
        "max_msgs_per_subject": 1,
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "duplicate_window": 120 * _SECOND,
    }


def differences(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return a line for each setting of the stream or consumer *wanted* that the server has otherwise in *found*."""
    return [
        f"{wanted['name']}: {key} is {found.get(key)!r}, wanted {value!r}"
        for key, value in wanted.items()
        if key != "name" and not _same(value, found.get(key))
    ]


def _same(wanted: Any, found: Any) -> bool:
    """Compare as the server stores it: what equals its default is left out of its answer."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            _same(value, found.get(key)) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return len(wanted) == len(found or []) and all(map(_same, wanted, found or []))
    return bool(wanted == found) or (not wanted and not found)
