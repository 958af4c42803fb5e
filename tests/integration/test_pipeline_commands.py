"""`tasklore pipeline` beside a supervisor and a worker: output, starts, repairs and refusals of each command."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tasklore.commands.exits import FAILED, OK, USAGE
from tasklore.commands.pipeline.check import print_check
from tasklore.commands.pipeline.edits import cancel_run, invalidate_run
from tasklore.commands.pipeline.run import (
    ResumeOptions,
    RunOptions,
    follow_run,
    rerun_phase,
    resume_run,
    run_pipeline,
)
from tasklore.commands.pipeline.stores import Look, Stores, open_stores
from tasklore.commands.pipeline.views import print_list, print_status, write_evidence
from tasklore.commands.pipeline.watch import Watch
from tasklore.commands.places import open_nats
from tasklore.contracts.errors import (
    InvalidInput,
    TaskloreError,
    UnknownSession,
    Unreachable,
)
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.memory.sessions.pipeline_records import NewRun
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.house import House

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
#: Seconds for a fact on a busy machine.
PATIENCE_S = 90.0


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Run a supervisor and a worker for all tests here; each test uses sessions of its own."""
    folder = tmp_path_factory.mktemp("pipelines")
    (folder / "steps_agent.py").write_text(AGENT, "utf-8")
    servers = EmbeddedServers(folder / "servers")
    asyncio.run(servers.start())
    built = House(servers, folder)
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


def start_supervisor(house: House) -> None:
    """Start a supervisor and wait until it is ready."""
    house.supervisor(
        pipeline_lease_s=LEASE_S, evidence_dir=house.folder / "evidence"
    ).ready()


@pytest.fixture(autouse=True)
def _place(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """Let the commands find the house, and look into a folder of the test's own."""
    monkeypatch.setenv("TASKLORE_NATS_URL", house.servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", house.servers.redis_url)
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


async def until(session_id: str, is_so: Callable[[Look], bool]) -> Look:
    """Return the run once it is so."""
    async with open_stores() as stores, asyncio.timeout(PATIENCE_S):
        while True:
            look = await stores.look(session_id)
            if is_so(look):
                return look
            await asyncio.sleep(0)


def has_begun(phase: str) -> Callable[[Look], bool]:
    """Return a condition: *phase* runs."""
    return lambda look: (
        look.record is not None and look.record.phases[phase].status == "running"
    )


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
    assert await run_pipeline(options()) == OK
    out, err = capsys.readouterr()
    assert out == RESULT
    lines = err.splitlines()
    assert lines[0] == f"tasklore: session {session}"
    done = sorted(line.split()[0] for line in lines if line.split()[1:2] == ["done"])
    assert done == ["beside", "first", "second", "third"]
    assert f"{session} completed in " in lines[-1]
    assert "4 of 4 phases done" in lines[-1]
    assert await print_status(session, as_json=False) == OK
    assert f"{session} completed" in capsys.readouterr().out
    assert await print_status(session, as_json=True) == OK
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["outcome"]["result"]) == (
        "completed",
        {"said": "abc"},
    )
    # The same run again starts nothing, another one under its id is refused.
    for _ in range(2):
        assert await run_pipeline(options(as_json=True)) == OK
        assert json.loads(capsys.readouterr().out)["result"] == {"said": "abc"}
    assert await run_pipeline(options(user="ana")) == USAGE
    assert "is taken by another run" in capsys.readouterr().err
    with pytest.raises(UnknownSession, match="session is gone; run the pipeline anew"):
        await resume_run(session, ResumeOptions())


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
        await run_pipeline(options()),
        await print_check("steps.toml", (), as_json=False),
    ):
        assert code == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert any(
        one.startswith(f"tasklore: steps.toml:{line}: ") and said in one
        for one in lines
    ), err
    with pytest.raises(UnknownSession):
        await print_status(str(options().session), as_json=False)


async def test_check_accepts_a_sound_pipeline_with_and_without_servers(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await print_check("steps.toml", (), as_json=False) == OK
    assert (
        capsys.readouterr().out
        == "steps: 4 phases, nothing is wrong; it fits the agents that are known here.\n"
    )
    assert await print_check("steps.toml", ("folder=.",), as_json=True) == OK
    assert json.loads(capsys.readouterr().out) == {
        "pipeline": "steps",
        "problems": [],
        "checked_agents": True,
    }
    monkeypatch.setenv("TASKLORE_NATS_URL", "nats://127.0.0.1:1")
    assert await print_check("steps.toml", (), as_json=False) == OK
    out, err = capsys.readouterr()
    assert out == "steps: 4 phases, nothing is wrong; by itself it is sound.\n"
    assert "its agents and their tasks were not looked at" in err


async def test_missing_and_mistyped_inputs_are_named(
    options: MakeOptions, capsys: Output
) -> None:
    assert await run_pipeline(RunOptions(source="steps.toml")) == USAGE
    assert (
        "input 'folder' is missing; give it, such as --input folder=..."
        in capsys.readouterr().err
    )
    with pytest.raises(InvalidInput, match="--input foldr"):
        await run_pipeline(RunOptions(source="steps.toml", inputs=("foldr=.",)))
    for user in (" ", "u" * 257, "\udc80"):
        with pytest.raises(InvalidInput, match="--user"):
            await run_pipeline(options(user=user))
    with pytest.raises(InvalidInput, match="--session"):
        await run_pipeline(options(session="a b"))


async def test_after_a_failure_only_what_failed_and_what_waits_for_it_runs_again(
    options: MakeOptions, tmp_path: Path, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "fail-b").touch()
    assert await run_pipeline(options()) == FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert "tasklore: second: GiveUp: b was to fail\n" in err
    assert f"{session}-failed.json" in err
    assert f"tasklore: go on with: tasklore pipeline resume {session}\n" in err
    assert err.endswith(
        f"correct the file? `tasklore pipeline resume {session} --file FILE`\n"
    )
    assert await print_status(session, as_json=False) == FAILED
    shown = capsys.readouterr().out
    states = [line.split()[1] for line in shown.splitlines()[2:6]]
    assert states == ["done", "done", "failed", "waiting"]
    (tmp_path / "fail-b").unlink()
    assert await resume_run(session, ResumeOptions()) == OK
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
    assert await run_pipeline(options()) == FAILED
    corrected = ResumeOptions(file="steps.toml")
    declare(PIPELINE.replace("first:results.said", "first:result.said"))
    capsys.readouterr()
    assert await resume_run(session, corrected) == USAGE
    assert capsys.readouterr().err.startswith("tasklore: steps.toml:25: phase second: ")
    declare(PIPELINE.replace('label = "b"', 'label = "B"'))
    assert await resume_run(session, ResumeOptions()) == FAILED
    assert await resume_run(session, corrected) == OK
    assert json.loads(capsys.readouterr().out) == {"said": "aBc"}


async def test_a_phase_whose_agent_has_no_worker_is_shown_as_waiting(
    options: MakeOptions,
    tmp_path: Path,
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = str(options().session)
    (tmp_path / "hold-a").touch()
    assert await run_pipeline(options(no_wait=True)) == OK
    await until(session, has_begun("first"))
    capsys.readouterr()

    async def nobody(_client: Any) -> list[Any]:
        return []

    with monkeypatch.context() as patched:
        patched.setattr("tasklore.commands.pipeline.client.live_workers", nobody)
        assert await print_status(session, as_json=False) == OK
        out, err = capsys.readouterr()
        assert "waits for a worker of StepAgent" in out
        assert "no worker of StepAgent is alive; its phases wait" in err
        assert await print_status(session, as_json=True) == OK
        assert json.loads(capsys.readouterr().out)["without_worker"] == ["StepAgent"]
        following = asyncio.create_task(follow_run(session, as_json=False))
        assert "no worker of StepAgent is alive" in await shown_until(
            "waits for a worker of StepAgent", capsys
        )
    (tmp_path / "hold-a").unlink()
    async with asyncio.timeout(PATIENCE_S):
        assert await following == OK
    assert capsys.readouterr().out == RESULT


async def test_a_kept_run_is_run_again_from_a_phase_or_by_changed_files(
    options: MakeOptions, capsys: Output
) -> None:
    session = str(options().session)
    assert await run_pipeline(options(keep=True)) == OK
    assert "the session is kept" in capsys.readouterr().err
    with pytest.raises(
        InvalidInput, match="--from 'fourth' is no phase of 'steps'; it has first"
    ):
        await rerun_phase(session, "fourth", ResumeOptions())
    for unknown, message in (
        ({"phase": "fourth"}, "--phase 'fourth'"),
        ({"keys": ("fourth:results",)}, "--key 'fourth'"),
        ({"keys": ("first:result",)}, "phase 'first' writes first:results"),
    ):
        with pytest.raises(InvalidInput, match=message):
            await invalidate_run(session, **unknown, as_json=False)
    assert await resume_run(session, ResumeOptions()) == USAGE
    assert "nothing of it is stale" in capsys.readouterr().err
    assert await rerun_phase(session, "second", ResumeOptions()) == OK
    told = capsys.readouterr().err
    again = [
        line.split()[0]
        for line in told.split("phases reused")[0].splitlines()
        if line.startswith("  ")
    ]
    assert again == ["second", "third"]
    for stale, expected in (
        ({}, []),
        ({"design": ("colours",)}, []),
        ({"changed": ("notes.md",)}, []),
        ({"changed": ("notes.txt",)}, ["first", "second", "third"]),
        ({"keys": ("beside:results",)}, ["beside"]),
    ):
        assert await invalidate_run(session, **stale, as_json=True) == OK
        assert [
            note["phase"] for note in json.loads(capsys.readouterr().out)["stale"]
        ] == expected
    assert await print_status(session, as_json=False) == OK
    out, err = capsys.readouterr()
    assert "reads the file 'notes.txt', which changed" in out
    assert (
        f"4 phases stale; run them again with: tasklore pipeline resume {session}"
        in err
    )
    assert await invalidate_run(session, phase="first", as_json=False) == OK
    assert capsys.readouterr().out == (
        f"That makes nothing more stale; 4 are already: `tasklore pipeline resume {session}` runs them.\n"
    )
    assert await resume_run(session, ResumeOptions(no_wait=True, as_json=True)) == OK
    why = {
        note["phase"]: note["why"]
        for note in json.loads(capsys.readouterr().out)["stale"]
    }
    assert len(why) == 4
    assert "notes.txt" in why["first"]
    assert await follow_run(session, as_json=False) == OK
    assert capsys.readouterr().out == RESULT


async def test_evidence_is_enough_to_go_on_from(
    options: MakeOptions, tmp_path: Path, house: House, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "fail-c").touch()
    assert await run_pipeline(options()) == FAILED
    left = read_json(house.folder / "evidence" / f"{session}-failed.json")
    assert await write_evidence(session, Path("own.json"), is_forced=False) == OK
    own = read_json(Path("own.json"))
    assert (own["phases"].keys(), own["session"]["cache"]) == (
        left["phases"].keys(),
        left["session"]["cache"],
    )
    with pytest.raises(InvalidInput, match="--force"):
        await write_evidence(session, Path("own.json"), is_forced=False)
    async with open_stores() as stores:
        assert await stores.cache.drop(session)
    with pytest.raises(UnknownSession, match=r"--evidence .*-failed\.json"):
        await resume_run(session, ResumeOptions())
    with pytest.raises(InvalidInput, match="not of 'another'"):
        await resume_run("another", ResumeOptions(), evidence=Path("own.json"))
    (tmp_path / "fail-c").unlink()
    capsys.readouterr()
    assert await resume_run(None, ResumeOptions(), evidence=Path("own.json")) == OK
    out, err = capsys.readouterr()
    assert out == RESULT
    assert err.startswith(f"tasklore: session {session} is restored with 3 entries\n")
    assert "3 phases reused" in err


async def test_a_run_goes_on_when_its_watcher_stops(
    options: MakeOptions, tmp_path: Path, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "hold-a").touch()
    watching = asyncio.create_task(run_pipeline(options()))
    await until(session, has_begun("first"))
    await shown_until("50% holding", capsys)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    told = capsys.readouterr().err
    assert (
        f"the run goes on; `tasklore pipeline status {session} --follow` looks at it"
        in told
    )
    assert f"`tasklore pipeline cancel {session}` ends it" in told
    (tmp_path / "hold-a").unlink()
    assert await follow_run(session, as_json=False) == OK
    assert capsys.readouterr().out == RESULT


async def test_a_run_is_cancelled_and_can_go_on(
    options: MakeOptions, tmp_path: Path, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "hold-b").touch()
    assert await run_pipeline(options(no_wait=True)) == OK
    assert capsys.readouterr().out == f"{session}\n"
    await until(
        session,
        lambda look: has_begun("second")(look) and look.record.phases["beside"].is_over,
    )  # type: ignore[union-attr] # there
    await print_list(10, as_json=True)
    assert session in [
        one["session_id"] for one in json.loads(capsys.readouterr().out)["runs"]
    ]
    assert await resume_run(session, ResumeOptions()) == USAGE
    assert "is running" in capsys.readouterr().err
    assert await cancel_run(session, "wrong folder", as_json=False) == OK
    assert capsys.readouterr().out == f"{session} is cancelled.\n"
    assert await cancel_run(session, "", as_json=True) == OK
    assert json.loads(capsys.readouterr().out)["outcome"] == "cancelled"
    assert await print_status(session, as_json=False) == FAILED
    assert "error: wrong folder" in capsys.readouterr().out
    (tmp_path / "hold-b").unlink()
    assert await resume_run(session, ResumeOptions()) == OK
    assert capsys.readouterr().out == RESULT
    assert await cancel_run(session, "", as_json=False) == FAILED
    assert capsys.readouterr().out == f"{session} had ended already: completed.\n"


async def test_a_watched_run_survives_the_kill_of_its_supervisor(
    options: MakeOptions, tmp_path: Path, house: House, capsys: Output
) -> None:
    session = str(options().session)
    (tmp_path / "hold-b").touch()
    watching = asyncio.create_task(run_pipeline(options()))
    await until(session, has_begun("second"))
    for process in house._processes[1:]:
        process.kill()
    start_supervisor(house)
    (tmp_path / "hold-b").unlink()
    async with asyncio.timeout(PATIENCE_S):
        assert await watching == OK
    assert capsys.readouterr().out == RESULT


@pytest.mark.parametrize(
    ("command", "error", "said"),
    [
        (
            lambda: print_status("nobody", as_json=False),
            UnknownSession,
            "tasklore pipeline list",
        ),
        (
            lambda: print_status("no body", as_json=False),
            InvalidInput,
            "SESSION 'no body'",
        ),
        (
            lambda: rerun_phase("nobody", "first", ResumeOptions()),
            UnknownSession,
            "nobody",
        ),
        (
            lambda: write_evidence("nobody", None, is_forced=False),
            UnknownSession,
            "nobody",
        ),
        (lambda: invalidate_run("nobody", phase="a b"), InvalidInput, "--phase 'a b'"),
        (
            lambda: resume_run(None, ResumeOptions()),
            InvalidInput,
            "SESSION, or --evidence",
        ),
        (
            lambda: resume_run(None, ResumeOptions(), evidence=Path("steps.toml")),
            InvalidInput,
            "steps.toml",
        ),
        (
            lambda: run_pipeline(RunOptions(source="repository-healht")),
            InvalidInput,
            "did you mean 'repository-health'",
        ),
    ],
)
async def test_a_wrong_argument_is_refused_with_the_cure(
    command: Callable[[], Any], error: type[TaskloreError], said: str
) -> None:
    with pytest.raises(error, match=said):
        await command()


async def test_without_a_supervisor_a_run_says_what_to_start(
    options: MakeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKLORE_SUPERVISOR_ID", "Nobody")
    with pytest.raises(Unreachable, match="tasklore supervisor"):
        await run_pipeline(options())
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://127.0.0.1:1")
    with pytest.raises(Unreachable, match="TASKLORE_REDIS_URL"):
        await run_pipeline(options())


async def test_where_no_supervisor_ever_ran_the_cure_comes_first(
    options: MakeOptions, own_servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKLORE_NATS_URL", own_servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", own_servers.redis_url)
    with pytest.raises(
        Unreachable, match=r"^start the system with `tasklore up`.*bucket 'agents'"
    ):
        await run_pipeline(options())


async def make_orphan(session_id: str, stores: Stores) -> None:
    """Make a run that no supervisor is there for."""
    pipeline = Pipeline(
        name="steps", phases=(Phase(name="first", agent="StepAgent", task="step"),)
    )
    assert await stores.runs.create(
        NewRun(session_id=session_id, pipeline=pipeline, supervisor_id="Nobody")
    )


async def test_a_watcher_finds_an_end_whose_event_was_lost() -> None:
    async with (
        open_nats("tasklore-pipeline") as client,
        open_stores() as stores,
        asyncio.timeout(PATIENCE_S),
    ):
        await make_orphan("silent", stores)
        watch = Watch(client, stores, "silent", "Nobody")
        looked = asyncio.Event()
        await watch.open()
        watching = asyncio.create_task(
            watch.until_over(lambda _look, _told: looked.set())
        )
        await looked.wait()
        fence = await stores.runs.claim("silent", "me", 60_000)
        assert fence is not None
        assert await stores.runs.end(
            "silent", fence, "failed", b'{"state": "failed", "phases": []}', keep=True
        )
        assert (await watching).state == "failed"


async def test_a_watcher_gives_up_on_a_run_that_no_supervisor_drives(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr("tasklore.commands.pipeline.watch.SAY_AFTER_S", 0)
    monkeypatch.setattr("tasklore.commands.pipeline.watch.GIVE_UP_S", 1.5)
    async with (
        open_nats("tasklore-pipeline") as client,
        open_stores() as stores,
        asyncio.timeout(PATIENCE_S),
    ):
        await make_orphan("left", stores)
        watch = Watch(client, stores, "left", "Nobody")
        await watch.open()
        with pytest.raises(Unreachable, match="status left --follow"):
            await watch.until_over(lambda _look, _told: None)
    assert capsys.readouterr().err.count("no supervisor is running this pipeline") == 1
