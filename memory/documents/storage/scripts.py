"""The Lua of JSON memory documents: each script touches one hash tag, that of a user.

Beside the plans, under names that no plan id can have, their hash keeps `#last` (the number of the last plan),
`#resources` (which documents are stored), `id#` (in how many logs a plan of several documents still stands) and `id!`
(the plan that took it back). A plan is dropped with its last log entry.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

READ = load(_HERE, "read", "read")
ENTRIES = load(_HERE, "entries", "read")
COMMIT = load(_HERE, "commit", "refuse")
FORGET = load(_HERE, "forget", "finish")
