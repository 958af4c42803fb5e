"""The Lua of long-term memory, of its near matches and of single flight, each script with one hash tag.

Each may be sent again when its reply was lost: only hits can then count twice.
"""

from pathlib import Path

from tasklore.memory.scripts import load

#: Places of expired entries that storing one entry removes: in the long run more than expire meanwhile.
MOST_EXPIRED = 50

_HERE = Path(__file__).parent

COUNT_HITS = load(_HERE, "count_hits", "refuse")
NOTE_USER = load(_HERE, "note_user", "refuse")
NOTE_SERVED = load(_HERE, "note_served", "refuse")
LEASE = load(_HERE, "lease", "refuse")
RENEW = load(_HERE, "renew", "finish")
RELEASE = load(_HERE, "release", "finish")
REMEMBER = load(_HERE, "remember", "refuse")
AROUND = load(_HERE, "around", "read")
NEAREST = load(_HERE, "nearest", "finish")
FORGET = load(_HERE, "forget", "finish")
TRIM_INDEX = load(_HERE, "trim_index", "finish")
