"""Who published a message: a signature by the nkey of its role, which its reader checks before it takes the message in.

It travels with the message wherever that is copied to, and holds for one subject, message id and body alone. Answers
to waits are signed likewise: they lie in a store where others may write. Where roles have no keys, as at `tasklore up`,
nothing is signed and nothing is checked.
"""

import base64
import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.runtime.access import PUBLISHERS_VARIABLE, ServerCredentials

if TYPE_CHECKING:
    from nacl.signing import VerifyKey

#: Subjects of the streams whose messages are signed, by how they begin.
_SIGNED = tuple(
    one.removesuffix(">")
    for one in (subjects.TURNS_ALL, subjects.FACTS_ALL, subjects.MESSAGES_ALL)
)

#: Returns the signature of a message on a subject, with an id and a body, as its header has it.
Sign = Callable[[str, str, bytes], str]


class Unproven(InvalidInput):
    """A message without a proof that a role published it which may."""


class Publisher(NamedTuple):
    """What a role may publish: patterns of subjects, proved by its public nkey."""

    key: "VerifyKey"
    patterns: tuple[str, ...]


def reads_signed(role: str) -> bool:
    """Return whether *role* reads signed messages, so that it needs their public keys; `worker` is any worker."""
    return role in ("supervisor", "memory") or role.partition("-")[0] == "worker"


def is_signed(subject: str) -> bool:
    """Return whether messages on *subject* say who published them."""
    return subject.startswith(_SIGNED)


def open_signer(access: ServerCredentials) -> Sign | None:
    """Return what signs as the role of *access*, None when it has no key.

    Raises:
        ConfigurationError: the seed cannot be read, or the package nkeys is missing.
    """
    seed = (
        access.nats_options().get("nkeys_seed_str") if access.role is not None else None
    )
    if seed is None:
        return None
    key = _module("nkeys").from_seed(bytearray(seed.encode()))

    def sign(subject: str, message_id: str, body: bytes) -> str:
        return f"{access.role} {base64.b64encode(key.sign(_signed_part(subject, message_id, body))).decode()}"

    return sign


class Publishers:
    """The roles that publish what this process reads, out of *file*, which is read again once it has changed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read_at = 0
        self._known: Mapping[str, Publisher] = {}
        self._read()

    def check(
        self, subject: str, headers: Mapping[str, str] | None, body: bytes
    ) -> None:
        """Return when the message was signed by a role that may publish it.

        Raises:
            Unproven: it was not; says why.
        """
        role, _, signature = (
            (headers or {}).get(subjects.SIGNATURE_HEADER, "").partition(" ")
        )
        if not signature:
            raise Unproven(
                f"{subject!r} has no header {subjects.SIGNATURE_HEADER}; see docs/reference/security.md"
            )
        self._read()
        publisher = self._known.get(role)
        if publisher is None or not any(
            subjects.covers(pattern, subject) for pattern in publisher.patterns
        ):
            raise Unproven(
                f"{role!r} does not publish to {subject!r}; grant it in deploy/privileges"
            )
        message_id = (headers or {}).get(subjects.MESSAGE_ID_HEADER, "")
        try:
            proof = base64.b64decode(signature, validate=True)
            publisher.key.verify(_signed_part(subject, message_id, body), proof)
        except (ValueError, _module("nacl.exceptions").BadSignatureError) as error:
            raise Unproven(
                f"{subject!r} is not signed with the key of {role!r}; publish it again"
            ) from error

    def _read(self) -> None:
        """Read the file where it has changed since: in Kubernetes it does while a process runs.

        Raises:
            ConfigurationError: it cannot be read.
        """
        try:
            changed_at = self._file.stat().st_mtime_ns
            if changed_at == self._read_at:
                return
            written = json.loads(self._file.read_text("utf-8"))
            self._known = {
                role: Publisher(_public_key(one["key"]), tuple(one["publishes"]))
                for role, one in written.items()
            }
            self._read_at = changed_at
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            cure = "make it with `python -m deploy.credentials DIR --renew`"
            msg = f"{PUBLISHERS_VARIABLE} {str(self._file)!r} cannot be read ({type(error).__name__}); {cure}"
            raise ConfigurationError(msg) from error


def open_publishers(access: ServerCredentials) -> Publishers | None:
    """Return who publishes what a process with *access* reads; None where roles have no keys.

    Raises:
        ConfigurationError: there is no list, or it cannot be read.
    """
    if access.seed_file is None:
        return None
    if access.publishers_file is None:
        cure = "make it with `python -m deploy.credentials DIR --renew` (docs/reference/security.md)"
        raise ConfigurationError(
            f"{PUBLISHERS_VARIABLE}: nothing says whose messages are to be taken in; {cure}"
        )
    return Publishers(access.publishers_file)


def _signed_part(subject: str, message_id: str, body: bytes) -> bytes:
    # Neither of the first two has a line's end in it: they are parts of lines themselves.
    return f"{subject}\n{message_id}\n".encode() + body


def _public_key(text: str) -> "VerifyKey":
    """Return what verifies with the public nkey *text*: a type, 32 bytes and a checksum in base 32."""
    raw = base64.b32decode(text + "=" * (-len(text) % 8))
    key: VerifyKey = _module("nacl.signing").VerifyKey(raw[1:-2])
    return key


def _module(name: str) -> Any:
    """Import *name* where it is needed: a system without keys does without the package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            "the package nkeys is missing; install nats-py[nkeys]"
        ) from error
