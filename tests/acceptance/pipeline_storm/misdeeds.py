"""Switch a promise of the product off in one process, to see that the verdict finds what follows."""

from collections.abc import Callable
from dataclasses import replace

from tasklore.memory.sessions.pipeline_records import PhaseState, RunRecord
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import FoundEntry, SessionCache

#: Which misdeed a process commits; nothing when it is empty.
VARIABLE = "PIPELINE_STORM_DEED"


def commit(deed: str) -> None:
    """Break this process in the way *deed* names (a key of `DEEDS`); nothing when it is empty."""
    if deed:
        DEEDS[deed]()


def _forget_what_is_done() -> None:
    """Let whoever takes a run over from another driver believe that its last phase which is done has never run."""
    read = PipelineRuns.read
    known: set[str] = set()

    async def forgetful(self: PipelineRuns, session_id: str) -> RunRecord | None:
        record = await read(self, session_id)
        if record is None or record.state != "running" or session_id in known:
            return record
        known.add(session_id)
        done = [name for name, state in record.phases.items() if state.status == "done"]
        forgotten = {
            name: PhaseState(run=record.phases[name].run) for name in done[-1:]
        }
        return replace(record, phases=record.phases | forgotten)

    PipelineRuns.read = forgetful  # type: ignore[method-assign]


def _count_every_reading() -> None:
    """Let a use count again when a run of the same task reads again."""
    get_many = SessionCache.get_many

    async def counting(
        self: SessionCache,
        session_id: str,
        keys: list[str],
        *,
        reader: str | None = None,
    ) -> list[FoundEntry | None]:
        return await get_many(self, session_id, keys, reader=None)

    SessionCache.get_many = counting  # type: ignore[method-assign, assignment]


DEEDS: dict[str, Callable[[], None]] = {
    "forgetful": _forget_what_is_done,
    "counting": _count_every_reading,
}
