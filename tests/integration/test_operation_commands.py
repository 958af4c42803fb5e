"""Commands of operations against the API on real servers, over TLS and with keys: what a person types and sees."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from redis.asyncio import Redis

from deploy.credentials import make_certificates
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.server import demand_tls
from tests.integration.http_stand import http_stand

Run = Callable[..., Awaitable["subprocess.CompletedProcess[str]"]]


@pytest.fixture
async def tasklore(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[Run]:
    """Return a function that runs a command with the key of shop, or another one, and returns its end."""
    certificates = tmp_path / "tls"
    make_certificates(certificates)
    tls = demand_tls(certificates / "nats.crt", certificates / "nats.key")
    file = tmp_path / "keys.json"
    keys = {
        "shop": make_key(file, "shop", ("ask",), None),
        "reader": make_key(file, "reader", ("read",), None),
        "stranger": "tl-unknown",
    }
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TASKLORE_")
    }
    async with http_stand(servers, redis, tls=tls, keys=KeyRing(file)) as stand:

        async def run(
            *words: str, key: str = "shop"
        ) -> "subprocess.CompletedProcess[str]":
            environ = ours | {
                "TASKLORE_API_URL": stand.url,
                "TASKLORE_API_KEY": keys[key],
                "TASKLORE_API_CA_FILE": str(certificates / "ca.crt"),
            }
            return await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-m", "tasklore", *words],
                env=environ,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
            )

        yield run


async def test_a_schedule_is_added_seen_and_removed(tasklore: Run) -> None:
    add = (
        "schedules",
        "add",
        "EchoAgent",
        "echo",
        "-p",
        "word=hi",
        "--every",
        "6h",
        "--id",
        "nightly",
    )
    unasked = await tasklore(*add)
    assert (unasked.returncode, unasked.stderr) == (
        2,
        "tasklore: not a terminal: pass --yes to confirm\n",
    )
    assert unasked.stdout.startswith("id            nightly\n")
    assert (await tasklore("schedules", "list")).stdout == "There are no schedules.\n"
    kept = await tasklore(*add, "--yes", "--json")
    assert (kept.returncode, kept.stderr) == (0, "")
    assert json.loads(kept.stdout)["parameters"] == {"word": "hi"}
    listed = await tasklore("schedules", "list", "--limit", "500")
    assert listed.stdout.splitlines()[1].split()[:2] == ["nightly", "EchoAgent.echo"]
    paused = await tasklore("schedules", "pause", "nightly")
    assert "paused        yes\n" in paused.stdout
    assert (await tasklore("schedules", "remove", "nightly")).returncode == 0
    gone = await tasklore("schedules", "show", "nightly")
    assert (gone.returncode, gone.stderr) == (
        2,
        "tasklore: there is no schedule 'nightly'; `tasklore schedules list` lists them\n",
    )


async def test_refusals_name_the_option_and_the_right(tasklore: Run) -> None:
    odd = await tasklore("schedules", "add", "EchoAgent", "echo", "--every", "soon", "-y")  # fmt: skip
    assert odd.returncode == 2
    assert odd.stderr.startswith("tasklore: --every: must be a span of time")
    many = await tasklore("schedules", "list", "--limit", "0")
    assert many.returncode == 2
    assert many.stderr.startswith("tasklore: --limit: must be")
    forbidden = await tasklore("schedules", "list", key="reader")
    assert forbidden.returncode == 2
    assert "this needs a key with the role 'ask'" in forbidden.stderr
    unknown = await tasklore("schedules", "list", key="stranger")
    assert unknown.returncode == 2
    assert unknown.stderr.endswith("correct TASKLORE_API_KEY\n")


async def test_a_plain_request_prints_what_the_api_says(tasklore: Run) -> None:
    done = await tasklore("api", "GET", "/v1/schedules", "--query", "limit=1")
    assert (done.returncode, done.stdout) == (0, '{"schedules":[],"after":null}\n')
