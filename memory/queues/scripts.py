"""The Lua of the waiting rows: each script touches one hash tag, that of a user or that of an index of owners.

Each may be sent again when its reply was lost. A look says from when it pays to claim: 0 at once, -1 never as nothing
waits, PARKED never until rows are resumed, else ms since 1970 when a lease ends or the first row is due.

The hash `state` holds `s:{id}`, the JSON of the state of a row; `n:{id}`, its note, and `t:{id}`, its trace, until it
is closed; `c:{outcome}`, how many closed rows there are; and `open`, which rows the last claim took, until it is given
back: the next claim that finds it knows that those runs ended without a word. Rows are numbered by the microsecond of
their arrival, each above the one before; leases are numbered alike, so that no number comes again, even after
everything of a user was forgotten.
"""

from pathlib import Path

from tasklore.memory.scripts import load

#: Added to the number of a row that left the order: above any number (microseconds since 1970) until 2112, and small
#: enough that the sum is still exact in a double. As the score of an owner: nothing waits but parked rows.
PARKED = 2**52

_HERE = Path(__file__).parent

APPEND_ROWS = load(_HERE, "append_rows", "refuse")
CLAIM_ROWS = load(_HERE, "claim_rows", "refuse")
RENEW_CLAIM = load(_HERE, "renew_claim", "finish")
RELEASE_CLAIM = load(_HERE, "release_claim", "finish")
CLOSE = load(_HERE, "close", "finish")
HAND_OVER = load(_HERE, "hand_over", "refuse")
RESUME_ROWS = load(_HERE, "resume_rows", "refuse")
LOOK = load(_HERE, "look", "read")
READ_ROWS = load(_HERE, "read_rows", "read")
OWNERS_DUE = load(_HERE, "owners_due", "read")
MARK_OWNER = load(_HERE, "mark_owner", "refuse")
SETTLE_OWNER = load(_HERE, "settle_owner", "finish")
