"""Checks of consumers, of tasks without a worker, of workers that contradict each other, and of health pages."""

from collections.abc import Iterator, Mapping, Sequence

from tasklore.commands.doctor.facts import (
    Answer,
    Facts,
    HealthPage,
    NatsFacts,
    ProcessFacts,
    Unanswered,
)
from tasklore.commands.doctor.rules import (
    Diagnosis,
    FindingRule,
    apply_rules,
    ok,
    unreachable,
)
from tasklore.commands.render.words import count_of, join_names
from tasklore.contracts import subjects
from tasklore.contracts.messages import AgentCard, WorkerPresence
from tasklore.runtime.messaging.streams import PullSource, differences
from tasklore.runtime.settings import Settings
from tasklore.supervisor.delivery import inbox_sources

#: Seconds of `ack_wait` below which a worker loses its lease for a pause of its interpreter or its machine.
SHORT_ACK_WAIT_S = 1.0

_CONSUMER_RULES: tuple[FindingRule[Answer], ...] = (
    FindingRule(
        "nats.consumer",
        mark="problem",
        holds=lambda consumer: (
            consumer["config"].get("ack_wait", 0) / 1e9 < SHORT_ACK_WAIT_S
        ),
        found="{where} has an ack_wait of {ack_wait_s:g} s: what takes longer to renew its lease runs twice",
        cure="`nats consumer edit {stream} {name} --wait=30s`",
    ),
    FindingRule(
        "nats.consumer",
        mark="problem",
        holds=lambda consumer: consumer["config"].get("max_deliver", -1) != -1,
        found="{where} gives up after {max_deliver} deliveries: such a message waits "
        "without limit, unseen",
        cure="`nats consumer edit {stream} {name} --max-deliver=-1`",
    ),
    FindingRule(
        "nats.consumer",
        mark="warning",
        holds=lambda consumer: consumer.get("paused"),
        found="{where} is paused",
        cure="`nats consumer resume {stream} {name}`",
    ),
)


def check_work(nats: NatsFacts, settings: Settings) -> Iterator[Diagnosis]:
    """Yield the findings about consumers, agents and workers; none when NATS or JetStream does not serve us."""
    if nats.refusal is not None or isinstance(nats.account, Unanswered):
        return
    durable = 0
    streams = [subjects.TASKS, subjects.TURNS, subjects.FACTS, subjects.MESSAGES]
    for stream in streams:
        unread = nats.consumers.get(stream)
        if isinstance(unread, Unanswered):
            found = f"the consumers of {stream} are not known: {unread.reason}"
            yield Diagnosis(
                check="nats.consumers",
                mark="unknown",
                found=found,
                cure="allow CONSUMER.LIST",
            )
        for consumer in nats.consumers_of(stream):
            if consumer["config"].get("durable_name"):
                durable += 1
                yield from _check_consumer(stream, consumer)
    if durable:
        yield ok(
            "nats.consumers",
            f"{count_of(durable, 'durable consumer')} of {join_names(streams)}",
        )
    yield from _check_memory(nats)
    yield from _check_reports(nats, settings)
    if isinstance(nats.workers, Unanswered) or isinstance(nats.cards, Unanswered):
        if nats.stream(subjects.bucket_stream(subjects.WORKERS_BUCKET)) is not None:
            yield Diagnosis(
                check="nats.workers",
                mark="unknown",
                found="the buckets of agents and workers do not answer",
                cure="try again",
            )
        return
    yield from _check_agents(nats, nats.workers, nats.cards)
    yield from _check_conflicts(nats.workers)


def _check_memory(nats: NatsFacts) -> Iterator[Diagnosis]:
    """Say whether what people say is heard and remembered, by the consumers of both streams."""
    if any(
        isinstance(nats.consumers.get(stream), Unanswered) or not nats.stream(stream)
        for stream in (subjects.TURNS, subjects.FACTS)
    ):
        return
    unread = [
        (name, int((nats.stream(stream) or {}).get("state", {}).get("messages", 0)))
        for name, stream in (("turns", subjects.TURNS), ("facts", subjects.FACTS))
        if not any(one.get("num_waiting") for one in nats.consumers_of(stream))
    ]
    if not unread:
        return
    names = " and ".join(name for name, _ in unread)
    kept = "heard" if unread[0][0] == "turns" else "written into documents"
    found = (
        f"memory is off: no worker listens to {names}, so what people say is not {kept}"
    )
    waiting = [
        count_of(number, f"{name[:-1]} waits", f"{name} wait")
        for name, number in unread
        if number
    ]
    if waiting:
        found = f"{found}; {' and '.join(waiting)}"
    yield Diagnosis(
        check="nats.memory",
        mark="warning" if waiting else "note",
        found=found,
        cure="`tasklore worker switchboard memory` starts them; without memory nothing is needed",
    )


def check_processes(facts: Facts) -> Iterator[Diagnosis]:
    """Yield the findings about the supervisor and the workers whose health pages have a known address."""
    healthy = []
    away = []
    for process in facts.processes:
        findings = [*_check_process(process), *_check_models(process)]
        yield from findings
        if isinstance(process.alive, Unanswered):
            away += (
                []
                if process.is_named
                else [f"{process.name} at {process.url} ({process.alive.reason})"]
            )
        elif not findings:
            healthy.append(process.name)
    if away:
        found = f"alive on NATS, with a health page that is not reachable from here: {join_names(away)}"
        cure = "run the doctor where they run; TASKLORE_HTTP_HOST opens their pages"
        yield Diagnosis(
            check="processes.reachable", mark="warning", found=found, cure=cure
        )
    if healthy:
        yield ok("processes.health", f"alive and ready: {join_names(healthy)}")
    if facts.unexamined:
        found = f"{count_of(facts.unexamined, 'further worker was', 'further workers were')} not asked"
        yield Diagnosis(check="processes.health", mark="note", found=found)


def _check_consumer(stream: str, consumer: Answer) -> Iterator[Diagnosis]:
    name = consumer["name"]
    config = consumer["config"]
    where = f"consumer {name} of {stream}"
    words = {
        "ack_wait_s": config.get("ack_wait", 0) / 1e9,
        "max_deliver": config.get("max_deliver"),
    }
    yield from apply_rules(
        _CONSUMER_RULES, consumer, where=where, stream=stream, name=name, **words
    )
    # Compared with what a worker or a supervisor declares; who reads turns and facts, and how, is its own affair.
    sources = (
        {source.durable: source for source in inbox_sources()}
        if stream == subjects.MESSAGES
        else {}
    )
    if stream == subjects.TASKS:
        sources[name] = PullSource(
            stream=stream, durable=name, filter_subject=_tasks_of(name), ack_wait_s=30.0
        )
    if name not in sources:
        return
    whose = "workers" if stream == subjects.TASKS else "supervisors"
    apart = {"ack_wait", "max_deliver", "max_waiting"}
    expected = {
        key: value
        for key, value in sources[name].configuration().items()
        if key not in apart
    }
    for line in differences({"name": where} | expected, config):
        cure = (
            f"`nats consumer rm {stream} {name}`: it is recreated and nothing is "
            "lost, but a running task may run twice"
        )
        yield Diagnosis(
            check="nats.drift",
            mark="problem",
            found=f"{line}; its {whose} do not start",
            cure=cure,
        )


def _check_reports(nats: NatsFacts, settings: Settings) -> Iterator[Diagnosis]:
    check = "nats.supervisor"
    name = settings.supervisor_id
    if nats.stream(subjects.REPORTS) is None:
        return
    cure = "start one with `tasklore supervisor`, or set TASKLORE_SUPERVISOR_ID to the one that is meant"
    consumer = next(
        (one for one in nats.consumers_of(subjects.REPORTS) if one["name"] == name),
        None,
    )
    if consumer is None:
        found = f"no supervisor {name!r} has ever read its reports, so that `tasklore ask` gets no answer"
        yield Diagnosis(check=check, mark="warning", found=found, cure=cure)
        return
    yield from _check_consumer(subjects.REPORTS, consumer)
    waiting = consumer.get("num_pending", 0) + consumer.get("num_ack_pending", 0)
    if consumer.get("num_waiting"):
        yield ok(check, f"supervisor {name} reads its reports")
    elif waiting:
        found = (
            f"{count_of(waiting, 'report waits', 'reports wait')} for supervisor {name}"
        )
        yield Diagnosis(check=check, mark="warning", found=found, cure=cure)
    else:
        yield Diagnosis(
            check=check,
            mark="note",
            found=f"supervisor {name} reads no reports at the moment",
            cure=cure,
        )


def _check_agents(
    nats: NatsFacts, workers: Sequence[WorkerPresence], cards: Sequence[AgentCard]
) -> Iterator[Diagnosis]:
    alive = {worker.agent_id for worker in workers}
    known = {card.agent_id for card in cards}
    consumers = {one["name"]: one for one in nats.consumers_of(subjects.TASKS)}
    # A worker in another language may show itself to the server alone, by asking for tasks.
    served = alive | {name for name, one in consumers.items() if one.get("num_waiting")}
    yield from _check_waiting(nats, consumers, served, known)
    if not isinstance(nats.consumers.get(subjects.TASKS), Unanswered):
        # Agents that only listen take no tasks and have no consumer of any.
        listening = {card.agent_id for card in cards if not card.tasks}
        for name in sorted(alive - consumers.keys() - listening):
            cure = "restart its workers, or make it where TASKLORE_PROVISION=never leaves that to a bootstrap job"
            found = f"{name} has workers and no consumer: they take nothing"
            yield Diagnosis(
                check="nats.consumer", mark="problem", found=found, cure=cure
            )
    idle = sorted(known - served)
    if idle:
        found = f"without a worker: {join_names(idle)}; what is asked of them waits"
        yield Diagnosis(check="nats.idle", mark="note", found=found)
    if workers:
        number = len({worker.worker_id for worker in workers})
        yield ok(
            "nats.workers",
            f"{count_of(number, 'live worker')} for {join_names(sorted(alive))}",
        )
    elif not idle:
        yield Diagnosis(
            check="nats.workers",
            mark="note",
            found="no worker was started yet",
            cure="`tasklore worker` starts one",
        )


def _check_waiting(
    nats: NatsFacts, consumers: Mapping[str, Answer], served: set[str], known: set[str]
) -> Iterator[Diagnosis]:
    for name in sorted((nats.waiting.keys() | consumers.keys()) - served):
        state = consumers.get(name, {})
        queued = state.get("num_pending", 0) + state.get("num_ack_pending", 0)
        waiting = max(queued, nats.waiting.get(name, 0))
        if not waiting:
            continue
        found = f"{count_of(waiting, 'task waits', 'tasks wait')} for {name}, of which no worker is alive"
        is_known = name in known or name in consumers
        start = (
            "start a worker that serves it"
            if is_known
            else "start its first worker, if the name is right"
        )
        drop = f"`nats stream purge {subjects.TASKS} --subject='{_tasks_of(name)}'` drops them"
        yield Diagnosis(
            check="nats.waiting", mark="warning", found=found, cure=f"{start}; {drop}"
        )


def _check_conflicts(workers: Sequence[WorkerPresence]) -> Iterator[Diagnosis]:
    digests: dict[tuple[str, int], dict[str, str]] = {}
    versions: dict[str, set[int]] = {}
    for worker in workers:
        digests.setdefault((worker.agent_id, worker.version), {}).setdefault(
            worker.digest, worker.worker_id
        )
        versions.setdefault(worker.agent_id, set()).add(worker.version)
    for (agent_id, version), ids in sorted(digests.items()):
        if len(ids) > 1:
            found = f"workers {join_names(sorted(ids.values()))} serve {agent_id} v{version} with different tasks"
            yield Diagnosis(
                check="nats.conflict",
                mark="problem",
                found=found,
                cure="raise the version of one of them, or rename its agent",
            )
    for agent_id, numbers in sorted(versions.items()):
        if len(numbers) > 1:
            found = f"workers of {agent_id} in versions {', '.join(map(str, sorted(numbers)))} run side by side"
            yield Diagnosis(check="nats.versions", mark="note", found=found)


def _check_process(process: ProcessFacts) -> Iterator[Diagnosis]:
    alive = process.alive
    ready = process.ready
    where = f"{process.name} at {process.url}"
    if isinstance(alive, Unanswered):
        if process.is_named:
            cure = (
                "check the output of `tasklore up`, which restarts it if it "
                "crashed; a hanging one has to be killed"
            )
            yield unreachable(
                "processes.reachable", f"{where} does not answer: {alive.reason}", cure
            )
    elif alive.status == 503:
        cure = "restart it; a task that blocks the interpreter belongs into a process"
        yield Diagnosis(
            check="processes.health",
            mark="problem",
            found=f"{where} is stuck: {_failing_checks(alive)}",
            cure=cure,
        )
    elif alive.status != 200:
        found = f"something else answers at {process.url}, where {process.name} should (status {alive.status})"
        yield Diagnosis(
            check="processes.health",
            mark="warning",
            found=found,
            cure="run the doctor where that process runs",
        )
    elif isinstance(ready, Unanswered):
        found = f"{where} does not say whether it is ready: {ready.reason}"
        yield Diagnosis(
            check="processes.ready", mark="warning", found=found, cure="ask it again"
        )
    elif ready.status != 200:
        cure = (
            "fix what its checks report; if nothing else is wrong, it is starting or "
            "shutting down"
        )
        found = f"{where} is alive and takes no work: {_failing_checks(ready)}"
        yield Diagnosis(check="processes.ready", mark="warning", found=found, cure=cure)


def _check_models(process: ProcessFacts) -> Iterator[Diagnosis]:
    checks = (
        process.alive.body.get("checks")
        if isinstance(process.alive, HealthPage)
        else None
    )
    about = checks.get("models") if isinstance(checks, dict) else None
    if isinstance(about, dict) and about.get("detail"):
        cure = (
            "tasks wait until their deadline, other roles use rules; check the "
            "provider's message and status page, TASKLORE_LLM_MODEL and the limits of "
            "the key"
        )
        found = f"{process.name} at {process.url}: {about['detail']}"
        yield Diagnosis(
            check="processes.models", mark="warning", found=found, cure=cure
        )
    spoken = checks.get("model_dialects") if isinstance(checks, dict) else None
    if isinstance(spoken, dict) and spoken.get("detail"):
        found = f"{process.name} at {process.url}: {spoken['detail']}"
        cure = "nothing is needed; answers in a schema are surer from a server that takes json_schema"
        yield Diagnosis(
            check="processes.model_dialects", mark="note", found=found, cure=cure
        )


def _failing_checks(page: HealthPage) -> str:
    checks = page.body.get("checks")
    failing = [
        f"{name}: {about.get('detail', '')}"
        for name, about in (checks.items() if isinstance(checks, dict) else ())
        if isinstance(about, dict) and not about.get("ok")
    ]
    return "; ".join(failing) or f"status {page.status}"


def _tasks_of(name: str) -> str:
    """Return the filter for the tasks of *name*, which may be no name of an agent: any program can publish."""
    return f"{subjects.TASKS_ALL.removesuffix('>')}{name}.>"
