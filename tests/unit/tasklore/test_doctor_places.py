"""Where the doctor looks: the environment, endpoints.json, and its own option for the monitoring."""

from pathlib import Path

import pytest

from contracts.errors import ConfigurationError, Unreachable
from runtime.servers.endpoints import Endpoints, write_endpoints
from runtime.settings import Settings
from tasklore.doctor.examination import find_system

WRITTEN = Endpoints("nats://n:1", "redis://r:2", "http://s:3", {"worker-1": "http://w:4"}, "http://n:5")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a directory in which a system was started."""
    for variable in ("TASKLORE_NATS_URL", "TASKLORE_REDIS_URL", "TASKLORE_NATS_MONITOR_URL", "TASKLORE_DATA_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    write_endpoints(tmp_path / ".tasklore", WRITTEN)
    return tmp_path


def test_the_file_of_a_running_system_names_everything() -> None:
    """The monitoring of its nats-server, too."""
    assert find_system(Settings.load()) == (WRITTEN, "endpoints.json")


def test_variables_that_name_the_same_servers_leave_the_rest_to_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supervisor and workers are examined all the same."""
    monkeypatch.setenv("TASKLORE_NATS_URL", WRITTEN.nats)
    monkeypatch.setenv("TASKLORE_REDIS_URL", WRITTEN.redis_url)
    assert find_system(Settings.load())[0] == WRITTEN


def test_variables_that_name_other_servers_leave_the_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to another system, and its monitoring to another server."""
    monkeypatch.setenv("TASKLORE_NATS_URL", "nats://other:1")
    monkeypatch.setenv("TASKLORE_REDIS_URL", WRITTEN.redis_url)
    assert find_system(Settings.load())[0] == Endpoints("nats://other:1", WRITTEN.redis)


def test_the_option_comes_before_the_variable_and_that_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding names the one that was taken."""
    monkeypatch.setenv("TASKLORE_NATS_MONITOR_URL", "http://v:1")
    found, source = find_system(Settings.load())
    assert (found.monitor, source) == ("http://v:1", "TASKLORE_NATS_MONITOR_URL")
    found, source = find_system(Settings.load(nats_monitor_url="http://o:1"))
    assert (found.monitor, source) == ("http://o:1", "--monitor")
    assert (found.http, found.workers) == (WRITTEN.http, WRITTEN.workers)


def test_a_monitoring_that_is_no_page_is_refused() -> None:
    """Before anything is asked."""
    with pytest.raises(ConfigurationError, match="TASKLORE_NATS_MONITOR_URL"):
        Settings.load(nats_monitor_url="nats://n:1")


def test_a_file_of_an_older_system_knows_no_monitoring(here: Path) -> None:
    """It is read all the same."""
    (here / ".tasklore" / "endpoints.json").write_text('{"nats": "nats://n:1", "redis": "redis://r:2"}')
    assert find_system(Settings.load())[0] == Endpoints("nats://n:1", "redis://r:2")


def test_where_nothing_was_started_there_is_nothing_to_examine(here: Path) -> None:
    """The message says how to begin."""
    (here / ".tasklore" / "endpoints.json").unlink()
    with pytest.raises(Unreachable, match="tasklore up"):
        find_system(Settings.load())
