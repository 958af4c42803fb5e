"""The Lua of the outbox of webhooks: each script is given all of its keys, which are in one slot.

Each may be sent again when its reply was lost.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

PUT = load(_HERE, "put", "refuse")
AWAIT = load(_HERE, "await", "refuse")
DUE = load(_HERE, "due", "finish")
TAKE = load(_HERE, "take", "finish")
OLDEST = load(_HERE, "oldest", "read")
NOTE = load(_HERE, "note", "finish")
REMOVE = load(_HERE, "remove", "finish")
