"""Runs of pipelines in Valkey: who drives each, and how far its phases are.

A run lies in its session, under one tag, and changes in scripts by the server's clock. Whoever drives it holds a lease
with a number that only grows: of a driver whose lease was taken by another nothing is accepted any more. Beside that an
index tells which sessions run, and when somebody has to look at each: when its lease ends. Who asked for a run that
goes on is noted beside the index, since workers write sessions.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, cast

from pydantic import JsonValue, ValidationError
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidPipeline, RunSetAside, UnknownSession
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.message_parts import Part
from tasklore.contracts.pipelines import Pipeline
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.sessions import pipeline_scripts
from tasklore.memory.sessions import scripts as session_scripts
from tasklore.memory.sessions.entries import root_words
from tasklore.memory.sessions.index import noting_user
from tasklore.memory.sessions.pipeline_records import (
    MOST_LAPSES,
    SET_ASIDE,
    EndState,
    NewRun,
    PhaseState,
    Redeclared,
    RunRecord,
    RunState,
    error_type_of,
    is_set_aside,
    phase_in,
)

__all__ = ["KEEP_OUTCOME", "PipelineRuns"]

#: How long it is told how a run ended.
KEEP_OUTCOME = timedelta(days=1)
#: How long a run that is set aside is there at least, for somebody to look at.
_KEEP_ASIDE = timedelta(days=7)
#: Milliseconds that a session may stand in the index without running: above any deadline of a call that makes it run.
GRACE_MS = 10_000


class _Maker(Part):
    """Who asked for a run, and the user whom its tasks are for."""

    caller: Caller | None = None
    user_id: str | None = None


class PipelineRuns:
    """Keeps every run.

    Each method may raise MemoryUnavailable, after which it is not known whether it was done; doing it again is safe.

    Args:
        client: A client that does not decode responses.
        deadline_s: Seconds for one round trip.
        new_token: Names a call, so that one repeated after a lost reply is not refused by itself.
    """

    def __init__(
        self,
        client: Redis,
        *,
        deadline_s: float = 1.0,
        new_token: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)
        self._new_token = new_token

    async def create(self, new: NewRun) -> bool:
        """Make the session and its run, due at once unless it is made as failed; False when the id is taken.

        It is as long as it is told how a run of it ended, unless that one is made again as failed.
        """
        if await self._is_taken(new):
            return False
        listed = (
            "FCALL",
            session_scripts.LIST,
            1,
            keys.index("sessions"),
            new.session_id,
        )
        # For good: forgetting them has to find a session however long it lives.
        noted = [] if new.user_id is None else noting_user(new.user_id, new.session_id)
        commands: list[Command] = [*noted, listed]
        if new.state == "running":
            commands.append(_mark(keys.running(new.supervisor_id), new.session_id))
        phases = {
            phase.name: _spelled(new.phases.get(phase.name, PhaseState()))
            for phase in new.pipeline.phases
        }
        made = _script(
            pipeline_scripts.CREATE,
            new.session_id,
            self._new_token(),
            int(new.state == "running"),
            *_root_of(new),
            *_words(phases),
            *_words(new.corrected),
            *_words({phase: _json(dict(marks)) for phase, marks in new.seen.items()}),
        )
        # Listed before it is made: a session that nobody can find would be worse than a listed one that is not there.
        # So is its maker: a run whose maker is not known would be that of whoever its session names.
        if new.state == "running":
            commands.append(
                _noting(new.session_id, new.caller, new.user_id, is_new=True)
            )
        replies = await self._batch.run([*commands, made])
        is_made = bool(replies[-1])
        if noted and replies[0] and not is_made:
            await self._unlist_unless_of(new)
        if new.state != "running":
            return is_made
        is_noted = replies[-2]
        if is_made and not is_noted:
            # What was noted is left from a run that an earlier version ended.
            await self._batch.run([_noting(new.session_id, new.caller, new.user_id)])
        elif is_noted and not is_made:
            await self._batch.run([_dropping(new.session_id)])
        return is_made

    async def _is_taken(self, new: NewRun) -> bool:
        """Return whether the script would refuse *new*: lists of other slots are written to only where it may not."""
        # What is no hash was written by somebody else, and is replaced.
        kind, has_ended = await self._batch.run(
            [
                ("TYPE", keys.session(new.session_id).root),
                ("EXISTS", keys.run(new.session_id)),
            ]
        )
        return kind == b"hash" or bool(has_ended and new.state == "running")

    async def _unlist_unless_of(self, new: NewRun) -> None:
        """List a session that was taken no longer as that of the user of *new*, unless it is theirs."""
        if (
            new.user_id is not None
            and await self.user_of(new.session_id) != new.user_id
        ):
            users = keys.user_sessions(user_token(new.user_id))
            await self._batch.run([("SREM", users, new.session_id)])

    async def read(self, session_id: str) -> RunRecord | None:
        """Return the run, None when there is no such session, its time is over, or no pipeline runs in it.

        Raises:
            InvalidPipeline: what is kept cannot be read; a newer version made it.
        """
        [found] = await self.read_many([session_id])
        if isinstance(found, InvalidPipeline):
            raise found
        return found

    async def read_many(
        self, session_ids: Sequence[str]
    ) -> list[RunRecord | InvalidPipeline | None]:
        """Return each run as `read` does, in one round trip; the error in place of one that cannot be read."""
        replies = await self._batch.run(
            [
                command
                for one in session_ids
                for command in (
                    _script(pipeline_scripts.READ_RUN, one),
                    _reading(one),
                )
            ]
        )
        return [
            _read_record(found, maker)
            for found, maker in zip(replies[::2], replies[1::2], strict=True)
        ]

    async def claim(
        self,
        session_id: str,
        holder: str,
        lease_ms: int,
        most_lapses: int = MOST_LAPSES,
    ) -> int | None:
        """Return the fencing number of a lease of *lease_ms*; None: another holds one, or it does not run.

        A second claim by the same *holder* is another's too. With 0 for *most_lapses* a lease that lapsed is no sign
        that its holder froze or died.

        Raises:
            RunSetAside: the third holder in turn froze or died before a phase was settled; the run has failed.
        """
        told = {
            "session_id": session_id,
            "state": "failed",
            "error": SET_ASIDE,
            "phases": [],
        }
        aside = (
            SET_ASIDE,
            RunSetAside.__name__,
            _json(told),
            _KEEP_ASIDE // timedelta(milliseconds=1),
        )
        words = holder, self._new_token(), lease_ms, most_lapses, *aside
        claimed = _script(pipeline_scripts.CLAIM_RUN, session_id, *words)
        fence, *held = (await self._batch.run([claimed]))[0]
        if held:
            await self._batch.run(
                [_mark(keys.running(held[1].decode()), session_id, held[0])]
            )
        if fence == -2:
            await self._batch.run([_dropping(session_id)])
            raise RunSetAside(f"run {session_id!r}: {SET_ASIDE}")
        return int(fence) if fence > 0 else None

    async def set_aside(self, supervisor_id: str) -> list[str]:
        """Return the sessions whose runs were set aside and wait for a resume."""
        index = keys.running(supervisor_id)
        listed = (await self._batch.run([("ZRANGEBYSCORE", index, "+inf", "+inf")]))[0]
        sessions = [member.decode() for member in listed]
        found = await self._batch.run(
            [("HGET", keys.session(one).root, "error") for one in sessions]
        )
        return [
            one
            for one, error in zip(sessions, found, strict=True)
            if error is not None and is_set_aside(error.decode())
        ]

    async def renew(
        self, session_id: str, holder: str, fence: int, lease_ms: int
    ) -> bool:
        """Renew the lease for *lease_ms* from now; False when it is lost, and the driver has to stop."""
        renewed = _script(
            pipeline_scripts.RENEW_RUN, session_id, holder, fence, lease_ms
        )
        held = (await self._batch.run([renewed]))[0]
        if held:
            await self._batch.run(
                [_mark(keys.running(held[1].decode()), session_id, held[0])]
            )
        return bool(held)

    async def give_back(self, session_id: str, holder: str, fence: int) -> None:
        """End the lease: another supervisor may go on at once."""
        given = (
            await self._batch.run(
                [_script(pipeline_scripts.GIVE_BACK, session_id, holder, fence)]
            )
        )[0]
        if given:
            await self._batch.run([_mark(keys.running(given[0].decode()), session_id)])

    async def now_ms(self) -> int:
        """Return the time by the clock of the store, in ms since 1970."""
        seconds, micros = (await self._batch.run([("TIME",)]))[0]
        return int(seconds) * 1000 + int(micros) // 1000

    async def is_idle(self, supervisor_id: str) -> bool:
        """Return whether no session is listed as running."""
        return not await self._batch.exists(keys.running(supervisor_id))

    async def due(self, supervisor_id: str, limit: int = 100) -> list[str]:
        """Return up to *limit* running sessions whose lease lapsed, or was never taken, longest first."""
        index = keys.running(supervisor_id)
        listed = (
            await self._batch.run(
                [("FCALL", pipeline_scripts.RUNNING_DUE, 1, index, limit)]
            )
        )[0]
        sessions = [member.decode() for member in listed]
        looks = await self._batch.run(
            [_script(pipeline_scripts.LOOK_AT_RUN, session) for session in sessions]
        )
        due = list[str]()
        repairs = list[Command]()
        for session, (runs, held_until) in zip(sessions, looks, strict=True):
            if not runs:
                repairs.append(_unmark(index, session, GRACE_MS))
            elif held_until:
                repairs.append(_mark(index, session, held_until))
            else:
                due.append(session)
        await self._batch.run(repairs)
        return due

    async def user_of(self, session_id: str) -> str | None:
        """Return the user of the run, None without one and without a run."""
        found = (
            await self._batch.run([("HGET", keys.session(session_id).root, "user_id")])
        )[0]
        return None if found is None else found.decode()

    async def hold(self, session_id: str, why: str) -> None:
        """Note why no phase of a run begins, "" where they do again."""
        field = keys.run_hold(session_id)
        noted: Command = ("HSET", keys.run_makers(), field, _text(why))
        if not why:
            noted = ("HDEL", keys.run_makers(), field)
        await self._batch.run([noted])

    async def read_holds(self, session_ids: Sequence[str]) -> dict[str, str]:
        """Return why no phase begins of those of *session_ids* of which none does."""
        if not session_ids:
            return {}
        fields = [keys.run_hold(one) for one in session_ids]
        found = (await self._batch.run([("HMGET", keys.run_makers(), *fields)]))[0]
        return {
            session_id: why.decode()
            for session_id, why in zip(session_ids, found, strict=True)
            if why is not None
        }

    async def take_over(self, record: RunRecord, caller: Caller | None) -> None:
        """Let the running *record* go on as a run of *caller*."""
        session_id = record.session_id
        await self._batch.run(
            [
                _noting(session_id, caller, record.user_id),
                ("HDEL", keys.run_makers(), keys.run_hold(session_id)),
            ]
        )

    async def postpone(self, supervisor_id: str, session_id: str, for_ms: int) -> None:
        """Let the run of *session_id* be due again in *for_ms*."""
        await self._batch.run(
            [
                _mark(
                    keys.running(supervisor_id),
                    session_id,
                    await self.now_ms() + for_ms,
                )
            ]
        )

    async def begin_phase(
        self, session_id: str, fence: int, phase: str, task_id: str, run: int
    ) -> bool:
        """Note that *phase* runs as *task_id*, which alone may write for it from now on, the *run*-th of the phase.

        False when the fence is lost. A task that began already stays as it is.
        """
        begun = _script(
            pipeline_scripts.BEGIN_PHASE, session_id, fence, phase, task_id, run
        )
        return bool((await self._batch.run([begun]))[0])

    async def settle_phase(
        self,
        session_id: str,
        fence: int,
        phase: str,
        state: PhaseState,
        corrects: str | None = None,
    ) -> bool:
        """Note the end of *phase*; once it is done, the entries of the phase that it *corrects* are hidden.

        False when the fence is lost, or the phase was reset, begun as another task or settled otherwise meanwhile.
        From then on no task may write for it: a run that comes late would begin its uses anew.
        """
        words = fence, phase, state.task_id or "", _spelled(state), corrects or ""
        return bool(
            (
                await self._batch.run(
                    [_script(pipeline_scripts.SETTLE_PHASE, session_id, *words)]
                )
            )[0]
        )

    async def reset_phases(
        self,
        session_id: str,
        why: Mapping[str, str],
        *,
        restart: bool,
        expected_run: int | None = None,
        fence: int | None = None,
        inputs: Mapping[str, JsonValue] | None = None,
        declared: Redeclared | None = None,
        caller: Caller | None = None,
    ) -> RunRecord | None:
        """Make the phases of *why* pending, their entries gone, and return the run; None when it was refused.

        It is refused while somebody drives the run, unless the *fence* of that lease is given, and when the run is not
        the *expected_run* any more. What these phases corrected is seen again, what they write still is refused. With
        *restart* it runs again, its number one more, and is due at once. *inputs* take the place of those kept,
        *declared* that of the declaration, and *caller* that of the one whom its tasks are for. With *declared*, *why*
        also names the phases that are new, and those that are gone.

        Raises:
            UnknownSession: there is none, its time to live is over, or no pipeline runs in it.
        """
        if restart:
            owner = (
                await self._batch.run(
                    [("HGET", keys.session(session_id).root, "supervisor_id")]
                )
            )[0]
            if owner:
                await self._batch.run([_mark(keys.running(owner.decode()), session_id)])
        words: tuple[str | bytes | int, ...] = (
            self._new_token(),
            "" if fence is None else fence,
            int(restart),
            "" if expected_run is None else expected_run,
        )
        root = _redeclared(declared) | (
            {} if inputs is None else {"inputs": _json(inputs)}
        )
        if caller is not None:
            root["caller"] = caller.model_dump_json()
        reset = _script(
            pipeline_scripts.RESET_PHASES,
            session_id,
            *words,
            *_words(root),
            *_words(why),
        )
        # One after the other: in one batch a function that the server lacks is called again behind the others.
        [done] = await self._batch.run([reset])
        found, maker = await self._batch.run(
            [_script(pipeline_scripts.READ_RUN, session_id), _reading(session_id)]
        )
        if done < 0 or not found:
            msg = f"no pipeline runs in session {session_id!r}; GET /v1/sessions lists them"
            raise UnknownSession(msg)
        if not done:
            return None
        record = _made_by(maker, _record(*found))
        if restart:
            record = replace(record, caller=caller or record.caller)
            noted = _noting(session_id, record.caller, record.user_id)
            await self._batch.run([noted])
        return record

    async def end(
        self,
        session_id: str,
        fence: int,
        state: EndState,
        outcome: bytes,
        *,
        keep: bool,
        error: str = "",
    ) -> bool:
        """End the run and its lease, and tell its *outcome* for `KEEP_OUTCOME`; False when the fence is lost.

        A completed one that is not to *keep* is removed with all of its session; any other lives for its time to live
        from now on, and no task of it writes any more: a phase that was running has failed, because of *error*.
        """
        is_kept = keep or state != "completed"
        keep_ms = KEEP_OUTCOME // timedelta(milliseconds=1)
        words = (
            fence,
            state,
            int(is_kept),
            outcome,
            keep_ms,
            _text(error),
            error_type_of(state),
        )
        ended = (
            await self._batch.run(
                [_script(pipeline_scripts.END_RUN, session_id, *words)]
            )
        )[0]
        if not ended:
            return False
        supervisor = ended[0].decode()
        commands = [_dropping(session_id)]
        if supervisor:
            commands.append(_unmark(keys.running(supervisor), session_id))
        if not is_kept:
            # It stays listed as the user's: its outcome, which holds the result, has to be found.
            commands.append(("ZREM", keys.index("sessions"), session_id))
        await self._batch.run(commands)
        return True

    async def outcome(self, session_id: str) -> bytes | None:
        """Return the end that `end` stored, None after `KEEP_OUTCOME` and while it runs."""
        found: bytes | None = (await self._batch.run([("GET", keys.run(session_id))]))[
            0
        ]
        return found

    async def request_cancel(self, session_id: str, reason: str) -> bool:
        """Note why a running one is to be cancelled, the first reason counts; False when it does not run."""
        return bool(
            (
                await self._batch.run(
                    [_script(pipeline_scripts.WISH, session_id, _text(reason))]
                )
            )[0]
        )

    async def cancel_reason(self, session_id: str) -> str | None:
        """Return why the run is to be cancelled, None unless that was requested."""
        found = (
            await self._batch.run([("HGET", keys.session(session_id).root, "wish")])
        )[0]
        return None if found is None else found.decode()

    async def note_seen(
        self, session_id: str, fence: int, phase: str, seen: Mapping[str, str]
    ) -> bool:
        """Keep what *phase* read beside the session: marks by name; False when the fence is lost."""
        noted = _script(
            pipeline_scripts.NOTE_SEEN, session_id, fence, phase, _json(seen)
        )
        return bool((await self._batch.run([noted]))[0])

    async def note_late(self, session_id: str, fence: int, phase: str) -> bool:
        """Note that *phase*, which has not ended, is late; False when the fence is lost."""
        noted = _script(pipeline_scripts.NOTE_LATE, session_id, fence, phase)
        return bool((await self._batch.run([noted]))[0])

    async def note_progress(self, session_id: str, fence: int) -> bool:
        """Note that a phase came further, so that who dies over it is not held for stuck; False: the fence is lost."""
        noted = _script(pipeline_scripts.NOTE_PROGRESS, session_id, fence)
        return bool((await self._batch.run([noted]))[0])

    async def seen(self, session_id: str) -> dict[str, dict[str, str]]:
        """Return what each phase read beside the session, by phase."""
        found = as_mapping(
            (await self._batch.run([("HGETALL", keys.session(session_id).seen)]))[0]
        )
        return {phase.decode(): json.loads(marks) for phase, marks in found.items()}


def _script(sha: str, session_id: str, *words: str | bytes | int) -> Command:
    return ("FCALL", sha, 10, *keys.session(session_id), keys.run(session_id), *words)


def _noting(
    session_id: str,
    caller: Caller | None,
    user_id: str | None,
    *,
    is_new: bool = False,
) -> Command:
    """Return what notes who asked for a run, and for which user: tasks of the run can write its session.

    With *is_new* one that is noted already stays.
    """
    maker = _Maker(caller=caller, user_id=user_id).model_dump_json()
    return ("HSETNX" if is_new else "HSET", keys.run_makers(), session_id, maker)


def _reading(session_id: str) -> Command:
    return ("HMGET", keys.run_makers(), session_id, keys.run_hold(session_id))


def _dropping(session_id: str) -> Command:
    return ("HDEL", keys.run_makers(), session_id, keys.run_hold(session_id))


def _made_by(noted: Sequence[bytes | None], record: RunRecord) -> RunRecord:
    """Return *record* with its maker and why it is held, as *noted*, whatever its session says.

    None is noted of a run of 0.2, or of one that has ended.
    """
    maker, held = noted
    if held is not None:
        record = replace(record, held=held.decode())
    if maker is None:
        return record
    known = _Maker.model_validate_json(maker)
    return replace(record, caller=known.caller, user_id=known.user_id)


def _mark(index: str, session_id: str, at_ms: int | bytes | None = None) -> Command:
    """Return what lists *session_id*, from *at_ms* on, None is now."""
    return (
        "FCALL",
        pipeline_scripts.MARK,
        1,
        index,
        session_id,
        "" if at_ms is None else at_ms,
    )


def _unmark(index: str, session_id: str, grace_ms: int | None = None) -> Command:
    """Return what takes *session_id* out: when it was due for *grace_ms*, None: when it is not due."""
    return (
        "FCALL",
        pipeline_scripts.UNMARK,
        1,
        index,
        session_id,
        "" if grace_ms is None else grace_ms,
    )


def _root_of(new: NewRun) -> list[str | bytes | int]:
    """Return the root of the session as the script takes it: that of any session, and what a run adds to it."""
    words = root_words(
        new.session_id,
        domain=new.pipeline.domain,
        ttl=new.pipeline.ttl,
        state=new.state,
        dependencies=new.dependencies,
        user_id=new.user_id,
        project=new.project or new.pipeline.project_id,
    )
    words += ["pipeline", new.pipeline.model_dump_json(), "inputs", _json(new.inputs)]
    words += ["supervisor_id", new.supervisor_id, "keep", int(new.keep), "run", new.run]
    if new.trace:
        words += ["trace", new.trace]
    if new.caller is not None:
        words += ["caller", new.caller.model_dump_json()]
    return [len(words) // 2, *words]


def _redeclared(declared: Redeclared | None) -> dict[str, str | bytes | int]:
    """Return what of the root of a session is another with *declared*."""
    if declared is None:
        return {}
    pipeline = declared.pipeline
    return {
        "pipeline": pipeline.model_dump_json(),
        "dependencies": _json(
            {phase: list(on) for phase, on in declared.dependencies.items()}
        ),
        "domain": pipeline.domain,
        "ttl_ms": pipeline.ttl // timedelta(milliseconds=1),
        "project": declared.project,
    }


def _words(named: Mapping[str, str | bytes | int]) -> list[str | bytes | int]:
    """Return a hash as the scripts take it."""
    return [len(named), *(word for pair in named.items() for word in pair)]


def _json(value: Any) -> bytes:
    return _text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _text(text: str) -> bytes:
    # What an agent raised may quote half of a surrogate pair, which no reader takes.
    return text.encode("utf-8", "replace")


def _spelled(state: PhaseState) -> bytes:
    return _json(
        {name: value for name, value in asdict(state).items() if value is not None}
    )


def _read_record(found: Any, maker: Any) -> RunRecord | InvalidPipeline | None:
    if not found:
        return None
    try:
        return _made_by(maker, _record(*found))
    except InvalidPipeline as error:
        return error


def _record(
    root: Any, phases: Any, corrected: Any, holder: bytes, fence: bytes
) -> RunRecord:
    """Return the run that the hashes of a session spell."""
    known = {field.decode(): value for field, value in as_mapping(root).items()}
    session_id = known["session_id"].decode()
    try:
        pipeline = Pipeline.model_validate_json(known["pipeline"])
    except ValidationError as error:
        msg = f"the pipeline of session {session_id!r} cannot be read; the version that made it can: {error}"
        raise InvalidPipeline([msg]) from error
    states = {
        phase.decode(): phase_in(state) for phase, state in as_mapping(phases).items()
    }
    wish = known.get("wish")
    return RunRecord(
        session_id=session_id,
        state=cast("RunState", known["state"].decode()),
        pipeline=pipeline,
        inputs=json.loads(known["inputs"]),
        supervisor_id=known["supervisor_id"].decode(),
        user_id=known["user_id"].decode() if "user_id" in known else None,
        project=known["project"].decode(),
        keep=known["keep"] == b"1",
        run=int(known["run"]),
        phases={
            phase.name: states.get(phase.name, PhaseState())
            for phase in pipeline.phases
        },
        dependencies={
            phase: tuple(on)
            for phase, on in json.loads(known.get("dependencies", b"{}")).items()
        },
        corrected={
            phase.decode(): by.decode() for phase, by in as_mapping(corrected).items()
        },
        created_ms=int(known["created_at"]),
        began_ms=int(known.get("began_at") or known["created_at"]),
        updated_ms=int(known["updated_at"]),
        holder=holder.decode() or None,
        fence=int(fence),
        cancel_reason=None if wish is None else wish.decode(),
        error=known.get("error", b"").decode(),
        trace=known.get("trace", b"").decode(),
        caller=Caller.model_validate_json(known["caller"])
        if "caller" in known
        else None,
    )
