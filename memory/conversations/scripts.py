"""The Lua of conversations and of what waits for them: each script touches one hash tag, that of a conversation.

Messages are numbered from 1 as they enter a conversation, however many of them are still there. Only REPLACE writes a
body anew; a removed message leaves an empty body, so that the others keep their numbers.

State holds `total` messages, how many were `seen`, the numbers of its `own` ones behind where some task begins, and a
line for each of the last `tasks`: id, from, upto, 1 when it settled. Digest holds `count`, `since`, `until`, `by:` and
a speaker each, `summary`, `summarised`, and how many `removals` there were. A summary is kept when so many left the
window, fewer are summarised, and nothing was removed since it was begun. `gone` is how many of the first messages are
no longer there.

Each may be sent again when its reply was lost. A key that holds another type is not ours: it is replaced.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

SAY = load(_HERE, "say", "refuse")
POST = load(_HERE, "post", "refuse")
TAKE = load(_HERE, "take", "refuse")
SETTLE = load(_HERE, "settle", "refuse")
SUMMARISE = load(_HERE, "summarise", "refuse")
PAGE = load(_HERE, "page", "finish")
RECENT = load(_HERE, "recent", "finish")
WAITING = load(_HERE, "waiting", "finish")
REMOVE = load(_HERE, "remove", "finish")
REPLACE = load(_HERE, "replace", "refuse")
NOTE = load(_HERE, "note", "refuse")
OBSERVED = load(_HERE, "observed", "finish")
