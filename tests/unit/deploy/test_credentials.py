"""Credentials of a deployment: created once, extended, and renewed."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.credentials import add_roles, main, make_credentials
from deploy.privileges.roles import Cast
from deploy.privileges.valkey_users import renewed
from tasklore.contracts.errors import ConfigurationError, TaskloreError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the credentials of the shipped cast once; nobody writes to them."""
    folder = tmp_path_factory.mktemp("credentials") / "made"
    make_credentials(folder, Cast().roles())
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """Return a copy of them for one test."""
    return Path(shutil.copytree(made, tmp_path / "own"))


def contents(folder: Path) -> dict[str, str]:
    return {
        str(one.relative_to(folder)): one.read_text("utf-8")
        for one in folder.rglob("*")
        if one.is_file()
    }


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for taken in (tmp_path, tmp_path / "file"):
        with pytest.raises(ConfigurationError, match="name a new one"):
            make_credentials(taken, [])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_adding_a_worker_changes_no_other_credentials(made: Path, folder: Path) -> None:
    assert main([str(folder), "--worker", "prices=PriceAgent,StockAgent"]) == 0
    before = contents(made)
    after = contents(folder)
    changed = {place for place in before if before[place] != after[place]}
    assert changed == {"nats.env", "users.acl", "accounts.conf"}
    own = {
        place.partition("/")[2] for place in after if place.startswith("worker-prices/")
    }
    assert own == {
        place.partition("/")[2]
        for place in before
        if place.startswith("worker-budget/")
    }
    assert after["nats.env"].startswith(before["nats.env"])
    assert re.fullmatch(
        r"TASKLORE_NKEY_WORKER_PRICES=U[A-Z2-7]{55}\n",
        after["nats.env"][len(before["nats.env"]) :],
    )
    (line,) = set(after["users.acl"].splitlines()) - set(
        before["users.acl"].splitlines()
    )
    password = after["worker-prices/valkey.password"]
    assert line.startswith(
        f"user worker-prices on #{hashlib.sha256(password.encode()).hexdigest()} "
    )
    assert "$TASKLORE_NKEY_WORKER_PRICES" in after["accounts.conf"]
    assert all(
        (folder / "worker-prices" / file).stat().st_mode & 0o777 == 0o600
        for file in own
    )


def test_additions_keep_earlier_ones(folder: Path) -> None:
    assert main([str(folder), "--program", "CoinWorld=Alice,Bob"]) == 0
    first = contents(folder)
    assert main([str(folder), "--worker", "prices=PriceAgent"]) == 0
    after = contents(folder)
    assert set(first["users.acl"].splitlines()) < set(after["users.acl"].splitlines())
    assert set(first["accounts.conf"].splitlines()) < set(
        after["accounts.conf"].splitlines()
    )
    assert '"_INBOX_CoinWorld.>"' in after["accounts.conf"]
    own = {one.partition("/")[2] for one in after if one.startswith("CoinWorld/")}
    assert own == {"nats.nkey", "ca.crt"}
    assert "user CoinWorld " not in after["users.acl"]


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["--worker", "budget=BudgetTrackerAgent"], "choose another name"),
        (["--program", "operator=Alice"], "choose another name"),
        (["--program", "worker_budget=Alice"], "must differ"),
        (["--worker", "../prices=PriceAgent"], "use up to 40"),
        (["--worker", "prices"], "write it as in"),
        (["--worker", "prices=Price Agent"], "agent_id"),
        (["--worker", "prices=PriceAgent", "--program", "a/b=Alice"], "program"),
    ],
)
def test_an_invalid_name_changes_nothing(
    words: list[str], cure: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(folder)
    assert main([str(folder), *words]) == 2
    assert cure in capsys.readouterr().err
    assert contents(folder) == before


def test_a_certificate_for_the_api_is_issued(made: Path, folder: Path) -> None:
    assert main([str(folder), "--api-tls"]) == 0
    first = contents(folder)
    assert {place for place in first if first[place] != contents(made).get(place)} == {
        "tls/api.crt",
        "tls/api.key",
    }
    verify = [
        "openssl",
        "verify",
        "-CAfile",
        "tls/ca.crt",
        "-verify_hostname",
        "tasklore-api.tasklore.svc",
    ]
    subprocess.run(
        [*verify, "tls/api.crt"], cwd=folder, check=True, capture_output=True
    )
    assert main([str(folder), "--api-tls"]) == 0
    assert contents(folder)["tls/api.crt"] != first["tls/api.crt"]


def test_a_broken_list_of_additions_is_refused(folder: Path) -> None:
    (folder / "cast.json").write_text('{"workers": []}')
    with pytest.raises(TaskloreError, match="backup"):
        add_roles(folder, Cast({"prices": ("PriceAgent",)}, {}))


def test_older_rights_are_renewed_and_passwords_kept(made: Path) -> None:
    now = (made / "users.acl").read_text("utf-8")
    older = re.sub(r"^(user memory .*?) \+zscore", r"\1", now, flags=re.MULTILINE)
    assert older != now
    assert (
        renewed(f"{older}user judge on nopass +ping\n", Cast().roles())
        == f"{now}user judge on nopass +ping\n"
    )


def test_programs_are_no_users_of_valkey_any_more_once_rights_are_renewed(
    folder: Path,
) -> None:
    """0.2 gave them the ledger; until then its programs go on."""
    users = folder / "users.acl"
    now = users.read_text("utf-8")
    users.write_text(f"{now}user program on #{'0' * 64} ~tl:task:{{* -@all +hset\n")
    assert main([str(folder), "--renew"]) == 0
    assert users.read_text("utf-8") == now
