"""The Lua of stories and their analyses: each script touches one hash tag.

Each may be sent again when its reply was lost. Values pass through as they are: nothing is decoded there. A key that
holds another type is not ours: READ finds nothing in it, and a script that writes replaces it.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

READ = load(_HERE, "read", "read")
LOAD = load(_HERE, "load", "refuse")
PUT_RESPONSE = load(_HERE, "put_response", "refuse")
FOLD = load(_HERE, "fold", "refuse")
DELETE = load(_HERE, "delete", "finish")
MARK = load(_HERE, "mark", "refuse")
RENEW = load(_HERE, "renew", "finish")
DUE = load(_HERE, "due", "finish")
