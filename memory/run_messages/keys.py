"""The Redis keys of what the models of runs saw."""

from typing import NamedTuple

from tasklore.contracts.identifiers import TaskName, tenant_token, user_token
from tasklore.memory.key_parts import check_name, check_owner
from tasklore.memory.ledger.keys import task_tag


class MessageIndexKeys(NamedTuple):
    """The keys of one owner's runs with messages at one agent, of one tag: until when each is kept, and its bytes."""

    until: str
    bytes: str


def run_messages(task: TaskName) -> str:
    """Return the key of the messages of a task; of the tag of its entry in the ledger."""
    return f"tl:run-messages:{check_name(task.agent_id)}:{task_tag(task)}"


def run_messages_of(agent_id: str, owner: str) -> MessageIndexKeys:
    """Return the keys that list the runs of *owner*, a token, with messages at *agent_id*."""
    root = f"tl:run-messages-of:{{{check_name(agent_id)}}}:u:{check_owner(owner)}"
    return MessageIndexKeys(root, f"{root}:bytes")


def owner_of_run(user_id: str | None, tenant: str | None) -> str:
    """Return the token of whose bytes the messages of a task count: its user, else its tenant, else the deployment."""
    if user_id:
        return user_token(user_id)
    return f"={tenant_token(tenant)}" if tenant else "="
