"""The Lua of what the models of runs saw: one script in the slot of a task, the others in that of its agent.

Each may be sent again when its reply was lost: messages then are there twice.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

APPEND = load(_HERE, "append", "refuse")
NOTE = load(_HERE, "note", "refuse")
UNLIST = load(_HERE, "unlist", "finish")
