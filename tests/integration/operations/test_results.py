"""The operations of results on a real store: looked at, mended, forgotten, and files of them."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput, NotPermitted
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import AgentCard
from tasklore.memory import keys
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.operations.forms import Lines
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.results import (
    OPERATIONS,
    NewResult,
    ResultServices,
    ResultsToForget,
    export_results,
    forget_results,
    import_results,
    list_results,
    set_result,
    show_result,
    show_result_stats,
)
from tasklore.workers.agents.budget import agent
from tasklore.workers.card import card_of
from tests.integration.operations.doors import door_of

OPERATOR = Caller(name="ops", roles=frozenset({"operate"}))
HOUR_MS = 3_600_000
#: The time of all that is asked; results are remembered by it.
NOW_MS = 1_800_000_000_000
AGENT = agent.agent_id
VERSION = agent.memory_version(agent.tasks["analyze_budget"])
KEY = "analyze_budget:50000:42000:no_history"
FULL = {"remaining": 8000.0, "spending_rate": 1.0}


@pytest.fixture
def services(redis: Redis) -> ResultServices:
    async def cards() -> list[AgentCard]:
        return [card_of(agent)]

    return ResultServices(
        memory=LongTermMemory(redis, budget_s=60.0),
        cards=cards,
        keep=timedelta(days=30),
        now_ms=lambda: NOW_MS,
    )


async def remember(
    services: ResultServices,
    question: str,
    *,
    agent_id: str = AGENT,
    version: str = VERSION,
    ago_ms: int = 0,
    user: str | None = None,
    result: Any = 1,
) -> str:
    """Remember a result, and return its key."""
    token = None if user is None else user_token(user)
    key = keys.ltm(agent_id, version, question, token)
    await services.memory.remember(
        key,
        json.dumps(result).encode(),
        computed_ms=100,
        ttl=timedelta(days=1),
        now_ms=NOW_MS - ago_ms,
    )
    return key


async def test_results_are_listed_the_newest_first_page_by_page(
    services: ResultServices,
) -> None:
    """Also those of one moment, each once; by agent, task and age."""
    for number in range(7):
        await remember(
            services, f"analyze_budget:{number}", ago_ms=number // 2 * HOUR_MS
        )
    await remember(services, "advise:1", agent_id="Other", ago_ms=9 * HOUR_MS)
    found = []
    after = ""
    while True:
        page = await list_results(services, OPERATOR, after=after, limit=3)
        assert len(page.results) <= 3
        found += page.results
        if page.after is None:
            break
        after = page.after
    assert sorted(one.question for one in found) == sorted(
        ["advise:1", *(f"analyze_budget:{number}" for number in range(7))]
    )
    times = [one.created_at for one in found]
    assert times == sorted(times, reverse=True)
    for conditions, number in (
        ({"agent": "Other"}, 1),
        ({"task": "analyze_budget"}, 7),
        ({"since": timedelta(hours=1)}, 4),
        ({"since": timedelta(hours=1), "agent": "Other"}, 0),
    ):
        page = await list_results(services, OPERATOR, **conditions)  # type: ignore[arg-type]
        assert len(page.results) == number


async def test_a_result_is_shown_by_its_key_or_its_question(
    services: ResultServices,
) -> None:
    whole = await remember(services, KEY, result=FULL)
    for key in (KEY, whole):
        shown = await show_result(services, OPERATOR, key)
        assert (shown.key, shown.result, shown.agent_id) == (whole, FULL, AGENT)
        assert 0 < (shown.expires_in_ms or 0) <= 24 * HOUR_MS
    with pytest.raises(Refused, match="GET /v1/results lists them") as refused:
        await show_result(services, OPERATOR, "analyze_budget:1")
    assert refused.value.problem.status == 404
    await remember(services, KEY, version="v0.9")
    with pytest.raises(
        Refused, match="matches 2 cached results; give one whole key"
    ) as two:
        await show_result(services, OPERATOR, KEY)
    assert two.value.problem.status == 409


async def test_stats_add_up_what_was_saved(services: ResultServices) -> None:
    whole = await remember(services, KEY)
    await remember(services, "advise:1", agent_id="Other")
    await services.memory.count_hits({whole: 3})
    await services.memory.quarantine(AGENT, {"cut": b"1"})
    stats = await show_result_stats(services, OPERATOR)
    assert (stats.entries, stats.hits, stats.saved_ms) == (2, 3, 300)
    assert [(one.task, one.saved_ms) for one in stats.tasks] == [
        ("advise", 0),
        ("analyze_budget", 300),
    ]
    assert [(one.agent_id, one.key) for one in stats.quarantined] == [(AGENT, "cut")]
    assert (await show_result_stats(services, OPERATOR, agent="Other")).entries == 1


async def test_a_result_is_mended_if_its_task_could_return_it(
    services: ResultServices,
) -> None:
    whole = await remember(services, KEY, result=FULL)
    card = card_of(agent)
    [task] = [one for one in card.tasks if one.name == "analyze_budget"]
    assert task.result is not None
    good = dict.fromkeys(task.result["required"], 1)
    schema = task.result["properties"]
    for name, one in schema.items():
        if one.get("type") in ("string", "boolean", "array"):
            good[name] = {"string": "x", "boolean": True, "array": []}[one["type"]]  # type: ignore[assignment]
    shown = await set_result(services, OPERATOR, KEY, NewResult(result=good))
    assert (shown.key, shown.result) == (whole, good)
    with pytest.raises(InvalidInput, match="remaining must be"):
        await set_result(
            services, OPERATOR, KEY, NewResult(result={"remaining": "much"})
        )
    for key in ("analyze_budget", "analyze_budget:9", "tl:ltm:{NoAgent}:v1.1:work:1"):
        with pytest.raises(Refused) as refused:
            await set_result(services, OPERATOR, key, NewResult(result=good))
        assert refused.value.problem.status == 404


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        ({"key": KEY}, {"advise:1", "old:1", "mine:1", "analyze_budget:2"}),
        ({"task": "analyze_budget"}, {"advise:1", "old:1", "mine:1"}),
        ({"agent": "Other"}, {KEY, "analyze_budget:2", "old:1", "mine:1"}),
        ({"older_than": "1h"}, {KEY, "advise:1", "old:1", "mine:1"}),
        ({"user": "ann"}, {KEY, "analyze_budget:2", "advise:1", "old:1"}),
        ({"stale": True}, {KEY, "analyze_budget:2", "advise:1", "mine:1"}),
        ({"agent": "Other", "task": "analyze_budget"}, None),
        ({"everything": True}, set()),
    ],
)
async def test_what_a_dry_run_counted_is_forgotten_and_nothing_newer(
    conditions: dict[str, Any], left: set[str] | None, services: ResultServices
) -> None:
    """Whatever conditions it fits that was remembered meanwhile."""
    await remember(services, KEY)
    await remember(services, "analyze_budget:2", ago_ms=2 * HOUR_MS)
    await remember(services, "advise:1", agent_id="Other")
    await remember(services, "old:1", version="v0.1")
    await remember(services, "mine:1", user="ann")
    old = card_of(agent).model_copy(
        update={
            "tasks": tuple(
                task.model_copy(update={"name": name})
                for task in card_of(agent).tasks
                for name in ("analyze_budget", "old", "mine")
            )
        }
    )

    async def cards() -> list[AgentCard]:
        return [old]

    object.__setattr__(services, "cards", cards)
    everything = {KEY, "analyze_budget:2", "advise:1", "old:1", "mine:1"}
    kept = everything if left is None else left
    wanted = ResultsToForget(**conditions)
    tried = wanted.model_copy(update={"dry_run": True})
    trial = await forget_results(services, OPERATOR, tried)
    assert (trial.dry_run, trial.concerns) == (True, len(everything - kept))
    assert await questions(services) == everything
    for question, agent_id in (("analyze_budget:new", AGENT), ("advise:new", "Other")):
        await remember(services, question, agent_id=agent_id, ago_ms=-1)
    bound = wanted.model_copy(update={"bound": trial.bound})
    done = await forget_results(services, OPERATOR, bound)
    assert (done.dry_run, done.concerns) == (False, trial.concerns)
    assert await questions(services) == kept | {"analyze_budget:new", "advise:new"}


async def questions(services: ResultServices) -> set[str]:
    return {entry.parts.question async for entry in services.memory.entries()}


async def test_a_quarantine_goes_with_its_agent_as_it_was_counted(
    services: ResultServices, redis: Redis
) -> None:
    await remember(services, KEY)
    await services.memory.quarantine(AGENT, {"cut": b"1"})
    wanted = ResultsToForget(everything=True)
    tried = wanted.model_copy(update={"dry_run": True})
    trial = await forget_results(services, OPERATOR, tried)
    assert trial.concerns == 2
    await services.memory.quarantine(AGENT, {"another": b"1"})
    bound = wanted.model_copy(update={"bound": trial.bound})
    with pytest.raises(Refused, match="imported since") as refused:
        await forget_results(services, OPERATOR, bound)
    assert refused.value.problem.status == 409
    trial = await forget_results(services, OPERATOR, tried)
    bound = wanted.model_copy(update={"bound": trial.bound})
    assert (await forget_results(services, OPERATOR, bound)).concerns == 3
    assert await services.memory.quarantined() == []
    assert await redis.keys("tl:ltm:*") == []


async def test_what_comes_while_everything_is_forgotten_stays(
    services: ResultServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the last look at what there is, too, and what is imported."""
    await remember(services, KEY)
    await services.memory.quarantine(AGENT, {"cut": b"1"})
    wanted = ResultsToForget(everything=True)
    tried = wanted.model_copy(update={"dry_run": True})
    trial = await forget_results(services, OPERATOR, tried)
    memory = services.memory
    run = memory._patient.run

    async def come_before_what_is_removed(commands: Any) -> Any:
        if any(command[0] in ("UNLINK", "HDEL") for command in commands):
            monkeypatch.setattr(memory._patient, "run", run)
            await remember(services, "analyze_budget:new", ago_ms=-1)
            await memory.quarantine(AGENT, {"another": b"1"})
        return await run(commands)

    monkeypatch.setattr(memory._patient, "run", come_before_what_is_removed)
    bound = wanted.model_copy(update={"bound": trial.bound})
    assert (await forget_results(services, OPERATOR, bound)).concerns == 2
    assert await questions(services) == {"analyze_budget:new"}
    assert [one.file_key for one in await memory.quarantined()] == ["another"]


@pytest.mark.parametrize(
    ("conditions", "where"),
    [
        ({}, "say what to delete"),
        ({"everything": True, "agent": "A"}, "means everything"),
        ({"everything": True, "stale": True}, "means everything"),
        ({"key": "unknown:1"}, "there is no cached result"),
    ],
)
async def test_an_unclear_wish_to_forget_is_refused(
    conditions: dict[str, Any], where: str, services: ResultServices
) -> None:
    await remember(services, KEY)
    with pytest.raises(Refused, match=where):
        await forget_results(services, OPERATOR, ResultsToForget(**conditions))
    assert await questions(services) == {KEY}


#: The whole entries of a file, one that may be cut, and one of a task that there is not.
WHOLE = "analyze_budget:50000:42000:5000,7000,8000,6000"
CUT = "analyze_budget:100000:30000:5000,6000,7000,5000,25000"
FILE = {WHOLE: {"remaining": 8000.0}, CUT: {"x": 1}, "a:1": {}}


@pytest.mark.parametrize(
    "lines",
    [
        ({"tasks": FILE},),
        tuple({"key": key, "result": result} for key, result in FILE.items()),
        ({"tasks": {WHOLE: FILE[WHOLE]}}, {"tasks": {CUT: FILE[CUT], "a:1": {}}}),
    ],
)
async def test_a_file_comes_in_once_and_goes_out(
    lines: tuple[Any, ...], services: ResultServices, redis: Redis
) -> None:
    """Line by line, or as a memory file; what may be cut is set aside."""
    done = await import_results(services, OPERATOR, AGENT, Lines(lines))
    assert (done.stored, done.known, done.quarantined) == (1, 0, (CUT,))
    assert [one.key for one in done.refused] == ["a:1"]
    again = await import_results(services, OPERATOR, AGENT, Lines(lines))
    assert (again.stored, again.known) == (0, 1)
    found = await export_results(services, OPERATOR, AGENT)
    exported = [line.model_dump(mode="json") async for line in found]
    assert [one["key"] for one in exported] == [WHOLE]
    await redis.flushdb()
    back = await import_results(services, OPERATOR, AGENT, Lines(tuple(exported)))
    assert (back.stored, back.quarantined, back.refused) == (1, (), ())


async def test_a_whole_list_of_five_is_exported_as_such_and_served_again(
    services: ResultServices, redis: Redis
) -> None:
    parameters = {"budget_limit": 9, "spent": 1, "history": [1, 2, 3, 4, 5]}
    question = agent.tasks["analyze_budget"].parameters.read(parameters)
    await services.memory.remember(
        keys.ltm(AGENT, VERSION, question.key("analyze_budget")),
        b'{"remaining":8}',
        computed_ms=1,
        ttl=None,
        now_ms=NOW_MS,
        parameters_json=question.model_dump_json().encode(),
    )
    found = await export_results(services, OPERATOR, AGENT)
    lines = tuple([line.model_dump(mode="json") async for line in found])
    await redis.flushdb()
    done = await import_results(services, OPERATOR, AGENT, Lines(lines))
    assert (done.stored, done.quarantined) == (1, ())


#: What the code of a task says of a result that a card cannot tell: the version of other settings, and its place.
KEYED = {
    "key": keys.ltm(AGENT, f"{VERSION}+3fa9c01d", KEY),
    "result": {"remaining": 8000.0},
    "parameters": {"budget_limit": "50000", "spent": "42000", "history": []},
    "near": {"frame": "a" * 26, "place": "50000"},
    "keep_s": 60,
}


async def test_a_result_comes_in_under_the_whole_key_that_its_code_made(
    services: ResultServices,
) -> None:
    """With its question, its place among near ones and its time to live; a known one stays."""
    done = await import_results(services, OPERATOR, AGENT, Lines((KEYED,)))
    assert (done.stored, done.known, done.refused) == (1, 0, ())
    entry = await services.memory.show(str(KEYED["key"]))
    assert entry is not None
    assert json.loads(entry.answer.result_json) == KEYED["result"]
    assert json.loads(entry.parameters_json) == KEYED["parameters"]
    assert entry.standing == ("a" * 26, "50000")
    assert entry.expires_in_ms is not None
    assert entry.expires_in_ms <= 60_000
    again = await import_results(services, OPERATOR, AGENT, Lines((KEYED,)))
    assert (again.stored, again.known) == (0, 1)


@pytest.mark.parametrize(
    ("change", "lifetime"),
    [({"keep_s": None}, None), ({}, timedelta(days=30))],
)
async def test_a_result_under_a_whole_key_lives_as_its_line_says(
    change: dict[str, Any], lifetime: timedelta | None, services: ResultServices
) -> None:
    """For ever where it says so, and as any other that is imported where it says nothing."""
    line = {name: KEYED[name] for name in ("key", "result")} | change
    await import_results(services, OPERATOR, AGENT, Lines((line,)))
    entry = await services.memory.show(str(KEYED["key"]))
    assert entry is not None
    if lifetime is None:
        assert entry.expires_in_ms is None
    else:
        left = timedelta(milliseconds=entry.expires_in_ms or 0)
        assert lifetime - timedelta(minutes=5) < left <= lifetime


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (keys.ltm("OtherAgent", "1.1", KEY), f"only keys of {AGENT}"),
        (keys.ltm(AGENT, "1.1", KEY, user_token("ann")), "of one user"),
        (keys.ltm(AGENT, "1.1", "dance:1"), "task 'dance' is not one of"),
    ],
)
async def test_a_whole_key_that_all_may_not_be_served_by_is_refused_alone(
    key: str, why: str, services: ResultServices
) -> None:
    lines = Lines((KEYED | {"key": key}, KEYED))
    done = await import_results(services, OPERATOR, AGENT, lines)
    assert done.stored == 1
    [refused] = done.refused
    assert refused.key == key
    assert why in refused.why


async def test_a_whole_key_of_a_task_that_shares_nothing_is_refused(
    services: ResultServices,
) -> None:
    card = card_of(agent)
    [task] = card.tasks
    private = card.model_copy(
        update={"tasks": (task.model_copy(update={"remember": "user"}),)}
    )

    async def cards() -> list[AgentCard]:
        return [private]

    done = await import_results(
        replace(services, cards=cards), OPERATOR, AGENT, Lines((KEYED,))
    )
    assert done.stored == 0
    assert "not shared" in done.refused[0].why


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"near": {"frame": "x", "place": "1"}}, "line 1.near"),
        ({"keep_s": 0}, "line 1.keep_s"),
        ({"parameters": []}, "line 1.parameters"),
        ({"colour": 1}, "line 1.colour"),
    ],
)
async def test_a_field_of_a_whole_key_that_cannot_be_used_is_named(
    change: dict[str, Any], where: str, services: ResultServices
) -> None:
    with pytest.raises(Refused, match=where):
        await import_results(services, OPERATOR, AGENT, Lines((KEYED | change,)))
    assert await questions(services) == set()


async def test_a_line_that_is_no_result_is_named_and_nothing_is_taken(
    services: ResultServices,
) -> None:
    for odd in ("x", {"key": 1, "result": 1}, {"key": "a"}, {"tasks": [1]}):
        lines = Lines(({"key": WHOLE, "result": 1}, odd))
        with pytest.raises(Refused, match="line 2: must be"):
            await import_results(services, OPERATOR, AGENT, lines)
    assert await questions(services) == set()
    with pytest.raises(Refused, match="no agent is called 'NoAgent'"):
        await import_results(services, OPERATOR, "NoAgent", Lines(()))


async def test_a_key_of_one_user_or_tenant_sees_no_result(
    services: ResultServices,
) -> None:
    """They are of all users: what one asked is in the key that another would be shown."""
    await remember(services, KEY)
    for change in ({"user": "ann"}, {"tenant": "acme"}):
        caller = OPERATOR.model_copy(update=change)
        for work in (
            list_results(services, caller),
            show_result_stats(services, caller),
            show_result(services, caller, KEY),
            set_result(services, caller, KEY, NewResult(result=1)),
            forget_results(services, caller, ResultsToForget(everything=True)),
            import_results(services, caller, AGENT, Lines(())),
            export_results(services, caller, AGENT),
        ):
            with pytest.raises(NotPermitted, match="one user or tenant"):
                await work
    assert await questions(services) == {KEY}


async def test_results_are_served_over_http(
    servers: EmbeddedServers, redis: Redis, services: ResultServices, tmp_path: Path
) -> None:
    """A key with a slash in a path, files of lines both ways, and whoever may not operate refused."""
    slashed = await remember(services, "analyze_budget:a/b", result={"a": 1})
    async with door_of(
        servers,
        redis,
        tmp_path,
        services,
        OPERATIONS,
        ops=("operate",),
        guest=("ask", "read", "approve"),
    ) as desks:
        ops = desks["ops"]
        shown = await ops.ask("GET", f"/v1/results/{slashed.replace('/', '%2F')}")
        assert (shown.status_code, shown.json()["result"]) == (200, {"a": 1})
        body = json.dumps({"key": WHOLE, "result": {"remaining": 1}}).encode()
        path = f"/v1/agents/{AGENT}/results"
        taken = await ops.ask("POST", path, content=body, lines=True)
        assert taken.json()["stored"] == 1, taken.text
        assert (await ops.ask("GET", "/v1/results?since=2h")).status_code == 200
        told = (await ops.ask("GET", "/v1/results/stats")).json()
        assert told["entries"] == 2
        lines = (await ops.ask("GET", path)).text.splitlines()
        assert [json.loads(line)["key"] for line in lines] == [WHOLE]
        wanted = {"everything": True, "dry_run": True}
        trial = await ops.ask("POST", "/v1/results/forget", json=wanted)
        assert trial.json()["concerns"] == 2
        assert (await desks["guest"].ask("GET", "/v1/results")).status_code == 403
