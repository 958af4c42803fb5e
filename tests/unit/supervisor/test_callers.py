"""Who asked goes along whole: through runs of pipelines, their phases and items, and analyses, with what 0.2 left."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.callers import Caller, caller_of, payer_of
from tasklore.contracts.messages import TaskAssignment
from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.memory.schedules.store import Schedule
from tasklore.memory.webhooks.outbox import Callback
from tasklore.supervisor.pipelines.analysis.records import AnalysisRecord
from tests.unit.supervisor.pipelines.analysis import fake_system as analyses
from tests.unit.supervisor.pipelines.fake_system import (
    FakeSystem,
    a_phase,
    a_pipeline,
    at_work,
    the_end,
)
from tests.virtual_time import virtually

ACME = Caller(
    name="shop",
    roles=frozenset({"read", "ask"}),
    tenant="acme",
    approves=frozenset({"finance"}),
)
RIVAL = Caller(name="rival", roles=frozenset({"ask"}), tenant="rival")
OPERATOR = Caller(name="night", roles=frozenset({"admin"}))
TASK = {
    "task_id": "t",
    "agent_id": "A",
    "supervisor_id": "S",
    "task": {"name": "look"},
    "created_at": "2026-01-01T00:00:00Z",
}
INNER = Pipeline(
    name="inner",
    inputs={"x": Input(type="text")},
    result="look:results",
    phases=(
        Phase(name="look", agent="A", task="look", parameters={"x": "${input.x}"}),
    ),
)


def echo(parameters: dict[str, Any]) -> Any:
    return parameters.get("x", "")


def whose(assigned: Sequence[TaskAssignment]) -> set[tuple[Caller | None, str | None]]:
    """Return the callers of tasks as a worker reads them, each with the tenant that 0.2 reads."""
    read = [
        TaskAssignment.model_validate_json(one.model_dump_json(exclude_none=True))
        for one in assigned
    ]
    return {(one.caller, one.tenant) for one in read}


async def test_phases_items_rounds_and_inner_pipelines_are_their_callers(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, plan=echo, item=echo, round=echo, look=echo)
    pipeline = a_pipeline(
        a_phase("plan", "plan"),
        a_phase("items", "item", for_each="${input.of}", parameters={"x": "${item}"}),
        a_phase(
            "rounds",
            "round",
            repeat_until="${last} == 'x'",
            at_most=2,
            parameters={"x": "x"},
        ),
        Phase(name="inner", pipeline=INNER, parameters={"x": "a"}),
        inputs={"of": Input(type="list")},
    )
    await system.begin(pipeline, inputs={"of": ["a", "b"]}, caller=ACME)
    async with at_work(system.driver()):
        assert (await the_end(system))["state"] == "completed"
    tasks = {one.task.name for one in system.workers.assigned}
    assert tasks == {"plan", "item", "round", "look"}
    assert whose(system.workers.assigned) == {(ACME, "acme")}


@pytest.mark.parametrize(
    ("by", "payer"), [(RIVAL, RIVAL), (OPERATOR, ACME), (None, ACME)]
)
async def test_whoever_lets_a_run_go_on_pays_for_it_and_an_operator_does_not(
    tmp_path: Path, by: Caller | None, payer: Caller
) -> None:
    def fail(_parameters: dict[str, Any]) -> Any:
        raise OSError("not today")

    system = FakeSystem(tmp_path, plan=fail)
    await system.begin(a_pipeline(a_phase("plan", "plan")), caller=ACME)
    await system.drive()
    system.workers.assigned.clear()
    assert (await system.ask("resume", caller=by)).kind == "accepted"
    await system.drive()
    assert whose(system.workers.assigned) == {(payer, payer.tenant)}
    assert payer_of(by, ACME) == payer


def test_every_task_of_an_analysis_is_of_who_asked_last() -> None:
    async def look() -> None:
        system = analyses.FakeSystem()
        async with system.supervisor() as supervisor:
            await supervisor.ask(caller=ACME)
            first = whose(system.workers.assigned)
            system.workers.assigned.clear()
            await supervisor.ask(caller=RIVAL, refresh=True)
            assert (first, whose(system.workers.assigned)) == (
                {(ACME, "acme")},
                {(RIVAL, "rival")},
            )

    virtually(look())


@pytest.mark.parametrize(
    ("caller", "tenant", "user", "token"),
    [
        (ACME, None, "ann", "YWNtZQ"),
        (RIVAL.model_copy(update={"tenant": None}), None, "ann", "cml2YWw=YW5u"),
        (OPERATOR.for_tenant("acme"), None, None, "bmlnaHQ=YWNtZQ"),
        (None, "acme", "ann", "=YWNtZQ"),
        (None, None, None, "=Uw"),
    ],
)
def test_a_task_takes_the_turns_of_its_keys_own_tenant_or_of_its_key(
    caller: Caller | None, tenant: str | None, user: str | None, token: str
) -> None:
    """What a key without a tenant names, or what a program says, counts within the turns of that key or of none."""
    task = TaskAssignment.model_validate(
        {**TASK, "caller": caller, "tenant": tenant, "user_id": user}
    )
    assert task.waits_on == f"waiting.A.normal.{token}.look"


def test_what_0_2_left_is_of_nobody_and_its_tenant_still_counts() -> None:
    """Records of 0.2 have no caller; its tasks have a tenant, which is handed on."""
    task = TaskAssignment.model_validate({**TASK, "tenant": "acme"})
    assert (task.caller, task.asked_by) == (None, Caller(tenant="acme", named=True))
    assert caller_of(Caller(name="x"), "acme") == Caller(
        name="x", tenant="acme", named=True
    )
    assert caller_of(None, None) is None
    assert Schedule.model_fields["caller"].default is None
    assert Callback.model_validate({"url": "u", "host": "h"}).caller is None
    assert AnalysisRecord.model_fields["caller"].default is None
