"""Child processes for work that clients choose: each answers a line of JSON with one, and is killed when it does not.

What a client may choose, such as a pattern to compile or a folder to read, has no bound that is known before. So it is
done where memory and processor are limited by the system, and where no other caller waits.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from typing import Any
from weakref import WeakValueDictionary

#: Seconds for a child that was killed to be gone.
_END_S = 1.0


class ChildProcesses:
    """Children that run *module*, *at_once* of them; an answer has at most *longest* bytes."""

    def __init__(self, module: str, *, at_once: int, longest: int) -> None:
        self._module = module
        self._longest = longest
        self._free = asyncio.Semaphore(at_once)
        self._turns: WeakValueDictionary[str | None, asyncio.Lock] = (
            WeakValueDictionary()
        )
        self.idle: list[Process] = []

    async def ask(
        self, job: object, seconds: float, *, whose: str | None
    ) -> dict[str, Any]:
        """Return the answer to *job*, which is JSON; those of *whose* are done one after another.

        Raises:
            TimeoutError: it took longer than *seconds*, or the child ended over it.
        """
        # JSON in ASCII: half of a surrogate pair goes along as it came.
        line = json.dumps(job).encode() + b"\n"
        turn = self._turns.setdefault(whose, asyncio.Lock())
        async with turn, self._free:
            return await self._ask(line, seconds)

    async def close(self) -> None:
        """End the children that wait for work."""
        while self.idle:
            child = self.idle.pop()
            _kill(child)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    await child.wait()

    async def _ask(self, line: bytes, seconds: float) -> dict[str, Any]:
        # One may be gone that waited here: the system ends processes of ours when memory is out.
        self.idle = [one for one in self.idle if one.returncode is None]
        child = self.idle.pop() if self.idle else await self._start()
        asked = child.stdin
        answers = child.stdout
        try:
            async with asyncio.timeout(seconds):
                asked.write(line)  # type: ignore[union-attr]  # it has pipes
                answer: dict[str, Any] = json.loads(await answers.readline())  # type: ignore[union-attr]
        except ValueError as error:
            _kill(child)
            raise TimeoutError from error
        except BaseException:
            _kill(child)
            raise
        self.idle.append(child)
        return answer

    async def _start(self) -> Process:
        # No secret of ours, and no signal of our terminal.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", self._module),
            stdin=PIPE,
            stdout=PIPE,
            env=environment,
            limit=self._longest,
            start_new_session=True,
        )


def _kill(child: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()
