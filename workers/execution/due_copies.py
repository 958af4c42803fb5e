"""Deletion of the copies of due messages, which the server leaves in LATER when TASKS takes them.

A delivery names its place in LATER by a number, and a stream that was made anew counts from one again: by then another
task's schedule may lie there, or a run that TASKS has not taken yet. So the place is read first, and only what is the
very message that was delivered is deleted. Nothing waits for that: what is missed goes when its time in LATER is over.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tasklore.contracts import subjects
from tasklore.runtime.messaging.link import Arrival, Link, read_headers
from tasklore.runtime.messaging.pull import Delivery

_READ = f"$JS.API.DIRECT.GET.{subjects.LATER}"
_DELETE = f"$JS.API.STREAM.MSG.DELETE.{subjects.LATER}"


class DueCopies:
    """Deletes from LATER the copies of messages that were delivered from there; opened with `open_due_copies`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.answers = link.new_inbox()

    def clear(self, delivery: Delivery) -> None:
        """Delete the copy of *delivery* in LATER, if it came from there: TASKS hands it out until it is settled."""
        headers = delivery.headers or {}
        source = headers.get(subjects.SOURCE_HEADER, "").split(" ")
        if len(source) > 1 and source[0] == subjects.LATER and source[1].isdecimal():
            question = json.dumps({"seq": int(source[1])}).encode()
            self._link.send(
                _READ, question, f"{self.answers}.{_mark_of(headers, delivery.body)}"
            )

    def hear(self, arrival: Arrival) -> None:
        """Read one place in LATER, and delete the message there if it is the one that the subject ends with."""
        headers = read_headers(arrival.headers) or {}
        sequence = headers.get(subjects.SEQUENCE_HEADER, "")
        is_it = arrival.subject.rpartition(".")[2] == _mark_of(headers, arrival.body)
        # A schedule of the same run has no scheduler yet, and must stay.
        if is_it and sequence.isdecimal() and headers.get(subjects.SCHEDULER_HEADER):
            self._link.send(
                _DELETE, json.dumps({"seq": int(sequence), "no_erase": True}).encode()
            )


def _mark_of(headers: Mapping[str, str], body: bytes) -> str:
    """Return a digest of a due message: its scheduler, the number of its run, and the assignment."""
    names = subjects.SCHEDULER_HEADER, subjects.ATTEMPT_HEADER
    head = "\n".join([headers.get(name, "") for name in names]).encode()
    return hashlib.sha256(head + b"\n" + body).hexdigest()


@asynccontextmanager
async def open_due_copies(link: Link) -> AsyncIterator[DueCopies]:
    """Open them on *link*."""
    copies = DueCopies(link)
    answers = await link.listen(f"{copies.answers}.*", copies.hear)
    try:
        yield copies
    finally:
        if not link.client.is_closed:
            await answers.unsubscribe()
