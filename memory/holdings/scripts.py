"""The Lua of the holdings: each script is given all of its keys, which are in one slot.

One that is sent again since its reply was lost counts things without an id twice.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

TAKE = load(_HERE, "take", "refuse")
END = load(_HERE, "end", "finish")
