"""Run a world of coins: `python -m examples.coin_world --help`."""

import asyncio
import contextlib
import errno
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable
from typing import NoReturn

from examples.coin_world.agents import Agents, Asks, OverNats, demand_worker
from examples.coin_world.options import Options, read_options
from examples.coin_world.over_http import KEY_VARIABLE, OverHttp
from examples.coin_world.recording import Recorder
from examples.coin_world.replaying import read_recording
from examples.coin_world.running import Note, Runner
from examples.coin_world.system import asker_of_a_system
from examples.coin_world.telling import plain, say, tell, warn
from examples.coin_world.world import World
from tasklore.contracts.errors import InvalidInput, TaskloreError

#: Milliseconds from step to step for whoever watches a page, so that there is something to see.
WATCHED_MS = 500


def main() -> None:
    """Run it; a fault is one line on stderr, Ctrl-C and a reader that heard enough are quiet ends."""
    try:
        asyncio.run(_run(read_options()))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)
    except TaskloreError as error:
        sys.exit(plain(str(error)))
    except OSError as error:
        _end_without_output(error)


def _end_without_output(error: OSError) -> NoReturn:
    """End as a program does whose output nobody takes; what else went wrong is raised again."""
    if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF):
        raise error
    # The interpreter shall not complain of it once more while it closes its output.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        sys.exit(128 + signal.SIGPIPE)
    sys.exit(f"the output cannot be written: {error.strerror}")


async def _run(options: Options) -> None:
    ours = asyncio.current_task()
    assert ours is not None  # noqa: S101 - a coroutine runs in one
    for number in (signal.SIGINT, signal.SIGTERM):
        # Also where it was started in the background of a script, which has it ignored.
        asyncio.get_running_loop().add_signal_handler(number, ours.cancel)
    async with _replayed(options) if options.replay else _asked(options) as runner:
        if options.has_page:
            await _shown(runner, options.port)
        else:
            await runner.run()


@contextlib.asynccontextmanager
async def _asked(options: Options) -> AsyncIterator[Runner]:
    """Open a runner that asks agents, and records what they choose where that is wished for."""
    # Kept before it is told: whoever hears of a step finds it in the recording.
    notes = list[Note]()
    ends = list[Callable[[], None]]()
    if options.record:
        recorder = Recorder(options.record, options.plan)
        notes.append(recorder.note)
        ends.append(recorder.close)
    async with _way(options) as way:
        # Every run is one of its own: nobody remembers what was said in another.
        agents = Agents(
            way, f"coins-{secrets.token_hex(6)}", tell_prompts=options.has_page
        )
        yield Runner(
            World(options.plan),
            agents.decide,
            notes=[*notes, tell],
            ends=ends,
            steps=options.steps,
            interval_ms=_interval_ms(options),
        )


@contextlib.asynccontextmanager
async def _way(options: Options) -> AsyncIterator[Asks]:
    """Open the way to the agents: the API that is named, or the system that runs, or one of our own."""
    if options.api is not None:
        yield OverHttp(options.api, os.environ.get(KEY_VARIABLE, ""))
        return
    async with asker_of_a_system() as asker:
        await demand_worker(asker)
        yield OverNats(asker)


@contextlib.asynccontextmanager
async def _replayed(options: Options) -> AsyncIterator[Runner]:
    """Open a runner that goes by a recording."""
    assert options.replay is not None  # noqa: S101 - whoever calls has looked
    kept = read_recording(options.replay)
    if kept.unfinished:
        warn(kept.unfinished)
    steps = min(options.steps or len(kept.worlds), len(kept.worlds))
    notes: list[Note] = [kept.check, tell]
    yield Runner(
        World(kept.plan),
        kept.decide,
        notes=notes,
        steps=steps,
        interval_ms=_interval_ms(options),
    )


async def _shown(runner: Runner, port: int) -> None:
    """Show a page of the world while it goes, and after, until Ctrl-C."""
    # Only now: without a page nothing needs a web server to be installed.
    from examples.coin_world.server import serving

    async with contextlib.AsyncExitStack() as stack:
        try:
            address = await stack.enter_async_context(serving(runner, port=port))
        except OSError as error:
            msg = f"--port {port} cannot be used: {error.strerror}; leave it out for any that is free"
            raise InvalidInput(msg) from error
        say(f"the world is at {address} (Ctrl-C ends it)")
        await runner.run()
        await asyncio.Event().wait()


def _interval_ms(options: Options) -> int:
    return WATCHED_MS if options.has_page else 0


if __name__ == "__main__":
    main()
