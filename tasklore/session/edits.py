"""`tasklore session invalidate|drop|sweep`: dropping what is stale or over."""

from contracts.errors import InvalidInput
from contracts.identifiers import checked_name
from contracts.session_keys import read_key
from memory.sessions.session import SessionRoot
from tasklore.pipeline.stores import Stores, open_stores
from tasklore.render.screen import patience, print_json, printable, say
from tasklore.render.words import count_of
from tasklore.session.views import root_of


async def invalidate_aloud(
    session_id: str, *, key: str | None, phase: str | None, downstream: str | None, as_json: bool
) -> None:
    """Remove the entry *key*, those of *phase*, or those of what depends on *downstream*, and print which.

    Raises:
        InvalidInput: none or several of the three are given, or one is not spelled as it has to be.
        UnknownSession: there is none.
        Unreachable: Redis does not answer.
    """
    if sum(one is not None for one in (key, phase, downstream)) != 1:
        raise InvalidInput("say what is stale: --key, --phase or --downstream, one of the three")
    async with open_stores("tasklore-session") as stores, patience("removing entries"):
        root = await root_of(stores, session_id)
        removed = await _removed(stores, root, key=key, phase=phase, downstream=downstream)
    if as_json:
        print_json({"session_id": session_id, "removed": list(removed)})
        return
    print(f"Removed {count_of(len(removed), 'entry')}." if removed else "Nothing fits; nothing was removed.")
    for one in removed:
        print(f"  {printable(one)}")
    if root.pipeline and removed:
        say(
            "its pipeline does not know of that before it is resumed; "
            f"`tasklore pipeline invalidate {session_id}` also marks phases stale"
        )


async def _removed(
    stores: Stores, root: SessionRoot, *, key: str | None, phase: str | None, downstream: str | None
) -> tuple[str, ...]:
    if key is not None:
        read_key(key)
        return (key,) if await stores.cache.delete(root.session_id, key) else ()
    if phase is not None:
        return await stores.cache.invalidate_phases(root.session_id, [checked_name(phase, "--phase")])
    return await stores.cache.invalidate_downstream(root.session_id, checked_name(downstream or "", "--downstream"))


async def drop_aloud(session_id: str, *, is_forced: bool, as_json: bool = False) -> None:
    """Remove a session with everything in it, one that runs only when *is_forced*, and say so.

    Raises:
        UnknownSession: there is none.
        InvalidInput: it runs.
        Unreachable: Redis does not answer.
    """
    async with open_stores("tasklore-session") as stores:
        await root_of(stores, session_id)
        await stores.cache.drop(session_id, force=is_forced)
    if as_json:
        print_json({"session_id": session_id, "dropped": True})
        return
    print(f"Dropped {session_id}.")


async def sweep_aloud(*, as_json: bool) -> None:
    """Drop expired entries and sessions that are gone, and print which sessions those were.

    Raises:
        Unreachable: Redis does not answer.
    """
    async with open_stores("tasklore-session") as stores, patience("sweeping"):
        gone = await stores.cache.sweep()
    if as_json:
        print_json({"swept": gone})
        return
    print(f"Swept {count_of(len(gone), 'session')} away." if gone else "Nothing was over.")
    for one in gone:
        print(f"  {printable(one)}")
