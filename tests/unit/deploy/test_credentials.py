"""Credentials of a deployment of one's own: made where nothing is yet, added to one by one, printed for a cluster."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from contracts.errors import ConfigurationError, TaskloreError
from deploy.credentials import add_roles, main, make_credentials
from deploy.privileges.roles import Cast
from deploy.privileges.valkey_users import renewed


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
    """Return every file of *folder* by its place."""
    return {str(one.relative_to(folder)): one.read_text("utf-8") for one in folder.rglob("*") if one.is_file()}


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    """Neither a folder with something in it nor a file is written to, and the message says what to do."""
    (tmp_path / "file").write_text("kept")
    for taken in (tmp_path, tmp_path / "file"):
        with pytest.raises(ConfigurationError, match="name a new one"):
            make_credentials(taken, [])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_worker_is_added_and_nobody_elses_credentials_change(made: Path, folder: Path) -> None:
    """It gets a folder like the others'; what both servers read has one key and one user more."""
    assert main([str(folder), "--worker", "prices=PriceAgent,StockAgent"]) == 0

    before, after = contents(made), contents(folder)
    changed = {place for place in before if before[place] != after[place]}
    assert changed == {"nats.env", "users.acl", "accounts.conf"}
    own = {place.partition("/")[2] for place in after if place.startswith("worker-prices/")}
    assert own == {place.partition("/")[2] for place in before if place.startswith("worker-budget/")}
    assert after["nats.env"].startswith(before["nats.env"])
    assert re.fullmatch(r"TASKLORE_NKEY_WORKER_PRICES=U[A-Z2-7]{55}\n", after["nats.env"][len(before["nats.env"]) :])
    (line,) = set(after["users.acl"].splitlines()) - set(before["users.acl"].splitlines())
    password = after["worker-prices/valkey.password"]
    assert line.startswith(f"user worker-prices on #{hashlib.sha256(password.encode()).hexdigest()} ")
    assert "$TASKLORE_NKEY_WORKER_PRICES" in after["accounts.conf"]
    assert all((folder / "worker-prices" / file).stat().st_mode & 0o777 == 0o600 for file in own)


def test_each_addition_keeps_the_ones_before_it(folder: Path) -> None:
    """A program that came first still has its key and its rights once a worker came too."""
    assert main([str(folder), "--program", "CoinWorld=Alice,Bob"]) == 0
    first = contents(folder)
    assert main([str(folder), "--worker", "prices=PriceAgent"]) == 0

    after = contents(folder)
    assert set(first["users.acl"].splitlines()) < set(after["users.acl"].splitlines())
    assert set(first["accounts.conf"].splitlines()) < set(after["accounts.conf"].splitlines())
    assert '"_INBOX_CoinWorld.>"' in after["accounts.conf"]


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["--worker", "budget=BudgetTrackerAgent"], "choose another name"),
        (["--program", "operator=Alice"], "choose another name"),
        (["--program", "sys=Alice"], "choose another name"),
        (["--program", "worker_budget=Alice"], "must differ"),
        (["--worker", "Prices=PriceAgent"], "use up to 40"),
        (["--worker", "../prices=PriceAgent"], "use up to 40"),
        (["--worker", "prices"], "write it as in"),
        (["--worker", "prices=PriceAgent,"], "write it as in"),
        (["--worker", "prices=Price Agent"], "agent_id"),
        (["--worker", "prices=PriceAgent", "--program", "a/b=Alice"], "program"),
    ],
)
def test_a_name_that_is_taken_or_unfit_changes_nothing(
    words: list[str], cure: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names it and the cure, and the folder is as it was, whatever else was asked for."""
    before = contents(folder)
    assert main([str(folder), *words]) == 2

    assert cure in capsys.readouterr().err
    assert contents(folder) == before


def test_nobody_is_added_where_no_credentials_are(tmp_path: Path) -> None:
    """A mistyped folder is not made up."""
    with pytest.raises(ConfigurationError, match=r"python -m deploy\.credentials DIR"):
        add_roles(tmp_path / "typo", Cast({"prices": ("PriceAgent",)}, {}))
    assert not (tmp_path / "typo").exists()


def test_a_certificate_for_the_api_is_made_when_it_is_asked_for(made: Path, folder: Path) -> None:
    """From the authority that is there, for the names of its service; nothing else changes, and again it is another."""
    assert main([str(folder), "--api-tls"]) == 0
    first = contents(folder)
    assert {place for place in first if first[place] != contents(made).get(place)} == {"tls/api.crt", "tls/api.key"}
    verify = ["openssl", "verify", "-CAfile", "tls/ca.crt", "-verify_hostname", "tasklore-api.tasklore.svc"]
    subprocess.run([*verify, "tls/api.crt"], cwd=folder, check=True, capture_output=True)

    assert main([str(folder), "--api-tls"]) == 0
    assert contents(folder)["tls/api.crt"] != first["tls/api.crt"]


def test_no_certificate_is_made_without_the_authority(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its key may be kept elsewhere; what to do then is said."""
    (folder / "tls" / "ca.key").unlink()
    assert main([str(folder), "--api-tls"]) == 2
    assert "into the secret tasklore-api-tls" in capsys.readouterr().err


def test_a_list_of_additions_that_was_broken_is_named(folder: Path) -> None:
    """Taken for the shipped cast, it would take everybody's rights away who was added."""
    (folder / "cast.json").write_text('{"workers": []}')
    with pytest.raises(TaskloreError, match="backup"):
        add_roles(folder, Cast({"prices": ("PriceAgent",)}, {}))


def test_rights_of_an_older_version_are_renewed_and_passwords_kept(made: Path) -> None:
    """Users whom somebody wrote in by hand stay as they are."""
    now = (made / "users.acl").read_text("utf-8")
    older = re.sub(r"^(user memory .*?) \+zscore", r"\1", now, flags=re.MULTILINE)
    assert older != now

    assert renewed(f"{older}user judge on nopass +ping\n", Cast().roles()) == f"{now}user judge on nopass +ping\n"
