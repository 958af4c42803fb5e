"""The Lua of places, each script over the four keys of one bound."""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

TAKE = load(_HERE, "take", "refuse")
QUEUE = load(_HERE, "queue", "refuse")
LEAVE = load(_HERE, "leave", "finish")
HOLD = load(_HERE, "hold", "finish")
