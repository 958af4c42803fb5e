"""Names and ids on the wire: their alphabet, and how new ones are made."""

import base64
import hashlib
import os
import re
import zlib
from typing import Annotated, Literal, Self

from pydantic import StringConstraints

from tasklore.contracts.errors import InvalidInput

#: Agents, supervisors, tasks and ids end up in NATS subjects and Redis keys: nothing there may act as a delimiter.
NAME_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]

#: Whose memory it is: a user's, or that of an agent, a run or an organisation, which is kept apart from every user's.
Scope = Literal["user", "agent", "run", "org"]
SCOPES = ("agent", "run", "org")

#: Turns and facts of one user stay in one of this many ordered partitions.
PARTITIONS = 16

#: Letters of a tenant in a subject; a longer one is a digest there.
_LONGEST_TENANT = 256


class TaskName(str):
    """The id of a task, with its agent: code that knows both passes both on.

    It is its id wherever an id will do.
    """

    __slots__ = ("agent_id",)

    agent_id: str

    def __new__(cls, agent_id: str, task_id: str) -> Self:
        """Return *task_id* as one that is known to be for *agent_id*."""
        named = super().__new__(cls, task_id)
        named.agent_id = agent_id
        return named

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # a plain str has its text alone
        return self.agent_id, str(self)


def checked_name(text: str, what: str) -> str:
    """Return *text* when it may stand in a subject or key; *what* names it in the error.

    Raises:
        InvalidInput: it is empty, longer than 64 or has another character than letters, digits, `_` and `-`.
    """
    if not _NAME.fullmatch(text):
        msg = f"{what} {text!r} must be 1 to 64 letters, digits, '_' or '-'"
        raise InvalidInput(msg)
    return text


def new_id(now_ms: int, random: bytes | None = None) -> str:
    """Return a UUID version 7 (RFC 9562) for *now_ms*, milliseconds since 1970; ids sort by time."""
    bits = int.from_bytes(random if random is not None else os.urandom(10), "big")
    value = (
        (now_ms & (1 << 48) - 1) << 80
        | 0x7 << 76
        | (bits >> 62 & 0xFFF) << 64
        | 0b10 << 62
        | bits & (1 << 62) - 1
    )
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def user_token(user_id: str) -> str:
    """Return the unpadded base64url of the UTF-8 *user_id*, safe in a subject and a key whatever the id contains."""
    return base64.urlsafe_b64encode(user_id.encode()).rstrip(b"=").decode()


def tenant_token(tenant: str) -> str:
    """Return *tenant* as it stands in a subject: its token, or a digest where that is long."""
    token = user_token(tenant)
    return (
        token
        if len(token) <= _LONGEST_TENANT
        else f"~{hashlib.sha256(tenant.encode()).hexdigest()}"
    )


def scoped(scope: Scope, name: str) -> str:
    """Return the owner that *name* is in *scope*: a user by its id, `agent/NAME` for an agent."""
    return name if scope == "user" else f"{scope}/{name}"


def demand_user_id(user_id: str) -> str:
    """Return *user_id* when no other scope could be meant.

    Raises:
        InvalidInput: it begins as owners of another scope do.
    """
    if user_id.startswith(tuple(f"{scope}/" for scope in SCOPES)):
        scope = user_id.partition("/")[0]
        raise InvalidInput(
            f"user id {user_id!r} must not begin with '{scope}/', which names the memory of another scope"
        )
    return user_id


def user_of(token: str) -> str:
    """Return the user id of which *token* is the `user_token`.

    Raises:
        InvalidInput: it is none.
    """
    try:
        return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except ValueError as error:
        raise InvalidInput(
            f"user token {token!r} must be the unpadded base64url of a user id in UTF-8"
        ) from error


def partition_of(user_id: str) -> int:
    """Return the partition, 0 to 15, in which everything of *user_id* keeps its order."""
    return zlib.crc32(user_id.encode()) % PARTITIONS
