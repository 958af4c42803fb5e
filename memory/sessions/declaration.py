"""The declaration of sessions."""

from collections.abc import Sequence

from redis.asyncio import Redis

from tasklore.memory.declarations import (
    EVERY_ROLE,
    Store,
    StoreKey,
    StoreRole,
    UserStore,
)
from tasklore.memory.sessions import pipeline_scripts, scripts
from tasklore.memory.sessions.index import RunOutcomes
from tasklore.memory.sessions.session import SessionCache


def _open(redis: Redis, deadline_s: float) -> UserStore:
    """Open sessions that were started for a user, running ones too, and the outcomes of their runs."""
    sessions = SessionCache(redis, deadline_s=deadline_s)
    outcomes = RunOutcomes(redis, deadline_s=deadline_s)

    async def drop(listed: Sequence[str]) -> int:
        return sum(
            [await sessions.drop(session_id, force=True) for session_id in listed]
        )

    async def forget(user_id: str) -> dict[str, int]:
        listed = await sessions.of_user(user_id)
        dropped = await drop(listed)
        ended = await outcomes.drop(listed)
        await outcomes.disown(user_id, listed)
        # One may have been made, or have ended, while it stood in no list.
        return {
            "sessions": dropped + await drop(listed),
            "outcomes": ended + await outcomes.drop(listed),
        }

    async def count(user_id: str) -> dict[str, int]:
        return {"sessions": len(await sessions.of_user(user_id))}

    return UserStore("sessions", forget, count)


STORES = (
    Store(
        name="sessions",
        keys=(
            StoreKey(
                names=("tl:session:{id}",),
                type="hash",
                lasts="from its last update, none while its pipeline runs",
                holds="a session",
                forgotten_as=("sessions",),
            ),
            StoreKey(
                names=("tl:session:{id}:entries",),
                type="hash",
                lasts="the same",
                holds="its entries: a body by its key, its head by `:` and its key",
                forgotten_as=("sessions",),
            ),
            StoreKey(
                names=("tl:session:{id}:hits", ":uses"),
                type="hash, set",
                lasts="the same",
                holds="how often each entry was used; readers that are counted",
                forgotten_as=("sessions",),
            ),
            StoreKey(
                names=("tl:session:{id}:phases", ":tasks"),
                type="hash",
                lasts="the same",
                holds="how far each phase is; the task that may write for it",
                forgotten_as=("sessions",),
            ),
            StoreKey(
                names=("tl:session:{id}:corrected", ":seen"),
                type="hash",
                lasts="the same",
                holds="phases that others replace; what each read beside",
                forgotten_as=("sessions",),
            ),
            StoreKey(
                names=("tl:session:{id}:lease",),
                type="hash",
                lasts="the lease",
                holds="which supervisor drives the run: `holder`, `fence`",
                forgotten_as=("sessions",),
            ),
            StoreKey(
                names=("tl:sessions:{index}",),
                type="sorted set",
                lasts="none",
                holds="every session, by its last update in ms",
            ),
        ),
        bound="`runs`; values of phases by the code of agents and `TASKLORE_SESSION_VALUE_MAX_BYTES`",
        writers=EVERY_ROLE,
        scripts=(scripts, pipeline_scripts),
        of_users=_open,
    ),
    Store(
        name="pipeline runs",
        keys=(
            StoreKey(
                names=("tl:running:{supervisor}",),
                type="sorted set",
                lasts="none",
                holds="sessions whose pipelines run, by when to look at them next, in ms",
            ),
            StoreKey(
                names=("tl:running:{~makers}",),
                type="hash",
                lasts="none",
                holds="who asked for each of them, by session id, and why one rests",
                forgotten_as=("sessions",),
            ),
            StoreKey(
                names=("tl:run:{id}",),
                type="string",
                lasts="1 day",
                holds="the end of a run, for requests after its session",
                forgotten_as=("sessions",),
            ),
            StoreKey(
                names=("tl:user-sessions:{token}",),
                type="set",
                lasts="none",
                holds="sessions that were started for a user, so that forgetting finds them",
                forgotten_as=("sessions",),
            ),
        ),
        bound="`runs`",
        writers=(StoreRole.SUPERVISOR,),
    ),
)
