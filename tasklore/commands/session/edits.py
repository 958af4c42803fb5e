"""`tasklore session invalidate|drop|sweep`: remove stale entries, and sessions that are over."""

from tasklore.commands.pipeline.stores import open_stores
from tasklore.commands.render.screen import patience, print_json, printable, say
from tasklore.commands.render.words import count_of
from tasklore.commands.session.views import find_root
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.session_keys import read_key


async def invalidate_entries(
    session_id: str,
    *,
    key: str | None,
    phase: str | None,
    downstream: str | None,
    as_json: bool,
) -> None:
    """Remove the entry *key*, those of *phase*, or those of what depends on *downstream*, and print them.

    Raises:
        InvalidInput: not one of the three is given, or it is misspelled.
        UnknownSession: there is no such session.
        Unreachable: Redis does not answer.
    """
    if sum(one is not None for one in (key, phase, downstream)) != 1:
        raise InvalidInput(
            "say what is stale: --key, --phase or --downstream, one of the three"
        )
    async with open_stores("tasklore-session") as stores, patience("removing entries"):
        root = await find_root(stores, session_id)
        if key is not None:
            read_key(key)
            removed: tuple[str, ...] = (
                (key,) if await stores.cache.delete(session_id, key) else ()
            )
        elif phase is not None:
            removed = await stores.cache.invalidate_phases(
                session_id, [checked_name(phase, "--phase")]
            )
        else:
            name = checked_name(downstream or "", "--downstream")
            removed = await stores.cache.invalidate_downstream(session_id, name)
    if as_json:
        print_json({"session_id": session_id, "removed": list(removed)})
        return
    print(
        f"Removed {count_of(len(removed), 'entry')}."
        if removed
        else "Nothing fits; nothing was removed."
    )
    for one in removed:
        print(f"  {printable(one)}")
    if root.pipeline and removed:
        say(
            "its pipeline does not know of that before it is resumed; "
            f"`tasklore pipeline invalidate {session_id}` also marks phases stale"
        )


async def drop_session(
    session_id: str, *, is_forced: bool, as_json: bool = False
) -> None:
    """Remove a session with its entries, one that runs only when *is_forced*, and print that.

    Raises:
        UnknownSession: there is no such session.
        InvalidInput: it runs.
        Unreachable: Redis does not answer.
    """
    async with open_stores("tasklore-session") as stores:
        await find_root(stores, session_id)
        await stores.cache.drop(session_id, force=is_forced)
    if as_json:
        print_json({"session_id": session_id, "dropped": True})
        return
    print(f"Dropped {session_id}.")


async def sweep_sessions(*, as_json: bool) -> None:
    """Drop expired entries and sessions, and print those sessions.

    Raises:
        Unreachable: Redis does not answer.
    """
    async with open_stores("tasklore-session") as stores, patience("sweeping"):
        gone = await stores.cache.sweep()
    if as_json:
        print_json({"swept": gone})
        return
    print(
        f"Swept {count_of(len(gone), 'session')} away." if gone else "Nothing was over."
    )
    for one in gone:
        print(f"  {printable(one)}")
