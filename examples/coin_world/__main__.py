"""Run a world of coins: `python -m examples.coin_world --help`."""

import argparse
import asyncio
import contextlib
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import IO

from contracts.errors import InvalidInput, TaskloreError
from examples.coin_world.agents import Agents
from examples.coin_world.recording import Recorder, read_recording
from examples.coin_world.running import Note, Runner
from examples.coin_world.system import asker_of_a_system
from examples.coin_world.world import MOST_AGENTS, Choice, World, names

#: Milliseconds from step to step for whoever watches a page, so that there is something to see.
WATCHED_MS = 500


def main() -> None:
    """Run it; a fault is one line on stderr, Ctrl-C is a quiet end."""
    try:
        asyncio.run(_run(_options()))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)
    except TaskloreError as error:
        sys.exit(str(error))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.coin_world", description=__doc__)
    parser.add_argument("--agents", type=int, default=6, metavar="N", help=f"1 to {MOST_AGENTS} [default: 6]")
    parser.add_argument("--coins", type=int, default=40, metavar="N", help="coins that lie about [default: 40]")
    parser.add_argument("--size", type=int, default=20, metavar="N", help="edge of the world [default: 20]")
    parser.add_argument("--seed", type=int, default=7, metavar="N", help="the same seed, the same world [default: 7]")
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="0: until all coins are gone [default: 0]")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="of the page; 0: any [default: 0]")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the run in FILE")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run again what is kept in FILE; nobody is asked")
    parser.add_argument("--no-page", action="store_true", help="end with the world, and show no page of it")
    options = parser.parse_args()
    if options.steps < 0:
        parser.error(f"--steps is {options.steps}; it is 0 or more")
    if not 0 <= options.port <= 65_535:
        parser.error(f"--port is {options.port}; it goes from 0 to 65535")
    return options


async def _run(options: argparse.Namespace) -> None:
    ours = asyncio.current_task()
    assert ours is not None  # noqa: S101 - a coroutine runs in one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ours.cancel)
    async with _replayed(options) if options.replay else _asked(options) as runner:
        if options.no_page:
            await runner.run()
        else:
            await _shown(runner, options.port)


@contextlib.asynccontextmanager
async def _asked(options: argparse.Namespace) -> AsyncIterator[Runner]:
    """Open a runner that asks agents, and records what they choose where that is wished for."""
    world = World.new(options.seed, names(options.agents), options.size, options.coins)
    with contextlib.ExitStack() as stack:
        notes: list[Note] = [_tell]
        if options.record:
            recorder = Recorder(stack.enter_context(_writable(options.record)), world.plan)
            stack.callback(recorder.close)
            notes.append(recorder.note)
        async with asker_of_a_system() as asker:
            # Every run is one of its own: nobody remembers what was said in another.
            agents = Agents(asker, f"coins-{secrets.token_hex(6)}", tell_prompts=not options.no_page)
            yield Runner(world, agents.decide, notes=notes, steps=options.steps, interval_ms=_interval_ms(options))


@contextlib.asynccontextmanager
async def _replayed(options: argparse.Namespace) -> AsyncIterator[Runner]:
    """Open a runner that goes by a recording."""
    kept = read_recording(options.replay)
    steps = min(options.steps or len(kept.worlds), len(kept.worlds))
    notes: list[Note] = [kept.check, _tell]
    yield Runner(World(kept.plan), kept.decide, notes=notes, steps=steps, interval_ms=_interval_ms(options))


async def _shown(runner: Runner, port: int) -> None:
    """Show a page of the world while it goes, and after, until Ctrl-C."""
    # Only now: without a page nothing needs a web server to be installed.
    from examples.coin_world.server import serving

    try:
        async with serving(runner, port=port) as address:
            _say(f"the world is at {address}; Ctrl-C ends it")
            await runner.run()
            await asyncio.Event().wait()
    except OSError as error:
        raise InvalidInput(
            f"--port {port} cannot be used: {error.strerror}; leave it out for any that is free"
        ) from error


def _interval_ms(options: argparse.Namespace) -> int:
    return 0 if options.no_page else WATCHED_MS


def _writable(path: Path) -> IO[str]:
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"--record: {str(path)!r} cannot be written ({error.strerror}); name another file"
        ) from error


def _tell(world: World, _choices: Mapping[str, Choice | None]) -> None:
    """Say what somebody who watches would like to hear of this step."""
    for name, deed in world.deeds.items():
        choice = deed.choice
        if deed.late or deed.refused:
            _say(f"{world.time:g}s {name} waits: {deed.refused or choice.reasoning}")
        elif choice.action == "collect":
            _say(f"{world.time:g}s {name} has {world.collected(name)}, {world.left} left")
        elif choice.action == "text":
            _say(f"{world.time:g}s {name} to {choice.to}: {choice.said}")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what it says is its output


if __name__ == "__main__":
    main()
