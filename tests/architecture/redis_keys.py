"""The page of the Redis keys: `python -m tests.architecture.redis_keys > docs/reference/redis-keys.md`."""

import sys

from tasklore.memory.stores import STORES

_HEAD = """# Redis keys

Every key in Redis or Valkey, as each store declares it in `memory/NOUN/declaration.py`. A `{...}` is one hash tag of a
cluster, and all keys of one user, session, story or project lie in one slot. `{token}` is the unpadded base64url of a
user id; what begins with `:` follows the tag of the key before. [memory](memory.md), [sessions](sessions.md) and
[projects](projects.md) describe layouts that other programs may read, and
[security](security.md#what-each-role-can-gain) who reaches which. Made by `make generated`.

| key | type | time to live | forgotten as | meaning |
|---|---|---|---|---|
"""
_BOUNDS = """
`forgotten as` is what `tasklore memory forget` counts that; `-` where nothing of a user is, `its end` where words end
within days by themselves.

## What bounds them

Words such as `tasks` are the kinds of [what one owner may keep](deploy.md#what-one-owner-may-keep), where numbers by
maker stand too.

| store | kinds of keys | bounded by |
|---|---|---|
"""


def page() -> str:
    """Return the page: the keys of every store, and what bounds each store."""
    keys = [
        (
            ", ".join(f"`{name}`" for name in key.names),
            key.type,
            key.lasts,
            key.forgotten,
            key.holds,
        )
        for store in STORES
        for key in store.keys
    ]
    bounds = [
        (store.name, ", ".join(f"`{kind}`" for kind in store.kinds), store.bound)
        for store in STORES
    ]
    return _HEAD + _table(keys) + _BOUNDS + _table(bounds)


def _table(rows: list[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    sys.stdout.write(page())
