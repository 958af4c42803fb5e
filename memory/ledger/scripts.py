"""The Lua of the ledger, each script with one hash tag; some have further keys of the same slot.

Each may be sent again when its reply was lost: only the count of refused reports can then count twice.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

BEGIN = load(_HERE, "begin", "refuse")
HOLD = load(_HERE, "hold", "finish")
RELEASE_RUN = load(_HERE, "release_run", "finish")
WAKE = load(_HERE, "wake", "refuse")
NOTE_WAIT = load(_HERE, "note_wait", "refuse")
PARK = load(_HERE, "park", "refuse")
FINISH = load(_HERE, "finish", "refuse")
CANCEL = load(_HERE, "cancel", "refuse")
CANCEL_UNNAMED = load(_HERE, "cancel_unnamed", "refuse")
CANCEL_ELSEWHERE = load(_HERE, "cancel_elsewhere", "refuse")
ONCE = load(_HERE, "once", "refuse")
JOURNAL = load(_HERE, "journal", "refuse")
ACCEPT = load(_HERE, "accept", "refuse")
LIST_CHILD = load(_HERE, "list_child", "refuse")
WAIT = load(_HERE, "wait", "refuse")
ASK = load(_HERE, "ask", "refuse")
ANSWER = load(_HERE, "answer", "refuse")
REFUSE_ANSWER = load(_HERE, "refuse_answer", "refuse")
CLAIM_WAIT = load(_HERE, "claim_wait", "finish")
OPEN_WAITS = load(_HERE, "open_waits", "read")
NOTE_NOTICES = load(_HERE, "note_notices", "refuse")
READ_WAIT = load(_HERE, "read_wait", "read")
TRACE = load(_HERE, "trace", "read")
LIST_RUN = load(_HERE, "list_run", "refuse")
READ_RUNS = load(_HERE, "read_runs", "read")
FORGET_RUNS = load(_HERE, "forget_runs", "finish")
CLOSE_RUNS = load(_HERE, "close_runs", "finish")
GLANCE = load(_HERE, "glance", "read")
READ_ENTRY = load(_HERE, "read_entry", "read")
FIND_REPORT = load(_HERE, "find_report", "read")
READ_END = load(_HERE, "read_end", "read")
FORGET_REPLY = load(_HERE, "forget_reply", "finish")
REMOVE = load(_HERE, "remove", "finish")
CONVERT = load(_HERE, "convert", "refuse")
DROP_UNKNOWN = load(_HERE, "drop_unknown", "finish")
MARK = load(_HERE, "mark", "refuse")
STRIP = load(_HERE, "strip", "refuse")
