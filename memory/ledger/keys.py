"""The Redis keys of tasks, their runs and their requests."""

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote

from tasklore.contracts.identifiers import TaskName
from tasklore.memory import key_parts
from tasklore.memory.key_parts import check_name, check_token, escape, is_name
from tasklore.memory.slots import companion, companions

_TASK = "tl:task:"
_PLAIN_ID = re.compile(r"[A-Za-z0-9_.-]{1,512}\Z")


def task(task_id: str) -> str:
    """Return the ledger key of a task."""
    return _TASK + task_tag(task_id)


def entry(task: TaskName) -> str:
    """Return the key of a task in layout 2 of the ledger; raises InvalidInput for an agent that is none."""
    return f"{_TASK}{check_name(task.agent_id)}:{task_tag(task)}"


def entry_report(entry_key: str, generation: int) -> str:
    """Return the key of the report of a *generation* of the task at *entry_key*; same tag."""
    return f"{entry_key}:report:{generation}"


def task_agent(task_id: str) -> str:
    """Return the key that says which agent a task of layout 2 is for; same tag."""
    return f"tl:task-agent:{task_tag(task_id)}"


def ledger_layout() -> str:
    """Return the key that says in which layout entries of the ledger are made."""
    return "tl:ledger:{layout}"


def ledger_agents() -> str:
    """Return the key of the agents that have entries of layout 2."""
    return "tl:ledger:{agents}"


def task_pattern() -> str:
    """Return the SCAN pattern of every task in the ledger, in both layouts."""
    return f"{_TASK}*}}"


def steps(entry_key: str) -> tuple[str, str]:
    """Return the keys of the journal beside the entry of a task: heads of its steps, and their results."""
    return f"{entry_key}:steps", f"{entry_key}:results"


def children(task_id: str) -> str:
    """Return the key of the list of tasks that a task called; same tag."""
    return f"tl:children:{task_tag(task_id)}"


@lru_cache(maxsize=1024)
def runs(agent_id: str) -> key_parts.RunKeys:
    """Return the keys of the list of an agent's runs."""
    root = f"tl:runs:{{{check_name(agent_id)}}}"
    return key_parts.RunKeys(root, rows=f"{root}:rows", open=f"{root}:open")


def run_agents() -> str:
    """Return the key of every agent that has runs: no agent's id begins so."""
    return "tl:runs:{~agents}"


def parse_task(key: bytes) -> str:
    """Return the task id in a key made by `task` or `entry`, a TaskName of the latter; any program may have made it."""
    agent_id, _, tag = key.decode(errors="replace")[len(_TASK) :].partition("{")
    task_id = unquote(tag[:-1])
    is_named = is_name(agent_id[:-1])
    return TaskName(agent_id[:-1], task_id) if is_named else task_id


def end_counts(task_key: str) -> str:
    """Return the key that counts how tasks ended, in the slot of *task_key*: its tag is another, its slot the same."""
    return f"tl:ended:{{{companion(task_key[task_key.index('{') + 1 : -1])}}}"


def every_ended() -> Iterator[str]:
    """Yield every key that counts how tasks ended, one a slot."""
    return (f"tl:ended:{{{tag}}}" for tag in companions())


def end_sums() -> tuple[str, str]:
    """Return the key of what all those counters add up to, and of the lease of the process that adds them up."""
    return "tl:ended:{sums}:shared", "tl:ended:{sums}:lease"


def backlog() -> tuple[str, str]:
    """Return the keys of the backlog (tasks by subject, workers by agent) and of the lease of its reader."""
    return "tl:backlog:{all}", "tl:backlog:{all}:lease"


def stream(name: str) -> str:
    """Return the key that says which incarnation of the NATS stream *name* is known to have every open task."""
    return f"tl:stream:{{{check_name(name, 'stream')}}}"


def request(digest: str) -> key_parts.RequestKeys:
    """Return the keys of a request over HTTP."""
    root = f"tl:request:{{{check_name(digest, 'request digest')}}}"
    return key_parts.RequestKeys(root, f"{root}:held", f"{root}:reply")


def user_requests(user_token: str) -> str:
    """Return the key that lists the requests with replies to a user."""
    return f"tl:user-requests:{{{check_token(user_token)}}}"


def task_tag(task_id: str) -> str:
    """Return the tag of all that lies beside the entry of a task."""
    # The common id is its own spelling: this runs for every task.
    return f"{{{task_id if _PLAIN_ID.match(task_id) else escape(task_id, 'task id')}}}"
