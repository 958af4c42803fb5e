"""The Redis keys of tombstones and of what they hide, all under the hash tag of the user."""

from collections.abc import Sequence
from typing import Literal

from tasklore.memory import keys
from tasklore.memory.key_parts import check_token


def tombstone(user_token: str) -> str:
    """Return the key of what is hidden of a user: a record by number."""
    return f"tl:forgotten:{{{check_token(user_token)}}}"


def hidden(user_token: str, number: int | Literal["aside"], key: str) -> str:
    """Return the key under which the tombstone *number* hides *key* of the same user, or where it is put aside."""
    kind, rest = key.removeprefix("tl:").split(f":{{{user_token}}}", 1)
    return f"{tombstone(user_token)}:{number}:{kind}{rest}"


def memory_of(user_token: str, resources: Sequence[str]) -> list[str]:
    """Return every key of the memory of a user, who has documents of *resources*.

    The number that rows were last given stays for those to come, and a lease is no memory.
    """
    documents = [keys.plans(user_token), keys.document_reads(user_token)]
    for resource in resources:
        documents.append(keys.document(user_token, resource))
        documents.append(keys.document_log(user_token, resource))
    rows = [keys.queue(name, user_token) for name in ("turns", "facts")]
    return [
        *documents,
        *keys.episodes(user_token),
        *(
            key
            for one in rows
            for key in (one.rows, one.pending, one.state, one.closed)
        ),
        *keys.notices(user_token),
        keys.user_conversations(user_token),
    ]


def leases_of(user_token: str) -> list[str]:
    """Return the keys of who works on the rows of a user."""
    return [keys.queue(name, user_token).lease for name in ("turns", "facts")]
