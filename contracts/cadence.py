"""When the loops of a process look for what is due, or has changed: all of them in one turn of the event loop.

Their commands then go out in one write, and their replies come with one read: waking up costs a server that has little
to do more than the commands. Each process looks at moments of its own.
"""

import random

#: Seconds between two sweeps of expired items and sessions; these are never shown, swept or not.
EXPIRY_SWEEP_S = 3600.0
#: Seconds by which the looks of this process are moved against those of others.
_MOVED_S = random.uniform(0.0, 60.0)  # noqa: S311 - no secret
#: Seconds before a look within which the next one but that is meant: a timer may be early by its resolution.
_SAME_S = 0.01


def until_look(now: float, every_s: float) -> float:
    """Return the seconds until the next of the looks that this process takes *every_s*, by the clock of its loop."""
    left_s = every_s - (now + _MOVED_S) % every_s
    return left_s if left_s > _SAME_S else left_s + every_s
