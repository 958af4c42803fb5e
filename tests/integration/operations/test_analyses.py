"""The operations of analyses on a real store, with answers of a supervisor that the test chooses."""

import json
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.analysis.section_agents import roster_of
from tasklore.contracts.analysis.stories import Entity, StoryBase, StoryResponse
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import (
    ConfigurationError,
    InvalidInput,
    NotPermitted,
    UnknownPath,
    UnknownStory,
)
from tasklore.contracts.messages import AnalysisReply, AnalysisRequest
from tasklore.memory.rendering.prompt_context import within
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.operations.analyses import (
    OPERATIONS,
    OPERATOR_OPERATIONS,
    Analysis,
    AnalysisServices,
    ResponseToAnalyse,
    get_value,
    run_analysis,
    show_analysis,
    show_context,
)
from tasklore.supervisor.operations.refusals import Refused, refusal_of
from tasklore.supervisor.operations.table import Unfinished
from tasklore.supervisor.pipelines.analysis.records import AnalysisRecord
from tasklore.supervisor.pipelines.analysis.requests import AnalysisRequests
from tests.integration.operations.doors import door_of
from tests.servers import PATIENCE_S

ASKER = Caller(name="shop", roles=frozenset({"ask"}))
STORY = "quay"
BODY: dict[str, Any] = json.loads(
    (
        Path(__file__).parents[2] / "unit" / "tasklore" / "analysis" / "example.json"
    ).read_text("utf-8")
)
BASE = StoryBase.model_validate(
    {
        "settings": {"story_id": STORY, "title": "The Quay"},
        "entities": [Entity(name="David Park", aliases=("the blunt one",))],
    }
)
#: What a supervisor answers where a request is done.
DONE = AnalysisReply(kind="done")

Answer = Callable[[AnalysisRequest], AnalysisReply]


class Requests:
    """Stands for the requests of a supervisor: keeps them, and answers with what *answer* returns or raises."""

    def __init__(self) -> None:
        self.asked: list[AnalysisRequest] = []
        self.answer: Answer = lambda _: DONE

    async def take_up(self, request: AnalysisRequest) -> AnalysisReply:
        self.asked.append(request)
        return self.answer(request)


async def absent(agents: Collection[str]) -> frozenset[str]:
    """Return that the agent of facts alone has no worker."""
    return frozenset(agents) & {"StoryKnowledgeAgent"}


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
async def services(redis: Redis, requests: Requests) -> AnalysisServices:
    stories = StoryStore(redis, deadline_s=PATIENCE_S)
    await stories.load(BASE)
    return AnalysisServices(
        stories=stories,
        analyses=AnalysisStore(redis, deadline_s=PATIENCE_S),
        absent=absent,
        requests=cast("AnalysisRequests", requests),
    )


def body_of(number: int) -> dict[str, Any]:
    """Return the example as the analysis of response *number*."""
    return {**BODY, "meta": {**BODY["meta"], "resp_num": number}}


def record_of(number: int, **states: str) -> AnalysisRecord:
    """Return the record of an analysis whose sections have ended, but those that *states* say otherwise of."""
    settings = BASE.settings
    response = StoryResponse(number=number, text="x")
    record = AnalysisRecord.open(settings, response, roster_of({}), "digest", 1)
    for seat in record.seats:
        state = states.get(seat.section, "ok")
        record = record.with_section(seat.model_copy(update={"state": state}))
    return record


async def keep(
    services: AnalysisServices, number: int, record: bytes = b"{}", **states: str
) -> None:
    """Keep the analysis of a response, with the record that *states* make unless another one is given."""
    if states:
        record = record_of(number, **states).as_json()
    response = StoryResponse(number=number, text="x")
    await services.stories.put_response(STORY, response, keep=9)
    revision, _, _ = await services.analyses.record(STORY, number)
    document = json.dumps(body_of(number)).encode()
    assert await services.analyses.fold(
        STORY, number, revision, document, record, {}, keep=9
    )


def read(view: Analysis) -> AnalysisDocument:
    """Return the document of *view*."""
    assert view.document is not None
    return read_document(view.document)


async def test_a_request_is_handed_over_whole_with_its_caller(
    services: AnalysisServices, requests: Requests
) -> None:
    await keep(services, 3)
    new = ResponseToAnalyse(
        response=3,
        text="All here.",
        chapter=2,
        until="immediate",
        refresh=True,
        wait_seconds=7,
    )
    requests.answer = lambda _: AnalysisReply(kind="done", served=True)
    done = await run_analysis(services, ASKER, STORY, new)
    assert requests.asked == [
        AnalysisRequest(
            story_id=STORY,
            response_number=3,
            chapter=2,
            text="All here.",
            until="immediate",
            wait_ms=7000,
            refresh=True,
            caller=ASKER,
        )
    ]
    assert isinstance(done, Analysis)
    assert (done.state, done.served, done.response) == ("done", True, 3)
    assert read(done).body() == body_of(3)


async def test_what_takes_longer_leads_to_its_place(
    services: AnalysisServices, requests: Requests
) -> None:
    await keep(services, 3, knowledge="asked", plot_threads="waiting")
    requests.answer = lambda _: AnalysisReply(kind="pending")
    later = await run_analysis(services, ASKER, STORY, ResponseToAnalyse(response=3))
    assert isinstance(later, Unfinished)
    assert later.location == f"/v1/analyses/{STORY}?response=3"
    assert (later.view.state, later.view.served) == ("running", False)


async def test_an_analysis_says_how_far_each_section_is(
    services: AnalysisServices,
) -> None:
    """By its record; the late one is not waited for, and what one that is asked again left before is no end."""
    await keep(
        services, 3, knowledge="asked", plot_threads="late", contradiction="skipped"
    )
    found = await show_analysis(services, ASKER, STORY)
    states = {one.section: one.state for one in found.sections}
    assert (found.story_id, found.response, found.state) == (STORY, 3, "running")
    assert states["knowledge"] == "asked"
    assert found.without_worker == ("StoryKnowledgeAgent",)
    groups = {one.section: one.group for one in found.sections}
    assert (groups["knowledge"], groups["fact_extract"]) == ("background", "immediate")
    await keep(services, 4, plot_threads="late", contradiction="skipped")
    ended = await show_analysis(services, ASKER, STORY)
    assert (ended.response, ended.state, ended.without_worker) == (4, "done", ())


async def test_an_analysis_without_a_readable_record_is_as_its_document_says(
    services: AnalysisServices,
) -> None:
    """As one that a version before, or after, has kept."""
    await keep(services, 3, record=b"{}")
    found = await show_analysis(services, ASKER, STORY)
    states = {one.section: one.state for one in found.sections}
    assert states == {
        name: "skipped" if name == "contradiction" else "ok"
        for name, _ in read_document(BODY).sections()
    }
    assert found.state == "done"


async def test_a_kept_analysis_is_found_by_its_number(
    services: AnalysisServices,
) -> None:
    with pytest.raises(Refused, match="nothing of story 'quay' was analysed; POST"):
        await show_analysis(services, ASKER, STORY)
    for number in (1, 2, 3, 7):
        await keep(services, number)
    assert (await show_analysis(services, ASKER, STORY)).response == 7
    second = await show_analysis(services, ASKER, STORY, response=2)
    assert read(second).meta.status == "stale"
    with pytest.raises(
        Refused,
        match="no analysis of response 5 of 'quay' is kept; there are 1 to 3, 7",
    ) as refused:
        await show_analysis(services, ASKER, STORY, response=5)
    assert refused.value.problem.status == 404
    for look in (show_analysis, show_context):
        with pytest.raises(UnknownStory, match="no story 'nobody'"):
            await look(services, ASKER, "nobody")


async def test_the_context_has_at_most_the_tokens_that_are_asked_for(
    services: AnalysisServices,
) -> None:
    await keep(services, 3)
    for tokens in (3, 100, 350):
        found = await show_context(services, ASKER, STORY, tokens=tokens)
        assert found.tokens <= tokens
        expected = within(read_document(body_of(3)), tokens)
        assert (found.text, found.left_out) == (expected.text, expected.left_out)


async def test_a_value_is_found_by_any_name_of_an_entity(
    services: AnalysisServices,
) -> None:
    await keep(services, 3)
    for path, value in (
        ("background.relationship.interactions[0].score", 28),
        ('facts["the blunt one"][0]', "Marcus's best friend since college"),
        ("background.relationships.interactions[0].characters", ["Marcus", "Lily"]),
    ):
        found = await get_value(services, ASKER, STORY, path=path)
        assert (json.loads(found.text), found.media_type) == (value, "application/json")
    with pytest.raises(UnknownPath, match=r"the nearest is 'meta\.resp_num'"):
        await get_value(services, ASKER, STORY, path="meta.resp_no")
    with pytest.raises(InvalidInput, match="more than one place"):
        await get_value(services, ASKER, STORY, path="reduction.pct")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnknownStory("there is no story 'quay'"), 404),
        (InvalidInput("none of the agents of story 'quay' is known"), 422),
        (ConfigurationError("this supervisor takes up no analyses now"), 503),
    ],
)
async def test_a_refusal_of_the_desk_is_that_of_the_operation(
    error: Exception, status: int, services: AnalysisServices, requests: Requests
) -> None:
    def refuse(_request: AnalysisRequest) -> AnalysisReply:
        raise error

    requests.answer = refuse
    new = ResponseToAnalyse(response=3)
    with pytest.raises(type(error)) as refused:
        await run_analysis(services, ASKER, STORY, new)
    assert refusal_of(refused.value).problem.status == status


async def test_a_key_of_one_user_or_tenant_sees_no_analysis(
    services: AnalysisServices, requests: Requests
) -> None:
    """Stories are of the whole deployment: nothing says whose one is."""
    await keep(services, 3)
    for change in ({"user": "ann"}, {"tenant": "acme"}):
        caller = ASKER.model_copy(update=change)
        for work in (
            run_analysis(services, caller, STORY, ResponseToAnalyse(response=3)),
            show_analysis(services, caller, STORY),
            show_context(services, caller, STORY),
            get_value(services, caller, STORY, path="meta"),
        ):
            with pytest.raises(NotPermitted, match="one user or tenant"):
                await work
    assert requests.asked == []
    assert len(OPERATIONS) == len(OPERATOR_OPERATIONS) + 1


async def test_analyses_are_served_over_http(
    servers: EmbeddedServers,
    redis: Redis,
    services: AnalysisServices,
    requests: Requests,
    tmp_path: Path,
) -> None:
    """A key that asks has one made and reads it, one that reads only reads."""
    await keep(services, 3, knowledge="asked")
    requests.answer = lambda _: AnalysisReply(kind="pending")
    async with door_of(
        servers,
        redis,
        tmp_path,
        services,
        OPERATIONS,
        parts={"analyses": requests},
        asker=("ask",),
        reader=("read",),
        guest=("approve",),
    ) as desks:
        path = f"/v1/analyses/{STORY}"
        body = {"response": 3, "wait_seconds": "0s"}
        later = await desks["asker"].ask("POST", path, json=body)
        assert later.status_code == 202, later.text
        assert later.headers["Location"] == f"{path}?response=3"
        for who in ("asker", "reader"):
            found = await desks[who].ask("GET", later.headers["Location"])
            assert (found.status_code, found.json()["state"]) == (200, "running")
            context = await desks[who].ask("GET", f"{path}/context?tokens=100")
            assert context.json()["tokens"] <= 100
            place = {"path": 'facts["the blunt one"][0]'}
            value = await desks[who].ask("GET", f"{path}/value", params=place)
            assert value.json() == "Marcus's best friend since college"
        for who in ("reader", "guest"):
            refused = await desks[who].ask("POST", path, json=body)
            assert refused.status_code == 403
        assert (await desks["guest"].ask("GET", path)).status_code == 403
        wrong = await desks["asker"].ask("POST", path, json={"response": -1})
        assert (wrong.status_code, "response" in wrong.text) == (422, True)
        missing = await desks["reader"].ask("GET", f"{path}?response=9")
        assert (missing.status_code, "there are 3" in missing.text) == (404, True)
    assert datetime.fromisoformat(read(Analysis(**found.json())).meta.updated)
