"""Settings: read from the environment, explained, refused with a cure; and the file that says where the servers are."""

import os
import re
from pathlib import Path

import pytest
import structlog

from tasklore.commands.operations.target import (
    API_VARIABLE,
    CA_VARIABLE,
    DIRECT_VARIABLE,
    KEY_VARIABLE,
    OPERATIONS_KEY_VARIABLE,
    OPERATIONS_VARIABLE,
)
from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.servers.endpoints import (
    Endpoints,
    find_endpoints,
    masked_url,
    read_endpoints,
    remove_endpoints,
    write_endpoints,
)
from tasklore.runtime.settings import Settings
from tasklore.runtime.settings_set_by import SET_BY
from tasklore.runtime.settings_table import SettingRow, explain
from tasklore.runtime.variables import OF_CLIENTS, REMOVED, unknown_variables

RUNNING = Endpoints(
    nats="nats://127.0.0.1:4",
    redis="redis://127.0.0.1:5",
    http="http://127.0.0.1:6",
    workers={"w-1": "http://127.0.0.1:7"},
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take our variables away from whoever runs the tests."""
    for name in [name for name in os.environ if name.upper().startswith("TASKLORE_")]:
        monkeypatch.delenv(name)


def rows(settings: Settings) -> dict[str, SettingRow]:
    """Return the explanation by name."""
    return {row.name: row for row in explain(settings)}


def test_every_setting_has_a_default_a_reason_and_if_it_measures_something_a_unit() -> (
    None
):
    explained = explain(Settings.load())
    assert all(
        row.description.endswith(".") and row.source == "default" for row in explained
    )
    assert {
        row.unit
        for row in explained
        if row.name.endswith(("_s", "_ms", "_days", "_bytes"))
    } == {
        "seconds",
        "milliseconds",
        "days",
        "bytes",
    }


def test_an_argument_comes_before_the_environment_which_comes_before_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table says which of the three it was; an option that was not given counts for nothing."""
    monkeypatch.setenv("TASKLORE_SLOTS", "7")
    monkeypatch.setenv("TASKLORE_REPLICAS", "3")
    settings = Settings.load(slots=9, replicas=None)
    found = {name: (row.value, row.source) for name, row in rows(settings).items()}
    assert found["slots"] == ("9", "argument")
    assert found["replicas"] == ("3", "environment")
    assert found["llm_max_attempts"] == ("3", "default")


def test_an_empty_variable_is_no_setting_and_none_is_a_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Manifests leave variables empty; reasoning models need a temperature that is not sent."""
    monkeypatch.setenv("TASKLORE_NATS_URL", "")
    monkeypatch.setenv("TASKLORE_LLM_TEMPERATURE", "none")
    settings = Settings.load()
    assert settings.nats_url is None
    assert settings.llm_temperature is None
    assert rows(settings)["nats_url"].source == "default"


@pytest.mark.parametrize(
    ("variable", "value", "cure"),
    [
        ("TASKLORE_SLOTS", "0", "greater than or equal to 1"),
        ("TASKLORE_LLM_ATTEMPT_DEADLINE_S", "inf", "finite"),
        ("TASKLORE_PROVISION", "maybe", "'auto' or 'never'"),
        ("TASKLORE_NATS_URL", "localhost:4222", "begins with nats://"),
        ("TASKLORE_LLM_PRICES", "own=cheap", "write MODEL=INPUT/OUTPUT"),
        ("TASKLORE_TIME_ZONE", "Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("TASKLORE_API_TRUSTED_PROXIES", "10.0.0.1/8", "write one such as 10.0.0.0/8"),
        ("TASKLORE_API_CORS_ORIGINS", "https://a.example/", "is not a valid origin"),
        ("TASKLORE_API_CORS_ORIGINS", "https://A.example", "lower-case host"),
        (
            "TASKLORE_API_CORS_ORIGINS",
            "https://*.a.example",
            "is not a valid origin",
        ),
        ("TASKLORE_API_CORS_ORIGINS", "a.example", "https://app.example.com or"),
        ("TASKLORE_API_CORS_ORIGINS", "null", "is not a valid origin"),
        ("TASKLORE_API_CORS_ORIGINS", "file://a", "is not a valid origin"),
        ("TASKLORE_API_CORS_ORIGINS", "*,https://a.example", "write it alone"),
        ("TASKLORE_API_CORS_ORIGINS", "https://a:443", "write 'https://a'"),
        ("TASKLORE_API_CORS_METHODS", "GET,get", "'get' is not an allowed method"),
        ("TASKLORE_API_CORS_HEADERS", "X: a", "is not a valid header name"),
        ("TASKLORE_RETRY_BASE_S", "1000", "must not exceed TASKLORE_RETRY_CAP_S"),
    ],
)
def test_an_unusable_value_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, cure: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as caught:
        Settings.load()
    assert variable in str(caught.value)
    assert cure in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "*",
        "https://a.example",
        "http://localhost:3000, https://b-2.a.example:8443,http://[::1]:5173",
        "chrome-extension://abcdef, tauri://localhost,app://obsidian.md",
        "",
    ],
)
def test_origins_are_those_that_browsers_send(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("TASKLORE_API_CORS_ORIGINS", value)
    assert Settings.load().api_cors_origins == value


def test_all_unusable_values_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is not started once for each mistake."""
    monkeypatch.setenv("TASKLORE_SLOTS", "0")
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(replicas=9, htp_port=1)
    for part in (
        "TASKLORE_SLOTS cannot be '0'",
        "TASKLORE_REPLICAS (given as an argument)",
        "no setting 'htp_port'",
    ):
        assert part in str(caught.value)


def test_a_secret_is_nowhere_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the table, nor in what settings print of themselves."""
    monkeypatch.setenv("TASKLORE_LLM_API_KEY", "sk-hush")
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://me:hush@host:1/0")
    monkeypatch.setenv("TASKLORE_NATS_URL", "nats://hush@host:2")
    settings = Settings.load()
    assert settings.llm_api_key is not None
    assert settings.llm_api_key.get_secret_value() == "sk-hush"
    assert rows(settings)["redis_url"].value == "redis://me:***@host:1/0"
    assert "hush" not in repr((settings, explain(settings)))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TASKLORE_LLM_API_KEY", "hush\N{SNOWMAN}"),
        ("TASKLORE_NATS_URL", "me:hush@host"),
        ("TASKLORE_REDIS_URL", "x://:hush@h"),
    ],
)
def test_a_refused_secret_is_not_repeated_in_the_refusal(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """Errors end up in logs."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as caught:
        Settings.load()
    assert variable in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_mistyped_variable_is_warned_about_with_the_one_that_was_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKLORE_ACK_WAIT", "5")
    with structlog.testing.capture_logs() as events:
        Settings.load()
    assert events == [
        {
            "event": "unknown_setting",
            "variable": "TASKLORE_ACK_WAIT",
            "nearest": "TASKLORE_ACK_WAIT_S",
            "log_level": "warning",
        }
    ]


def test_a_variable_that_is_no_setting_any_more_is_warned_about_with_what_it_is_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once, and the process starts."""
    monkeypatch.setenv("TASKLORE_LISTEN_LEASE_S", "5")
    with structlog.testing.capture_logs() as events:
        assert Settings.load().ack_wait_s == 30
    assert events == [
        {
            "event": "removed_setting",
            "variable": "TASKLORE_LISTEN_LEASE_S",
            "instead": "TASKLORE_ACK_WAIT_S, which holds for turns and facts as for tasks",
            "log_level": "warning",
        }
    ]


def test_each_setting_says_who_sets_it_and_no_other() -> None:
    """And a removed one is none, but what it is now may be one."""
    assert list(SET_BY) == list(Settings.model_fields)
    assert not {name.lower() for name in REMOVED} & Settings.model_fields.keys()
    for instead in REMOVED.values():
        for variable in re.findall(r"TASKLORE_(\w+)", instead):
            assert variable.lower() in Settings.model_fields


def test_only_our_unknown_variables_are_strangers() -> None:
    """Other programs' variables, ours in another case, and those of clients of the API are none of that."""
    environ = {
        "HOME": "/",
        "TASKLORE_API_URL": "http://127.0.0.1:1",
        "TASKLORE_API_KEY": "tlk_x",
        "TASKLORE_OPERATIONS_URL": "http://127.0.0.1:1",
        "TASKLORE_OPERATIONS_KEY": "tlk_y",
        "TASKLORE_API_CA_FILE": "ca.crt",
        "TASKLORE_DIRECT": "1",
        "tasklore_slots": "1",
        "TASKLORE_SLOTS": "1",
        "TASKLORE_QQQQ": "1",
    }
    assert unknown_variables(environ, Settings.model_fields) == {"TASKLORE_QQQQ": None}
    assert {f"TASKLORE_{name}" for name in OF_CLIENTS} == {
        API_VARIABLE,
        KEY_VARIABLE,
        OPERATIONS_VARIABLE,
        OPERATIONS_KEY_VARIABLE,
        CA_VARIABLE,
        DIRECT_VARIABLE,
    }


def test_a_role_of_the_language_model_is_set_by_its_own_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limits are common to all roles."""
    monkeypatch.setenv("TASKLORE_LLM_FINDER_MODEL", "tiny")
    monkeypatch.setenv("TASKLORE_LLM_ATTEMPT_DEADLINE_S", "3")
    llm = Settings.load(llm_base_url="http://127.0.0.1:1/v1").llm()
    assert llm.configured
    assert (llm.role("finder").model, llm.role("supervisor").model) == (
        "tiny",
        "gpt-6.1-terra",
    )
    assert {
        llm.role(name).attempt_deadline_s
        for name in ("finder", "supervisor", "anybody")
    } == {3.0}


def test_the_file_of_the_data_directory_says_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is the argument, else the variable, else the usual one below the current."""
    write_endpoints(tmp_path / ".tasklore", RUNNING)
    monkeypatch.chdir(tmp_path)
    assert find_endpoints({}) == RUNNING
    assert find_endpoints({"TASKLORE_DATA_DIR": str(tmp_path / ".tasklore")}) == RUNNING
    assert (
        find_endpoints({"TASKLORE_NATS_URL": RUNNING.nats}, tmp_path / ".tasklore")
        == RUNNING
    )


def test_a_file_of_another_system_is_not_mixed_with_the_environment(
    tmp_path: Path,
) -> None:
    """One system's NATS with another's Redis would remember in the wrong place; asking needs no Redis."""
    write_endpoints(tmp_path, RUNNING)
    found = find_endpoints({"TASKLORE_NATS_URL": "nats://elsewhere:1"}, tmp_path)
    assert found == Endpoints(nats="nats://elsewhere:1")
    with pytest.raises(ConfigurationError, match="TASKLORE_REDIS_URL"):
        _ = found.redis_url


def test_the_file_is_for_its_owner_alone_and_goes_when_nobody_serves(
    tmp_path: Path,
) -> None:
    """Addresses may hold passwords."""
    path = write_endpoints(tmp_path / "data", RUNNING)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_endpoints(tmp_path / "data") == RUNNING
    write_endpoints(tmp_path / "data", Endpoints(nats="nats://c:1"))
    assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["endpoints.json"]
    remove_endpoints(tmp_path / "data")
    assert read_endpoints(tmp_path / "data") is None


@pytest.mark.parametrize("content", ["", "[]", '{"redis": null}', "\xff"])
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    """It says which file to remove."""
    (tmp_path / "endpoints.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"endpoints\.json"):
        find_endpoints({}, tmp_path)


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("redis://:hush@h:1/0", "redis://:***@h:1/0"),
        ("redis://me:h@u/sh@h:1/0?db=1", "redis://me:***@h:1/0?db=1"),
        ("redis://h:1/0?password=hush&db=1", "redis://h:1/0?password=***&db=1"),
        ("nats://token@h:1,nats://me:hush@h2:1", "nats://***@h:1,nats://me:***@h2:1"),
        ("me:hush@h", "me:***@h"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, masked: str) -> None:
    """A user name may be seen, a token is a password."""
    assert masked_url(url) == masked
