"""`tasklore pipeline` beside a supervisor and a worker: output, starts, repairs and refusals of each command."""

import asyncio
import contextlib
import json
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tasklore.commands.app import make_root
from tasklore.commands.exits import FAILED, OK, USAGE
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.pipelines import follow
from tasklore.commands.pipelines.check import print_check
from tasklore.commands.pipelines.ends import print_status
from tasklore.commands.pipelines.follow import RunFollower
from tasklore.commands.pipelines.restore import restore_run, write_evidence
from tasklore.commands.pipelines.run import (
    ResumeOptions,
    RunOptions,
    rerun_phase,
    resume_run,
    run_pipeline,
)
from tasklore.contracts.errors import InvalidInput, TaskloreError, Unreachable
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.memory.sessions.pipeline_records import NewRun
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.system import System
from tests.interrupts import hear_interrupts

#: Its task fails while there is a file `fail-{label}` in the folder, and waits while there is `hold-{label}`.
AGENT = '''"""Steps of pipelines."""

import asyncio
from pathlib import Path

from tasklore.contracts.errors import GiveUp
from tasklore import Agent, Context, Parameters

agent = Agent("StepAgent", keywords=("step",))


class Step(Parameters):
    """A step."""

    folder: str
    label: str
    told: str = ""


@agent.task(remember=False)
async def step(asked: Step, context: Context) -> dict[str, str]:
    """Say what was told, and who says it."""
    folder = Path(asked.folder)
    while (folder / f"hold-{asked.label}").exists():
        await context.progress(0.5, "holding")
        await asyncio.sleep(0.02)
    if (folder / f"fail-{asked.label}").exists():
        raise GiveUp(f"{asked.label} was to fail")
    return {"said": f"{asked.told}{asked.label}"}
'''

PIPELINE = """name = "steps"
result = "third:results"
root = "${input.folder}"

[inputs.folder]
type = "text"

[[phase]]
name = "first"
agent = "StepAgent"
task = "step"
parameters = { folder = "${input.folder}", label = "a" }
reads_files = ["*.txt"]

[[phase]]
name = "beside"
agent = "StepAgent"
task = "step"
parameters = { folder = "${input.folder}", label = "x" }

[[phase]]
name = "second"
agent = "StepAgent"
task = "step"
parameters = { folder = "${input.folder}", label = "b", told = "${first:results.said}" }

[[phase]]
name = "third"
agent = "StepAgent"
task = "step"
after = ["beside"]
parameters = { folder = "${input.folder}", label = "c", told = "${second:results.said}" }
"""

Output = pytest.CaptureFixture[str]
MakeOptions = Callable[..., RunOptions]

RESULT = '{\n  "said": "abc"\n}\n'
LEASE_S = 0.5


def find_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


API_PORT = find_port()
#: Seconds for a fact on a busy machine.
PATIENCE_S = 90.0


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run a supervisor and a worker for all tests here; each test uses sessions of its own."""
    folder = tmp_path_factory.mktemp("pipelines")
    (folder / "steps_agent.py").write_text(AGENT, "utf-8")
    servers = EmbeddedServers(folder / "servers")
    asyncio.run(servers.start())
    built = System(servers, folder)
    try:
        worker = built.worker(str(folder / "steps_agent.py"))
        start_supervisor(built)
        worker.ready()
        yield built
    finally:
        built.close()
        asyncio.run(servers.stop())


def declare(text: str) -> None:
    """Write the declaration of the steps."""
    Path("steps.toml").write_text(text, "utf-8")


def read_json(file: Path) -> Any:
    """Return the document in *file*."""
    return json.loads(file.read_text("utf-8"))


def start_supervisor(system: System) -> None:
    """Start a supervisor, whose API is where that of the one before it was, and wait until it is ready."""
    system.supervisor(
        pipeline_lease_s=LEASE_S,
        evidence_dir=system.folder / "evidence",
        api_port=API_PORT,
    ).ready()


@pytest.fixture(autouse=True)
def _place(
    system: System, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """Let the commands find the house, and look into a folder of the test's own."""
    monkeypatch.setenv("TASKLORE_NATS_URL", system.servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", system.servers.redis_url)
    monkeypatch.setenv("TASKLORE_API_URL", f"http://127.0.0.1:{API_PORT}")
    monkeypatch.chdir(tmp_path)
    declare(PIPELINE)
    yield
    for file in tmp_path.glob("hold-*"):
        file.unlink()


@pytest.fixture
def options(tmp_path: Path, request: pytest.FixtureRequest) -> MakeOptions:
    name = f"s-{abs(hash(request.node.name)):x}"

    def make(**told: Any) -> RunOptions:
        return RunOptions(
            source="steps.toml",
            inputs=(f"folder={tmp_path}",),
            **{"session": name, **told},
        )

    return make


async def type_words(words: str) -> int:
    """Run `tasklore pipelines` with *words*, and return the exit code."""
    root = make_root()
    given = ["pipelines", *shlex.split(words)]
    code: int | None = await asyncio.to_thread(
        root, given, prog_name="tasklore", standalone_mode=False
    )
    return code or OK


async def look(session_id: str) -> dict[str, Any]:
    """Return the run as it is now."""
    api = LocalApi("pipelines")
    run: dict[str, Any] = await asyncio.to_thread(
        api.ask, "status", session_id=session_id
    )
    return run


def status_of(run: dict[str, Any], phase: str) -> str:
    """Return the status of *phase*."""
    return next(str(one["status"]) for one in run["phases"] if one["phase"] == phase)


async def until_begun(session_id: str, phase: str, done: str = "") -> None:
    """Return once there is the run, *phase* of it runs, and *done* is done."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            # Its command may not have asked for it yet.
            with contextlib.suppress(ApiRefused):
                run = await look(session_id)
                if status_of(run, phase) == "running" and (
                    not done or status_of(run, done) == "done"
                ):
                    return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def stores(system: System) -> AsyncIterator[valkey.Valkey]:
    """Open the store of the house."""
    async with valkey.connect(system.servers.redis_url) as redis:
        yield redis


async def shown_until(words: str, capsys: Output) -> str:
    """Return all of stderr once *words* stand there."""
    shown = ""
    async with asyncio.timeout(PATIENCE_S):
        while words not in shown:
            await asyncio.sleep(0.02)
            shown += capsys.readouterr().err
    return shown


async def test_a_run_prints_its_result_and_each_phase(
    options: MakeOptions, capsys: Output
) -> None:
    session = str(options().session)
    assert await asyncio.to_thread(run_pipeline, options()) == OK
    out, err = capsys.readouterr()
    assert out == RESULT
    lines = err.splitlines()
    assert lines[0] == f"tasklore: session {session}"
    done = sorted(line.split()[0] for line in lines if line.split()[1:2] == ["done"])
    assert done == ["beside", "first", "second", "third"]
    assert f"{session} completed in " in lines[-1]
    assert "4 of 4 phases done" in lines[-1]
    assert (
        await asyncio.to_thread(print_status, session, is_followed=False, as_json=False)
        == OK
    )
    assert f"{session} completed" in capsys.readouterr().out
    assert (
        await asyncio.to_thread(print_status, session, is_followed=False, as_json=True)
        == OK
    )
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["outcome"]["result"]) == (
        "completed",
        {"said": "abc"},
    )
    # The same run again starts nothing, another one under its id is refused.
    for _ in range(2):
        assert await asyncio.to_thread(run_pipeline, options(as_json=True)) == OK
        assert json.loads(capsys.readouterr().out)["result"] == {"said": "abc"}
    assert await asyncio.to_thread(run_pipeline, options(user="ana")) == USAGE
    assert "is taken by another run" in capsys.readouterr().err
    with pytest.raises(ApiRefused, match="session is gone; run the pipeline again"):
        await asyncio.to_thread(resume_run, session, ResumeOptions())


@pytest.mark.parametrize(
    ("mistake", "line", "said"),
    [
        (('agent = "StepAgent"', 'agent = "StepAgnt"'), 10, "StepAgent"),
        (
            ('label = "a" }', 'label = "a", told = "${third:results.said}" }'),
            8,
            "first -> third",
        ),
        (('label = "a" }', 'lable = "a" }'), 12, "label"),
        (('name = "beside"', "name = 3"), 16, "name"),
    ],
)
async def test_a_pipeline_that_cannot_run_is_refused_with_line_and_cure(
    mistake: tuple[str, str], line: int, said: str, options: MakeOptions, capsys: Output
) -> None:
    declare(PIPELINE.replace(*mistake, 1))
    for code in (
        await asyncio.to_thread(run_pipeline, options()),
        await asyncio.to_thread(print_check, "steps.toml", (), as_json=False),
    ):
        assert code == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert any(
        one.startswith(f"tasklore: steps.toml:{line}: ") and said in one
        for one in lines
    ), err
    with pytest.raises(ApiRefused):
        await look(str(options().session))


async def test_check_accepts_a_sound_pipeline_with_and_without_servers(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await asyncio.to_thread(print_check, "steps.toml", (), as_json=False) == OK
    assert (
        capsys.readouterr().out
        == "steps: 4 phases, nothing is wrong; it fits the agents that are known here.\n"
    )
    assert (
        await asyncio.to_thread(print_check, "steps.toml", ("folder=.",), as_json=True)
        == OK
    )
    assert json.loads(capsys.readouterr().out) == {
        "pipeline": "steps",
        "problems": [],
        "checked_agents": True,
    }
    monkeypatch.setenv("TASKLORE_API_URL", "http://127.0.0.1:1")
    assert await asyncio.to_thread(print_check, "steps.toml", (), as_json=False) == OK
    out, err = capsys.readouterr()
    assert out == "steps: 4 phases, nothing is wrong; by itself it is sound.\n"
    assert "its agents and their tasks were not looked at" in err


async def test_missing_and_mistyped_inputs_are_named(
    options: MakeOptions, capsys: Output
) -> None:
    assert (
        await asyncio.to_thread(run_pipeline, RunOptions(source="steps.toml")) == USAGE
    )
    assert (
        "input 'folder' is missing; give it, such as --input folder=..."
        in capsys.readouterr().err
    )
    with pytest.raises(InvalidInput, match="--input foldr"):
        await asyncio.to_thread(
            run_pipeline, RunOptions(source="steps.toml", inputs=("foldr=.",))
        )
    with pytest.raises(ApiRefused, match="--user: "):
        await asyncio.to_thread(run_pipeline, options(user="u" * 257))
    with pytest.raises(InvalidInput, match="UTF-8"):
        await asyncio.to_thread(run_pipeline, options(user="\udc80"))
    with pytest.raises(InvalidInput, match="--session"):
        await asyncio.to_thread(run_pipeline, options(session="a b"))


async def test_after_a_failure_only_what_failed_and_what_waits_for_it_runs_again(
    options: MakeOptions, tmp_path: Path, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "fail-b").touch()
    assert await asyncio.to_thread(run_pipeline, options()) == FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert "tasklore: second: GiveUp: b was to fail\n" in err
    assert f"{session}-failed.json" in err
    assert f"tasklore: resume with: tasklore pipelines resume {session}\n" in err
    assert err.endswith(
        f"correct the file? `tasklore pipelines resume {session} --file FILE`\n"
    )
    assert (
        await asyncio.to_thread(print_status, session, is_followed=False, as_json=False)
        == FAILED
    )
    shown = capsys.readouterr().out
    states = [line.split()[1] for line in shown.splitlines()[2:6]]
    assert states == ["done", "done", "failed", "waiting"]
    (tmp_path / "fail-b").unlink()
    assert await asyncio.to_thread(resume_run, session, ResumeOptions()) == OK
    out, err = capsys.readouterr()
    assert out == RESULT
    again, reused = err.split("phases reused")
    assert [
        line.split()[0] for line in again.splitlines() if line.startswith("  ")
    ] == ["second", "third"]
    assert sorted(
        line.split()[0] for line in reused.splitlines() if "it is done" in line
    ) == ["beside", "first"]


async def test_a_corrected_file_counts_only_when_it_is_given(
    options: MakeOptions, tmp_path: Path, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "fail-b").touch()
    assert await asyncio.to_thread(run_pipeline, options()) == FAILED
    corrected = ResumeOptions(file="steps.toml")
    declare(PIPELINE.replace("first:results.said", "first:result.said"))
    capsys.readouterr()
    assert await asyncio.to_thread(resume_run, session, corrected) == USAGE
    assert capsys.readouterr().err.startswith("tasklore: steps.toml:25: phase second: ")
    declare(PIPELINE.replace('label = "b"', 'label = "B"'))
    assert await asyncio.to_thread(resume_run, session, ResumeOptions()) == FAILED
    assert await asyncio.to_thread(resume_run, session, corrected) == OK
    assert json.loads(capsys.readouterr().out) == {"said": "aBc"}


async def test_a_kept_run_is_run_again_from_a_phase_or_by_changed_files(
    options: MakeOptions, capsys: Output
) -> None:
    session = str(options().session)
    assert await asyncio.to_thread(run_pipeline, options(keep=True)) == OK
    assert "the session is kept" in capsys.readouterr().err
    with pytest.raises(
        ApiRefused, match="'fourth' is not a phase of 'steps'; it has first"
    ):
        await asyncio.to_thread(rerun_phase, session, "fourth", ResumeOptions())
    for unknown, message in (
        ("--phase fourth", "--phase: 'fourth'"),
        ("--key first:result", "--key: .* writes first:results"),
    ):
        with pytest.raises(ApiRefused, match=message):
            await type_words(f"invalidate {session} {unknown}")
    assert await asyncio.to_thread(resume_run, session, ResumeOptions()) == USAGE
    assert "nothing of it is stale" in capsys.readouterr().err
    assert (
        await asyncio.to_thread(rerun_phase, session, "second", ResumeOptions()) == OK
    )
    told = capsys.readouterr().err
    again = [
        line.split()[0]
        for line in told.split("phases reused")[0].splitlines()
        if line.startswith("  ")
    ]
    assert again == ["second", "third"]
    for stale, expected in (
        ("", []),
        ("--design colours", []),
        ("--changed notes.md", []),
        ("--changed notes.txt", ["first", "second", "third"]),
        ("--key beside:results", ["beside"]),
    ):
        assert await type_words(f"invalidate {session} {stale} --json") == OK
        assert [
            note["phase"] for note in json.loads(capsys.readouterr().out)["stale"]
        ] == expected
    assert (
        await asyncio.to_thread(print_status, session, is_followed=False, as_json=False)
        == OK
    )
    out, err = capsys.readouterr()
    assert "reads the file 'notes.txt', which changed" in out
    assert (
        f"4 phases stale; run them again with: tasklore pipelines resume {session}"
        in err
    )
    assert await type_words(f"invalidate {session} --phase first") == OK
    assert capsys.readouterr().out == "That makes nothing more stale.\n"
    assert (
        await asyncio.to_thread(
            resume_run, session, ResumeOptions(no_wait=True, as_json=True)
        )
        == OK
    )
    why = {
        note["phase"]: note["why"]
        for note in json.loads(capsys.readouterr().out)["stale"]
    }
    assert len(why) == 4
    assert "notes.txt" in why["first"]
    assert (
        await asyncio.to_thread(print_status, session, is_followed=True, as_json=False)
        == OK
    )
    assert capsys.readouterr().out == RESULT


async def test_evidence_is_enough_to_go_on_from(
    options: MakeOptions, tmp_path: Path, system: System, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "fail-c").touch()
    assert await asyncio.to_thread(run_pipeline, options()) == FAILED
    left = read_json(system.folder / "evidence" / f"{session}-failed.json")
    assert (
        await asyncio.to_thread(
            write_evidence, session, Path("own.json"), is_forced=False
        )
        == OK
    )
    own = read_json(Path("own.json"))
    assert (own["phases"].keys(), own["session"]["cache"]) == (
        left["phases"].keys(),
        left["session"]["cache"],
    )
    with pytest.raises(InvalidInput, match="--force"):
        await asyncio.to_thread(
            write_evidence, session, Path("own.json"), is_forced=False
        )
    async with stores(system) as redis:
        assert await SessionCache(redis).drop(session)
    with pytest.raises(ApiRefused, match=r"what it left is in .*-failed\.json"):
        await asyncio.to_thread(resume_run, session, ResumeOptions())
    (tmp_path / "fail-c").unlink()
    capsys.readouterr()
    assert await asyncio.to_thread(restore_run, Path("own.json"), ResumeOptions()) == OK
    out, err = capsys.readouterr()
    assert out == RESULT
    assert err.startswith(f"tasklore: session {session} is restored with 3 entries\n")
    assert "3 phases reused" in err


async def test_a_run_goes_on_when_its_watcher_stops(
    options: MakeOptions, tmp_path: Path, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "hold-a").touch()
    words = ["run", "steps.toml", "--input", f"folder={tmp_path}", "--session", session]
    told = tmp_path / "told"
    with told.open("wb") as stderr:
        watching = subprocess.Popen(  # noqa: ASYNC220 - it is waited for in a thread
            [sys.executable, "-m", "tasklore", "pipelines", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            preexec_fn=hear_interrupts,
        )
    async with asyncio.timeout(PATIENCE_S):
        while "50% holding" not in told.read_text("utf-8"):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.02)
    watching.send_signal(signal.SIGINT)
    assert await asyncio.to_thread(watching.wait, PATIENCE_S) == 128 + signal.SIGINT
    said = told.read_text("utf-8")
    assert (
        f"the run continues; `tasklore pipelines status {session} --follow` shows it"
        in said
    )
    assert f"`tasklore pipelines cancel {session}` ends it" in said
    (tmp_path / "hold-a").unlink()
    ended = await asyncio.to_thread(
        print_status, session, is_followed=True, as_json=False
    )
    assert ended == OK
    assert capsys.readouterr().out == RESULT


async def test_a_run_is_cancelled_and_can_go_on(
    options: MakeOptions, tmp_path: Path, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "hold-b").touch()
    assert await asyncio.to_thread(run_pipeline, options(no_wait=True)) == OK
    assert capsys.readouterr().out == f"{session}\n"
    await until_begun(session, "second", done="beside")
    listed = await asyncio.to_thread(LocalApi("pipelines").ask, "list")
    assert session in [one["session_id"] for one in listed["runs"]]
    assert await asyncio.to_thread(resume_run, session, ResumeOptions()) == USAGE
    assert "is running" in capsys.readouterr().err
    assert await type_words(f"cancel {session} --reason 'wrong folder'") == OK
    assert capsys.readouterr().out.startswith(f"{session} is ")
    assert await asyncio.to_thread(
        RunFollower(LocalApi("pipelines"), session).until_over,
        lambda _run, _progress: None,
    )
    with pytest.raises(
        ApiRefused, match=f"run '{session}' does not run: it is cancelled"
    ):
        await type_words(f"cancel {session}")
    assert (
        await asyncio.to_thread(print_status, session, is_followed=False, as_json=False)
        == FAILED
    )
    assert "error: wrong folder" in capsys.readouterr().out
    (tmp_path / "hold-b").unlink()
    assert await asyncio.to_thread(resume_run, session, ResumeOptions()) == OK
    assert capsys.readouterr().out == RESULT


async def test_a_watched_run_survives_the_kill_of_its_supervisor(
    options: MakeOptions, tmp_path: Path, system: System, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "hold-b").touch()
    watching = asyncio.create_task(asyncio.to_thread(run_pipeline, options()))
    await until_begun(session, "second")
    for process in system._processes[1:]:
        process.kill()
    start_supervisor(system)
    (tmp_path / "hold-b").unlink()
    async with asyncio.timeout(PATIENCE_S):
        assert await watching == OK
    assert capsys.readouterr().out == RESULT


@pytest.mark.parametrize(
    ("command", "error", "said"),
    [
        (
            lambda: print_status("nobody", is_followed=False, as_json=False),
            ApiRefused,
            "tasklore pipelines list",
        ),
        (
            lambda: print_status("no body", is_followed=False, as_json=False),
            ApiRefused,
            "SESSION: must be",
        ),
        (lambda: rerun_phase("nobody", "first", ResumeOptions()), ApiRefused, "nobody"),
        (
            lambda: write_evidence("nobody", None, is_forced=False),
            ApiRefused,
            "nobody",
        ),
        (
            lambda: restore_run(Path("steps.toml"), ResumeOptions()),
            InvalidInput,
            "steps.toml",
        ),
        (
            lambda: run_pipeline(RunOptions(source="code-reprot")),
            InvalidInput,
            "did you mean 'code-report'",
        ),
    ],
)
async def test_a_wrong_argument_is_refused_with_the_cure(
    command: Callable[[], Any], error: type[TaskloreError], said: str
) -> None:
    with pytest.raises(error, match=said):
        await asyncio.to_thread(command)


async def test_without_a_supervisor_a_run_says_what_to_start(
    options: MakeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKLORE_API_URL", "http://127.0.0.1:1")
    with pytest.raises(Unreachable, match=r"tasklore supervisor.*TASKLORE_API_URL"):
        await asyncio.to_thread(run_pipeline, options())


async def make_orphan(session_id: str, redis: valkey.Valkey) -> PipelineRuns:
    """Make a run that no supervisor is there for."""
    pipeline = Pipeline(
        name="steps", phases=(Phase(name="first", agent="StepAgent", task="step"),)
    )
    runs = PipelineRuns(redis)
    assert await runs.create(
        NewRun(session_id=session_id, pipeline=pipeline, supervisor_id="Nobody")
    )
    return runs


async def test_a_follower_finds_an_end_whose_event_was_lost(system: System) -> None:
    async with stores(system) as redis, asyncio.timeout(PATIENCE_S):
        runs = await make_orphan("silent", redis)
        looked = threading.Event()
        follower = RunFollower(LocalApi("pipelines"), "silent")
        following = asyncio.create_task(
            asyncio.to_thread(follower.until_over, lambda _run, _progress: looked.set())
        )
        await asyncio.to_thread(looked.wait)
        fence = await runs.claim("silent", "me", 60_000)
        assert fence is not None
        assert await runs.end(
            "silent", fence, "failed", b'{"state": "failed", "phases": []}', keep=True
        )
        assert (await following)["state"] == "failed"


async def test_a_follower_gives_up_on_a_run_that_no_supervisor_drives(
    system: System, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(follow, "SAY_AFTER_S", 0)
    monkeypatch.setattr(follow, "GIVE_UP_S", 1.5)
    async with stores(system) as redis, asyncio.timeout(PATIENCE_S):
        await make_orphan("left", redis)
        follower = RunFollower(LocalApi("pipelines"), "left")
        with pytest.raises(Unreachable, match="status left --follow"):
            await asyncio.to_thread(follower.until_over, lambda _run, _progress: None)
    assert capsys.readouterr().err.count("no supervisor is running this pipeline") == 1
