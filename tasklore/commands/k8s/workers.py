"""The manifests of a worker: of what its agents declare follows what scales it, and whose rights it needs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tasklore.commands.k8s.pods import Manifest, PodRole, deployment, job
from tasklore.commands.k8s.scaling import (
    Scale,
    ScaledConsumer,
    ScaledSeries,
    ScalingWindow,
    scaled_object,
)
from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.identifiers import PARTITIONS
from tasklore.workers.agent import Agent

#: Messages of one partition that wait before a second pod helps to take them in; taking in is quick.
_PARTITION_A_POD = 500
#: Turns or facts that wait in their table for one pod: what its 16 users at once are given, 32 rows each.
_ROWS_A_POD = 512
#: When there is a pod for what is due without anybody asking: it sweeps what has expired out of documents as it starts,
#: as often as one that stays does.
_ROUND = ScalingWindow("0 * * * *", "5 * * * *")
#: Seconds: a worker has no right to the stream LATER, and lets every task wait for its next run in its queue.
_RETRY_SCHEDULE_S = "86400"
#: Letters of a name that still fit beside a prefix where Kubernetes allows 63.
_LONGEST_NAME = 40
#: Deployments and Jobs that are there already; an agent under such a name would take their place.
_TAKEN = ("api", "bootstrap", "supervisor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person says of a worker: which agents, in which image, and how much of it there may be.

    *longest_s* is how many seconds the longest task may take; a pod that is asked to end waits for it.
    """

    references: tuple[str, ...]
    image: str
    name: str | None = None
    namespace: str = "tasklore"
    slots: int = 16
    most: int = 10
    longest_s: int = 300


def worker_manifests(wanted: Wanted, agents: Sequence[Agent]) -> list[Manifest]:
    """Return the Deployment of a worker that serves *agents*, with its scaler and all that it needs."""
    role = _role(wanted, agents)
    # A listener to facts tidies the documents, also when nothing waits.
    windows = [_ROUND] if any("facts" in agent.listeners for agent in agents) else []
    counted = _consumers(agents, wanted.slots), _series(agents, role), windows
    return [*deployment(role), scaled_object(role, Scale(most=wanted.most), *counted)]


def bootstrap_manifests(wanted: Wanted, agents: Sequence[Agent]) -> list[Manifest]:
    """Return the Job that makes the consumers which *agents* read; workers may not make any."""
    name = f"bootstrap-{worker_name(wanted, agents)}"
    arguments = ("bootstrap", *_portable(wanted.references))
    role = PodRole(
        name=name,
        rights="bootstrap",
        arguments=arguments,
        image=wanted.image,
        namespace=wanted.namespace,
        grace_s=30,
        labels={"tasklore.dev/bootstraps": agents[0].agent_id},
    )
    return job(role)


def _role(wanted: Wanted, agents: Sequence[Agent]) -> PodRole:
    listens = any(agent.listeners for agent in agents)
    name = worker_name(wanted, agents)
    asks = listens or any(
        "llm" in task.uses for agent in agents for task in agent.tasks.values()
    )
    return PodRole(
        name=name,
        rights="memory" if listens else f"worker-{name}",
        arguments=("worker", *_portable(wanted.references)),
        image=wanted.image,
        namespace=wanted.namespace,
        grace_s=wanted.longest_s,
        asks_models=asks,
        settings={
            "TASKLORE_SLOTS": str(wanted.slots),
            "TASKLORE_RETRY_SCHEDULE_S": _RETRY_SCHEDULE_S,
        },
        labels={"tasklore.dev/agent": agents[0].agent_id},
    )


def _consumers(agents: Sequence[Agent], slots: int) -> list[ScaledConsumer]:
    """Return the consumers of *agents*: one for each agent with tasks, one for each partition that they listen to.

    One pod for as many tasks as it has slots: what is under way counts too, so that pods stay while they work.
    """
    queues = (subjects.TASKS, subjects.WAITING)
    found = [
        ScaledConsumer(stream, agent.agent_id, slots)
        for agent in agents
        if agent.tasks
        for stream in queues
    ]
    streams = {"turns": subjects.TURNS, "facts": subjects.FACTS}
    for queue in sorted({queue for agent in agents for queue in agent.listeners}):
        durables = [f"{queue}-{number}" for number in range(PARTITIONS)]
        found += [
            ScaledConsumer(streams[queue], durable, _PARTITION_A_POD)
            for durable in durables
        ]
    return found


def _series(agents: Sequence[Agent], role: PodRole) -> list[ScaledSeries]:
    """Return the series of rows waiting in the tables of Valkey, where no consumer counts them.

    Only the pods themselves know. Where there is none, nothing waits that was taken in; where one is there and cannot
    be scraped, nobody knows, and the query has no answer.
    """
    queues = sorted({queue for agent in agents for queue in agent.listeners})
    pods = f'up{{namespace="{role.namespace}",pod=~"{role.full_name}-.+"}}'
    unless_blind = f"(vector(0) unless on() ({pods} == 0))"
    return [
        ScaledSeries(f"max(tasklore_{queue}_pending) or {unless_blind}", _ROWS_A_POD)
        for queue in queues
    ]


def worker_name(wanted: Wanted, agents: Sequence[Agent]) -> str:
    """Return the name of the worker: `wanted.name`, or the first agent's id as Kubernetes spells names.

    Raises:
        ConfigurationError: `wanted.name` is no name there.
    """
    if wanted.name is None:
        parts = re.sub(
            r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", agents[0].agent_id
        )
        return (
            re.sub(r"[^a-z0-9]+", "-", parts.lower())
            .strip("-")[:_LONGEST_NAME]
            .rstrip("-")
            or "agent"
        )
    if not re.fullmatch(
        rf"[a-z]([a-z0-9-]{{0,{_LONGEST_NAME - 2}}}[a-z0-9])?", wanted.name
    ):
        msg = f"--name {wanted.name!r} is not a valid Kubernetes name; use up to {_LONGEST_NAME} of a-z, 0-9 and '-'"
        raise ConfigurationError(msg)
    if wanted.name in _TAKEN or wanted.name.startswith("bootstrap-"):
        raise ConfigurationError(
            f"--name {wanted.name!r} is that of a part of Tasklore; choose another"
        )
    return wanted.name


def _portable(references: Sequence[str]) -> tuple[str, ...]:
    """Return *references* as they are, when they can mean the same in an image as here."""
    for reference in references:
        path = PurePosixPath(reference.partition(":")[0])
        if path.is_absolute() or ".." in path.parts:
            msg = (
                f"{reference!r} lies elsewhere in an image; go to its folder and write './{path.name}', "
                "which an image that has it in /app finds too"
            )
            raise ConfigurationError(msg)
    return tuple(references)
