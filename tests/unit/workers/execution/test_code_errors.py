"""A slip in a task's own code is run once; what data or other systems may cause is run again."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tasklore import Agent, Amount, Context, Parameters
from tasklore.contracts.errors import ConfigurationError
from tasklore.workers.testing import AgentKit
from tests.unit.workers.execution.fake_worker import FakeWorker, a_task, raising


class Call(Parameters):
    """What the task is told."""

    word: str = ""


def todo() -> None:
    """Leave it for later."""
    raise NotImplementedError


def broken() -> None:
    """Find something that cannot be."""
    raise AssertionError


SLIPS: dict[str, Callable[[Any], object]] = {
    "type": lambda _: "1" + 1,  # type: ignore[operator]  # the slip
    "float": lambda _: Amount(1) * 1.5,  # type: ignore[operator]  # the slip
    "builtin": lambda _: json.dumps(object()),
    "attribute": lambda _: None.strip(),  # type: ignore[attr-defined]  # the slip
    "field": lambda _: Call(word="x").wrod,  # type: ignore[attr-defined]  # the slip
    "name": lambda _: nowhere,  # type: ignore[name-defined]  # noqa: F821 - the slip
    "import": lambda _: importlib.import_module("no_such_module_at_all"),
    "syntax": lambda _: compile("def", "x", "eval"),
    "todo": lambda _: todo(),
    "key": lambda _: {}["tea"],
    "index": lambda _: [][0],
    "assert": lambda _: broken(),
    "value": lambda _: int("many"),
    "library": lambda library: library.send(None),
}


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Return a module that lies where libraries do, and raises an AttributeError."""
    (tmp_path / "wire_library.py").write_text(
        "def send(connection):\n    return connection.write(b'')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("tasklore.workers.user_code._INSTALLED", (str(tmp_path),))
    yield importlib.import_module("wire_library")
    del sys.modules["wire_library"]


async def runs_of(kind: str, library: ModuleType, **options: Any) -> int:
    """Return how often a task with that slip is run, three times at most."""
    agent = Agent("SlipAgent")
    runs = []

    @agent.task(max_attempts=3, **options)
    async def work(call: Call, context: Context) -> None:
        """Make a slip."""
        runs.append(context.attempt)
        try:
            SLIPS[call.word](library)
        except AssertionError as error:
            # The kit takes them for those of the test.
            raise LookupError from error

    report = await AgentKit(agent).run("work", {"word": kind})
    assert report.status == "failed"
    return len(runs)


@pytest.mark.parametrize(
    "kind",
    [
        "type",
        "float",
        "builtin",
        "attribute",
        "field",
        "name",
        "import",
        "syntax",
        "todo",
    ],
)
async def test_a_slip_in_a_tasks_own_code_is_run_once(
    kind: str, library: ModuleType
) -> None:
    """Also where the standard library or our own values raise for it; asked for by the task, it is run again."""
    assert await runs_of(kind, library) == 1
    assert await runs_of(kind, library, retry_on=(Exception,)) == 3


def test_a_misspelt_field_of_parameters_is_said_with_the_one_that_was_meant() -> None:
    with pytest.raises(AttributeError, match="no field 'wrod'; did you mean 'word'"):
        _ = Call(word="x").wrod  # type: ignore[attr-defined]  # the slip
    with pytest.raises(AttributeError, match="no field 'colour'; it has word"):
        _ = Call(word="x").colour  # type: ignore[attr-defined]  # the slip
    assert not hasattr(Call(), "_private")


@pytest.mark.parametrize("kind", ["key", "index", "assert", "value", "library"])
async def test_what_need_not_be_a_slip_of_the_task_is_run_again(
    kind: str, library: ModuleType
) -> None:
    """What another system answered decides about some of them; a library's error may be its connection's."""
    assert await runs_of(kind, library) == 3


async def test_several_slips_in_a_group_are_slips() -> None:
    """And one error among them that is none is reason enough for another run."""
    agent = Agent("GroupAgent")
    runs = []

    @agent.task(max_attempts=2)
    async def work(call: Call) -> None:
        """Fail in a group."""
        runs.append(call.word)
        errors: list[Exception] = []
        for kind in call.word.split():
            try:
                SLIPS[kind](None)
            except (TypeError, KeyError) as error:
                errors.append(error)
        raise ExceptionGroup("several", errors)

    for word in ("type type", "type key"):
        await AgentKit(agent).run("work", {"word": word})
    assert runs == ["type type", "type key", "type key"]


async def test_a_slip_is_dead_at_once_and_the_letter_says_why() -> None:
    """The worker's own way: one run, one failed report, one letter with the reason."""
    worker = FakeWorker(does=raising(TypeError("a float is no Amount")))
    await worker.work(a_task("t1"))
    (letter,) = [
        json.loads(body)
        for subject, body, _ in worker.outbox.stored
        if subject.startswith("dead.")
    ]
    assert (letter["reason"], letter["attempts"]) == ("code_error", 1)
    (report,) = worker.outbox.reports()
    assert (report.status, report.attempt) == ("failed", 1)


async def work(call: Call) -> None:
    """Work."""


@pytest.mark.parametrize("wrong", [("TypeError",), (int,), (KeyboardInterrupt,)])
def test_retry_on_takes_exceptions_only(wrong: Any) -> None:
    """It is found at the declaration."""
    with pytest.raises(
        ConfigurationError, match="retry_on takes classes of exceptions"
    ):
        Agent("SlipAgent").task(retry_on=wrong)(work)
