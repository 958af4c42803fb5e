"""The page of the Redis keys: `python -m tests.architecture.redis_keys > docs/reference/redis-keys.md`."""

import re
import sys

from tasklore.memory import keys

_HEAD = """# Redis keys

Every key in Redis or Valkey, from `memory/keys.py`. A `{...}` is one hash tag of a cluster, and all keys of one user,
session, story or project lie in one slot. `{token}` is the unpadded base64url of a user id. [memory](memory.md),
[sessions](sessions.md) and [projects](projects.md) describe layouts that other programs may read. Made by
`make generated`.

"""


def page() -> str:
    """Return the page: the table of the docstring of `tasklore.memory.keys`, without its references to modules."""
    rows = re.findall(r"^\|.*\|$", keys.__doc__ or "", re.MULTILINE)
    return _HEAD + "\n".join(re.sub(r", see `[^`]+`", "", row) for row in rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
