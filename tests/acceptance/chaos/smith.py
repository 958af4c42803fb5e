"""Whoever gives the forge its orders: lights it, has workers forked, and hears of their beginnings and deaths."""

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from tasklore.runtime.servers.child import GUARDED
from tests.acceptance.chaos.forged import PATIENCE_S, Forged
from tests.acceptance.chaos.history import History
from tests.acceptance.system import ROOT


class Smith:
    """A forge in an `async with`; at its end, and when this process dies, everything that it forked is killed.

    Args:
        references: The agents that its workers serve, as `tasklore worker` takes them.
        folder: Where the forge and its workers write their logs.
        forge: The module to run as the forge.
    """

    def __init__(
        self,
        references: Sequence[str],
        folder: Path,
        forge: str = "tests.acceptance.chaos.forge",
    ) -> None:
        self._module = forge
        self._references = references
        self.folder = folder
        self._tickets = itertools.count()
        self._ordered: dict[int, tuple[asyncio.Future[Forged], History]] = {}
        self._forged: dict[int, Forged] = {}
        self._early: set[int] = set()
        self._unread = b""

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        loop = asyncio.get_running_loop()
        self._lit: asyncio.Future[None] = loop.create_future()
        orders, self._orders = os.pipe()
        with (self.folder / "forge.log").open("ab") as log:
            self._forge = self._light(orders, log)
        os.close(orders)
        assert self._forge.stdout is not None
        self._answers = self._forge.stdout.fileno()
        loop.add_reader(self._answers, self._hear)
        async with asyncio.timeout(PATIENCE_S):
            await self._lit
        return self

    async def __aexit__(self, *_exit: object) -> None:
        asyncio.get_running_loop().remove_reader(self._answers)
        os.close(self._orders)
        assert self._forge.stdin is not None
        # The end of this pipe makes the guard kill the forge and all that it forked, also what is stopped.
        self._forge.stdin.close()
        await asyncio.to_thread(self._forge.wait, PATIENCE_S)
        assert self._forge.stdout is not None
        self._forge.stdout.close()

    @property
    def pid(self) -> int:
        """The forge's process id."""
        return self._forge.pid

    async def fork(
        self, environment: Mapping[str, str], history: History, deed: str = ""
    ) -> Forged:
        """Return a worker with the settings *environment*, which takes tasks a moment later.

        *deed* is what it does against the rules, see `sabotage`.
        """
        ticket = next(self._tickets)
        forged: asyncio.Future[Forged] = asyncio.get_running_loop().create_future()
        self._ordered[ticket] = forged, history
        log = str(self.folder / f"worker-{ticket}.log")
        order = {
            "ticket": ticket,
            "environment": dict(environment),
            "log": log,
            "sabotage": deed,
        }
        os.write(self._orders, json.dumps(order).encode() + b"\n")
        async with asyncio.timeout(PATIENCE_S):
            return await forged

    def _light(self, orders: int, log: IO[bytes]) -> "subprocess.Popen[bytes]":
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TASKLORE_")
        }
        command = [sys.executable, "-m", self._module, str(orders), *self._references]
        return subprocess.Popen(
            ["/bin/sh", "-c", GUARDED, "sh", *command],
            cwd=ROOT,
            env={**inherited, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=(orders,),
            start_new_session=True,
        )

    def _hear(self) -> None:
        chunk = os.read(self._answers, 65_536)
        if not chunk:
            self._notice_end()
            return
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, answer: dict[str, Any]) -> None:
        if "forge" in answer:
            self._lit.set_result(None)
        elif "forked" in answer:
            pid = answer["forked"]
            waiting, history = self._ordered.pop(answer["ticket"])
            forged = self._forged[pid] = Forged(pid, history)
            if pid in self._early:
                self._early.remove(pid)
                forged.note_ready()
            if not waiting.done():
                waiting.set_result(forged)
        elif "ready" in answer:
            known = self._forged.get(answer["ready"])
            if known is None:
                # It was quicker than the forge that tells of it.
                self._early.add(answer["ready"])
            else:
                known.note_ready()
        else:
            self._forged.pop(answer["died"]).note_death(answer["status"])

    def _notice_end(self) -> None:
        """Tell everybody who waits that the forge is no more."""
        asyncio.get_running_loop().remove_reader(self._answers)
        ended = RuntimeError(
            f"the forge ended; its log: {(self.folder / 'forge.log').read_text(errors='replace')}"
        )
        waiters: list[asyncio.Future[Any]] = [
            self._lit,
            *(forged for forged, _ in self._ordered.values()),
        ]
        for waiting in waiters:
            if not waiting.done():
                waiting.set_exception(ended)
