"""What a tick makes: whose it is goes along with what it starts."""

from datetime import UTC, datetime
from typing import Any, cast

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.callers import Caller
from tasklore.contracts.pipeline_messages import PipelineReply, PipelineRequest
from tasklore.memory.schedules.store import Schedule
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.schedules.tick_maker import TickMaker

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALLER = Caller(name="app", tenant="acme")


async def test_a_pipeline_of_a_schedule_is_its_users_and_its_makers() -> None:
    """It is run with the inputs, and kept, as the schedule says."""
    asked: list[PipelineRequest] = []

    async def begin(request: PipelineRequest) -> PipelineReply:
        asked.append(request)
        return PipelineReply(kind="accepted", session_id=request.session_id)

    none: Any = None
    maker = TickMaker(
        supervisor_id="S",
        catalogue=lambda: Catalogue([]),
        dispatch=none,
        pipelines=begin,
        canceller=none,
        records=none,
        now=lambda: NOW,
    )
    schedule = Schedule(
        id="nightly",
        timing=Timing(every_s=60),
        pipeline=cast("Any", {"name": "review"}),
        parameters={"limit": 5},
        keep=True,
        user_id="ann",
        caller=CALLER,
        anchor=NOW,
        created_at=NOW,
        changed_at=NOW,
    )
    session_id = await maker.make(schedule, NOW)
    [request] = asked
    assert (request.session_id, request.pipeline) == (session_id, {"name": "review"})
    assert (request.inputs, request.keep) == ({"limit": 5}, True)
    assert (request.user_id, request.caller) == ("ann", CALLER)
