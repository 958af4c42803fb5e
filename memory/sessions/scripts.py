"""The Lua of sessions: each script touches one hash tag, that of a session or that of the list of sessions.

Each may be sent again when its reply was lost; only a use without a reader can then count twice. An entry is stored as
`tasklore.memory.sessions.entries` says. A key that holds another type is not ours: it is replaced. Where there is no
session a script returns nil, GET nothing for any key. LIST is sent before a session is made, so that none can be
there unlisted.
"""

from pathlib import Path

from tasklore.memory.scripts import load, read

_HERE = Path(__file__).parent

#: Lua functions for other scripts of sessions.
CALLS = read(_HERE / "calls.lua")
#: Lua functions for other scripts that change a session, CALLS among them.
TOUCH = read(_HERE / "touch.lua")

CREATE = load(_HERE, "create", "refuse")
READ_ROOT = load(_HERE, "read_root", "finish")
GET = load(_HERE, "get", "refuse")
SET = load(_HERE, "set", "refuse")
DELETE = load(_HERE, "delete", "finish")
INVALIDATE = load(_HERE, "invalidate", "finish")
CLEAR = load(_HERE, "clear", "finish")
CLEANUP = load(_HERE, "cleanup", "finish")
ENTRIES = load(_HERE, "entries", "finish")
LOAD = load(_HERE, "load", "refuse")
DROP = load(_HERE, "drop", "finish")
LIST = load(_HERE, "list", "refuse")
UNLIST = load(_HERE, "unlist", "finish")
LISTED = load(_HERE, "listed", "finish")
