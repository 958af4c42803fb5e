"""Publishing to streams, many letters at once, each repeated under one message id until it is durably stored.

A repeat is never a second message: the stream swallows an id for five minutes from when it stored it. That is not
before the letter was first sent, and the last repeat goes out at most `PATIENCE_S` after that. Nothing is sent while
the connection is down, so that no repeat lies in a buffer past its time.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import structlog

from tasklore.contracts.errors import (
    MessageTooLarge,
    NotAccepted,
    QueueFull,
    TaskloreError,
)
from tasklore.contracts.subjects import (
    MAX_BODY,
    MAX_MESSAGE,
    MAX_SUBJECT,
    MESSAGE_ID_HEADER,
    SIGNATURE_HEADER,
)
from tasklore.runtime.access import access_of
from tasklore.runtime.messaging.link import Arrival, Link, read_headers
from tasklore.runtime.messaging.refusals import ServerRefusal, refusals_of
from tasklore.runtime.messaging.signatures import Sign, is_signed, open_signer
from tasklore.runtime.tracing import traced_letter

if TYPE_CHECKING:
    from tasklore.runtime.metrics import Metrics

log = structlog.get_logger(__name__)

#: Seconds to wait for the server's word before a letter is sent again under the same id.
ANSWER_S = 2.0
#: Seconds to go on trying, from the first time: a minute below the stream's duplicate window of 5 min, since the last
#: repeat takes its time too.
PATIENCE_S = 240.0
#: Seconds that a full stream is tried by whoever wants to know: a worker may just be making room, more is a queue.
FULL_S = 1.0
#: Seconds until it is worth trying a full stream again: a person's patience, and not a wave of everybody at once.
RETRY_FULL_S = 5.0
#: Seconds between looks at what waits; the longest pause before a repeat.
_SWEEP_S = 0.25
#: Longest pause between two repeats of a letter, in seconds.
_PAUSE_CAP_S = 5.0

_ALREADY_THERE = "maximum messages per subject"
_NO_RESPONDERS = "503"
#: The server's codes for an account (10002), a server (10023) or its disk and memory (10047, 10028) that is full.
_NO_ROOM = {10002, 10023, 10028, 10047}
#: Its code for whatever a store refuses, and how it says that the stream is full.
_STORE_FAILED = 10077
_STREAM_FULL = ("maximum messages exceeded", "maximum bytes exceeded")

#: Seconds between attempts to make a missing stream anew.
_HEAL_S = 2.0

Reason = Literal["full", "no_stream", "other"]
Settled = Callable[[NotAccepted | None], None]
Heal = Callable[[], Awaitable[object]]


class _NoMeter:
    def count_publish_retry(self) -> None:
        """Count nothing."""

    def count_publish_refused(self, reason: Reason) -> None:
        """Count nothing."""


class _Refusal(NamedTuple):
    """Why a letter is not stored, in our word and in the server's."""

    reason: Reason
    words: str


_SILENCE = _Refusal(
    "other",
    "the server did not answer; once its disk was full, a stream stores nothing until nats-server is restarted "
    "with room on it (its log says 'no space left on device')",
)


@dataclass(slots=True, kw_only=True)
class _Letter:
    subject: str
    body: bytes
    headers: str
    settled: Settled
    gives_up_at: float
    waits_when_full: bool
    known: Callable[[], None] | None = None
    next_try_at: float = 0.0
    tries: int = 0
    #: The server's word on the newest copy; None while that is under way.
    answer: _Refusal | None = None
    #: Its last word on any copy.
    refusal: _Refusal = _SILENCE

    def failure(self) -> NotAccepted:
        """Return why it is given up; that nothing was stored is only certain when every copy was answered."""
        if self.answer is not None and self.answer.reason == "full":
            return QueueFull(
                f"{self.subject}: no room ({self.answer.words}); try again in {RETRY_FULL_S:g} s, and start more "
                "workers or raise that limit if it happens often",
                RETRY_FULL_S,
            )
        return NotAccepted(
            f"{self.subject}: not stored: {self.refusal.words}; try again"
        )


class Outbox:
    """The one way to put a message into a stream; opened with `open_outbox`.

    A letter is stored, was stored before (a repeat, or a subject that takes one message only), or is given up. *heal*
    makes a missing stream anew where that is allowed, for the next try. *sign* proves to readers who published.
    """

    def __init__(
        self,
        *,
        link: Link,
        meter: "Metrics | None" = None,
        patience_s: float = PATIENCE_S,
        heal: Heal | None = None,
        sign: Sign | None = None,
    ) -> None:
        self._link = link
        self._sign = sign
        self._heal = heal
        self._heals_at = 0.0
        self._misses_stream = False
        self._healing: asyncio.Task[None] | None = None
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
        waits_when_full: bool = True,
        known: Callable[[], None] | None = None,
    ) -> None:
        """Publish *body* and return at once; *settled* is called with None when it is stored, else with the reason.

        *known* is called before that when a message of its id or subject was there already, which may be another one.

        It is given up after *patience_s* seconds; None is the outbox's own patience. Where the stream is full and
        *waits_when_full* is False, that ends with QueueFull about a second after the server said so.

        Raises:
            MessageTooLarge: *body* has more than 960 KiB, it and its headers almost 1 MiB, or *subject* 2 KiB.
        """
        if len(body) > MAX_BODY:
            msg = f"a message of {len(body)} bytes for {subject!r} is larger than {MAX_BODY}; send a reference instead"
            raise MessageTooLarge(msg)
        if len(subject) > 2 * MAX_SUBJECT:
            msg = f"a subject of {len(subject)} characters is too long for the server; name things shorter"
            raise MessageTooLarge(msg)
        headers, settled = traced_letter(subject, message_id, headers, settled)
        lines = f"{MESSAGE_ID_HEADER}: {message_id}\r\n"
        if self._sign is not None and is_signed(subject):
            lines += f"{SIGNATURE_HEADER}: {self._sign(subject, message_id, body)}\r\n"
        if headers:
            # What a message or the ledger was given by others is not to begin a header of its own.
            lines += "".join(
                [
                    f"{' '.join(f'{name}: {value}'.splitlines())}\r\n"
                    for name, value in headers.items()
                ]
            )
        if (size := len(body) + len(lines.encode())) > MAX_MESSAGE:
            msg = f"{size} bytes of body and headers for {subject!r} are more than {MAX_MESSAGE}; send fewer headers"
            raise MessageTooLarge(msg)
        self._count += 1
        token = str(self._count)
        gives_up_at = self._loop.time() + (
            self._patience_s if patience_s is None else patience_s
        )
        letter = _Letter(
            subject=subject,
            body=body,
            headers=lines,
            settled=settled,
            gives_up_at=gives_up_at,
            waits_when_full=waits_when_full,
            known=known,
        )
        # What cannot even be written raises here, before anybody waits for it.
        if self._link.is_connected:
            self._publish(token, letter)
        else:
            f"{subject}{lines}".encode()
        self._letters[token] = letter

    async def put(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        *,
        headers: Mapping[str, str] | None = None,
        patience_s: float = 10.0,
        waits_when_full: bool = False,
    ) -> bool:
        """Publish *body* and return when it is durably stored: False when its id or subject was there already.

        *waits_when_full* goes on trying a full stream for all of *patience_s*, for messages without another sender.

        Raises:
            QueueFull: the stream is full, and still was a second later; nothing was stored.
            NotAccepted: it was not stored within *patience_s* seconds; it may yet turn up, under the same id.
            MessageTooLarge: see `send`.
        """
        done: asyncio.Future[NotAccepted | None] = self._loop.create_future()
        is_new = True

        def settled(problem: NotAccepted | None) -> None:
            if not done.done():
                done.set_result(problem)

        def known() -> None:
            nonlocal is_new
            is_new = False

        self.send(
            subject,
            body,
            message_id,
            settled,
            headers=headers,
            patience_s=patience_s,
            waits_when_full=waits_when_full,
            known=known,
        )
        try:
            # The sweep gives up earlier and tells why, unless the outbox was closed meanwhile.
            async with asyncio.timeout(patience_s + ANSWER_S):
                problem = await done
        except TimeoutError as error:
            msg = f"{subject}: NATS did not confirm within {patience_s:g} s that it was stored; try again"
            raise NotAccepted(msg) from error
        if problem is not None:
            raise problem
        return is_new

    def hear(self, arrival: Arrival) -> None:
        """Take the server's word on one letter."""
        token = arrival.subject.rpartition(".")[2]
        letter = self._letters.get(token)
        if letter is None:
            return
        refusal = _refusal_in(arrival)
        if refusal is None or _ALREADY_THERE in refusal.words:
            if letter.known is not None and (
                refusal is not None or arrival.body.find(b'"duplicate"') >= 0
            ):
                letter.known()
            self._end(token, letter, None)
            return
        self._meter.count_publish_refused(refusal.reason)
        self._misses_stream |= refusal.reason == "no_stream"
        now = self._loop.time()
        letter.answer = letter.refusal = refusal
        letter.next_try_at = now + random.uniform(0.5, 1.0) * min(  # noqa: S311 - jitter
            _PAUSE_CAP_S, 0.1 * 2**letter.tries
        )
        if refusal.reason == "full" and not letter.waits_when_full:
            letter.gives_up_at = min(letter.gives_up_at, now + FULL_S)

    def hear_refusal(self, refusal: ServerRefusal, words: str) -> None:
        """Give up at once what this user may not publish: asking again would not help."""
        for token, letter in list(self._letters.items()):
            if (refusal.kind, refusal.subject) == ("publish", letter.subject.lower()):
                self._meter.count_publish_refused("other")
                self._end(
                    token, letter, NotAccepted(f"{letter.subject}: not stored: {words}")
                )

    async def sweep(self) -> None:
        """Send unanswered publishes again, and give up those that waited too long; runs until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = self._loop.time()
            if self._misses_stream and self._heal is not None and now >= self._heals_at:
                self._misses_stream = False
                self._heals_at = now + _HEAL_S
                self._healing = asyncio.create_task(self._make_stream(self._heal))
            unanswered = 0
            for token, letter in list(self._letters.items()):
                if now >= letter.gives_up_at:
                    if letter.refusal is _SILENCE and self._link.is_connected:
                        self._meter.count_publish_refused("other")
                        unanswered += 1
                    self._end(token, letter, letter.failure())
                elif now >= letter.next_try_at and self._link.is_connected:
                    if letter.tries:
                        self._meter.count_publish_retry()
                    self._publish(token, letter)
            if unanswered:
                why = _SILENCE.words
                log.warning("publish_unanswered", letters=unanswered, why=why)

    async def end_healing(self) -> None:
        """Stop making a stream anew, if that is under way."""
        if self._healing is not None:
            self._healing.cancel()
            await asyncio.gather(self._healing, return_exceptions=True)

    async def _make_stream(self, heal: Heal) -> None:
        log.warning("stream_missing", letters=len(self._letters))
        try:
            await heal()
        except TaskloreError as error:
            log.warning("stream_not_made", error=str(error))

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
        letter.answer = None
        letter.next_try_at = self._loop.time() + ANSWER_S
        self._link.send(
            letter.subject, letter.body, f"{self.answers}.{token}", letter.headers
        )


def _refusal_in(arrival: Arrival) -> _Refusal | None:
    """Return what the server found wrong, or None when the letter is stored (now or before)."""
    if (
        arrival.headers is not None
        and (read_headers(arrival.headers) or {}).get("Status") == _NO_RESPONDERS
    ):
        return _Refusal("no_stream", "no stream takes this subject")
    # `in` makes a TypeError of every bytes first, and drops it.
    if arrival.body.find(b'"error"') < 0:
        return None
    try:
        error = json.loads(arrival.body)["error"]
        code = error.get("err_code")
        words = str(error["description"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return _Refusal("other", "an answer that cannot be read")
    is_full = code in _NO_ROOM or (code == _STORE_FAILED and words in _STREAM_FULL)
    return _Refusal("full" if is_full else "other", words)


@asynccontextmanager
async def open_outbox(
    link: Link,
    meter: "Metrics | None" = None,
    patience_s: float = PATIENCE_S,
    heal: Heal | None = None,
) -> AsyncIterator[Outbox]:
    """Open an outbox on *link*; on leaving, it waits a moment for pending publishes."""
    outbox = Outbox(
        link=link,
        meter=meter,
        patience_s=patience_s,
        heal=heal,
        sign=open_signer(access_of()),
    )
    answers = await link.listen(f"{outbox.answers}.*", outbox.hear)
    sweeper = asyncio.create_task(outbox.sweep())
    refusals = refusals_of(link.client)
    if refusals is not None:
        role = refusals.role
        deafen = refusals.listen(
            lambda refusal: outbox.hear_refusal(refusal, str(refusal.error(role)))
        )
    try:
        yield outbox
        if not await outbox.flush(5.0):
            log.warning("outbox_closed_with_letters", waiting=outbox.waiting)
    finally:
        if refusals is not None:
            deafen()
        sweeper.cancel()
        await asyncio.gather(sweeper, return_exceptions=True)
        await outbox.end_healing()
        if not link.client.is_closed:
            await answers.unsubscribe()
