"""Key-value buckets of JetStream, read as a whole with a deadline."""

import asyncio

import nats.errors
import nats.js.errors
from nats.aio.client import Client

from contracts.errors import Unreachable

#: Seconds for one look at, or one write into, a bucket.
BUCKET_S = 5.0

#: What the client library raises when a bucket cannot be asked.
BUCKET_FAILURES = (TimeoutError, OSError, nats.errors.Error, nats.js.errors.Error)


async def read_bucket(client: Client, bucket: str) -> list[bytes]:
    """Return every value in *bucket*, ordered by key; values whose time ends meanwhile are left out.

    Raises:
        Unreachable: the bucket did not answer, or does not exist yet.
    """
    try:
        async with asyncio.timeout(BUCKET_S):
            store = await client.jetstream().key_value(bucket)
            try:
                names = await store.keys()
            except nats.js.errors.NoKeysError:
                return []
            found = []
            for name in sorted(names):
                try:
                    found.append((await store.get(name)).value or b"")
                except nats.js.errors.KeyNotFoundError:
                    continue
            return found
    except BUCKET_FAILURES as error:
        msg = f"the bucket {bucket!r} did not answer ({error or type(error).__name__}); was a supervisor started yet?"
        raise Unreachable(msg) from error
