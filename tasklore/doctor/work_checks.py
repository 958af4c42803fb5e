"""Judgement of who works: consumers as they must be, tasks that nobody takes, workers that contradict each other."""

from collections.abc import Iterator, Sequence
from typing import Any

from contracts import subjects
from contracts.messages import AgentCard, WorkerPresence
from runtime.messaging.streams import Source, differences
from runtime.settings import Settings
from supervisor.delivery import inbox_sources
from tasklore.doctor.facts import Answer, NatsFacts, Unanswered
from tasklore.doctor.findings import Finding, counted, listed, note, ok, problem, unknown, warning

#: Seconds of `ack_wait` below which a worker loses its lease for a pause of its interpreter or its machine.
SHORT_ACK_WAIT_S = 1.0


def check_work(nats: NatsFacts, settings: Settings) -> Iterator[Finding]:
    """Yield what was found about consumers, agents and workers; nothing when NATS or JetStream does not serve us."""
    if nats.refusal is not None or isinstance(nats.account, Unanswered):
        return
    yield from _check_consumers(nats)
    yield from _check_reports(nats, settings)
    if isinstance(nats.workers, Unanswered) or isinstance(nats.cards, Unanswered):
        if nats.stream(subjects.bucket_stream(subjects.WORKERS_BUCKET)) is not None:
            yield unknown("nats.workers", "the buckets of agents and workers do not answer", "try again")
        return
    yield from _check_agents(nats, nats.workers, nats.cards)
    yield from _check_conflicts(nats.workers)


def _check_consumers(nats: NatsFacts) -> Iterator[Finding]:
    check, durable = "nats.consumers", 0
    streams = [subjects.TASKS, subjects.TURNS, subjects.FACTS, subjects.MESSAGES]
    for stream in streams:
        unread = nats.consumers.get(stream)
        if isinstance(unread, Unanswered):
            yield unknown(check, f"the consumers of {stream} are not known: {unread.reason}", "allow CONSUMER.LIST")
        for consumer in nats.consumers_of(stream):
            if consumer["config"].get("durable_name"):
                durable += 1
                yield from _check_consumer(stream, consumer)
    if durable:
        said = counted(durable, "durable consumer")
        yield ok(check, f"{said} of {listed(streams)}")


def _check_consumer(stream: str, consumer: Answer) -> Iterator[Finding]:
    check, name, config = "nats.consumer", consumer["name"], consumer["config"]
    where = f"consumer {name} of {stream}"
    ack_wait_s = config.get("ack_wait", 0) / 1e9
    if ack_wait_s < SHORT_ACK_WAIT_S:
        said = f"{where} has an ack_wait of {ack_wait_s:g} s: what takes longer to renew its lease runs twice"
        yield problem(check, said, f"`nats consumer edit {stream} {name} --wait=30s`")
    if config.get("max_deliver", -1) != -1:
        said = f"{where} gives up after {config['max_deliver']} deliveries: such a message waits for ever, unseen"
        yield problem(check, said, f"`nats consumer edit {stream} {name} --max-deliver=-1`")
    if consumer.get("paused"):
        yield warning(check, f"{where} is paused", f"`nats consumer resume {stream} {name}`")
    yield from _check_drift(stream, consumer)


def _check_drift(stream: str, consumer: Answer) -> Iterator[Finding]:
    """Compare with what a worker or a supervisor declares; who reads turns and facts, and how, is its own affair."""
    name, config = consumer["name"], consumer["config"]
    sources = {source.durable: source for source in inbox_sources()} if stream == subjects.MESSAGES else {}
    if stream == subjects.TASKS:
        sources[name] = Source(stream, name, _tasks_of(name), 30.0)
    if name not in sources:
        return
    whose = "workers" if stream == subjects.TASKS else "supervisors"
    wanted: dict[str, Any] = sources[name].configuration()
    judged_apart = {"ack_wait", "max_deliver", "max_waiting"}
    expected = {key: value for key, value in wanted.items() if key not in judged_apart}
    for line in differences({"name": f"consumer {name} of {stream}"} | expected, config):
        cure = f"`nats consumer rm {stream} {name}`: declared anew, nothing is lost, a task that runs may run twice"
        yield problem("nats.drift", f"{line}; its {whose} do not start", cure)


def _check_reports(nats: NatsFacts, settings: Settings) -> Iterator[Finding]:
    check, name = "nats.supervisor", settings.supervisor_id
    if nats.stream(subjects.REPORTS) is None:
        return
    cure = "start one with `tasklore supervisor`, or set TASKLORE_SUPERVISOR_ID to the one that is meant"
    found = next((one for one in nats.consumers_of(subjects.REPORTS) if one["name"] == name), None)
    if found is None:
        yield warning(check, f"no supervisor {name!r} has ever read its reports: nobody answers `tasklore ask`", cure)
        return
    yield from _check_consumer(subjects.REPORTS, found)
    waiting = found.get("num_pending", 0) + found.get("num_ack_pending", 0)
    if found.get("num_waiting"):
        yield ok(check, f"supervisor {name} reads its reports")
    elif waiting:
        yield warning(check, f"{counted(waiting, 'report waits', 'reports wait')} for supervisor {name}", cure)
    else:
        yield note(check, f"supervisor {name} reads no reports at the moment", cure)


def _check_agents(nats: NatsFacts, workers: Sequence[WorkerPresence], known: Sequence[AgentCard]) -> Iterator[Finding]:
    alive = {worker.agent_id for worker in workers}
    cards = [card.agent_id for card in known]
    # They take no tasks, so that they have no consumer of any.
    listening = {card.agent_id for card in known if not card.tasks}
    consumers = {one["name"]: one for one in nats.consumers_of(subjects.TASKS)}
    # A worker in another language may show itself to the server alone, by asking for tasks.
    served = alive | {name for name, one in consumers.items() if one.get("num_waiting")}
    yield from _check_waiting(nats, consumers, served, cards)
    if not isinstance(nats.consumers.get(subjects.TASKS), Unanswered):
        for name in sorted(alive - consumers.keys() - listening):
            cure = "restart its workers, or make it where TASKLORE_PROVISION=never leaves that to a bootstrap job"
            yield problem("nats.consumer", f"{name} has workers and no consumer: they take nothing", cure)
    idle = sorted(set(cards) - served)
    if idle:
        yield note("nats.idle", f"without a worker: {listed(idle)}; what is asked of them waits")
    if workers:
        here = len({worker.worker_id for worker in workers})
        yield ok("nats.workers", f"{counted(here, 'live worker')} for {listed(sorted(alive))}")
    elif not idle:
        yield note("nats.workers", "no worker was started yet", "`tasklore worker` starts one")


def _check_waiting(
    nats: NatsFacts, consumers: dict[str, Answer], served: set[str], cards: Sequence[str]
) -> Iterator[Finding]:
    for name in sorted((nats.waiting.keys() | consumers.keys()) - served):
        state = consumers.get(name, {})
        queued = state.get("num_pending", 0) + state.get("num_ack_pending", 0)
        waiting = max(queued, nats.waiting.get(name, 0))
        if not waiting:
            continue
        said = f"{counted(waiting, 'task waits', 'tasks wait')} for {name}, of which no worker is alive"
        drop = f"`nats stream purge {subjects.TASKS} --subject='{_tasks_of(name)}'` drops them"
        is_known = name in cards or name in consumers
        start = "start a worker that serves it" if is_known else "start its first worker, if the name is right"
        yield warning("nats.waiting", said, f"{start}; {drop}")


def _check_conflicts(workers: Sequence[WorkerPresence]) -> Iterator[Finding]:
    digests: dict[tuple[str, int], dict[str, str]] = {}
    versions: dict[str, set[int]] = {}
    for worker in workers:
        digests.setdefault((worker.agent_id, worker.version), {}).setdefault(worker.digest, worker.worker_id)
        versions.setdefault(worker.agent_id, set()).add(worker.version)
    for (agent_id, version), found in sorted(digests.items()):
        if len(found) > 1:
            said = f"workers {listed(sorted(found.values()))} serve {agent_id} v{version} with different tasks"
            yield problem("nats.conflict", said, "raise the version of one of them, or rename its agent")
    for agent_id, numbers in sorted(versions.items()):
        if len(numbers) > 1:
            said = f"workers of {agent_id} in versions {', '.join(map(str, sorted(numbers)))} run side by side"
            yield note("nats.versions", said)


def _tasks_of(name: str) -> str:
    """Return the filter for the tasks of *name*, which may be no name of an agent: anybody can publish."""
    return f"{subjects.TASKS_ALL.removesuffix('>')}{name}.>"
