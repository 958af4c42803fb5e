"""Who does what: each role with its operations on NATS, its commands on Valkey, and the keys that stores give it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypedDict

from deploy.privileges import operations as do
from deploy.privileges.operations import RoleOperation
from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import demand_person
from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.identifiers import checked_name, user_token
from tasklore.contracts.pipelines import PIPELINE_AGENT
from tasklore.memory.declarations import AGENT, KeyAccess, StoreRole
from tasklore.memory.stores import STORES
from tasklore.runtime.messaging.signatures import is_signed

#: The supervisor id of the deployment.
SUPERVISOR = "SupervisorAgent"

#: Commands on one key at a time that store, change and read; scripts, transactions and what a connection begins with.
_STORE = (
    *(
        "ping",
        "client|setname",
        "time",
        "fcall",
        "fcall_ro",
        "multi",
        "exec",
        "discard",
        "watch",
        "unwatch",
    ),
    *(
        "get",
        "mget",
        "set",
        "incr",
        "incrby",
        "exists",
        "type",
        "del",
        "unlink",
        "pexpire",
        "persist",
        "pttl",
    ),
    *(
        "hget",
        "hmget",
        "hgetall",
        "hkeys",
        "hlen",
        "hexists",
        "hset",
        "hsetnx",
        "hincrby",
        "hdel",
        "hstrlen",
    ),
    *("append", "strlen", "getrange"),
    *("lindex", "llen", "lpos", "lrange", "lset", "lpop", "lpush", "ltrim", "rpush"),
    *(
        "sadd",
        "srem",
        "scard",
        "sismember",
        "smembers",
        "publish",
        "subscribe",
        "unsubscribe",
    ),
    *(
        "zadd",
        "zrem",
        "zremrangebyrank",
        "zremrangebyscore",
        "zpopmin",
        "zcard",
        "zcount",
        "zrank",
        "zscore",
        "zscan",
    ),
    *(
        "zlexcount",
        "zrange",
        "zrangebylex",
        "zrangebyscore",
        "zrevrange",
        "zrevrangebyscore",
    ),
)
#: Commands that show every key there is, whoever's: not for whoever runs code of others.
_SEARCH = ("scan",)
#: How full the server is, and an end to what hangs it.
_WATCH = ("info", "function|kill", "script|kill")
_EXAMINE = (
    *("info", "config|get", "bgrewriteaof", "bgsave", "lastsave"),
    "client|list",
)


#: The parts of a task are moved to another layout of the ledger whole, and the memory of a user behind a tombstone.
_MOVE = ("rename",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRole:
    """One user of both servers. `owns` are key patterns that it reads and writes, `reads` those that it only reads.

    `account` is its own at NATS: whoever reads a message is told by the server which one it was published in.
    """

    name: str
    purpose: str
    operations: tuple[RoleOperation, ...] = ()
    commands: tuple[str, ...] = ()
    owns: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    kind: str | None = None

    @property
    def has_store(self) -> bool:
        """Whether it is a user of Valkey at all."""
        return bool(self.commands)

    @property
    def account(self) -> str:
        """Its account at NATS."""
        return subjects.account_of(
            self.name if self.kind is None else f"{self.kind}-{self.name}"
        )

    @property
    def publish(self) -> tuple[str, ...]:
        """Every subject that it may publish to, each once."""
        return tuple(
            dict.fromkeys(subject for one in self.operations for subject in one.publish)
        )

    @property
    def sign(self) -> tuple[str, ...]:
        """Every subject of messages and answers that it signs, each once."""
        signed = filter(is_signed, self.publish)
        vouched = (subject for one in self.operations for subject in one.sign)
        return tuple(dict.fromkeys([*signed, *vouched]))

    @property
    def hear(self) -> tuple[str, ...]:
        """Every subject on which it hears what others publish, each once."""
        return tuple(
            dict.fromkeys(subject for one in self.operations for subject in one.hear)
        )

    @property
    def serve(self) -> tuple[str, ...]:
        """Every subject on which it is asked, each once."""
        return tuple(
            dict.fromkeys(subject for one in self.operations for subject in one.serve)
        )

    @property
    def subscribe(self) -> tuple[str, ...]:
        """Every subject that it may subscribe to, each once."""
        inboxes = (subject for one in self.operations for subject in one.inbox)
        return tuple(dict.fromkeys([*inboxes, *self.serve, *self.hear]))


@dataclass(frozen=True, slots=True)
class Cast:
    """Who there is beside supervisor, memory worker, bootstrap job and operator.

    `workers` has the agents that each Deployment of workers serves; `programs` has, for each program of others by its
    supervisor id, under which names it speaks to agents; `calls` has, by Deployment, the agents that its tasks call,
    `approvers`, by program, the persons in whose name it answers questions, such as `role:finance`. Once the `ledger`
    is of layout 2, and not before, workers may be held to the entries of their own agents, and of those that they call.
    """

    workers: dict[str, tuple[str, ...]] = field(
        default_factory=lambda: {"budget": ("BudgetTrackerAgent",)}
    )
    programs: dict[str, tuple[str, ...]] = field(
        default_factory=lambda: {"program": ("program",)}
    )
    calls: dict[str, tuple[str, ...]] = field(default_factory=dict)
    approvers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ledger: int = 1

    def roles(self) -> tuple[ServerRole, ...]:
        """Return every role."""
        if unknown := self.approvers.keys() - self.programs.keys():
            raise ConfigurationError(
                f"--approver names {', '.join(sorted(unknown))}, which is not a "
                "--program; add it"
            )
        programs = [
            _program(name, names, self.approvers.get(name, ()))
            for name, names in self.programs.items()
        ]
        if unknown := self.calls.keys() - self.workers.keys():
            raise ConfigurationError(
                f"--calls names {', '.join(sorted(unknown))}, which is not a --worker; "
                "add it"
            )
        workers = [
            _worker(
                f"worker-{name}",
                agents,
                self.calls.get(name, ()),
                layout=self.ledger,
            )
            for name, agents in self.workers.items()
        ]
        return (
            _supervisor(),
            _memory(layout=self.ledger),
            *workers,
            _bootstrap(),
            _operator(),
            *programs,
        )


def named(words: Iterable[str], option: str) -> dict[str, tuple[str, ...]]:
    """Return what *words* of the form NAME=ONE[,ANOTHER] say, as a part of a cast; *option* names them in the error.

    Raises:
        ConfigurationError: one has another form, or names nothing.
    """
    found = {}
    for word in words:
        name, _, listed = word.partition("=")
        if not name or not all(listed.split(",")):
            raise ConfigurationError(
                f"{option} {word!r} is not NAME=ONE[,ANOTHER]; write it as in prices=PriceAgent"
            )
        found[name] = tuple(listed.split(","))
    return found


def _supervisor() -> ServerRole:
    cards = subjects.bucket_stream(subjects.AGENTS_BUCKET)
    presences = subjects.bucket_stream(subjects.WORKERS_BUCKET)
    return ServerRole(
        name="supervisor",
        purpose="Answers people and programs, drives pipelines and analyses, delivers what is said to agents.",
        operations=(
            do.hears_answers("supervisor"),
            do.answers(
                *(
                    subjects.requests(SUPERVISOR),
                    subjects.pipelines(SUPERVISOR),
                    subjects.analyses(SUPERVISOR),
                ),
                subjects.approvals_to(SUPERVISOR),
                subjects.operations(SUPERVISOR),
                subjects.operations_left(SUPERVISOR),
            ),
            do.hears(
                "hear wishes to cancel", subjects.CANCEL_ANY, subjects.CANCEL_ELSEWHERE
            ),
            do.hears("hear of cards", subjects.CARD_NOTICES),
            do.hears("hear reports", subjects.reports_to(SUPERVISOR)),
            do.hears(
                "hear progress", subjects.progress_to(SUPERVISOR), subjects.RUN_ANY
            ),
            do.hears("hear output", subjects.OUTPUT_ANY),
            do.hears(
                "hear of streams",
                *(
                    subjects.stream_notices(stream)
                    for stream in (subjects.TASKS, subjects.WAITING, subjects.LATER)
                ),
            ),
            *(
                do.takes(subjects.REPORTS, durable)
                for durable in (SUPERVISOR, subjects.COMPARISONS)
            ),
            do.says(
                "read reports as their leader has them",
                f"$JS.API.STREAM.MSG.GET.{subjects.REPORTS}",
            ),
            do.takes(subjects.MESSAGES, "*"),
            # That the stream is gone it hears among all that is told of it.
            replace(
                do.takes(subjects.TASKS, PIPELINE_AGENT),
                hear=(subjects.consumer_deleted(subjects.TASKS, PIPELINE_AGENT),),
            ),
            do.says(
                "bury what is no task of a pipeline",
                f"dead.{subjects.tasks_of(PIPELINE_AGENT)}",
            ),
            do.says(
                "assign tasks",
                subjects.TASK_ANY,
                subjects.WAITING_ANY,
                subjects.SCHEDULE_ANY,
            ),
            do.admits(),
            do.says("report what was cancelled", subjects.REPORT_ANY),
            do.says("pass turns on", subjects.TURN_ANY),
            do.says("request to cancel", subjects.CANCEL_ANY),
            do.says("tell of runs", subjects.RUN_ANY),
            do.says("tell of questions", subjects.QUESTION_ANY),
            do.vouches("take answers to questions", subjects.ANSWERS_ALL),
            do.says("set unreadable messages aside", f"dead.{subjects.MESSAGES_ALL}"),
            do.looks_into(
                *(
                    subjects.TASKS,
                    subjects.WAITING,
                    subjects.LATER,
                    subjects.REPORTS,
                    subjects.MESSAGES,
                ),
                *(subjects.DEAD, cards, presences),
            ),
            do.reads(cards, presences, subjects.OUTPUT),
            do.reads_last(subjects.REPORTS, subjects.reports_to(SUPERVISOR)),
            do.says(
                "drop letters of phases that are done",
                f"$JS.API.DIRECT.GET.{subjects.DEAD}",
                f"$JS.API.STREAM.MSG.DELETE.{subjects.DEAD}",
            ),
            do.unschedules(),
        ),
        commands=(*_STORE, *_SEARCH, *_WATCH),
        **_rights(StoreRole.SUPERVISOR),
    )


def _worker(
    name: str, agents: tuple[str, ...], called: tuple[str, ...], *, layout: int
) -> ServerRole:
    return ServerRole(
        name=name,
        purpose=f"Runs the tasks of {', '.join(agents)}.",
        operations=(*_works(name, agents), *(_calls(name, called) if called else ())),
        commands=tuple(_STORE),
        **_rights(StoreRole.WORKER, agents, called, layout=layout),
    )


def _works(name: str, agents: tuple[str, ...]) -> tuple[RoleOperation, ...]:
    named = [checked_name(agent, "agent_id") for agent in agents]
    return (
        do.hears_answers(name),
        *(do.takes(subjects.TASKS, agent) for agent in named),
        *(do.announces(agent) for agent in named),
        *(
            do.says(f"bury tasks of {agent}", f"dead.{subjects.tasks_of(agent)}")
            for agent in named
        ),
        do.says("report", subjects.REPORT_ANY),
        do.says("tell progress", subjects.PROGRESS_ANY),
        do.says("emit output", subjects.OUTPUT_ANY),
        do.says("cancel children", subjects.CANCEL_ANY),
        do.hears(
            "hear wishes to cancel", subjects.CANCEL_ANY, subjects.CANCEL_ELSEWHERE
        ),
    )


def _calls(name: str, agents: tuple[str, ...]) -> tuple[RoleOperation, ...]:
    """Return how tasks of the worker *name* call those of *agents* and hear of them, under its own name."""
    cards = subjects.bucket_stream(subjects.AGENTS_BUCKET)
    return (
        do.says("call tasks", *(subjects.calls_to(agent) for agent in agents)),
        *(
            do.reads_last(cards, f"$KV.{subjects.AGENTS_BUCKET}.{agent}")
            for agent in agents
        ),
        do.hears("hear reports on what it called", subjects.reports_to(name)),
        do.reads_last(subjects.REPORTS, subjects.reports_to(name)),
    )


def _memory(*, layout: int) -> ServerRole:
    agents = ("MemoryAgent", "SwitchboardAgent")
    return ServerRole(
        name="memory",
        purpose="Reads what people say, and keeps documents about them.",
        operations=(
            *_works("memory", agents),
            do.takes(subjects.TURNS, "*"),
            do.takes(subjects.FACTS, "*"),
            # For workers of 0.2, and programs that find facts themselves.
            do.says("find facts", subjects.FACT_ANY),
            do.says(
                "bury turns and facts",
                f"dead.{subjects.TURNS_ALL}",
                f"dead.{subjects.FACTS_ALL}",
            ),
        ),
        commands=(*_STORE, *_SEARCH, *_MOVE),
        **_rights(StoreRole.MEMORY, agents, layout=layout),
    )


def _bootstrap() -> ServerRole:
    return ServerRole(
        name="bootstrap",
        purpose="Makes streams and consumers, loads functions, and is gone.",
        operations=(do.hears_answers("bootstrap"), do.provides()),
        commands=("ping", "client|setname", "function|load"),
    )


def _operator() -> ServerRole:
    cards = subjects.bucket_stream(subjects.AGENTS_BUCKET)
    return ServerRole(
        name="operator",
        purpose="A person with the command `tasklore`: asks, examines, cancels, sends dead letters again, forgets.",
        operations=(
            do.hears_answers("operator"),
            do.hears(
                "watch runs",
                subjects.RUN_ANY,
                subjects.PROGRESS_ANY,
                subjects.OUTPUT_ANY,
            ),
            do.says(
                "hand requests to the API over",
                subjects.operations(SUPERVISOR),
                subjects.operations_left(SUPERVISOR),
            ),
            do.hears("hear of questions", subjects.QUESTION_ANY),
            do.says("wake tasks that wait", subjects.SCHEDULE_ANY),
            # Of commands of 0.2: what they took in lies in the ledger, and still counts.
            do.vouches("take answers to questions", subjects.ANSWERS_ALL),
            do.says("request to cancel", subjects.CANCEL_ANY),
            do.says("report what was cancelled", subjects.REPORT_ANY),
            do.says("send again, and tell", subjects.TASK_ANY, subjects.TURN_ANY),
            do.says(
                "retire agents",
                subjects.CARD_NOTICES,
                f"$JS.API.DIRECT.GET.{cards}.$KV.>",
            ),
            do.looks_into(*do.STREAMS, *do.BUCKETS),
            do.reads(*do.STREAMS, *do.BUCKETS),
            do.says(
                "read reports as their leader has them",
                f"$JS.API.STREAM.MSG.GET.{subjects.REPORTS}",
            ),
            do.erases(*do.STREAMS),
            do.examines(),
        ),
        commands=(*_STORE, *_SEARCH, *_EXAMINE, *_MOVE),
        owns=("tl:*",),
        channels=tuple(
            channel for store in STORES for channel in (store.channels or {})
        ),
    )


def _program(
    name: str, speakers: tuple[str, ...], persons: tuple[str, ...]
) -> ServerRole:
    checked_name(name, "program")
    return ServerRole(
        name=name,
        purpose="A program of one's own: asks in words, assigns tasks under its own supervisor id, speaks to agents.",
        operations=(
            do.hears_answers(name),
            do.says("ask", subjects.requests(SUPERVISOR)),
            do.says("assign tasks", subjects.TASK_ANY),
            do.hears(
                "hear its reports",
                subjects.reports_to(name),
                subjects.progress_to(name),
            ),
            do.reads_last(subjects.REPORTS, subjects.reports_to(name)),
            # From the beginning it reads it over HTTP: who makes consumers has the server publish where they like.
            do.hears("hear its output", subjects.output_to(name)),
            do.reads_last(subjects.OUTPUT, subjects.output_to(name)),
            do.says(
                "speak to agents",
                *(f"messages.*.*.{user_token(speaker)}" for speaker in speakers),
            ),
            *(
                do.says(
                    "answer questions",
                    subjects.approvals(SUPERVISOR, demand_person(one)),
                )
                for one in persons
            ),
        ),
        kind="program",
    )


class _Rights(TypedDict):
    """Keys and channels of a role, as a `ServerRole` takes them."""

    owns: tuple[str, ...]
    reads: tuple[str, ...]
    channels: tuple[str, ...]


def _rights(
    role: StoreRole,
    agents: tuple[str, ...] = (),
    called: tuple[str, ...] = (),
    *,
    layout: int = 1,
) -> _Rights:
    """Return the rights that stores declare for *role*, which serves *agents* and whose tasks call those of *called*.

    *layout* is that of the ledger.
    """
    rights = [
        right for store in STORES for right in store.rights if layout in right.layouts
    ]
    return _Rights(
        owns=_patterns([one for one in rights if role in one.writers], agents, called),
        reads=_patterns([one for one in rights if role in one.readers], agents, called),
        channels=tuple(
            channel
            for store in STORES
            for channel, roles in (store.channels or {}).items()
            if role in roles
        ),
    )


def _patterns(
    rights: Iterable[KeyAccess], agents: tuple[str, ...], called: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the pattern of each right, for each agent where it says so; each once."""
    found = dict[str, None]()
    for right in rights:
        if AGENT not in right.pattern:
            found[right.pattern] = None
            continue
        for agent in (*agents, *called) if right.is_for_called else agents:
            found[right.pattern.replace(AGENT, agent)] = None
    return tuple(found)
