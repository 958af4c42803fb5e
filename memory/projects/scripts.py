"""The Lua of project memories: each script touches one hash tag, that of a project. None of them removes a record.

A record is stored as `at redacted body` (times in ms, redacted 0 when it is not). Its line in `words` is
` :kind #tag word word `: tags percent-escaped, so that a word begins behind a space and a whole tag ends before one.
Each index is a sorted set of ids by their place in the order: the time in 1,024ths of a millisecond, of which each
record has its own. A mark, a count and an id, changes with the records of a kind and a tag.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

APPEND = load(_HERE, "append", "refuse")
SEARCH = load(_HERE, "search", "read")
FOLLOW = load(_HERE, "follow", "read")
REDACT = load(_HERE, "redact", "finish")
