"""Sending one webhook: signed as Standard Webhooks says, on a connection of its own to an address that was checked.

Nothing is followed: no redirect, no proxy of the environment. Of the answer the status line alone is read.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import re
import ssl
from collections.abc import Callable
from datetime import UTC, datetime

from tasklore.contracts.errors import ConfigurationError
from tasklore.memory.webhooks.outbox import Webhook
from tasklore.supervisor.webhooks.addresses import Addresses, NotAllowed

#: Seconds for one webhook, from the look-up of the name to the status.
DEADLINE_S = 10.0
#: Bytes of a line of the answer, and lines of interim answers that are passed over.
_LINE = 4096
_INTERIM = 100
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})\b")
#: Bytes of a secret, as the specification has them.
_SECRET_BYTES = range(24, 65)
_GONE = "410"


class NotDelivered(Exception):
    """The receiver did not take it: *is_final* when it never will."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


def parse_secrets(text: str) -> tuple[bytes, ...]:
    """Return the secrets in *text*, joined by commas: each signs, so that a new one may stand beside the old one.

    Raises:
        ConfigurationError: one of them is none; its text is not in the message.
    """
    found = []
    for word in filter(None, re.split(r"[,\s]+", text)):
        try:
            secret = base64.b64decode(word.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            secret = b""
        if not word.startswith("whsec_") or len(secret) not in _SECRET_BYTES:
            cure = 'make one with `echo "whsec_$(openssl rand -base64 32)"`'
            raise ConfigurationError(
                f"TASKLORE_WEBHOOK_SECRET is whsec_ and the base64 of 24 to 64 bytes; {cure}"
            )
        found.append(secret)
    return tuple(found)


def sign(
    secrets: tuple[bytes, ...], webhook_id: str, timestamp: int, body: bytes
) -> str:
    """Return the header `webhook-signature`: a signature by each of *secrets*."""
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    digests = (hmac.digest(secret, signed, hashlib.sha256) for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


class Sender:
    """Sends webhooks; *tls* None trusts the authorities of the system."""

    def __init__(
        self,
        addresses: Addresses,
        secrets: tuple[bytes, ...],
        *,
        tls: ssl.SSLContext | None = None,
        deadline_s: float = DEADLINE_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._addresses = addresses
        self._secrets = secrets
        self._tls = tls or ssl.create_default_context()
        self._deadline_s = deadline_s
        self._now = now

    async def send(self, webhook: Webhook) -> None:
        """Send *webhook*; return when its receiver has taken it.

        Raises:
            NotDelivered: it has not, as far as is known; the message tells nothing of the answer but its status.
        """
        try:
            async with asyncio.timeout(self._deadline_s):
                status = await self._exchange(webhook)
        except TimeoutError:
            raise NotDelivered(f"no answer within {self._deadline_s:g} s") from None
        except NotAllowed as error:
            raise NotDelivered(f"its address {error}") from error
        except ssl.SSLError as error:
            raise NotDelivered(
                f"no trusted TLS ({error.reason or type(error).__name__})"
            ) from error
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
            raise NotDelivered(f"no connection ({type(error).__name__})") from error
        if not status.startswith("2"):
            raise NotDelivered(f"answered {status}", is_final=status == _GONE)

    async def _exchange(self, webhook: Webhook) -> str:
        """Return the status of the answer."""
        receiver = self._addresses.read(webhook.url)
        address = await self._addresses.look_up(receiver)
        is_secret = receiver.scheme == "https"
        # The name is not looked up again: it only has to stand in the certificate.
        reader, writer = await asyncio.open_connection(
            address,
            receiver.port,
            limit=_LINE,
            ssl=self._tls if is_secret else None,
            server_hostname=receiver.host.strip("[]") if is_secret else None,
        )
        try:
            body = webhook.body.encode()
            timestamp = int(self._now().timestamp())
            head = {
                "Host": receiver.named,
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                "User-Agent": "Tasklore",
                "Connection": "close",
                "webhook-id": webhook.id,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": sign(self._secrets, webhook.id, timestamp, body),
            }
            lines = (
                f"POST {receiver.target} HTTP/1.1",
                *(f"{name}: {value}" for name, value in head.items()),
                "\r\n",
            )
            writer.write("\r\n".join(lines).encode() + body)
            await writer.drain()
            for _ in range(_INTERIM):
                found = _STATUS.match(line := await reader.readuntil(b"\n"))
                if found is not None and not found[1].startswith(b"1"):
                    return found[1].decode()
                if found is None and line.startswith(b"HTTP/"):
                    break
            raise ValueError("no answer of HTTP/1")
        finally:
            # Whatever else it sends stays unread.
            writer.transport.abort()
