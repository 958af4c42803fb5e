"""What each role may do, tried out on real servers with the shipped configuration: all of that, and nothing else."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from deploy.credentials import add_roles
from deploy.privileges.__main__ import DEPLOY as SHIPPED
from deploy.privileges.__main__ import generated
from deploy.privileges.nats_accounts import nats_accounts
from deploy.privileges.roles import Cast, ServerRole
from tasklore.contracts.admission.limits import (
    CallUsage,
    Limits,
    ModelCall,
    Payer,
    read_limits,
)
from tasklore.contracts.errors import (
    BudgetSpent,
    Forbidden,
    MemoryUnavailable,
    UnknownStory,
)
from tasklore.contracts.subjects import covers
from tasklore.memory import keys
from tasklore.memory.budgets.governor import ModelBudget
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.reader import DocumentReader
from tasklore.memory.functions import load_functions
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import CancelOutcome, Ended, RunPermission
from tasklore.memory.long_term import scripts as long_term_scripts
from tasklore.memory.stories.store import StoryStore
from tasklore.runtime.access import inbox_prefix
from tasklore.runtime.servers.embedded import NatsServer
from tasklore.supervisor.watches import StoreWatch
from tests.acceptance.as_role import spoken, subjects_of, trying, valkey_as
from tests.acceptance.external_program import PATIENCE_S
from tests.acceptance.guarded import Guarded, config, guarded, nats_variables

ROLES = {role.name: role for role in Cast().roles()}
STORE_ROLES = [name for name, role in ROLES.items() if role.has_store]

#: What nobody may do who serves, asks or looks, whatever the declaration says.
NEVER = (
    "$JS.API.STREAM.DELETE.TASKS",
    "$JS.API.STREAM.SNAPSHOT.TASKS",
    "$JS.API.STREAM.RESTORE.TASKS",
    "$JS.API.STREAM.NAMES",
    "$JS.API.CONSUMER.CREATE.TASKS",
    "$JS.API.CONSUMER.CREATE.TASKS.mine.tasks.>",
    "$JS.API.CONSUMER.DELETE.TASKS.BudgetTrackerAgent",
    "$JS.API.META.LEADER.STEPDOWN",
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.ACCOUNT.TASKLORE.CONNZ",
    "due.tasks.OtherAgent.check",
    "anything",
)
#: What a worker of the budget agent must not do, beyond that.
NOT_A_WORKER = (
    "tasks.BudgetTrackerAgent.check",
    "tasks.OtherAgent.check",
    "turns.0.dXNlcg",
    "facts.0.dXNlcg",
    "messages.0.dXNlcg.dXNlcg",
    "dead.tasks.OtherAgent.check",
    "requests.SupervisorAgent",
    "schedules.tasks.t-1.1",
    "$KV.agents.OtherAgent",
    "$KV.workers.OtherAgent.w-1",
    "$JS.API.STREAM.CREATE.TASKS",
    "$JS.API.STREAM.UPDATE.TASKS",
    "$JS.API.STREAM.INFO.TASKS",
    "$JS.API.STREAM.PURGE.TASKS",
    "$JS.API.STREAM.MSG.GET.TASKS",
    "$JS.API.STREAM.MSG.DELETE.TASKS",
    "$JS.API.DIRECT.GET.TASKS",
    "$JS.API.DIRECT.GET.LATER",
    "$JS.API.DIRECT.GET.REPORTS",
    "$JS.API.DIRECT.GET.KV_agents",
    "$JS.API.CONSUMER.DURABLE.CREATE.TASKS.BudgetTrackerAgent",
    "$JS.API.CONSUMER.MSG.NEXT.TASKS.OtherAgent",
    "$JS.ACK.TASKS.OtherAgent.1.1.1.1.0",
    "$JS.API.CONSUMER.MSG.NEXT.REPORTS.SupervisorAgent",
    "_INBOX_operator.x",
)
NOT_HEARD_BY_A_WORKER = (
    ">",
    "tasks.>",
    "reports.>",
    "turns.>",
    "requests.*",
    "_INBOX_supervisor.>",
    "$JS.API.>",
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Run both servers, with TLS, for all tests here."""
    with guarded(tmp_path_factory.mktemp("guarded")) as servers:
        yield servers


def test_what_is_shipped_is_what_is_declared() -> None:
    """No configuration was edited by hand, or left behind by a change of the declaration."""
    assert {
        path: (SHIPPED / path).read_text("utf-8") for path in generated(Cast())
    } == generated(Cast())


@pytest.mark.parametrize("name", ["nats.conf", "cluster.conf"])
def test_nats_server_takes_what_is_shipped(
    name: str, pair: Guarded, tmp_path: Path
) -> None:
    binary = next(path for path in NatsServer(tmp_path).candidates() if path.is_file())
    variables = dict(nats_variables(pair.folder, tmp_path))
    done = subprocess.run(
        [binary, "-t", "-c", config(name)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr


def test_valkey_knows_every_word_of_the_tls_configuration(
    pair: Guarded, tmp_path: Path
) -> None:
    """One that was built without TLS says so once it has read it all; another one misses the certificate."""
    words = [
        pair.valkey.find_binary(),
        SHIPPED / "valkey" / "valkey.conf",
        "--include",
        SHIPPED / "valkey" / "tls.conf",
    ]
    done = subprocess.run(
        [*words, "--dir", tmp_path], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert "TLS" in done.stdout
    assert "Bad directive" not in done.stdout + done.stderr
    assert "FATAL CONFIG FILE ERROR" not in done.stdout + done.stderr


def test_roles_need_names_that_differ_as_variables() -> None:
    with pytest.raises(ValueError, match="differ"):
        nats_accounts(
            [ServerRole(name="a-b", purpose=""), ServerRole(name="a_b", purpose="")]
        )


@pytest.mark.parametrize("name", ROLES)
async def test_nats_lets_each_role_publish_what_is_declared_and_nothing_else(
    name: str, pair: Guarded
) -> None:
    tried = {
        _sample(pattern) for role in ROLES.values() for pattern in role.publish
    } | {*NEVER, *NOT_A_WORKER}
    async with trying(pair, name) as (client, refused):
        for subject in tried:
            # What this would do is refused for its form: only whether it gets that far matters here.
            await client.publish(subject, b"[", reply=f"{inbox_prefix(name)}.x")
        await spoken(client)
        assert subjects_of(refused, "publish") == {
            subject.lower()
            for subject in tried
            if not _covers(ROLES[name].publish, subject)
        }
        assert {subject.lower() for subject in NEVER} <= subjects_of(refused, "publish")


@pytest.mark.parametrize("name", ROLES)
async def test_nats_lets_each_role_hear_what_is_declared_and_nothing_else(
    name: str, pair: Guarded
) -> None:
    tried = {pattern for role in ROLES.values() for pattern in role.subscribe} | {
        *NOT_HEARD_BY_A_WORKER
    }
    async with trying(pair, name) as (client, refused):
        for pattern in tried:
            await client.subscribe(pattern)
        await spoken(client)
        assert subjects_of(refused, "subscription") == {
            pattern.lower()
            for pattern in tried
            if not _covers(ROLES[name].subscribe, pattern)
        }


async def test_a_worker_has_nothing_of_what_others_have(pair: Guarded) -> None:
    """Spelled out once, so that no change of the declaration widens it unseen."""
    worker = ROLES["worker-budget"]
    assert [
        one for one in (*NOT_A_WORKER, *NEVER) if _covers(worker.publish, one)
    ] == []
    assert [
        one for one in NOT_HEARD_BY_A_WORKER if _covers(worker.subscribe, one)
    ] == []


async def test_a_stranger_is_not_let_in(pair: Guarded) -> None:
    """Without the key of a role, and without TLS that is vouched for, there is no connection."""
    authority = pair.access("operator").nats_options()["tls"]
    errors: list[Exception] = []

    async def hear(error: Exception) -> None:
        errors.append(error)

    for options in ({"tls": authority}, {}):
        with pytest.raises((nats.errors.Error, OSError)):
            await nats.connect(
                pair.nats_url,
                allow_reconnect=False,
                connect_timeout=PATIENCE_S,
                error_cb=hear,
                **options,
            )
    words = " ".join(map(str, errors)).lower()
    assert "authorization violation" in words
    assert "certificate" in words


@pytest.mark.parametrize("name", STORE_ROLES)
async def test_valkey_lets_each_role_do_what_is_declared_and_nothing_else(
    name: str, pair: Guarded
) -> None:
    """Every command on every kind of key is tried in a dry run, for every role."""
    role = ROLES[name]
    kinds = {pattern for one in ROLES.values() for pattern in (*one.owns, *one.reads)}
    async with valkey_as(pair, None) as admin:
        for command, words in _COMMANDS.items():
            for key in sorted(map(_key, kinds)):
                said = await admin.execute_command(
                    "ACL",
                    "DRYRUN",
                    name,
                    *(key if one is _KEY else one for one in words),
                )
                assert (said == b"OK") is _may(role, command, key), (command, key, said)


@pytest.mark.parametrize("name", STORE_ROLES)
async def test_valkey_refuses_every_role_what_only_an_administrator_does(
    name: str, pair: Guarded
) -> None:
    """Nobody throws data away as a whole, changes settings or users, or runs code that is not a script of ours."""
    async with valkey_as(pair, name) as client:
        await client.ping()
        for words in _ADMINISTRATION:
            with pytest.raises(NoPermissionError):
                await client.execute_command(*words)


@pytest.mark.parametrize("name", STORE_ROLES)
async def test_valkey_takes_functions_from_the_bootstrap_alone(
    name: str, pair: Guarded
) -> None:
    """Everybody else calls what is there, and ends without it with a word on who brings it."""
    async with valkey_as(pair, name) as client:
        if name == "bootstrap":
            await load_functions(client)
            return
        with pytest.raises(NoPermissionError):
            await client.function_load(
                "#!lua name=mine\nredis.register_function('mine', function() return 1 end)"
            )
        with pytest.raises(Forbidden, match="tasklore bootstrap"):
            await load_functions(client)


async def test_the_supervisor_ends_a_function_that_runs_away(pair: Guarded) -> None:
    """It is told by its silence; a worker may not end it, nor may anybody who brought no function of his own."""
    endless = "redis.register_function{function_name='endless', callback=function() while true do end end}"
    async with valkey_as(pair, "bootstrap") as bootstrap:
        await bootstrap.function_load(f"#!lua name=endless\n{endless}")
    async with (
        valkey_as(pair, "worker-budget") as worker,
        valkey_as(pair, "supervisor") as supervisor,
    ):
        running = asyncio.create_task(worker.fcall("endless", 0))
        supervisor.connection_pool.connection_kwargs["socket_timeout"] = 1.0
        await asyncio.sleep(0.1)
        watch = StoreWatch(supervisor)
        async with asyncio.timeout(PATIENCE_S):
            while not running.done():
                await watch.look()
        with pytest.raises(ResponseError, match=r"(?i)killed"):
            await running
        await watch.look()
        assert await worker.ping()


async def test_a_worker_does_its_work_by_functions_alone(pair: Guarded) -> None:
    """Every step of the ledger, of single flight and of what it reads of others, for real."""
    async with valkey_as(pair, "bootstrap") as client:
        await load_functions(client)
    async with valkey_as(pair, "worker-budget") as client:
        ledger = Ledger(client, deadline_s=PATIENCE_S)
        exchange = CommandBatch(client, PATIENCE_S)
        await ledger.accept("acl", 1, b"{}")
        assert await ledger.begin(
            "acl", 1, "w1", 0, 60_000, token="t1"
        ) == RunPermission(1)
        assert await ledger.hold([("acl", 1)], "w1", 60_000) == []
        assert await ledger.once("acl", 1, "w1", "mail", "m1")
        await ledger.park(Ended("acl", 1, "t1"), 0)
        assert await ledger.begin(
            "acl", 1, "w1", 0, 60_000, token="t2"
        ) == RunPermission(2)
        await ledger.release([Ended("acl", 1, "t2")])
        assert isinstance(await ledger.cancel("acl", 1, "enough"), CancelOutcome)
        assert await ledger.finish("acl", 1, "cancelled", b"{}") is None
        entry = "tl:ltm:{BudgetTrackerAgent}:v1.1:check"
        flight = "tl:flight:{BudgetTrackerAgent}:x"
        assert await exchange.run(
            [("FCALL", long_term_scripts.LEASE, 2, flight, entry, "t", 1000, "0")]
        ) == [-1]
        assert await exchange.run(
            [("FCALL", long_term_scripts.RELEASE, 1, flight, "t", keys.FLIGHTS)]
        ) == [1]
        # What it reads of others it reads by functions that write nothing.
        assert (
            await DocumentReader(client, Kinds.load(), deadline_s=PATIENCE_S).snapshot(
                "ann"
            )
        ).user_id == "ann"
        with pytest.raises(UnknownStory):
            await StoryStore(client, deadline_s=PATIENCE_S).settings("s-1")


async def test_a_worker_counts_its_calls_under_limits_that_it_cannot_change(
    pair: Guarded,
) -> None:
    """It reads them, hears that others hold, and may neither raise nor erase one."""
    async with valkey_as(pair, "bootstrap") as client:
        await load_functions(client)
    payer = Payer(tenant="acme", agent="BudgetTrackerAgent", task_id="t", run="t:1:1")

    def call(most: int) -> ModelCall:
        return ModelCall(
            model="m", payer=payer, text="x", most_output=most, price=lambda *_: 1
        )

    async with (
        valkey_as(pair, "operator") as operator,
        valkey_as(pair, "worker-budget") as worker,
    ):
        budgets = Budgets(operator, deadline_s=PATIENCE_S)
        limit = {"name": "tpm", "tokens": 1_000, "every": "minute"}
        await budgets.change(read_limits({"limits": [limit]}), "test")
        stored = await budgets.read()
        async with ModelBudget(worker, deadline_s=PATIENCE_S).running() as governor:
            held = await governor.reserve(call(200))
            governor.settle(held, CallUsage(input=5, output=5))
            with pytest.raises(BudgetSpent, match="more than all"):
                await governor.reserve(call(2_000))
            for words in (
                ("HSET", keys.budget("limits"), "limits", '{"limits": []}'),
                ("UNLINK", keys.budget("limits")),
                ("LPUSH", keys.budget("limits", "history"), "{}"),
                ("SET", keys.budget("admission"), "mine"),
            ):
                with pytest.raises(NoPermissionError):
                    await worker.execute_command(*words)
            with pytest.raises(MemoryUnavailable):
                await Budgets(worker).change(Limits(), "worker")
            assert await budgets.read() == stored
            await budgets.change(
                read_limits({"limits": [limit | {"tokens": 5_000}]}), "test"
            )
            async with asyncio.timeout(PATIENCE_S):
                while (await governor.limits()).limits[0].tokens != 5_000:  # noqa: ASYNC110 - it looks by itself
                    await asyncio.sleep(0.05)


async def test_valkey_refuses_a_worker_the_memory_of_others(pair: Guarded) -> None:
    """For real, and not in a dry run: other agents' answers, documents, waiting facts, and every list of keys."""
    refused = (
        ("GET", "tl:ltm:{OtherAgent}:v1.1:check"),
        ("HSET", "tl:doc:{dXNlcg}:profile", "body", "{}"),
        ("HGETALL", "tl:facts:{dXNlcg}"),
        ("SCAN", "0"),
        ("KEYS", "*"),
        ("SUBSCRIBE", "elsewhere"),
        ("GET", "not-ours"),
    )
    async with valkey_as(pair, "worker-budget") as client:
        for words in refused:
            with pytest.raises(NoPermissionError):
                await client.execute_command(*words)
        assert await client.get("tl:ltm:{BudgetTrackerAgent}:v1.1:check") is None
        assert await client.hgetall("tl:doc:{dXNlcg}:profile") == {}


async def test_valkey_lets_nobody_in_without_a_password(pair: Guarded) -> None:
    async with Redis(port=pair.valkey.port, retry=Retry(NoBackoff(), 0)) as client:
        with pytest.raises(AuthenticationError):
            await client.ping()


def _sample(pattern: str) -> str:
    """Return a subject that *pattern* matches."""
    return ".".join(
        "x" if token in ("*", ">") else token for token in pattern.split(".")
    )


def _covers(patterns: tuple[str, ...], subject: str) -> bool:
    """Return whether one of *patterns* has every subject in it that *subject*, perhaps a pattern too, matches."""
    return any(covers(pattern, subject) for pattern in patterns)


#: Stands for a key in a command.
_KEY = "KEY"
#: Commands that are tried, with the words they take: what changes a key, what reads it, and a script on it.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "get": ("GET", _KEY),
    "hgetall": ("HGETALL", _KEY),
    "zscore": ("ZSCORE", _KEY, "x"),
    "set": ("SET", _KEY, "x"),
    "hset": ("HSET", _KEY, "x", "y"),
    "zadd": ("ZADD", _KEY, "1", "x"),
    "unlink": ("UNLINK", _KEY),
    "fcall": ("FCALL", "tl_x", "1", _KEY),
    "fcall_ro": ("FCALL_RO", "tl_x", "1", _KEY),
    "evalsha": ("EVALSHA", "0" * 40, "1", _KEY),
    "rename": ("RENAME", _KEY, _KEY),
    "dump": ("DUMP", _KEY),
    "eval": ("EVAL", "return 1", "1", _KEY),
}
_READING = {"get", "hgetall", "zscore", "fcall_ro"}
_ADMINISTRATION = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("KEYS", "*"),
    ("CONFIG", "SET", "appendonly", "no"),
    ("ACL", "LIST"),
    ("ACL", "SETUSER", "default", "on"),
    ("SHUTDOWN", "NOSAVE"),
    ("SCRIPT", "FLUSH"),
    ("SCRIPT", "LOAD", "return 1"),
    ("EVAL", "return 1", "0"),
    ("EVAL_RO", "return 1", "0"),
    ("EVALSHA", "0" * 40, "0"),
    ("EVALSHA_RO", "0" * 40, "0"),
    ("FUNCTION", "DELETE", "tl_x"),
    ("FUNCTION", "FLUSH"),
    ("FUNCTION", "RESTORE", "x"),
    ("FUNCTION", "DUMP"),
    ("MODULE", "LIST"),
    ("REPLICAOF", "NO", "ONE"),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("MONITOR",),
    ("MIGRATE", "127.0.0.1", "1", "tl:task:{x}", "0", "1"),
)


def _key(pattern: str) -> str:
    """Return a key that *pattern* matches, as `tasklore.memory.keys` would make one."""
    return pattern.replace("{*", "{x}").replace("*", "x")


def _may(role: ServerRole, command: str, key: str) -> bool:
    if command not in role.commands:
        return False
    reads = (*role.owns, *role.reads) if command in _READING else role.owns
    return any(_matches(pattern, key) for pattern in reads)


def _matches(pattern: str, key: str) -> bool:
    first, *rest = pattern.split("*")
    if not key.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = key.find(part, at) + len(part)
        if at < len(part):
            return False
    return not rest or key[at:].endswith(rest[-1])


async def test_a_worker_that_was_added_is_let_in_and_so_are_the_others(
    tmp_path: Path,
) -> None:
    """Started with what the folder then holds, both servers know its key and password, and keep to its rights."""
    servers = Guarded(tmp_path, Cast())
    add_roles(servers.folder, Cast({"prices": ("PriceAgent",)}, {}))
    shutil.copy(config("nats.conf"), servers.folder)
    servers.nats.configuration = servers.folder / "nats.conf"
    try:
        await servers.nats.start()
        await servers.valkey.start()
        for name, agent in (
            ("worker-prices", "PriceAgent"),
            ("worker-budget", "BudgetTrackerAgent"),
        ):
            async with (
                trying(servers, name) as (client, refused),
                valkey_as(servers, name) as store,
            ):
                for tried in ("PriceAgent", "BudgetTrackerAgent"):
                    await client.publish(
                        f"$JS.API.CONSUMER.INFO.TASKS.{tried}",
                        b"",
                        reply=f"{inbox_prefix(name)}.x",
                    )
                await spoken(client)
                assert await store.ping()
                (other,) = {"PriceAgent", "BudgetTrackerAgent"} - {agent}
                assert subjects_of(refused, "publish") == {
                    f"$js.api.consumer.info.tasks.{other.lower()}"
                }
    finally:
        await servers.nats.stop()
        await servers.valkey.stop()
