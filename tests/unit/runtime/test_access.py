"""Credentials of a process: read from its environment, refused with the variable and the cure."""

from pathlib import Path

import pytest

from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.runtime.access import ServerCredentials, access_of
from tasklore.runtime.servers.endpoints import find_endpoints
from tasklore.runtime.settings import Settings


def test_a_role_has_inboxes_of_its_own() -> None:
    assert access_of({"TASKLORE_ROLE": "worker-budget"}).nats_options() == {
        "inbox_prefix": "_INBOX_worker-budget"
    }


def test_a_role_that_is_no_name_is_refused() -> None:
    """It becomes a part of a subject."""
    with pytest.raises(InvalidInput, match="TASKLORE_ROLE"):
        access_of({"TASKLORE_ROLE": "a.>"})


def test_a_directory_of_secrets_stands_for_each_file_that_is_in_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "nats.nkey").write_text("SU\n")
    (tmp_path / "valkey.password").write_text("secret\n")
    access = access_of(
        {"TASKLORE_SECRETS_DIR": str(tmp_path), "TASKLORE_NATS_SEED_FILE": "elsewhere"}
    )
    assert access == ServerCredentials(
        seed_file=Path("elsewhere"), password_file=tmp_path / "valkey.password"
    )
    assert access_of({"TASKLORE_SECRETS_DIR": str(tmp_path)}).nats_options() == {
        "nkeys_seed_str": "SU"
    }


def test_a_password_from_a_file_is_of_the_role_unless_the_address_says_otherwise(
    tmp_path: Path,
) -> None:
    """What stands in the address counts."""
    (tmp_path / "valkey.password").write_text("secret\n")
    access = ServerCredentials(
        role="memory", password_file=tmp_path / "valkey.password"
    )
    assert access.redis_options("rediss://valkey:6379/0") == {
        "username": "memory",
        "password": "secret",
    }
    assert access.redis_options("rediss://other@valkey:6379/0") == {
        "password": "secret"
    }
    assert access.redis_options("rediss://other:open@valkey:6379/0") == {}


@pytest.mark.parametrize(
    ("access", "variable"),
    [
        (ServerCredentials(seed_file=Path("nowhere")), "TASKLORE_NATS_SEED_FILE"),
        (ServerCredentials(nats_ca_file=Path("nowhere")), "TASKLORE_NATS_CA_FILE"),
    ],
)
def test_a_file_that_is_not_there_is_named_with_its_variable(
    access: ServerCredentials, variable: str
) -> None:
    """It is a setting to correct, and not a server that is away."""
    with pytest.raises(
        ConfigurationError, match=f"{variable} names 'nowhere', which cannot be read"
    ):
        access.nats_options()


def test_no_authority_is_asked_for_where_nothing_is_encrypted(tmp_path: Path) -> None:
    """A file that is no certificate is refused where it matters, and only there."""
    (tmp_path / "ca.crt").write_text("no certificate")
    access = ServerCredentials(redis_ca_file=tmp_path / "ca.crt")
    assert access.redis_tls("redis://127.0.0.1") is None
    with pytest.raises(ConfigurationError, match="TASKLORE_REDIS_CA_FILE"):
        access.redis_tls("rediss://127.0.0.1")


def test_addresses_may_be_secrets_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with a password in it lies in a file, for commands and for processes that serve."""
    (tmp_path / "tasklore_redis_url").write_text(
        "rediss://memory:secret@valkey:6379/0\n"
    )
    environ = {
        "TASKLORE_NATS_URL": "tls://nats:4222",
        "TASKLORE_SECRETS_DIR": str(tmp_path),
    }
    assert find_endpoints(environ).redis == "rediss://memory:secret@valkey:6379/0"
    monkeypatch.delenv("TASKLORE_REDIS_URL", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert Settings.load().redis_url == "rediss://memory:secret@valkey:6379/0"
