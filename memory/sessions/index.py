"""The list of sessions, newest first, and which of them were started for a user.

A session is listed before it is made, and taken out once it is gone, with a grace for one that is just being made:
there may be a name in the list without a session, but no session without its name.
"""

from collections.abc import Sequence
from typing import NamedTuple

from redis.asyncio import Redis

from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.key_parts import token_of
from tasklore.memory.sessions import scripts as session_scripts


class ListPlace(NamedTuple):
    """A place in the list: a session, and its last update in ms since 1970 by the server's clock."""

    listed_ms: int
    session_id: str


class SessionList:
    """Lists sessions in Redis, by *exchange*; every method may raise MemoryUnavailable."""

    def __init__(self, exchange: CommandBatch) -> None:
        self._batch = exchange
        self._key = keys.index("sessions")

    def listing(self, session_id: str) -> Command:
        """Return the command that lists a session as updated now; its reply is for `taking_out`."""
        return ("FCALL", session_scripts.LIST, 1, self._key, session_id)

    def taking_out(
        self, session_id: str, score: bytes | int | str, grace_ms: int = 0
    ) -> Command:
        """Return the command that takes a session out, unless it was listed anew since, or within *grace_ms*."""
        return (
            "FCALL",
            session_scripts.UNLIST,
            1,
            self._key,
            session_id,
            score,
            grace_ms,
        )

    async def after(self, place: ListPlace | None, count: int) -> list[ListPlace]:
        """Return up to *count* places behind *place*, newest first; none is left when there are none."""
        offset = 0
        highest = "+inf" if place is None else place.listed_ms
        while True:
            command = (
                "FCALL",
                session_scripts.LISTED,
                1,
                self._key,
                highest,
                offset,
                count,
            )
            reply = (await self._batch.run([command]))[0]
            found = [
                ListPlace(int(float(reply[at + 1])), reply[at].decode())
                for at in range(0, len(reply), 2)
            ]
            behind = found if place is None else [one for one in found if one < place]
            if behind or len(found) < count:
                return behind
            offset += count

    async def of_user(self, user_id: str) -> list[str]:
        """Return the ids of the sessions that were started for a user, sorted; some may be gone."""
        reply = (
            await self._batch.run(
                [("SMEMBERS", keys.user_sessions(_token_of(user_id)))]
            )
        )[0]
        return sorted(name.decode() for name in reply)


def _token_of(user_id: str) -> str:
    return token_of(user_id, "a user id is empty; leave it out, or send the user's id")


def noting_user(user_id: str, session_id: str) -> list[Command]:
    """Return the commands that note that a session was started for a user, until it is dropped or they are forgotten.

    A note must not be over before its session is, which may live as long as it is updated.
    """
    key = keys.user_sessions(_token_of(user_id))
    return [("SADD", key, session_id), ("PERSIST", key)]


def forgetting(session_id: str, user_id: str, supervisor_id: str) -> list[Command]:
    """Return the commands that take a session that is gone out of every list; "" for none."""
    commands: list[Command] = [("ZREM", keys.index("sessions"), session_id)]
    if user_id:
        commands.append(("SREM", keys.user_sessions(_token_of(user_id)), session_id))
    if supervisor_id:
        commands.append(("ZREM", keys.running(supervisor_id), session_id))
        held = keys.run_hold(session_id)
        commands.append(("HDEL", keys.run_makers(), session_id, held))
    return commands


class RunOutcomes:
    """Removes the records of runs that outlive their sessions. MemoryUnavailable after `deadline_s` for one call."""

    def __init__(self, client: Redis, *, deadline_s: float = 1.0) -> None:
        self._batch = CommandBatch(client, deadline_s)

    async def drop(self, session_ids: Sequence[str]) -> int:
        """Remove the ends of the runs of *session_ids*, and return how many there were."""
        commands: list[Command] = [
            ("UNLINK", keys.run(session_id)) for session_id in session_ids
        ]
        return sum(await self._batch.run(commands))

    async def disown(self, user_id: str, session_ids: Sequence[str]) -> None:
        """Note no longer that *session_ids* were started for *user_id*."""
        if session_ids:
            await self._batch.run(
                [("SREM", keys.user_sessions(user_token(user_id)), *session_ids)]
            )
