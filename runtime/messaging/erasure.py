"""What people said is removed from the files of a stream, and not only from its counts.

An acknowledged message is out of reach, but its bytes lie in the stream's files until nothing else waits in the same
file, or more than half of that file is such remains. Two things are done about that, when a user is to be forgotten:

- `Eraser.erase` and its relatives overwrite messages that are still stored. The server writes a whole file anew for
  each and waits for the disk, with the stream locked: some 100 a second, and publishers wait meanwhile. Hence it is
  done for those that a forgotten person left waiting, and not in place of every acknowledgement.
- `Eraser.turn_over` has the server begin new files and drop the remains from the old ones.

In a cluster the nodes also log what they agree on, messages included, and an erasure leaves those logs as they are.
Nodes shorten them once they are longer than 8 MiB, as they are after a turn-over.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import nats.errors

from tasklore.contracts.errors import Unreachable
from tasklore.runtime.messaging.direct import Line, Stored, client_of, open_direct_reads
from tasklore.runtime.messaging.jetstream import (
    API_S,
    ClusterPatience,
    JetStreamRefused,
)

#: Seconds for one request; an erasure takes up to 0.1 s of a busy disk, and a cluster may elect a leader meanwhile.
DEADLINE_S = 10.0
#: Erasures under way at once: the server does one after the other, and whoever publishes there waits behind them.
IN_FLIGHT = 4
#: Times that a subject is read through: whatever arrived during one pass is found by the next.
PASSES = 5
#: Bytes and number of the messages that fill a file up, and the log of a cluster's node: both are 8 MiB at most.
_FILLER_BYTES = 900 * 1024
_FILLERS = 10

#: The server's codes for a sequence of which nothing is left, and for one that it cannot erase, with its words when
#: that is because there never was such a message.
_NOT_FOUND = 10043
_NOT_DELETED = 10057
_NEVER_WAS = {"stream store EOF", "no message found"}


class ErasedMessages(NamedTuple):
    """How many messages were erased, and how many were away already."""

    erased: int
    gone: int

    def __add__(self, other: object) -> "ErasedMessages":
        """Return the sums."""
        if not isinstance(other, ErasedMessages):
            return NotImplemented
        return ErasedMessages(self.erased + other.erased, self.gone + other.gone)


def is_gone(error: JetStreamRefused) -> bool:
    """Return whether *error* says that a message to be deleted is away already, or never was."""
    return error.err_code == _NOT_FOUND or (
        error.err_code == _NOT_DELETED and error.description in _NEVER_WAS
    )


def _everything(_message: Stored) -> bool:
    return True


class Eraser:
    """Erases stored messages, on *line*; a request may take *deadline_s* seconds.

    A number is only worth what its stream is: of one that was deleted and made anew it may be another's message.
    """

    def __init__(self, line: Line, *, deadline_s: float = DEADLINE_S) -> None:
        self._line = line
        self._client = client_of(line)
        self._deadline_s = deadline_s

    async def erase(self, stream: str, sequence: int) -> bool:
        """Overwrite message *sequence* and return True; False when it is away already, as after it was acknowledged.

        A message that is under way to a consumer counts as acknowledged by this: it is not offered again, and a word
        on it does no harm. Its message id is still swallowed for the duplicate window, or until the server restarts.
        False may also mean that a first try erased it, whose answer was lost.

        Raises:
            JetStreamRefused: there is no such stream, or its disk fails.
            Unreachable: no answer in time.
        """
        return await self._delete(stream, sequence)

    async def _delete(
        self, stream: str, sequence: int, *, no_erase: bool = False
    ) -> bool:
        try:
            await self._ask(
                f"STREAM.MSG.DELETE.{stream}", {"seq": sequence, "no_erase": no_erase}
            )
        except JetStreamRefused as error:
            if is_gone(error):
                return False
            raise
        return True

    async def erase_many(self, stream: str, sequences: Iterable[int]) -> ErasedMessages:
        """Do `erase` for each of *sequences*, several at once; raises as it does, and some may be erased then."""
        left = iter(sequences)
        total = ErasedMessages(0, 0)
        while batch := list(islice(left, IN_FLIGHT)):
            # All are waited for, also when one fails: none is erased behind the caller's back.
            done = await asyncio.gather(
                *(self.erase(stream, one) for one in batch), return_exceptions=True
            )
            for result in done:
                if isinstance(result, BaseException):
                    raise result
            total += ErasedMessages(done.count(True), done.count(False))
        return total

    async def erase_by_subject(
        self, stream: str, subject: str, wanted: Callable[[Stored], bool] = _everything
    ) -> ErasedMessages:
        """Erase all that is stored on *subject*, which may have wildcards, as far as it is *wanted*.

        What arrives meanwhile is erased too, unless it never ends.

        Raises:
            JetStreamRefused: the disk fails.
            Unreachable: no answer in time, or no stream of that name that allows direct reads.
        """
        total = ErasedMessages(0, 0)
        async with open_direct_reads(self._line, stream) as reads:
            for _ in range(PASSES):
                found = ErasedMessages(0, 0)
                async for page in reads.pages(subject):
                    found += await self.erase_many(
                        stream, [one.sequence for one in page if wanted(one)]
                    )
                total += found
                if not found.erased:
                    break
        return total

    async def turn_over(self, stream: str, filler_subject: str) -> int:
        """Have the server drop acknowledged messages from its files; return how many messages wait.

        With 0 nothing of it is left. While others wait, remains may stay in a file of which these are the greater
        part, until they are acknowledged as well: then do it again. Some 9 MB are written beneath *filler_subject*,
        which belongs to *stream* and to none of its consumers, and deleted.

        Raises:
            JetStreamRefused: there is no such stream, or no room in it.
            Unreachable: no answer in time.
        """
        # What was left behind by somebody who was killed here.
        await self._ask(f"STREAM.PURGE.{stream}", {"filter": f"{filler_subject}.>"})
        info = await self._ask(f"STREAM.INFO.{stream}")
        state = info["state"]
        if not state["messages"] and info["config"]["num_replicas"] == 1:
            # A file in which nothing waits any more was removed at once, and nobody keeps a log.
            return 0
        # Each on a subject of its own: a stream may hold one message a subject, and somebody else may be at it too.
        fillers = [
            await self._fill(f"{filler_subject}.{os.urandom(8).hex()}")
            for _ in range(_FILLERS)
        ]
        for filler in fillers:
            # One after the other, and in the old file: each lets the server look whether writing it anew pays.
            # Somebody else who turns it over may have cleared it already.
            await self._delete(stream, filler, no_erase=True)
        after = (await self._ask(f"STREAM.INFO.{stream}"))["state"]
        return int(after["messages"]) if after["first_seq"] <= state["last_seq"] else 0

    async def _ask(self, call: str, body: Any = None) -> dict[str, Any]:
        return await ClusterPatience(self._client, self._deadline_s).ask(call, body)

    async def _fill(self, subject: str) -> int:
        """Store what nothing can be made of, and return its number."""
        try:
            async with asyncio.timeout(self._deadline_s):
                answer = await self._client.request(
                    subject, os.urandom(_FILLER_BYTES), timeout=API_S
                )
        except (TimeoutError, OSError, nats.errors.Error) as error:
            msg = f"the NATS server did not store anything on {subject!r} within {API_S:g} s; try again"
            raise Unreachable(msg) from error
        stored = json.loads(answer.data)
        if problem := stored.get("error"):
            raise JetStreamRefused(
                subject,
                problem.get("code", 0),
                problem.get("err_code", 0),
                problem["description"],
            )
        return int(stored["seq"])
