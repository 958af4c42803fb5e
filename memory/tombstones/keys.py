"""The Redis keys of tombstones and of the keys that they hide, under the hash tag of a user or of a conversation."""

from collections.abc import Sequence
from typing import Literal

from tasklore.memory.conversations import keys as conversations
from tasklore.memory.documents import keys as documents
from tasklore.memory.episodes.keys import episodes
from tasklore.memory.key_parts import ConversationKeys, check_token
from tasklore.memory.queues.keys import queue

#: The tables of rows that wait for a user.
QUEUES: tuple[Literal["turns", "facts"], ...] = ("turns", "facts")


def tombstone(user_token: str) -> str:
    """Return the key of the tombstones of a user: a record of hidden keys by number."""
    return f"tl:forgotten:{{{check_token(user_token)}}}"


def hidden(user_token: str, number: int | Literal["aside"], key: str) -> str:
    """Return the key under which the tombstone *number* hides *key* of the same user, or where it is put aside."""
    kind, rest = key.removeprefix("tl:").split(f":{{{user_token}}}", 1)
    return f"{tombstone(user_token)}:{number}:{kind}{rest}"


def late_rows(user_token: str, name: Literal["turns", "facts"]) -> str:
    """Return the key of rows by id that were said before the tombstone and came after it."""
    return f"{tombstone(user_token)}:late:{name}"


def hidden_talk(
    user_token: str, number: int, conversation_id: str
) -> tuple[str, str, str]:
    """Return the keys under which the tombstone *number* hides messages, observations and their tasks."""
    of = conversations.conversation(conversation_id)
    _, brace, tag = of.said.partition("{")
    root = f"tl:forgotten-talk:{brace}{tag}:{check_token(user_token)}:{number}"
    return root, f"{root}:observed", f"{root}:observed_in"


def talk(conversation_id: str) -> ConversationKeys:
    """Return the keys of a conversation."""
    return conversations.conversation(conversation_id)


def memory_of(user_token: str, resources: Sequence[str]) -> list[str]:
    """Return every key of the memory of a user, who has documents of *resources*.

    The number that rows were last given stays for those to come, and a lease is no memory.
    """
    found = [documents.plans(user_token), documents.document_reads(user_token)]
    for resource in resources:
        found.append(documents.document(user_token, resource))
        found.append(documents.document_log(user_token, resource))
    rows = [queue(name, user_token) for name in QUEUES]
    return [
        *found,
        *episodes(user_token),
        *(
            key
            for one in rows
            for key in (one.rows, one.pending, one.state, one.closed)
        ),
        *conversations.notices(user_token),
        conversations.user_conversations(user_token),
    ]


def leases_of(user_token: str) -> list[str]:
    """Return the keys of who works on the rows of a user."""
    return [queue(name, user_token).lease for name in QUEUES]
