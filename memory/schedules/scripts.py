"""The Lua of schedules: each script touches the keys of one supervisor id, which share a hash tag.

Each may be sent again when its reply was lost.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

PUT = load(_HERE, "put", "refuse")
DUE = load(_HERE, "due", "finish")
ADVANCE = load(_HERE, "advance", "finish")
REMOVE = load(_HERE, "remove", "finish")
