"""The Lua of tombstones: each script touches one hash tag, that of a user, and may be sent again."""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

HIDE = load(_HERE, "hide", "refuse")
BRING_BACK = load(_HERE, "bring_back", "refuse")
