"""The Lua of owned records: each script touches the keys of one set of records, which share a hash tag.

Each may be sent again when its reply was lost.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

PUT = load(_HERE, "put", "refuse")
TAKE = load(_HERE, "take", "finish")
NOTE = load(_HERE, "note", "finish")
REMOVE = load(_HERE, "remove", "finish")
