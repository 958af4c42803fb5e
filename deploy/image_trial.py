"""Runs a root of the image as a pod would be run, and asks it for one answer."""

import asyncio
import contextlib
import json
import os
import signal
import uuid
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import nats

from tasklore.runtime.servers.claims import HOST, free_port
from tasklore.runtime.servers.embedded import EmbeddedServers

USER_ID = "10001"
#: Seconds until a worker is ready, until its report is there, and until it has left.
_PATIENCE_S = 60.0
_AGENT = "BudgetTrackerAgent"
_TASK = "analyze_budget"
_ASKED = {"budget_limit": 50_000, "spent": 42_000, "history": [5000, 7000, 8000, 6000]}


class Unlike(Exception):
    """The image is not as it should be; says in what."""


async def try_out(root: Path, folder: Path) -> None:
    """Have a worker in *root* answer a task, and see that it cannot write, is 10001, and leaves with 0 on SIGTERM.

    Raises:
        Unlike: one of that is not so.
        TimeoutError: something took over a minute.
    """
    await _demand_confined(root)
    async with (
        EmbeddedServers(folder / "servers") as servers,
        _worker(root, servers) as worker,
    ):
        report = await _await_report(servers.nats_url)
        _demand(report["status"] == "completed", f"the task ended with {report}")
        os.kill(await _first_in(worker), signal.SIGTERM)
        async with asyncio.timeout(_PATIENCE_S):
            status = await worker.wait()
        _demand(status == 0, f"SIGTERM ended the worker with {status}")


async def _demand_confined(root: Path) -> None:
    """Check that the process runs without privileges, and that only /tmp can be written."""
    probe = (
        "import os, json\n"
        "def writes(path):\n"
        "    try: open(path, 'w').close()\n"
        "    except OSError: return False\n"
        "    return True\n"
        "status = open('/proc/self/status').read()\n"
        "caps = next(l.split()[1] for l in status.splitlines() if l.startswith('CapEff'))\n"
        "places = [p for p in ('/x', '/app/x', '/opt/tasklore/x', '/etc/x', '/tmp/x') if writes(p)]\n"
        "print(json.dumps([os.getuid(), os.getgid(), int(caps, 16), places]))\n"
    )
    process = await asyncio.create_subprocess_exec(
        *_options_of(root),
        "/opt/tasklore/bin/python",
        "-c",
        probe,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(_PATIENCE_S):
        said, _ = await process.communicate()
    wanted = [int(USER_ID), int(USER_ID), 0, ["/tmp/x"]]  # noqa: S108 - its own
    _demand(
        json.loads(said) == wanted,
        f"user, group, capabilities and places to write are {said!r}, wanted {wanted}",
    )


@contextlib.asynccontextmanager
async def _worker(root: Path, servers: EmbeddedServers) -> AsyncIterator[Process]:
    """Run a worker in *root*, as what the image starts with."""
    settings = {
        "TASKLORE_NATS_URL": servers.nats_url,
        "TASKLORE_REDIS_URL": servers.redis_url,
        "TASKLORE_HTTP_PORT": str(free_port()),
        "TASKLORE_HTTP_HOST": HOST,
        "TASKLORE_GRACE_S": "20",
    }
    words = [
        word for name, value in settings.items() for word in ("--setenv", name, value)
    ]
    process = await asyncio.create_subprocess_exec(
        *_options_of(root, *words),
        "tasklore",
        "worker",
        "budget",
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        _demand(process.stdout is not None, "the worker has no output")
        async with asyncio.timeout(_PATIENCE_S):
            line = await process.stdout.readline() if process.stdout else b""
        _demand(
            line.startswith(b"ready http="),
            f"the worker said {line!r} instead of being ready",
        )
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _options_of(root: Path, *more: str) -> list[str]:
    """Return the command of a container as a pod runs it: only /tmp is writable, no privileges, no other processes."""
    return [
        *(
            "bwrap",
            "--ro-bind",
            str(root),
            "/",
            "--tmpfs",
            "/tmp",  # noqa: S108
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        ),
        *(
            "--unshare-all",
            "--share-net",
            "--uid",
            USER_ID,
            "--gid",
            USER_ID,
            "--cap-drop",
            "ALL",
            "--clearenv",
        ),
        *(
            "--setenv",
            "PATH",
            "/opt/tasklore/bin:/usr/bin:/bin",
            "--setenv",
            "PYTHONUNBUFFERED",
            "1",
        ),
        *("--chdir", "/app", "--die-with-parent", "--as-pid-1", *more, "--"),
    ]


async def _first_in(process: Process) -> int:
    """Return the process that is number one inside: bubblewrap stays outside and passes no signal on."""
    file = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    children = (await asyncio.to_thread(file.read_text)).split()
    _demand(len(children) == 1, f"bwrap has {len(children)} children")
    return int(children[0])


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Unlike(otherwise)


async def _await_report(url: str) -> dict[str, object]:
    """Return the report on one task, sent as any program would send it."""
    task_id = str(uuid.uuid4())
    supervisor_id = f"Trial-{uuid.uuid4().hex[:8]}"
    assignment = {
        "schema_version": 1,
        "task_id": task_id,
        "agent_id": _AGENT,
        "supervisor_id": supervisor_id,
        "task": {"name": _TASK, "parameters": _ASKED},
        "created_at": datetime.now(UTC).isoformat(),
    }
    async with asyncio.timeout(_PATIENCE_S):
        client = await nats.connect(url)
        try:
            reports = await client.subscribe(f"reports.{supervisor_id}.>")
            await client.request(
                f"tasks.{_AGENT}.{_TASK}",
                json.dumps(assignment).encode(),
                timeout=_PATIENCE_S,
            )
            message = await reports.next_msg(timeout=_PATIENCE_S)
            return dict(json.loads(message.data))
        finally:
            await client.close()
