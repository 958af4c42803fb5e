"""`tasklore bootstrap`: streams, buckets, consumers and functions, made by the one who may, for all who may not."""

import asyncio
import time
from collections.abc import Sequence

import structlog

from tasklore.commands.endpoints import current_endpoints
from tasklore.commands.exits import OK
from tasklore.contracts import subjects
from tasklore.contracts.errors import (
    ConfigurationError,
    Forbidden,
    UnknownCredentials,
    Unreachable,
)
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.pipelines import PIPELINE_AGENT
from tasklore.memory.functions import load_functions
from tasklore.runtime import logs
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.partitions import ACK_WAIT_S
from tasklore.runtime.messaging.streams import (
    PullSource,
    StreamSizes,
    declare_consumer,
    declare_streams,
    task_sources,
)
from tasklore.runtime.servers import valkey
from tasklore.runtime.settings import Settings
from tasklore.supervisor.delivery import inbox_sources
from tasklore.supervisor.reports import comparison
from tasklore.supervisor.wiring import REPORT_ACK_WAIT_S
from tasklore.workers.agent import Agent
from tasklore.workers.listening.declaration import Queue
from tasklore.workers.listening.wiring import sources_of
from tasklore.workers.loading import load_agents

log = structlog.get_logger(__name__)

#: Seconds between attempts to reach a server that is not there yet.
_PAUSE_S = 1.0


async def bootstrap(
    references: Sequence[str], agent_ids: Sequence[str], wait_s: float
) -> int:
    """Declare everything for the agents of *references* and *agent_ids*, and return the exit code.

    Servers that are not there yet, or do not know us yet, are waited for, *wait_s* seconds; what exists already is
    left as it is, or adjusted.

    Raises:
        ConfigurationError: an agent cannot be loaded, or nothing says where NATS is.
        DriftedConfiguration: something exists with another configuration.
        Forbidden: this user may not make streams.
        Unreachable: NATS or Redis does not answer within *wait_s*.
    """
    settings = Settings.load()
    logs.configure(settings.log_level, settings.log_format)
    if settings.provision == "never":
        raise ConfigurationError(
            "TASKLORE_PROVISION is 'never' here; leave it out where the bootstrap runs"
        )
    sources = sources_to_declare(
        settings, [agent for one in references for agent in load_agents(one)], agent_ids
    )
    nats_url = settings.nats_url or current_endpoints().nats
    redis_url = settings.redis_url or current_endpoints().redis_url
    gives_up_at = time.monotonic() + wait_s
    while True:
        try:
            # Processes wait for the streams: by then all else that they need is there.
            async with valkey.connect(redis_url, name="tasklore-bootstrap") as redis:
                await redis.check()
                await load_functions(redis)
            async with connected(nats_url, "tasklore-bootstrap") as client:
                await declare_streams(client, StreamSizes.of(settings))
                for source in sources:
                    await declare_consumer(client, source)
        except Unreachable as error:
            is_refusal = isinstance(error, Forbidden)
            if is_refusal and not isinstance(error, UnknownCredentials):
                raise
            if time.monotonic() + _PAUSE_S > gives_up_at:
                raise
            log.warning("server_not_ready", error=str(error))
            await asyncio.sleep(_PAUSE_S)
        else:
            print(
                f"Everything exists: the streams, {len(sources)} consumers and the "
                "functions."
            )
            return OK


def sources_to_declare(
    settings: Settings, agents: Sequence[Agent], agent_ids: Sequence[str] = ()
) -> list[PullSource]:
    """Return every consumer that a deployment of *agents*, and others known by name alone, reads."""
    supervisor_id = settings.supervisor_id
    declared = (PIPELINE_AGENT,) if settings.pipelines_dir is not None else ()
    working = dict.fromkeys(
        [*(agent.agent_id for agent in agents if agent.tasks), *agent_ids, *declared]
    )
    heard: dict[Queue, None] = dict.fromkeys(
        listener.queue for agent in agents for listener in agent.listeners.values()
    )
    return [
        PullSource(
            stream=subjects.REPORTS,
            durable=supervisor_id,
            filter_subject=subjects.reports_to(supervisor_id),
            ack_wait_s=REPORT_ACK_WAIT_S,
        ),
        comparison.SOURCE,
        *inbox_sources(),
        *(
            source
            for agent_id in working
            for source in task_sources(
                checked_name(agent_id, "--agent-id"), settings.ack_wait_s
            )
        ),
        *(
            source
            for queue in heard
            for source in sources_of(queue, min(ACK_WAIT_S, settings.ack_wait_s))
        ),
    ]
