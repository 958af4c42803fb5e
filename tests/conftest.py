"""Fixtures for every test: real servers, the scripted model, and logs that no test leaves behind."""

import gc
import logging
import os
from collections.abc import Generator, Iterator
from itertools import groupby
from pathlib import Path

import hypothesis
import pytest
import structlog

# How long an example takes is the machine's, which others use too: the benchmarks measure time, no test does. The same
# examples each time, so that a change is judged by what it changes; `make long` looks for new ones.
_CALM = hypothesis.settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("calm", _CALM)
hypothesis.settings.register_profile(
    "searching", _CALM, derandomize=False, max_examples=1000
)
hypothesis.settings.load_profile("calm")

pytest_plugins = [
    "tests.servers",
    "tests.ledger_layouts",
    "tests.fixtures_llm",
    "tests.hanging",
]


def _log_plainly() -> None:
    """Log as structlog does by itself, but for tracebacks: with the locals of every frame one takes ten seconds."""
    structlog.reset_defaults()
    plain = structlog.dev.ConsoleRenderer(
        exception_formatter=structlog.dev.plain_traceback
    )
    processors = structlog.get_config()["processors"]
    structlog.configure(processors=[*processors[:-1], plain])


_log_plainly()


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    """Undo what a test configured: its stream may be closed when the next one logs."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    level = root.level
    yield
    _log_plainly()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(autouse=True)
def _own_directness() -> Iterator[None]:
    """Undo `--direct` of a command that a test gave in this process."""
    yield
    os.environ.pop("TASKLORE_DIRECT", None)


#: Seconds after which one of the tests below hangs: the longest take a quarter of an hour on a quiet machine.
LONG_TIMEOUT_S = 3600

#: Marks of tests that are left out unless an expression of marks asks for them, and why they are.
LEFT_OUT = {
    "long": "takes a minute; only run when asked for by `-m long`",
    "browser": "drives a real browser, of the system's packages; only run by `make browser`",
    "monitoring": "needs Debian's Prometheus and Alertmanager; only run by `make monitoring-check`",
    "clients": "needs Node 20, and npm installs what it uses; only run by `make clients-check`",
    "local_model": "asks a real model that packages of their own bring; only run by `make local-model`",
}


def pytest_configure(config: pytest.Config) -> None:
    """Name our marks."""
    for mark, why in LEFT_OUT.items():
        config.addinivalue_line("markers", f"{mark}: {why}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, and leave out afterwards what stays until the end.

    That is 750,000 objects in each process: going through them again and again takes a third of the collection's time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave marked tests out unless an expression of marks was given, and mix files that wait with those that do not.

    Side by side, those that wait for processes leave half of two cores idle, and the others queue for them.
    """
    items[:] = _mixed(items)
    left_out = [item for item in items if any(map(item.get_closest_marker, LEFT_OUT))]
    for item in left_out:
        item.add_marker(pytest.mark.timeout(LONG_TIMEOUT_S))
    if not config.option.markexpr:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


#: By when in the run the files of a kind are used up: the last of those that wait for processes are not left alone.
_ENDS_AT = {"acceptance": 0.85, "integration": 1.0, "": 1.0}


def _mixed(items: list[pytest.Item]) -> list[pytest.Item]:
    """Spread the files of each kind evenly over the run; files of a kind, and tests of a file, keep their order."""
    kinds: dict[str, list[list[pytest.Item]]] = {kind: [] for kind in _ENDS_AT}
    for path, tests in groupby(items, lambda item: item.path):
        kinds[_kind_of(path)].append(list(tests))
    placed = [
        (_ENDS_AT[kind] * place / len(files), file)
        for kind, files in kinds.items()
        for place, file in enumerate(files)
    ]
    return [item for _, file in sorted(placed, key=lambda one: one[0]) for item in file]


def _kind_of(path: Path) -> str:
    """Tell for what the tests of this file mostly wait: whole processes, a server, or ("") a core."""
    return next((kind for kind in _ENDS_AT if kind in path.parts), "")
