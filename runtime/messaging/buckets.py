"""Key-value buckets of JetStream, read as a whole with a deadline, whatever lies in them.

Anybody may put anything under any key, and the client library gives up at a key that it would not have written itself:
so a bucket is read as the stream that it is.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

import nats.errors
import nats.js.errors

from tasklore.contracts import subjects
from tasklore.contracts.errors import Unreachable
from tasklore.runtime.messaging.direct import Line, Stored, client_of, open_direct_reads
from tasklore.runtime.messaging.jetstream import JetStreamRefused, ask_jetstream

#: Seconds for one look at, or one write into, a bucket.
BUCKET_S = 5.0

#: What the client library raises when a bucket cannot be asked.
BUCKET_FAILURES = (TimeoutError, OSError, nats.errors.Error, nats.js.errors.Error)

#: A key of ours: names as `tasklore.contracts.identifiers` has them, with dots between.
_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}(?:\.[A-Za-z0-9_-]{1,64})*")
#: Headers of a message that is no value but says that there is none any more: a client's word, and the server's.
_OPERATION = "KV-Operation"
_MARKER = "Nats-Marker-Reason"


class BucketState(NamedTuple):
    """What differs after every change of a bucket: when it was made, its last sequence, and how much it holds."""

    made_at: str
    last: int
    values: int


async def state_of_bucket(line: Line, bucket: str) -> BucketState:
    """Return the state of *bucket*, by which a reader knows whether to read it again.

    Raises:
        Unreachable: the bucket did not answer, or does not exist yet.
    """
    try:
        info = await ask_jetstream(
            client_of(line), f"STREAM.INFO.{subjects.bucket_stream(bucket)}"
        )
    except (Unreachable, JetStreamRefused) as error:
        raise _no_answer(bucket, error) from error
    return BucketState(
        info["created"], info["state"]["last_seq"], info["state"]["messages"]
    )


async def read_bucket(line: Line, bucket: str) -> dict[str, bytes]:
    """Return every value in *bucket* by key, in the order of keys; see `read_bucket_by_page`."""
    found: dict[str, bytes | None] = {}
    async with aclosing(read_bucket_by_page(line, bucket)) as pages:
        async for page in pages:
            found |= page
    return {key: body for key, body in sorted(found.items()) if body is not None}


async def read_bucket_by_page(
    line: Line, bucket: str
) -> AsyncGenerator[dict[str, bytes | None], None]:
    """Yield the values in *bucket* by key, a page at a time, None for a key that was deleted.

    Keys that are no names of ours are left out. A key that is put anew meanwhile may come twice: the later page has the
    newer value.

    Raises:
        Unreachable: the bucket did not answer, or does not exist yet.
    """
    subject = subjects.bucket_keys(bucket)
    prefix = subject.removesuffix(">")
    try:
        async with (
            open_direct_reads(line, subjects.bucket_stream(bucket)) as reads,
            aclosing(reads.pages(subject)) as pages,
        ):
            async for page in pages:
                found = {
                    one.subject.removeprefix(prefix): _value_of(one) for one in page
                }
                yield {key: body for key, body in found.items() if _KEY.fullmatch(key)}
    except (Unreachable, *BUCKET_FAILURES) as error:
        raise _no_answer(bucket, error) from error


def _no_answer(bucket: str, error: Exception) -> Unreachable:
    words = str(error) or type(error).__name__
    return Unreachable(
        f"the bucket {bucket!r} did not answer ({words}); was a supervisor started yet?"
    )


def _value_of(stored: Stored) -> bytes | None:
    return (
        None
        if _OPERATION in stored.headers or _MARKER in stored.headers
        else stored.body
    )
