"""The Redis keys of rows that wait."""

from tasklore.memory.key_parts import QueueKeys, check_queue, check_token


def queue(name: str, owner_token: str) -> QueueKeys:
    """Return the keys of what waits for *owner_token* in the queue *name*, `turns` or `facts`."""
    rows = f"tl:{check_queue(name)}:{{{check_token(owner_token)}}}"
    return QueueKeys(
        rows,
        *(
            f"{rows}:{part}"
            for part in ("pending", "state", "closed", "lease", "fence")
        ),
    )


def owners(name: str) -> str:
    """Return the key of the owners whose rows wait in the queue *name*."""
    return f"tl:owners:{{{check_queue(name)}}}"
