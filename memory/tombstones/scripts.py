"""The Lua of tombstones: each script touches one hash tag, of a user or of a conversation, and may be sent again."""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

HIDE = load(_HERE, "hide", "refuse")
BRING_BACK = load(_HERE, "bring_back", "refuse")
HIDE_TALK = load(_HERE, "hide_talk", "refuse")
SHOW_TALK = load(_HERE, "show_talk", "refuse")
