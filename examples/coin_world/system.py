"""A system to ask: the one that runs already, or one of our own that is gone when the world ends."""

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.supervisor.program_client import Asker, asking

#: Under which name this world asks.
NAME = "CoinWorld"
#: Ends a system with whoever started it, however that ends: the kernel closes the pipe that is read here.
_WATCHED = 'exec 3<&0 </dev/null; { read -r _ <&3; kill -TERM -$$; } >/dev/null 2>&1 & exec "$@" 3<&-'
#: Seconds a system may take to start, and to stop.
STARTS_WITHIN_S = 60.0
STOPS_WITHIN_S = 30.0


@contextlib.asynccontextmanager
async def asker_of_a_system() -> AsyncIterator[Asker]:
    """Open an asker of the system that the environment or `tasklore up` names; start one when there is none.

    Raises:
        Unreachable: the system that is named does not answer, or ours does not start.
    """
    async with contextlib.AsyncExitStack() as stack:
        try:
            asker = await stack.enter_async_context(asking(NAME))
        except ConfigurationError:
            nats_url = await stack.enter_async_context(_started())
            asker = await stack.enter_async_context(asking(NAME, nats_url=nats_url))
        yield asker


@contextlib.asynccontextmanager
async def _started() -> AsyncIterator[str]:
    """Run `tasklore up` with the agent of this world, and return the address of its NATS."""
    with tempfile.TemporaryDirectory(prefix="coin-world-") as folder:
        errors = Path(folder) / "errors"
        with errors.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", _WATCHED, "sh"),
                *(sys.executable, "-m", "tasklore", "up"),
                *("--agents", "tasklore.workers.agents.decision", "--data-dir", folder),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                # Ctrl-C is for us: we leave the system before it goes.
                start_new_session=True,
            )
        try:
            await _ready(process, errors)
            found = json.loads((Path(folder) / "endpoints.json").read_text("utf-8"))
            yield str(found["nats"])
        finally:
            await _stop(process)


async def _ready(process: asyncio.subprocess.Process, errors: Path) -> None:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    said = b""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STARTS_WITHIN_S):
            said = await process.stdout.readline()
    if not said.startswith(b"ready "):
        why = await asyncio.to_thread(errors.read_text, "utf-8", "replace")
        raise Unreachable(f"no system starts here: {why.strip() or 'it is silent'}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    process.stdin.close()
    try:
        async with asyncio.timeout(STOPS_WITHIN_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
