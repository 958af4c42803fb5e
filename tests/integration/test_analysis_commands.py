"""`tasklore analysis` on real servers, with a supervisor whose replies the test chooses."""

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from redis.asyncio import Redis

from tasklore.commands.analysis import watch as analysis_watch
from tasklore.commands.analysis.documents import open_stores
from tasklore.commands.analysis.run import AnalysisOptions, run_analysis
from tasklore.commands.analysis.watch import Watch
from tasklore.commands.exits import FAILED, OK, USAGE, Interrupted
from tasklore.commands.stories.files import read_story
from tasklore.contracts import subjects
from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.analysis.stories import StoryResponse
from tasklore.contracts.errors import InvalidInput, UnknownStory
from tasklore.contracts.messages import AnalysisReply, AnalysisRequest
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.servers import PATIENCE_S

SUPERVISOR = "AnalysisCommands"
STORY = "quay"
EXAMPLE = Path(__file__).parents[1] / "unit" / "tasklore" / "analysis" / "example.json"
BODY = json.loads(EXAMPLE.read_text("utf-8"))

Answer = Callable[[AnalysisRequest], "AnalysisReply | None"]


def analysed(number: int, *sections: str, **changed: Any) -> dict[str, Any]:
    """Return the example as the analysis of response *number*, only *sections* of it when any are named."""
    kept = {
        group: {
            name: one
            for name, one in BODY[group].items()
            if not sections or name in sections
        }
        for group in ("background", "immediate")
    }
    for section, body in changed.items():
        group = next(group for group in kept if section in BODY[group])
        kept[group][section] = body
    counts = {
        "agents_run": 10,
        "agents_ok": 10 - len(changed),
        "agents_fail": len(changed),
    }
    return {**BODY, "meta": {**BODY["meta"], "resp_num": number, **counts}, **kept}


def done(request: AnalysisRequest, **told: Any) -> AnalysisReply:
    document = told.pop("document", None) or analysed(request.response_number)
    return AnalysisReply(
        story_id=request.story_id,
        response_number=request.response_number,
        kind="done",
        document=document,
        **told,
    )


class Supervisor:
    """Stands for a supervisor: keeps what it was asked, and says what *answer* returns, None is nothing."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.asked: list[AnalysisRequest] = []
        self.answer: Answer = done
        self.has_asked = asyncio.Event()

    async def open(self) -> None:
        await self.client.subscribe(subjects.analyses(SUPERVISOR), cb=self._hear)
        await self.client.flush()

    async def reply(self, reply: AnalysisReply) -> None:
        await self.client.publish(self._inbox, reply.model_dump_json().encode())

    async def _hear(self, message: Msg) -> None:
        request = AnalysisRequest.model_validate_json(message.data)
        self.asked.append(request)
        self._inbox = message.reply
        self.has_asked.set()
        if (reply := self.answer(request)) is not None:
            await self.reply(reply)


@pytest.fixture
def place(
    servers: EmbeddedServers,
    redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Path:
    """Let the commands find the servers, and return the folder of a story with three responses."""
    monkeypatch.setenv("TASKLORE_NATS_URL", servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", servers.redis_url)
    monkeypatch.setenv("TASKLORE_SUPERVISOR_ID", SUPERVISOR)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "quay"
    (folder / "responses").mkdir(parents=True)
    (folder / "entities").mkdir()
    (folder / "story.toml").write_text(
        f'story_id = "{STORY}"\ntitle = "The Quay"\n', "utf-8"
    )
    (folder / "entities" / "anna.md").write_text(
        "# Anna Lind\n\nKeeps the quay.\n", "utf-8"
    )
    for number in (1, 2, 3):
        file = folder / "responses" / f"Ch{1 + number // 3}-R{number:03}.md"
        file.write_text(
            f'Anna Lind counted {number} ropes. "All here," she said.\n', "utf-8"
        )
    return folder


@pytest.fixture
async def supervisor(
    place: Path, servers: EmbeddedServers
) -> AsyncIterator[Supervisor]:
    async with connected(servers.nats_url, "tests") as client:
        one = Supervisor(client)
        await one.open()
        yield one


async def test_the_last_response_is_analysed_and_shown_with_its_context(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        await run_analysis(
            AnalysisOptions(folder=place, until="immediate", wait_s=7, refresh=True)
        )
        == OK
    )
    [request] = supervisor.asked
    assert request == AnalysisRequest(
        story_id=STORY,
        response_number=3,
        chapter=2,
        text=(place / "responses" / "Ch2-R003.md").read_text("utf-8"),
        until="immediate",
        wait_ms=7000,
        refresh=True,
    )
    out, _ = capsys.readouterr()
    assert out.startswith("Ch2-R3, fresh: 10 of 10 agents ok, in ")
    assert (
        "fact_extract          2,341  10 facts of 2 names; 4,000 -> 110 tokens\n" in out
    )
    assert "24,200 tokens became 1,515, 94 % less.\n" in out
    assert "of 350 tokens:\n\n<!-- AGENT CONTEXT -->\n" in out
    assert out.endswith("<!-- END AGENT CONTEXT -->\n")
    written = (place / "state" / "agent_analysis.json").read_bytes()
    assert read_document(written) == read_document(analysed(3))
    async with open_stores() as stores:
        assert (await stores.stories.settings(STORY)).title == "The Quay"


class Looks:
    """Keeps which sections each look has shown, where a terminal would draw them."""

    def __init__(self) -> None:
        self.seen: list[set[str]] = []

    def show(self, document: AnalysisDocument | None) -> None:
        self.seen.append(
            {section for section, _ in document.sections()}
            if document is not None
            else set()
        )


@pytest.fixture
async def watch(
    place: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Watch]:
    """Return what watches the story, which is loaded; its looks follow each other closely."""
    monkeypatch.setattr(analysis_watch, "LOOK_S", 0.01)
    base = read_story(place)
    async with open_stores() as stores:
        await stores.stories.load(base)
        yield Watch(supervisor.client, stores, base.settings)


def request_of(watch: Watch, **changed: Any) -> AnalysisRequest:
    return AnalysisRequest(
        story_id=watch.story_id, response_number=3, text="x", wait_ms=600_000, **changed
    )


RESPONSE = StoryResponse(number=3, text="x")


async def test_sections_are_shown_while_others_are_still_running(
    watch: Watch, supervisor: Supervisor, redis: Redis
) -> None:
    supervisor.answer = lambda _: None
    stores = (
        StoryStore(redis, deadline_s=PATIENCE_S),
        AnalysisStore(redis, deadline_s=PATIENCE_S),
    )
    looks = Looks()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(
            watch.analyse(request_of(watch), RESPONSE, looks.show)
        )
        await supervisor.has_asked.wait()
        for sections in ({"knowledge"}, {"knowledge", "relationship"}):
            await _fold(*stores, analysed(3, *sections))
            await _until(lambda wanted=sections: wanted in looks.seen)
        assert not running.done()
        await supervisor.reply(done(supervisor.asked[0]))
    assert running.result().is_whole


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what is shown makes no event
            await asyncio.sleep(0.005)


async def test_a_lost_request_is_sent_again_while_nothing_moves(
    watch: Watch, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis_watch, "STILL_S", 0.05)
    supervisor.answer = lambda request: (
        done(request) if len(supervisor.asked) > 1 else None
    )
    async with asyncio.timeout(60):
        assert (await watch.analyse(request_of(watch), RESPONSE, Looks().show)).is_whole
    assert len(supervisor.asked) >= 2


async def _fold(
    stories: StoryStore, analyses: AnalysisStore, body: dict[str, Any]
) -> None:
    number = body["meta"]["resp_num"]
    await stories.put_response(STORY, StoryResponse(number=number, text="x"), keep=9)
    revision, _, _ = await analyses.record(STORY, number)
    assert await analyses.fold(
        STORY, number, revision, json.dumps(body).encode(), b"{}", {}, 9
    )


async def test_a_failed_agent_is_shown_with_its_reason_beside_the_other_sections(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {"dur": 5, "status": "failed", "error": "KeyError: 'x'"}
    supervisor.answer = lambda request: done(
        request,
        document=analysed(3, knowledge=failed, thread_extract={"status": "late"}),
    )
    assert await run_analysis(AnalysisOptions(folder=place)) == FAILED
    out, _ = capsys.readouterr()
    assert "8 of 10 agents ok, 2 failed" in out
    assert "failed: KeyError: 'x'\n" in out
    assert "late: it did not answer in time\n" in out
    assert "Marcus \u2194 Lily +10 (now 28, Acquaintance)" in out


@pytest.mark.parametrize("has_any", [True, False])
async def test_after_the_time_to_wait_the_sections_so_far_are_shown(
    has_any: bool,
    place: Path,
    supervisor: Supervisor,
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = analysed(3, "knowledge") if has_any else None
    supervisor.answer = lambda _: AnalysisReply(
        story_id=STORY, response_number=3, kind="pending", document=document
    )
    assert await run_analysis(AnalysisOptions(folder=place, wait_s=0.1)) == FAILED
    out, err = capsys.readouterr()
    assert ("3 facts; Coffee Corner Cafe" in out) is has_any
    assert ("0 of 9 agents ok, 9 at work" in out) is not has_any
    assert (place / "state" / "agent_analysis.json").exists() is has_any
    assert (
        "not finished after 0.1 s; the agents go on, and `tasklore analysis show quay --response 3`"
        in err
    )


async def test_the_document_of_a_later_response_is_not_overwritten(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    state = place / "state" / "agent_analysis.json"
    earlier = AnalysisOptions(folder=place, files=(Path("Ch1-R002.md"),))
    assert (
        await run_analysis(AnalysisOptions(folder=place))
        == await run_analysis(earlier)
        == OK
    )
    assert read_document(state.read_bytes()).meta.response_number == 3
    assert (
        capsys.readouterr().err
        == f"tasklore: {state} stays: it is of response 3, a later one\n"
    )
    state.write_text("{}")
    assert await run_analysis(earlier) == OK
    assert read_document(state.read_bytes()).meta.response_number == 2


class ClosedPipe(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


async def test_the_document_is_written_before_anything_is_printed(
    place: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", ClosedPipe())
    with pytest.raises(Interrupted, match="ended by signal 13"):
        await run_analysis(AnalysisOptions(folder=place))
    written = read_document((place / "state" / "agent_analysis.json").read_bytes())
    assert written.meta.response_number == 3


async def test_a_link_out_of_the_folder_is_not_sent(
    place: Path,
    supervisor: Supervisor,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "secret").write_text("secret")
    (place / "responses" / "Ch2-R004.md").symlink_to(tmp_path / "secret")
    for options in (
        AnalysisOptions(folder=place),
        AnalysisOptions(folder=place, everything=True),
        AnalysisOptions(folder=place, files=(Path("Ch2-R004.md"),)),
    ):
        assert await run_analysis(options) == USAGE
        assert "it is a link out of the story's folder" in capsys.readouterr().err
    assert supervisor.asked == []


async def test_all_responses_are_analysed_in_order_one_line_each(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {"status": "failed", "error": "KeyError: 'x'"}

    def answer(request: AnalysisRequest) -> AnalysisReply:
        changed = {"knowledge": failed} if request.response_number >= 2 else {}
        return done(
            request,
            document=analysed(request.response_number, **changed),
            served=request.response_number == 1,
        )

    supervisor.answer = answer
    assert await run_analysis(AnalysisOptions(folder=place, everything=True)) == FAILED
    assert [request.response_number for request in supervisor.asked] == [1, 2, 3]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Ch1-R1  whole       10 of 10 ok    served  ")
    assert lines[1].startswith("Ch1-R2  partial      9 of 10 ok  ")
    assert lines[2] == "  knowledge failed: KeyError: 'x'"
    assert lines[3].startswith("Ch2-R3  partial ")
    assert lines[5].startswith("3 responses in ")
    assert lines[5].endswith(", 28 sections, 2 missing, $0.0048.")
    assert lines[6].endswith(" tokens of context.")
    assert (
        read_document(
            (place / "state" / "agent_analysis.json").read_bytes()
        ).meta.response_number
        == 3
    )


async def test_all_stop_at_the_first_response_without_an_answer(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    supervisor.answer = lambda request: (
        done(request) if request.response_number == 1 else AnalysisReply(kind="pending")
    )
    assert (
        await run_analysis(
            AnalysisOptions(folder=place, everything=True, as_json=True, wait_s=0.5)
        )
        == FAILED
    )
    assert [request.response_number for request in supervisor.asked] == [1, 2]
    out, err = capsys.readouterr()
    assert json.loads(out) == [analysed(1)]
    assert "nothing came of Ch1-R2 within 0.5 s; those after it were not begun" in err


async def test_a_refusal_is_shown_as_the_supervisor_worded_it(
    place: Path, supervisor: Supervisor
) -> None:
    supervisor.answer = lambda _: AnalysisReply(
        kind="refused", text="no agent of a story is known; start a worker"
    )
    with pytest.raises(
        InvalidInput, match="no agent of a story is known; start a worker"
    ):
        await run_analysis(AnalysisOptions(folder=place))
    assert not (place / "state").exists()


async def test_when_a_supervisor_leaves_the_request_goes_to_another_and_is_not_a_refresh(
    place: Path, supervisor: Supervisor
) -> None:
    supervisor.answer = lambda request: (
        AnalysisReply(kind="pending") if request.refresh else done(request)
    )
    assert (
        await run_analysis(AnalysisOptions(folder=place, wait_s=30, refresh=True)) == OK
    )
    assert [
        (request.refresh, request.wait_ms > 20_000) for request in supervisor.asked
    ] == [
        (True, True),
        (False, True),
    ]


async def test_a_document_too_large_for_a_message_is_read_from_the_store(
    place: Path,
    supervisor: Supervisor,
    redis: Redis,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with open_stores() as stores:
        await stores.stories.load(read_story(place))
    await _kept([3], redis)
    supervisor.answer = lambda _: AnalysisReply(
        kind="done", text="it does not fit into a message"
    )
    assert await run_analysis(AnalysisOptions(folder=place, as_json=True)) == OK
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == (analysed(3), "")


async def test_a_folder_with_mistakes_is_refused_line_by_line(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "story.toml").write_text(
        'story_id = "quay"\ncritical_countdwn = 3\n', "utf-8"
    )
    assert await run_analysis(AnalysisOptions(folder=place, as_json=True)) == USAGE
    out, err = capsys.readouterr()
    [problem] = json.loads(out)["problems"]
    assert "story.toml: critical_countdwn: is not known" in problem
    assert problem in err
    assert supervisor.asked == []


async def _kept(numbers: Sequence[int], redis: Redis) -> None:
    stories = StoryStore(redis, deadline_s=PATIENCE_S)
    analyses = AnalysisStore(redis, deadline_s=PATIENCE_S)
    for number in numbers:
        await _fold(stories, analyses, analysed(number))


async def test_a_kept_analysis_is_found_by_story_and_number(
    place: Path, supervisor: Supervisor, redis: Redis
) -> None:
    await run_analysis(AnalysisOptions(folder=place))
    async with open_stores() as stores:
        with pytest.raises(InvalidInput, match="nothing of story 'quay' was analysed"):
            await stores.find(STORY)
        await _kept([1, 2, 3, 7], redis)
        assert (await stores.find(STORY)).meta.response_number == 7
        assert (await stores.find(STORY, 2)).meta.status == "stale"
        with pytest.raises(
            InvalidInput,
            match="no analysis of response 5 of 'quay' is kept; there are 1 to 3, 7",
        ):
            await stores.find(STORY, 5)
        with pytest.raises(
            UnknownStory,
            match=r"no story 'nobody'.*named with a slash or a dot: \./nobody",
        ):
            await stores.find("nobody")
        with pytest.raises(InvalidInput, match="STORY 'a b' must be"):
            await stores.find("a b")
