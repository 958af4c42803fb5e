"""Other task queues on the same task: each in one worker process on Valkey, its result seen by the producer."""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from redis.asyncio import Redis

from benchmarks.processes import ROOT, NotMeasuredError, Worker, running
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile

REQUIREMENTS = ROOT / "requirements" / "peers.txt"
#: arq refuses the redis client that the newest releases of the others need; sharing pins would age them all.
ARQ_REQUIREMENTS = ROOT / "benchmarks" / "peers" / "arq.txt"
VENVS = ROOT / "benchmarks" / ".peers"
#: The numbered database that peers have for themselves; emptied before each.
DATABASE = 9
PATIENCE_S = 180.0
LOOK_S = 0.02
#: Results looked for in one request while waiting.
WINDOW = 500


@dataclass(frozen=True)
class Peer:
    """A contestant: the distributions whose versions the table names, and how its one worker process is started.

    `requirements` are the hashed pins of its venv, which peers with the same pins share.
    """

    name: str
    distributions: tuple[str, ...]
    module: str
    worker: str
    how: str
    requirements: Path = REQUIREMENTS
    environment: tuple[tuple[str, str], ...] = ()

    def program(self, name: str) -> str:
        """Return the path of a program in the peer's venv."""
        return str(program(self.requirements, name))


PEERS = (
    Peer(
        "taskiq-redis",
        ("taskiq", "taskiq-redis"),
        "benchmarks.peers.taskiq_app",
        "taskiq worker benchmarks.peers.taskiq_app:broker --workers 1 --max-async-tasks 200 --log-level WARNING",
        "stream broker, 200 tasks at once, uvloop",
    ),
    Peer(
        "arq",
        ("arq",),
        "benchmarks.peers.arq_app",
        "arq benchmarks.peers.arq_app.WorkerSettings --custom-log-dict benchmarks.peers.quiet.LOGGING",
        "400 jobs at once, poll 1 ms (default 500), uvloop",
        ARQ_REQUIREMENTS,
    ),
    Peer(
        "dramatiq",
        ("dramatiq",),
        "benchmarks.peers.dramatiq_app",
        "dramatiq benchmarks.peers.dramatiq_app --processes 1 --threads 4 --skip-logging",
        "1 process, 4 threads, prefetch 200 (its default of 2 a thread starves them)",
        environment=(("dramatiq_queue_prefetch", "200"),),
    ),
    Peer(
        "celery",
        ("celery",),
        "benchmarks.peers.celery_app",
        "celery -A benchmarks.peers.celery_app worker --pool solo --concurrency 1 "
        "--without-gossip --without-mingle --without-heartbeat --loglevel WARNING",
        "pool solo (fastest of solo, prefork 1, threads), late ack, prefetch 64",
    ),
)


async def measure(redis_url: str, profile: Profile) -> list[Row]:
    """Return a row a peer; one that cannot be installed or run says why."""
    url = urlsplit(redis_url)._replace(path=f"/{DATABASE}").geturl()
    rows = []
    for peer in PEERS:
        try:
            await asyncio.to_thread(install, peer.requirements)
            rows.append(await _measure_one(peer, url, profile))
        except (NotMeasuredError, TimeoutError) as error:
            rows.append(missing(peer.name, str(error) or "no answer in time"))
    return rows


def _venv(requirements: Path) -> Path:
    return VENVS / requirements.stem


def program(requirements: Path, name: str) -> Path:
    """Return the path of a program in the venv of these requirements."""
    return _venv(requirements) / "bin" / name


def install(requirements: Path) -> None:
    """Build the venv of these pinned requirements, unless it was built from exactly these.

    Raises:
        NotMeasuredError: the venv cannot be made or a distribution not be had.
    """
    venv = _venv(requirements)
    stamp = venv / "built-from"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(venv, ignore_errors=True)
    pip = [
        str(venv / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--require-hashes",
        "-r",
        str(requirements),
    ]
    for command in ([sys.executable, "-m", "venv", str(venv)], pip):
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise NotMeasuredError(f"peers cannot be installed: {last[-160:]}")
    stamp.write_text(wanted)


async def _measure_one(peer: Peer, url: str, profile: Profile) -> Row:
    runs = [
        await _empty_queue(peer, url, profile.peer_tasks) for _ in range(profile.rounds)
    ]
    async with _emptied(url), _worker(peer, url):
        warmed = profile.peer_questions // 10
        times = json.loads(
            await _call(peer, url, "latency", warmed + profile.peer_questions)
        )[warmed:]
    speeds = [speed for speed, _ in runs]
    return Row(
        f"{peer.name} ({await _versions(peer)})",
        tasks_per_s=median(speeds),
        cpu_us=median(cpu_us for _, cpu_us in runs),
        p50_ms=percentile(times, 0.5),
        p99_ms=percentile(times, 0.99),
        how=f"Valkey; {peer.how}; {min(speeds):,.0f} to {max(speeds):,.0f}/s",
    )


async def _empty_queue(peer: Peer, url: str, count: int) -> tuple[float, float]:
    """Fill the queue, start one worker; return tasks a second and CPU microseconds a task after the warm-up."""
    warm_up = count // 5
    async with _emptied(url) as redis:
        keys = json.loads(await _call(peer, url, "enqueue", warm_up + count))
        async with _worker(peer, url) as worker, asyncio.timeout(PATIENCE_S):
            first, started, cpu_before = await _reach(redis, worker, keys, warm_up)
            last, ended, cpu_after = await _reach(redis, worker, keys, len(keys))
    measured = last - first
    return measured / (ended - started), (cpu_after - cpu_before) * 1e6 / measured


@contextlib.asynccontextmanager
async def _emptied(url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(url, socket_timeout=10) as redis:
        await redis.flushdb()
        yield redis


@contextlib.asynccontextmanager
async def _worker(peer: Peer, url: str) -> AsyncIterator[Worker]:
    name, *arguments = peer.worker.split()
    command = (peer.program(name), *arguments)
    async with running(
        command, {"BENCH_REDIS_URL": url, **dict(peer.environment)}
    ) as worker:
        yield worker


async def _reach(
    redis: Redis, worker: Worker, keys: list[str], target: int
) -> tuple[int, float, float]:
    """Wait until *target* results exist; return how many do, when, and the worker's CPU seconds.

    Results come nearly in order, so a window that moves along the keys sees all but the last few.
    """
    complete = 0
    while True:
        window = keys[complete : complete + WINDOW]
        present = await redis.exists(*window) if window else 0
        if complete + present >= target:
            return complete + present, time.perf_counter(), worker.cpu_s()
        if present == len(window):
            complete += present
            continue
        worker.ensure_running()
        await asyncio.sleep(LOOK_S)


async def _call(peer: Peer, url: str, command: str, count: int) -> bytes:
    """Run the peer's application as the producer and return what it prints."""
    process = await asyncio.create_subprocess_exec(
        *(peer.program("python"), "-m", peer.module, command, str(count)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BENCH_REDIS_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            printed, complaints = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise NotMeasuredError(
            f"{command} did not end within {PATIENCE_S:.0f} s"
        ) from None
    if process.returncode:
        last = (
            complaints.decode(errors="replace").strip().splitlines() or ["no message"]
        )[-1]
        raise NotMeasuredError(f"{command} failed: {last[-160:]}")
    return printed


async def _versions(peer: Peer) -> str:
    """Return the installed versions, joined by a plus."""
    script = "import importlib.metadata as m, sys; print(' + '.join(m.version(name) for name in sys.argv[1:]))"
    process = await asyncio.create_subprocess_exec(
        peer.program("python"),
        "-c",
        script,
        *peer.distributions,
        stdout=subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    return printed.decode().strip()
