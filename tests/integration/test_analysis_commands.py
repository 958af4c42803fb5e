"""`tasklore analysis` against real servers and a supervisor that says what a test wants: what is sent, shown, kept."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from redis.asyncio import Redis

from contracts import subjects
from contracts.analysis import read_document
from contracts.errors import InvalidInput, UnknownStory, Unreachable
from contracts.messages import AnalysisReply, AnalysisRequest
from contracts.stories import StoryResponse
from memory.analysis import AnalysisStore
from memory.stories.store import StoryStore
from runtime.connection import connected
from runtime.embedded import EmbeddedServers
from runtime.streams import Sizes, declare_streams
from tasklore import analysis_asking, analysis_watching, calling
from tasklore.analysis_running import Wish, run_aloud
from tasklore.analysis_stores import open_stores
from tasklore.exits import FAILED, OK, USAGE
from tasklore.story_files import read_story

SUPERVISOR = "AnalysisCommands"
STORY = "quay"
EXAMPLE = Path(__file__).parents[1] / "unit" / "analysis" / "example.json"
BODY = json.loads(EXAMPLE.read_text("utf-8"))

Answer = Callable[[AnalysisRequest], "AnalysisReply | None"]


def analysed(number: int, *sections: str, **changed: Any) -> dict[str, Any]:
    """Return the example as the analysis of response *number*, only *sections* of it when any are named."""
    kept = {
        group: {name: one for name, one in BODY[group].items() if not sections or name in sections}
        for group in ("background", "immediate")
    }
    for section, body in changed.items():
        group = next(group for group in kept if section in BODY[group])
        kept[group][section] = body
    counts = {"agents_run": 10, "agents_ok": 10 - len(changed), "agents_fail": len(changed)}
    return {**BODY, "meta": {**BODY["meta"], "resp_num": number, **counts}, **kept}


def done(request: AnalysisRequest, **told: Any) -> AnalysisReply:
    """Return the reply of a supervisor whose agents are through."""
    document = told.pop("document", None) or analysed(request.response_number)
    return AnalysisReply(
        story_id=request.story_id, response_number=request.response_number, kind="done", document=document, **told
    )


class Supervisor:
    """Stands for a supervisor: keeps what it was asked, and says what *answer* returns, None is nothing."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.asked: list[AnalysisRequest] = []
        self.answer: Answer = done
        self.has_asked = asyncio.Event()

    async def open(self) -> None:
        """Begin to listen."""
        await self.client.subscribe(subjects.analyses(SUPERVISOR), cb=self._hear)
        await self.client.flush()

    async def reply(self, reply: AnalysisReply) -> None:
        """Answer what was asked last."""
        await self.client.publish(self._inbox, reply.model_dump_json().encode())

    async def _hear(self, message: Msg) -> None:
        request = AnalysisRequest.model_validate_json(message.data)
        self.asked.append(request)
        self._inbox = message.reply
        self.has_asked.set()
        if (reply := self.answer(request)) is not None:
            await self.reply(reply)


@pytest.fixture
def place(servers: EmbeddedServers, redis: Redis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let the commands find the servers, and return the folder of a story with three responses."""
    monkeypatch.setenv("TASKLORE_NATS_URL", servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", servers.redis_url)
    monkeypatch.setenv("TASKLORE_SUPERVISOR_ID", SUPERVISOR)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "quay"
    (folder / "responses").mkdir(parents=True)
    (folder / "entities").mkdir()
    (folder / "story.toml").write_text(f'story_id = "{STORY}"\ntitle = "The Quay"\n', "utf-8")
    (folder / "entities" / "anna.md").write_text("# Anna Lind\n\nKeeps the quay.\n", "utf-8")
    for number in (1, 2, 3):
        file = folder / "responses" / f"Ch{1 + number // 3}-R{number:03}.md"
        file.write_text(f'Anna Lind counted {number} ropes. "All here," she said.\n', "utf-8")
    return folder


@pytest.fixture
async def supervisor(place: Path, servers: EmbeddedServers) -> AsyncIterator[Supervisor]:
    """Run a supervisor that answers at once."""
    async with connected(servers.nats_url, "tests") as client:
        one = Supervisor(client)
        await one.open()
        yield one


async def test_the_last_response_is_analysed_and_told_with_its_context(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text goes out whole; table, what was saved and the context come back, and the document lies in the folder."""
    assert await run_aloud(Wish(place, until="immediate", wait_s=7, refresh=True)) == OK
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
    assert "fact_extract          2,341  10 facts of 2 names; 4,000 -> 110 tokens\n" in out
    assert "24,200 tokens became 1,515, 94 % less.\n" in out
    assert "of 350 tokens:\n\n<!-- AGENT CONTEXT -->\n" in out
    assert out.endswith("<!-- END AGENT CONTEXT -->\n")
    written = (place / "state" / "agent_analysis.json").read_bytes()
    assert read_document(written) == read_document(analysed(3))
    async with open_stores() as stores:
        assert (await stores.stories.settings(STORY)).title == "The Quay"


async def test_programs_get_the_document_and_nothing_else(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file may be named as it is called among the responses."""
    assert await run_aloud(Wish(place, (Path("Ch1-R002.md"),), as_json=True)) == OK
    assert supervisor.asked[0].response_number == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == analysed(2)
    assert err == ""


async def test_sections_are_told_as_they_come(
    place: Path,
    supervisor: Supervisor,
    redis: Redis,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line each while others are still at work."""
    monkeypatch.setattr(analysis_watching, "LOOK_S", 0.01)
    supervisor.answer = lambda _: None
    stores = StoryStore(redis), AnalysisStore(redis)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run_aloud(Wish(place)))
        await supervisor.has_asked.wait()
        lines: list[str] = []
        for sections in (("knowledge",), ("knowledge", "relationship")):
            await _fold(*stores, analysed(3, *sections))
            async with asyncio.timeout(60):
                while f"  {sections[-1]} " not in "".join(lines):
                    await asyncio.sleep(0)
                    lines.append(capsys.readouterr().err)
        assert not running.done()
        await supervisor.reply(done(supervisor.asked[0]))
    assert running.result() == OK
    told = [line.split()[:2] for line in ("".join(lines) + capsys.readouterr().err).splitlines()]
    assert told[:2] == [["knowledge", "ok"], ["relationship", "ok"]]
    assert len(told) == len({section for section, _ in told})
    # It is off in this story, so nobody waits for it.
    assert ["contradiction", "skipped"] not in told


async def _fold(stories: StoryStore, analyses: AnalysisStore, body: dict[str, Any]) -> None:
    number = body["meta"]["resp_num"]
    await stories.put_response(STORY, StoryResponse(number=number, text="x"), keep=9)
    revision, _, _ = await analyses.record(STORY, number)
    assert await analyses.fold(STORY, number, revision, json.dumps(body).encode(), b"{}", {}, 9)


async def test_an_agent_that_failed_is_told_with_its_reason(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other sections are shown all the same; the exit code tells."""
    failed = {"dur": 5, "status": "failed", "error": "KeyError: 'x'"}
    supervisor.answer = lambda request: done(
        request, document=analysed(3, knowledge=failed, thread_extract={"status": "late"})
    )
    assert await run_aloud(Wish(place)) == FAILED
    out, _ = capsys.readouterr()
    assert "8 of 10 agents ok, 2 failed" in out
    assert "failed: KeyError: 'x'\n" in out
    assert "late: it did not answer in time\n" in out
    assert "Marcus \u2194 Lily +10 (now 28, Acquaintance)" in out


@pytest.mark.parametrize("has_any", [True, False])
async def test_what_takes_too_long_is_shown_as_far_as_it_is(
    has_any: bool, place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    """With how to look at it later."""
    document = analysed(3, "knowledge") if has_any else None
    supervisor.answer = lambda _: AnalysisReply(story_id=STORY, response_number=3, kind="pending", document=document)
    assert await run_aloud(Wish(place, wait_s=0.5)) == FAILED
    out, err = capsys.readouterr()
    assert ("3 facts; Coffee Corner Cafe" in out) is has_any
    assert (place / "state" / "agent_analysis.json").exists() is has_any
    assert err.endswith(
        "tasklore: not finished after 0.5 s; the agents go on, and "
        "`tasklore analysis show quay --response 3` looks at what they found\n"
    )


async def test_whose_worker_is_away_is_said_while_it_is_waited_for(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that starts one."""
    await declare_streams(supervisor.client, Sizes())
    monkeypatch.setattr(analysis_watching, "LOOK_S", 0.01)
    supervisor.answer = lambda _: None
    told = ""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run_aloud(Wish(place)))
        async with asyncio.timeout(60):
            while "no worker of" not in told:
                await asyncio.sleep(0)
                told += capsys.readouterr().err
        await supervisor.reply(done(supervisor.asked[0]))
    assert running.result() == OK
    assert "and 6 more is alive; what they find waits until one is: `tasklore worker workers.agents.story`" in told


async def test_all_are_analysed_in_order_a_line_each(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    """What failed is named once, below its line; in the end the sum of it, and the last document in the folder."""
    failed = {"status": "failed", "error": "KeyError: 'x'"}

    def answer(request: AnalysisRequest) -> AnalysisReply:
        changed = {"knowledge": failed} if request.response_number >= 2 else {}
        return done(request, document=analysed(request.response_number, **changed), served=request.response_number == 1)

    supervisor.answer = answer
    assert await run_aloud(Wish(place, everything=True)) == FAILED
    assert [request.response_number for request in supervisor.asked] == [1, 2, 3]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Ch1-R1  whole       10 of 10 ok    served  ")
    assert lines[1].startswith("Ch1-R2  partial      9 of 10 ok  ")
    assert lines[2] == "  knowledge failed: KeyError: 'x'"
    assert lines[3].startswith("Ch2-R3  partial ")
    assert lines[5].startswith("3 responses in ")
    assert lines[5].endswith(", 28 findings, 2 missing, $0.0048.")
    assert lines[6].endswith(" tokens of context.")
    assert read_document((place / "state" / "agent_analysis.json").read_bytes()).meta.response_number == 3


async def test_all_end_where_nothing_comes(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next one would begin without what this one tells."""
    supervisor.answer = lambda request: done(request) if request.response_number == 1 else AnalysisReply(kind="pending")
    assert await run_aloud(Wish(place, everything=True, as_json=True, wait_s=0.5)) == FAILED
    assert [request.response_number for request in supervisor.asked] == [1, 2]
    out, err = capsys.readouterr()
    assert json.loads(out) == [analysed(1)]
    assert "nothing came of Ch1-R2 within 0.5 s; those after it were not begun" in err


async def test_files_are_taken_in_the_order_of_their_numbers(place: Path, supervisor: Supervisor) -> None:
    """However they were named; two of one number are refused."""
    files = [place / "responses" / name for name in ("Ch2-R003.md", "Ch1-R001.md")]
    assert await run_aloud(Wish(place, tuple(files))) == OK
    assert [request.response_number for request in supervisor.asked] == [1, 3]
    (place / "R3.md").write_text("x", "utf-8")
    with pytest.raises(InvalidInput, match="two of the files are response 3"):
        await run_aloud(Wish(place, (*files, place / "R3.md")))
    with pytest.raises(InvalidInput, match="--all means every response"):
        await run_aloud(Wish(place, tuple(files), everything=True))


async def test_who_stops_it_is_told_that_the_agents_go_on(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    """And how to look at what they find."""
    supervisor.answer = lambda _: None
    running = asyncio.ensure_future(run_aloud(Wish(place)))
    await supervisor.has_asked.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert running.cancelled()
    assert capsys.readouterr().err == (
        "tasklore: the agents go on; `tasklore analysis show quay --response 3` looks at what they found\n"
    )


async def test_a_refusal_is_told_as_it_was_said(place: Path, supervisor: Supervisor) -> None:
    """It names the cure."""
    supervisor.answer = lambda _: AnalysisReply(kind="refused", text="no agent of a story is known; start a worker")
    with pytest.raises(InvalidInput, match="no agent of a story is known; start a worker"):
        await run_aloud(Wish(place))
    assert not (place / "state").exists()


async def test_without_a_supervisor_the_cure_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for any other request."""
    monkeypatch.setattr(calling, "NOBODY_S", 0.1)
    with pytest.raises(Unreachable, match=r"nobody takes requests on 'analyses\.AnalysisCommands'.*`tasklore up`"):
        await run_aloud(Wish(place))


async def test_a_late_reply_is_asked_for_again_without_asking_the_agents(
    place: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever took the request may be gone: its successor tells what there is, and begins nothing anew."""
    monkeypatch.setattr(analysis_asking, "LATE_S", 0.1)
    supervisor.answer = lambda request: None if request.refresh else done(request, served=True)
    assert await run_aloud(Wish(place, wait_s=0, refresh=True)) == OK
    assert [request.refresh for request in supervisor.asked] == [True, False]


async def test_a_supervisor_that_leaves_is_followed_by_another(place: Path, supervisor: Supervisor) -> None:
    """It says before the time that nothing is there yet; whoever follows goes on, and begins nothing anew."""
    supervisor.answer = lambda request: AnalysisReply(kind="pending") if request.refresh else done(request)
    assert await run_aloud(Wish(place, wait_s=30, refresh=True)) == OK
    assert [(request.refresh, request.wait_ms > 20_000) for request in supervisor.asked] == [
        (True, True),
        (False, True),
    ]


async def test_a_document_that_no_message_holds_is_looked_up(
    place: Path, supervisor: Supervisor, redis: Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was folded all the same."""
    async with open_stores() as stores:
        await stores.stories.load(read_story(place))
    await _kept([3], redis)
    supervisor.answer = lambda _: AnalysisReply(kind="done", text="it does not fit into a message")
    assert await run_aloud(Wish(place, as_json=True)) == OK
    assert json.loads(capsys.readouterr().out) == analysed(3)


async def test_a_folder_with_mistakes_is_refused_line_by_line(
    place: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked."""
    (place / "story.toml").write_text('story_id = "quay"\ncritical_countdwn = 3\n', "utf-8")
    assert await run_aloud(Wish(place, as_json=True)) == USAGE
    out, err = capsys.readouterr()
    [problem] = json.loads(out)["problems"]
    assert "story.toml:2: " in problem
    assert problem in err
    assert supervisor.asked == []


async def test_a_story_without_a_response_says_what_to_do(place: Path, supervisor: Supervisor) -> None:
    """A folder may be there and empty."""
    for file in (place / "responses").iterdir():
        file.unlink()
    with pytest.raises(InvalidInput, match=r"has no response; name a file, or write Ch1-R001\.md there"):
        await run_aloud(Wish(place))


async def _kept(numbers: Sequence[int], redis: Redis) -> None:
    stories, analyses = StoryStore(redis), AnalysisStore(redis)
    for number in numbers:
        await _fold(stories, analyses, analysed(number))


async def test_what_is_kept_of_a_story_is_found_by_its_id(place: Path, supervisor: Supervisor, redis: Redis) -> None:
    """The latest without a number; a story or a response that is not there says which are."""
    await run_aloud(Wish(place))
    async with open_stores() as stores:
        with pytest.raises(InvalidInput, match="nothing of story 'quay' was analysed"):
            await stores.found(STORY)
        await _kept([1, 2, 3, 7], redis)
        assert (await stores.found(STORY)).meta.response_number == 7
        assert (await stores.found(STORY, 2)).meta.status == "stale"
        with pytest.raises(InvalidInput, match="no analysis of response 5 of 'quay' is kept; there are 1 to 3, 7"):
            await stores.found(STORY, 5)
        with pytest.raises(UnknownStory, match=r"no story 'nobody'.*named with a slash or a dot: \./nobody"):
            await stores.found("nobody")
        with pytest.raises(InvalidInput, match="STORY 'a b' must be"):
            await stores.found("a b")
