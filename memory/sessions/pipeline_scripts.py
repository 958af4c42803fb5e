"""The Lua of pipeline runs: each script touches one hash tag, that of a session or that of an index of running ones.

Each may be sent again when its reply was lost. The index of running sessions has another tag. It is marked before a run
begins to run, and a session in it that does not run is taken out only after a grace, longer than any call takes, so
that no run is forgotten, whatever process dies between two steps.
"""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

CREATE = load(_HERE, "run_create", "refuse")
READ_RUN = load(_HERE, "run_read", "finish")
CLAIM_RUN = load(_HERE, "run_claim", "refuse")
RENEW_RUN = load(_HERE, "run_renew", "finish")
GIVE_BACK = load(_HERE, "run_give_back", "finish")
LOOK_AT_RUN = load(_HERE, "run_look_at", "finish")
BEGIN_PHASE = load(_HERE, "run_begin_phase", "refuse")
SETTLE_PHASE = load(_HERE, "run_settle_phase", "refuse")
RESET_PHASES = load(_HERE, "run_reset_phases", "refuse")
END_RUN = load(_HERE, "run_end", "finish")
WISH = load(_HERE, "run_wish", "finish")
NOTE_SEEN = load(_HERE, "run_note_seen", "refuse")
NOTE_LATE = load(_HERE, "run_note_late", "finish")
NOTE_PROGRESS = load(_HERE, "run_note_progress", "finish")
RUNNING_DUE = load(_HERE, "run_due", "read")
MARK = load(_HERE, "run_mark", "refuse")
UNMARK = load(_HERE, "run_unmark", "finish")
