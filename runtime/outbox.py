"""Publishing to streams, many letters at once, each repeated under one message id until it is durably stored."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from contracts.errors import MessageTooLarge, NotAccepted
from contracts.subjects import MAX_BODY, MAX_SUBJECT, MESSAGE_ID_HEADER
from runtime.link import Arrival, Link, read_headers

log = structlog.get_logger(__name__)

#: Seconds to wait for the server's word before a letter is sent again under the same id.
ANSWER_S = 2.0
#: Seconds to go on trying: under the stream's duplicate window of 5 min, so that a repeat is never a second message.
PATIENCE_S = 240.0
#: Seconds between looks at what waits; the longest pause before a repeat.
_SWEEP_S = 0.25
#: Longest pause between two repeats of a letter, in seconds.
_PAUSE_CAP_S = 5.0

_ALREADY_THERE = "maximum messages per subject"

Settled = Callable[[NotAccepted | None], None]


class OutboxMeter(Protocol):
    """What an outbox counts."""

    def count_publish_retry(self) -> None:
        """Note that a letter was sent again."""


class _NoMeter:
    def count_publish_retry(self) -> None:
        """Count nothing."""


@dataclass(slots=True)
class _Letter:
    subject: str
    body: bytes
    headers: str
    settled: Settled
    gives_up_at: float
    next_try_at: float = 0.0
    tries: int = 0
    problem: str = field(default="the server did not answer")


class Outbox:
    """The one way to put a message into a stream; opened with `open_outbox`.

    A letter is stored, was stored before (a repeat, or a subject that takes one message only), or is given up.
    """

    def __init__(self, link: Link, meter: OutboxMeter | None = None, patience_s: float = PATIENCE_S) -> None:
        self._link = link
        self._meter = meter or _NoMeter()
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self.answers = link.new_inbox()
        self._letters: dict[str, _Letter] = {}
        self._count = 0
        self._emptied = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Letters that are not yet known to be stored."""
        return len(self._letters)

    def send(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        settled: Settled,
        *,
        headers: Mapping[str, str] | None = None,
        patience_s: float | None = None,
    ) -> None:
        """Publish *body* and return at once; *settled* is called with None when it is stored, else with the reason.

        It is given up after *patience_s* seconds; None is the outbox's own patience.

        Raises:
            MessageTooLarge: *body* has more than 960 KiB, or *subject* more than 2 KiB.
        """
        if len(body) > MAX_BODY:
            msg = f"a message of {len(body)} bytes for {subject!r} is larger than {MAX_BODY}; send a reference instead"
            raise MessageTooLarge(msg)
        if len(subject) > 2 * MAX_SUBJECT:
            msg = f"a subject of {len(subject)} characters is too long for the server; name things shorter"
            raise MessageTooLarge(msg)
        lines = f"{MESSAGE_ID_HEADER}: {message_id}\r\n"
        if headers:
            lines += "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        self._count += 1
        token = str(self._count)
        gives_up_at = self._loop.time() + (self._patience_s if patience_s is None else patience_s)
        letter = _Letter(subject, body, lines, settled, gives_up_at)
        # What cannot even be written raises here, before anybody waits for it.
        self._publish(token, letter)
        self._letters[token] = letter

    async def put(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        *,
        headers: Mapping[str, str] | None = None,
        patience_s: float = 10.0,
    ) -> None:
        """Publish *body* and return when it is durably stored.

        Raises:
            NotAccepted: it was not stored within *patience_s* seconds; it may yet turn up, under the same id.
            MessageTooLarge: *body* has more than 960 KiB.
        """
        done: asyncio.Future[NotAccepted | None] = self._loop.create_future()

        def settled(problem: NotAccepted | None) -> None:
            if not done.done():
                done.set_result(problem)

        self.send(subject, body, message_id, settled, headers=headers, patience_s=patience_s)
        async with asyncio.timeout(patience_s + ANSWER_S):
            problem = await done
        if problem is not None:
            raise problem

    def hear(self, arrival: Arrival) -> None:
        """Take the server's word on one letter."""
        token = arrival.subject.rpartition(".")[2]
        letter = self._letters.get(token)
        if letter is None:
            return
        problem = _problem_in(arrival)
        if problem is None or _ALREADY_THERE in problem:
            self._end(token, letter, None)
            return
        letter.problem = problem
        letter.next_try_at = self._loop.time() + random.uniform(0.5, 1.0) * min(_PAUSE_CAP_S, 0.1 * 2**letter.tries)  # noqa: S311 - jitter

    async def sweep(self) -> None:
        """Send again what was not answered in time, and give up what waited too long; runs until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = self._loop.time()
            for token, letter in list(self._letters.items()):
                if now >= letter.gives_up_at:
                    problem = NotAccepted(f"{letter.subject}: not stored: {letter.problem}; try again")
                    self._end(token, letter, problem)
                elif now >= letter.next_try_at and self._link.is_connected:
                    self._meter.count_publish_retry()
                    self._publish(token, letter)

    async def flush(self, within_s: float) -> bool:
        """Return whether everything was stored within *within_s* seconds."""
        if not self._letters:
            return True
        self._emptied.clear()
        try:
            async with asyncio.timeout(within_s):
                await self._emptied.wait()
        except TimeoutError:
            return False
        return True

    def _end(self, token: str, letter: _Letter, problem: NotAccepted | None) -> None:
        del self._letters[token]
        if not self._letters:
            self._emptied.set()
        try:
            letter.settled(problem)
        except Exception:
            # One sender's mistake must not end the sweep for all.
            log.exception("settling_failed", subject=letter.subject)

    def _publish(self, token: str, letter: _Letter) -> None:
        letter.tries += 1
        letter.next_try_at = self._loop.time() + ANSWER_S
        self._link.send(letter.subject, letter.body, f"{self.answers}.{token}", letter.headers)


def _problem_in(arrival: Arrival) -> str | None:
    """Return what the server found wrong, or None when the letter is stored (now or before)."""
    if arrival.headers is not None and (read_headers(arrival.headers) or {}).get("Status") == "503":
        return "no stream takes this subject"
    if b'"error"' not in arrival.body:
        return None
    try:
        return str(json.loads(arrival.body)["error"]["description"])
    except (ValueError, KeyError, TypeError):
        return "an answer that cannot be read"


@asynccontextmanager
async def open_outbox(
    link: Link, meter: OutboxMeter | None = None, patience_s: float = PATIENCE_S
) -> AsyncIterator[Outbox]:
    """Open an outbox on *link*; on leaving, it waits a moment for what is under way."""
    outbox = Outbox(link, meter, patience_s)
    answers = await link.listen(f"{outbox.answers}.*", outbox.hear)
    sweeper = asyncio.create_task(outbox.sweep())
    try:
        yield outbox
        if not await outbox.flush(5.0):
            log.warning("outbox_closed_with_letters", waiting=outbox.waiting)
    finally:
        sweeper.cancel()
        await asyncio.gather(sweeper, return_exceptions=True)
        if not link.client.is_closed:
            await answers.unsubscribe()
