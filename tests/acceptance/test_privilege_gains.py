"""What each role can gain at both servers is what docs/reference/security.md says, and nothing else.

Each role tries every command of any role on every kind of key, and publishes to every subject of any role, with a value
that would profit it. What a server takes stands in a row of a table on that page, and each row is true of a server.
"""

import itertools
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, ResponseError

from deploy.privileges.roles import SUPERVISOR, Cast
from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import WaitAnswer
from tasklore.contracts.callers import Caller
from tasklore.contracts.handed_requests import HandedRequest
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.budgets.store import WAITING, WAKING
from tasklore.memory.stores import STORES
from tasklore.runtime.access import inbox_prefix
from tests.acceptance.as_role import spoken, subjects_of, trying, valkey_as
from tests.acceptance.guarded import Guarded, guarded

ROOT = Path(__file__).resolve().parents[2]
CAST = Cast(
    workers={"budget": ("BudgetTrackerAgent",), "caller": ("CallerAgent",)},
    programs={"chat": ("chat",), "boss": ("boss",)},
    calls={"caller": ("PriceAgent",)},
    approvers={"boss": ("role:finance",)},
)
ROLES = {role.name: role for role in CAST.roles()}
AGENTS = {
    "memory": ("MemoryAgent", "SwitchboardAgent"),
    **{f"worker-{name}": agents for name, agents in CAST.workers.items()},
}

#: An approval by the CFO that nobody gave, and a caller that may do everything.
APPROVED = WaitAnswer(
    value={"approved": True, "note": ""},
    by="role:cfo",
    at=datetime(2026, 1, 1, tzinfo=UTC),
    door="http",
    digest="d" * 32,
).model_dump_json()
BOSS = {"name": "boss", "roles": ["admin"], "tenant": "acme"}
REPORT = json.dumps(
    {
        "task_id": "x",
        "agent_id": "OtherAgent",
        "supervisor_id": SUPERVISOR,
        "task_name": "pay",
        "status": "completed",
        "result": {"paid": 1_000_000},
    }
)
ASSIGNMENT = json.dumps(
    {
        "task_id": "x",
        "agent_id": "OtherAgent",
        "supervisor_id": SUPERVISOR,
        "task": {"name": "pay", "parameters": {"to": "mallory"}},
        "created_at": "2026-01-01T00:00:00Z",
        "user_id": "alice",
        "tenant": "acme",
        "caller": BOSS,
        "priority": "interactive",
        "at_most": None,
    }
)
#: A request to the API as its owner, which no key was shown for.
HANDED = (
    HandedRequest(
        method="DELETE",
        path="/v1/approvals/x.3",
        caller=Caller.model_validate(BOSS),
        within_s=1,
    )
    .encode()
    .decode()
)

#: What is tried on a kind of key of which no more is said below.
_ANYTHING = (("x", "{}"),)
#: By the kind of key what would profit whoever writes it: fields or members, and values.
PROFITS: dict[str, tuple[tuple[str, str], ...]] = {
    "ltm": (("x", '{"result": {"paid": 1}}'),),
    "ltm-hits": (("x", "1000000"),),
    "ltm-index": (("v1.1:check", "0"),),
    "ltm-agents": (("x", ""),),
    "ltm-users": (("tl:ltm:{OtherAgent}:v1.1:check", ""),),
    "ltm-served": (("tl:ltm:{OtherAgent}:v1.1:check", "0"),),
    "ltm-quarantine": (("x", "{}"),),
    "ltm-imports": (("x", ""),),
    "flight": (("token", "mine"),),
    "task": (
        ("wait.3.answer", APPROVED),
        ("wait.3", '{"who": "user:mallory"}'),
        ("wait.3.refusals", ""),
        ("report:1", REPORT),
        ("state:1", "completed"),
        ("token:1", "mine"),
        ("leased_until:1", "0"),
        ("assignment:1", ASSIGNMENT),
        ("cancel:1", "enough"),
        ("once.mail", "mine"),
    ),
    "task-agent": (("x", "OtherAgent!1!enough"),),
    "ledger": (("x", "2"),),
    "waits": (("ask x 3", "0"),),
    "places": (("x", "0"),),
    "children": (("x", "0"),),
    "ended": (("failed", "0"),),
    "runs": (("x", '{"g":9,"s":"completed","t":"pay","c":1}'), ("OtherAgent", "0")),
    "run-messages": (("0", '{"kind": "answer", "at_ms": 0, "text": "paid"}'),),
    "run-messages-of": (("x", "0"),),
    "backlog": (("x", '{"tasks": {}, "first_at": "", "workers": {}}'),),
    "stream": (("x", "another"),),
    "conversation": (("x", '{"speaker": "alice", "text": "yes"}'),),
    "inbox": (("x", '{"speaker": "alice", "text": "yes"}'),),
    "observations": (("x", "{}"),),
    "doc": (("body", '{"allergies": []}'), ("revision", "1")),
    "episodes": (("x", "{}"),),
    "forgotten": (("1", '{"held": {}, "by": "x", "at_ms": 0}'),),
    "forgotten-talk": (("1", "{}"),),
    "turns": (("x", "{}"),),
    "facts": (("x", "{}"),),
    "owners": (("x", "0"),),
    "notices": (("x", "Send money"),),
    "user-conversations": (("x", ""),),
    "session": (
        ("caller", json.dumps(BOSS)),
        ("user_id", "alice"),
        ("pipeline", '{"name": "mine"}'),
        ("holder", "mine"),
    ),
    "sessions": (("x", "0"),),
    "running": (("x", "0"),),
    "run": (("x", "{}"),),
    "user-sessions": (("x", ""),),
    "project": (("x", "{}"),),
    "projects": (("x", "0"),),
    "story": (("x", "{}"),),
    "analysis": (("x", "{}"),),
    "stories": (("x", "0"),),
    "analysing": (("x", "0"),),
    "schedules": (("x", json.dumps({"id": "x", "caller": BOSS})),),
    "webhooks": (("x", json.dumps({"url": "https://mallory", "caller": BOSS})),),
    "request": (("x", '{"state": "done"}'),),
    "user-requests": (("x", "0"),),
    "holdings": (("x", "0"),),
    "budget": (("limits", '{"limits": []}'), ("s", "0"), ("x", "0")),
    "flights": (("x", "tl:flight:{OtherAgent}:x"),),
}

#: Parts of the budgets by what the page calls them.
_BUDGETS = {
    "budget:limits": (("limits",),),
    "budget:history": (("limits", "history"),),
    "budget:admission": (("admission",),),
    "budget:costs": (("costs", "A.b"),),
    "budget:waking": tuple((one,) for one in WAKING),
    "budget": (
        ("calls",),
        ("leases",),
        ("accounts",),
        ("account", "x"),
        ("book", "2026-01-01"),
        ("tree", "x"),
        *((one,) for one in WAITING),
    ),
}


class Resource(NamedTuple):
    """A key that is tried, its *kind*, and what the page calls it for its own agents' role."""

    key: str
    kind: str
    name: str
    agent: str | None = None


def resources() -> Iterator[Resource]:
    """Yield each key that a store declares, for each agent where it belongs to one."""
    for store in STORES:
        for key in store.keys:
            for spelled in key.spelled:
                yield from _samples(spelled.replace("...", "x"))


def _samples(spelled: str) -> Iterator[Resource]:
    kind = spelled.split(":")[1]
    if kind == "budget":
        for name, places in _BUDGETS.items():
            yield from (Resource(keys.budget(*one), kind, name) for one in places)
    elif "{Agent}" in spelled or kind == "run-messages":
        for agent in ("OtherAgent", *itertools.chain(*AGENTS.values())):
            owner = None if kind == "flight" else agent
            key = spelled.replace("{Agent}", f"{{{agent}}}").replace("AGENT", agent)
            yield Resource(key, kind, kind, owner)
    else:
        named = {"doc": ":reads", "ledger": ":{layout}"}.get(kind)
        name = kind
        if named is not None and spelled.endswith(named):
            name = kind + named.replace("{", "").replace("}", "")
        name = "runs:agents" if spelled == keys.run_agents() else name
        yield Resource(spelled, kind, name)


RESOURCES = tuple(dict.fromkeys(resources()))

#: Words of each command on a key: K is the key, F and V are what would profit.
_COMMANDS: dict[str, str] = {
    "get": "K",
    "mget": "K",
    "set": "K V",
    "incr": "K",
    "incrby": "K 1",
    "exists": "K",
    "type": "K",
    "del": "K",
    "unlink": "K",
    "pexpire": "K 600000",
    "persist": "K",
    "pttl": "K",
    "hget": "K F",
    "hmget": "K F",
    "hgetall": "K",
    "hkeys": "K",
    "hlen": "K",
    "hexists": "K F",
    "hset": "K F V",
    "hsetnx": "K F V",
    "hincrby": "K F 1",
    "hdel": "K F",
    "hstrlen": "K F",
    "append": "K V",
    "rename": "K K",
    "strlen": "K",
    "getrange": "K 0 9",
    "lindex": "K 0",
    "llen": "K",
    "lpos": "K V",
    "lrange": "K 0 9",
    "lset": "K 0 V",
    "lpop": "K",
    "lpush": "K V",
    "ltrim": "K 0 9",
    "rpush": "K V",
    "sadd": "K F",
    "srem": "K F",
    "scard": "K",
    "sismember": "K F",
    "smembers": "K",
    "zadd": "K 0 F",
    "zrem": "K F",
    "zremrangebyrank": "K 0 -1",
    "zremrangebyscore": "K -inf +inf",
    "zpopmin": "K",
    "zcard": "K",
    "zcount": "K -inf +inf",
    "zrank": "K F",
    "zscore": "K F",
    "zscan": "K 0",
    "zlexcount": "K - +",
    "zrange": "K 0 -1",
    "zrangebylex": "K - +",
    "zrangebyscore": "K -inf +inf",
    "zrevrange": "K 0 -1",
    "zrevrangebyscore": "K +inf -inf",
    "watch": "K",
    "fcall": "tl_none 1 K F V",
    "fcall_ro": "tl_none 1 K F V",
}
#: Those of them that change nothing.
_READING = {
    *("get", "mget", "exists", "type", "pttl", "hget", "hmget", "hgetall", "hkeys"),
    *("hlen", "hexists", "hstrlen", "strlen", "getrange", "lindex", "llen", "lpos"),
    *("lrange", "scard", "sismember", "smembers", "zcard", "zcount", "zrank"),
    *("zscore", "zscan", "zlexcount", "zrange", "zrangebylex", "zrangebyscore"),
    *("zrevrange", "zrevrangebyscore", "watch", "fcall_ro"),
}
#: Commands of a connection on itself, with which nothing is gained.
_OWN = {
    *("ping", "client|setname", "time", "multi", "exec", "discard", "unwatch"),
    *("subscribe", "unsubscribe"),
}
#: Commands on the server, as the page calls them.
_ON_SERVER = {
    "scan": ("SCAN", "0"),
    "info": ("INFO",),
    "config get": ("CONFIG", "GET", "maxmemory"),
    "bgsave": ("BGSAVE",),
    "bgrewriteaof": ("BGREWRITEAOF",),
    "lastsave": ("LASTSAVE",),
    "client list": ("CLIENT", "LIST"),
    "function kill": ("FUNCTION", "KILL"),
    "script kill": ("SCRIPT", "KILL"),
    "function load": ("FUNCTION", "LOAD", "no library"),
}

#: What somebody would say to profit: each subject that a role publishes to is that of one of these.
MESSAGES: tuple[tuple[str, str], ...] = (
    (subjects.task("OtherAgent", "pay"), ASSIGNMENT),
    (subjects.task("PriceAgent", "price"), ASSIGNMENT),
    ("tasks.~filler.x", ASSIGNMENT),
    ("waiting.OtherAgent.interactive.YWNtZQ.pay", ASSIGNMENT),
    ("waiting.~filler.x", ASSIGNMENT),
    ("waits.OtherAgent", "over"),
    (subjects.schedule("x", 1), ASSIGNMENT),
    (subjects.due("OtherAgent", "pay"), ASSIGNMENT),
    ("due.~filler.x", ASSIGNMENT),
    (subjects.report(SUPERVISOR, "x", 1), REPORT),
    (subjects.report("chat", "x", 1), REPORT),
    (subjects.comparison(subjects.report(SUPERVISOR, "x", 1), "t"), "x"),
    ("reports.~filler.x", REPORT),
    (subjects.progress(SUPERVISOR, "x"), '{"task_id": "x", "percent": 100}'),
    (f"output.{SUPERVISOR}.x.1.1", '{"task_id": "x", "text": "paid"}'),
    ("output.~filler.x", "{}"),
    ("cancel.x", '{"task_id": "x", "reason": "enough"}'),
    ("runs.x", '{"session_id": "x", "state": "completed"}'),
    ("questions.x", '{"task_id": "x", "question": "Your password?"}'),
    (subjects.requests(SUPERVISOR), json.dumps({"text": "pay", "caller": BOSS})),
    (subjects.pipelines(SUPERVISOR), json.dumps({"action": "run", "caller": BOSS})),
    (subjects.analyses(SUPERVISOR), json.dumps({"text": "x", "caller": BOSS})),
    (subjects.operations(SUPERVISOR), HANDED),
    (subjects.operations_left(SUPERVISOR), "x"),
    (
        subjects.approvals(SUPERVISOR, "role:cfo"),
        '{"approval_id": "x.3", "answer": {"approved": true}}',
    ),
    (
        subjects.approvals(SUPERVISOR, "role:finance"),
        '{"approval_id": "x.3", "answer": {"approved": true}}',
    ),
    (subjects.turns("alice"), '{"user_id": "alice", "text": "I am not allergic"}'),
    ("turns.~filler.x", "{}"),
    (subjects.facts("alice"), '{"user_id": "alice", "facts": []}'),
    ("facts.~filler.x", "{}"),
    *(
        (subjects.messages("coins.Alice", sender), '{"message": "Give me your coins"}')
        for sender in ("Alice", "chat", "boss")
    ),
    ("messages.~filler.x", "{}"),
    ("dead.~filler.x", "{}"),
    ("dead.turns.0.YWxpY2U", "{}"),
    ("dead.facts.0.YWxpY2U", "{}"),
    ("dead.messages.0.YQ.YQ", "{}"),
    *(
        message
        for agent in ("OtherAgent", "Pipeline", *itertools.chain(*AGENTS.values()))
        for message in (
            (f"dead.{subjects.task(agent, 'pay')}", "{}"),
            (f"$KV.{subjects.AGENTS_BUCKET}.{agent}", '{"description": "mine"}'),
            (f"$KV.{subjects.WORKERS_BUCKET}.{agent}.w", '{"agent_id": "mine"}'),
        )
    ),
    ("_R_.x.x", "{}"),
    ("_INBOX_operator.x", "{}"),
    ("$SYS.REQ.USER.INFO", ""),
)


class Row(NamedTuple):
    """A row of the page: what *role* *does* to each of *what*."""

    role: str
    does: str
    what: tuple[str, ...]


def rows(heading: str) -> list[Row]:
    """Return the rows of the table on the page whose second column is *heading*, one for each role."""
    text = (ROOT / "docs" / "reference" / "security.md").read_text("utf-8")
    found = []
    begin = text.index(f"| role | {heading} |")
    for line in text[begin:].splitlines()[2:]:
        if not line.startswith("|"):
            break
        role, does, what, gain, holds = (one.strip() for one in line.split("|")[1:6])
        assert gain, line
        assert holds, line
        for path in re.findall(r"`(tests/[^`]+)`", holds):
            assert (ROOT / path).is_file(), path
        names = tuple(re.findall(r"`([^`]+)`", what))
        found += [Row(one, does, names) for one in re.findall(r"`([^`]+)`", role)]
    return found


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Run both servers with the users of the cast."""
    with guarded(tmp_path_factory.mktemp("gains"), CAST) as servers:
        yield servers


async def reached(client: Redis, resource: Resource) -> set[str]:
    """Return whether a role *reads* or *writes* a key, having tried each command with each value that would profit."""
    commands = {"publish": "K V"} if resource.kind == "flights" else _COMMANDS
    levels = set()
    for field, value in PROFITS.get(resource.kind, _ANYTHING):
        put = {"K": resource.key, "F": field, "V": value}
        tried = client.pipeline(transaction=False)
        for command, words in commands.items():
            spelled = (put.get(word, word) for word in words.split())
            tried.pipeline_execute_command(command.upper(), *spelled)
        found = await tried.execute(raise_on_error=False)
        levels |= {
            "reads" if command in _READING else "writes"
            for command, answer in zip(commands, found, strict=True)
            if not isinstance(answer, NoPermissionError)
        }
    return levels


async def takes(client: Redis, words: tuple[str, ...]) -> bool:
    """Return whether the server lets a role give that command, whatever comes of it."""
    try:
        await client.execute_command(*words)
    except NoPermissionError:
        return False
    except ResponseError:
        pass
    return True


def kind_of(name: str) -> str:
    """Return what the page calls a role."""
    if name.startswith("worker-"):
        return "worker"
    return "program" if name in CAST.programs else name


def test_each_kind_of_key_and_each_command_is_tried() -> None:
    """A new one has a row here, and one on the page, or nobody knows what it is worth."""
    assert {one.kind for one in RESOURCES} >= PROFITS.keys()
    declared = {command for role in ROLES.values() for command in role.commands}
    on_server = {name.replace(" ", "|") for name in _ON_SERVER}
    assert declared == {*_COMMANDS, *_OWN, *on_server, "publish"}
    assert _COMMANDS.keys() > _READING


def test_each_subject_of_a_role_is_tried() -> None:
    said = [subject for subject, _ in MESSAGES]
    untried = [
        pattern
        for role in ROLES.values()
        for pattern in role.publish
        if not pattern.startswith(("$JS.API.", "$JS.ACK."))
        and not any(subjects.covers(pattern, subject) for subject in said)
    ]
    assert untried == []


@pytest.mark.parametrize("name", [one for one in ROLES if ROLES[one].has_store])
async def test_a_role_does_at_valkey_what_the_page_says_and_nothing_else(
    name: str, pair: Guarded
) -> None:
    """Each command on each key for real, with all that would profit."""
    done: set[tuple[str, str]] = set()
    async with valkey_as(pair, name) as client:
        for resource in RESOURCES:
            levels = await reached(client, resource)
            is_own = resource.agent is None or resource.agent in AGENTS.get(name, ())
            called = resource.name if is_own else f"{resource.name} of others"
            if levels:
                done.add(("writes" if "writes" in levels else "reads", called))
        done |= {
            ("runs", called)
            for called, words in _ON_SERVER.items()
            if await takes(client, words)
        }
        assert not await takes(client, ("PUBLISH", "elsewhere", "x"))

    told = {
        (row.does, what)
        for row in rows("Valkey permission")
        if row.role == kind_of(name)
        for what in row.what
    }
    if ("writes", "*") in told:
        every = {(does, what) for does, what in done if does == "writes"}
        assert every
        told = (told - {("writes", "*")}) | every
    assert done == told, (
        f"rows of {name} at Valkey, in 'What each role can gain' of docs/reference/security.md: {sorted(done - told)} "
        f"are missing, and no server takes {sorted(told - done)}"
    )


@pytest.mark.parametrize("name", [one for one in ROLES if not ROLES[one].has_store])
async def test_a_role_without_a_store_is_let_in_by_nobody(
    name: str, pair: Guarded
) -> None:
    users = (pair.folder / "users.acl").read_text("utf-8")
    assert f"user {name} " not in users
    assert not (pair.folder / name / "valkey.password").exists()
    assert [row for row in rows("Valkey permission") if row.role == kind_of(name)] == []


@pytest.mark.parametrize("name", ROLES)
async def test_a_role_says_and_hears_at_nats_what_the_page_says_and_nothing_else(
    name: str, pair: Guarded
) -> None:
    role = ROLES[name]
    told = {"says": set[str](), "hears": set[str](), "answers": set[str]()}
    for row in rows("NATS permission"):
        if row.role == kind_of(name):
            for what in row.what:
                told[row.does] |= _filled(what, name)
    # Each right is in a row, and each row is of a right.
    for does, rights in (
        ("says", role.publish),
        ("hears", role.hear),
        ("answers", role.serve),
    ):
        unsaid = [
            one
            for one in rights
            if not any(subjects.covers(row_says, one) for row_says in told[does])
        ]
        untrue = [
            row_says
            for row_says in told[does]
            if not any(subjects.covers(row_says, one) for one in rights)
        ]
        assert (does, unsaid, untrue) == (does, [], [])

    # What the server takes of all that would profit is in a row.
    others = {
        pattern.replace(">", "x").replace("*", "x")
        for one in ROLES.values()
        for pattern in one.publish
        if pattern.startswith("$JS.")
    }
    tried = dict(MESSAGES) | dict.fromkeys(sorted(others), "{}")
    async with trying(pair, name) as (client, refused):
        for subject, body in tried.items():
            reply = f"{inbox_prefix(name)}.x"
            await client.publish(subject, body.encode(), reply=reply)
        for pattern in _EAVESDROPPING:
            await client.subscribe(pattern)
        await spoken(client)
        taken = {
            subject
            for subject in tried
            if subject.lower() not in subjects_of(refused, "publish")
        }
        heard = {
            pattern
            for pattern in _EAVESDROPPING
            if pattern.lower() not in subjects_of(refused, "subscription")
        }
    assert [
        subject
        for subject in sorted(taken)
        if not any(subjects.covers(one, subject) for one in told["says"])
    ] == []
    inbox = f"{inbox_prefix(name)}.>"
    listened = {inbox, *told["hears"], *told["answers"]}
    assert [
        pattern
        for pattern in sorted(heard)
        if not any(subjects.covers(one, pattern) for one in listened)
    ] == []


#: What others say, and are told.
_EAVESDROPPING = (
    ">",
    "tasks.>",
    "waiting.>",
    "due.>",
    "schedules.>",
    "reports.>",
    "reports.*.*.*",
    f"reports.{SUPERVISOR}.>",
    "reports.chat.>",
    "progress.>",
    "output.>",
    "cancel.*",
    "runs.*",
    "questions.*",
    "turns.>",
    "facts.>",
    "messages.>",
    "dead.>",
    "waits.*",
    "$KV.>",
    f"requests.{SUPERVISOR}",
    f"pipelines.{SUPERVISOR}",
    f"analyses.{SUPERVISOR}",
    f"operations.{SUPERVISOR}",
    f"operations.{SUPERVISOR}.left",
    f"approvals.{SUPERVISOR}.*",
    "_INBOX_supervisor.>",
    "_INBOX_operator.>",
    "$JS.API.>",
    "$JS.ACK.>",
)


def _filled(pattern: str, name: str) -> set[str]:
    """Return the subjects of *pattern* for the role *name*, its agents and names in place of what is in braces."""
    own = SUPERVISOR if name == "supervisor" else name
    deployment = name.removeprefix("worker-")
    values = {
        "{self}": [own],
        "{agent}": AGENTS.get(name, ()),
        "{called}": CAST.calls.get(deployment, ()),
        "{speaker}": [user_token(one) for one in CAST.programs.get(name, ())],
        "{person}": [user_token(one) for one in CAST.approvers.get(name, ())],
    }
    if "{" not in pattern:
        return {pattern}
    (mark,) = re.findall(r"\{\w+\}", pattern)
    if mark == "{self}" and name.startswith("worker-") and not values["{called}"]:
        return set()
    return {pattern.replace(mark, value) for value in values[mark]}
