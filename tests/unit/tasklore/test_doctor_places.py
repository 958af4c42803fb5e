"""Where the doctor looks: the environment, endpoints.json, and its own option."""

from pathlib import Path

import pytest

from tasklore.commands.doctor.examination import find_system
from tasklore.contracts.errors import Unreachable
from tasklore.runtime.servers.endpoints import Endpoints, write_endpoints
from tasklore.runtime.settings import Settings

WRITTEN = Endpoints(
    nats="nats://n:1",
    redis="redis://r:2",
    http="http://s:3",
    workers={"worker-1": "http://w:4"},
    monitor="http://n:5",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a directory in which a system was started."""
    for variable in (
        "TASKLORE_NATS_URL",
        "TASKLORE_REDIS_URL",
        "TASKLORE_NATS_MONITOR_URL",
        "TASKLORE_DATA_DIR",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    write_endpoints(tmp_path / ".tasklore", WRITTEN)
    return tmp_path


def test_variables_of_the_same_servers_keep_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKLORE_NATS_URL", WRITTEN.nats)
    monkeypatch.setenv("TASKLORE_REDIS_URL", WRITTEN.redis_url)
    assert find_system(Settings.load())[0] == WRITTEN


def test_variables_of_other_servers_ignore_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKLORE_NATS_URL", "nats://other:1")
    monkeypatch.setenv("TASKLORE_REDIS_URL", WRITTEN.redis_url)
    assert find_system(Settings.load())[0] == Endpoints(
        nats="nats://other:1", redis=WRITTEN.redis
    )


def test_option_before_variable_before_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKLORE_NATS_MONITOR_URL", "http://v:1")
    found, source = find_system(Settings.load())
    assert (found.monitor, source) == ("http://v:1", "TASKLORE_NATS_MONITOR_URL")
    found, source = find_system(Settings.load(nats_monitor_url="http://o:1"))
    assert (found.monitor, source) == ("http://o:1", "--monitor")
    assert (found.http, found.workers) == (WRITTEN.http, WRITTEN.workers)


def test_without_a_system_the_cure_is_named(here: Path) -> None:
    (here / ".tasklore" / "endpoints.json").unlink()
    with pytest.raises(Unreachable, match="tasklore up"):
        find_system(Settings.load())
