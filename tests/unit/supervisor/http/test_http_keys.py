"""API keys, their rates, and clients without a key."""

import json
from pathlib import Path

import pytest
from starlette.types import Message

from tasklore.commands.api_keys import print_new_key
from tasklore.contracts.errors import ConfigurationError, InvalidInput, NotPermitted
from tasklore.supervisor.http.admission.key_file import (
    KeyRing,
    hash_of,
    make_key,
    read_keys,
)
from tasklore.supervisor.http.admission.keys import Caller
from tasklore.supervisor.http.admission.limits import Rates
from tasklore.supervisor.http.admission.middleware import BodyReader, is_local
from tasklore.supervisor.operations.owners import world_conversation
from tasklore.supervisor.operations.refusals import Refused


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_key_file_holds_hashes_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key = make_key(path, "shop", ("ask", "read"), "alice")
    assert key not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    [entry] = read_keys(path).keys
    assert (entry.sha256, entry.roles, entry.user) == (
        hash_of(key),
        ("ask", "read"),
        "alice",
    )


def test_adding_a_key_keeps_link_and_mode_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    link = tmp_path / "link.json"
    make_key(path, "shop", ("ask",), None)
    path.chmod(0o640)
    link.symlink_to(path)
    make_key(link, "other", ("ask",), None)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in read_keys(path).keys] == ["shop", "other"]


def test_two_keys_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    make_key(path, "shop", ("ask",), None)
    with pytest.raises(InvalidInput, match="there is a key named 'shop'"):
        make_key(path, "shop", ("ask",), None)
    assert make_key(path, "other", ("ask",), None)
    assert len(read_keys(path).keys) == 2


@pytest.mark.parametrize(
    "content", ["", "[]", '{"keys": [{"name": "x"}]}', '{"keys": [], "more": 1}']
)
def test_an_invalid_key_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"keys\.json"):
        read_keys(path)


def test_a_removed_key_is_refused_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    clock = Clock()
    key = make_key(path, "shop", ("ask",), None)
    ring = KeyRing(path, clock)
    assert ring.find(key) is not None
    assert ring.find(f"{key}x") is None
    path.write_text("{")
    clock.now += 1.5
    assert ring.find(key) is not None
    path.write_text(json.dumps({"keys": []}))
    clock.now += 1.5
    assert ring.find(key) is None


def test_a_deleted_key_file_admits_nobody(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    clock = Clock()
    key = make_key(path, "shop", ("ask",), None)
    ring = KeyRing(path, clock)
    kept = path.read_text()
    path.unlink()
    clock.now += 1.5
    assert ring.find(key) is None
    path.write_text("{")
    clock.now += 1.5
    assert ring.find(key) is None
    path.write_text(kept)
    clock.now += 1.5
    assert ring.find(key) is not None


def test_a_scoped_key_acts_for_its_user_alone() -> None:
    scoped = Caller(name="a", roles=frozenset({"ask"}), user="ann")
    assert (scoped.demand_user(None), scoped.demand_user("ann")) == ("ann", "ann")
    with pytest.raises(NotPermitted) as refused:
        scoped.demand_user("bob")
    assert "bob" not in str(refused.value)
    assert Caller(name="b", roles=frozenset({"ask"})).demand_user("bob") == "bob"


def test_an_admin_may_do_what_the_others_may() -> None:
    Caller(name="a", roles=frozenset({"admin"})).demand_role("read")
    Caller(name="a", roles=frozenset({"read"})).demand_role("ask", "read")
    with pytest.raises(NotPermitted, match="role 'read'"):
        Caller(name="a", roles=frozenset({"ask"})).demand_role("read")


def test_a_burst_is_taken_and_then_so_many_a_second() -> None:
    clock = Clock()
    rates = Rates(2.0, 3, clock)
    assert [rates.take("a") for _ in range(4)] == [0, 0, 0, 1]
    assert rates.take("b") == 0
    clock.now += 0.5
    assert [rates.take("a"), rates.take("a")] == [0, 1]
    clock.now += 100
    assert [rates.take("a") for _ in range(4)] == [0, 0, 0, 1]


@pytest.mark.parametrize("sizes", [(3000,), (1500, 1500)])
async def test_a_body_is_limited_however_it_is_cut(sizes: tuple[int, ...]) -> None:
    pieces = [
        {"type": "http.request", "body": b"x" * size, "more_body": True}
        for size in sizes
    ]
    messages = iter(
        [*pieces, {"type": "http.request", "body": b"", "more_body": False}]
    )

    async def receive() -> Message:
        return next(messages)

    with pytest.raises(Refused, match="2,000 bytes"):
        await BodyReader(receive, 2000, 60).receive()


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.8.0.1:80", "[::1]:8080"]
)
def test_names_of_this_machine_are_local(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "",
            "evil.com",
            "[::1]evil.com",
            "[::1",
            "127.0.0.1:80@evil.com",
            "127.0.0.1:",
            "127.0.0.1.evil.com",
        ),
        *(
            "::1.x",
            "127.0.0.1\n",
            "localhost:80:80",
            "user@localhost",
            "127.999.0.1",
            "10.0.0.1",
        ),
    ],
)
def test_lookalikes_of_this_machine_are_not_local(host: str) -> None:
    assert not is_local(host)


def test_conversations_of_a_world_differ_by_user_and_tenant() -> None:
    named = [
        world_conversation("Walker", "Ana", user, tenant)
        for tenant in (None, "acme", "alice")
        for user in (None, "alice", "bob", "x" * 256)
    ]
    assert named[0] == "Walker.Ana"
    assert len(set(named)) == 12
    assert max(map(len, named)) < 256


def test_the_command_prints_a_new_key_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TASKLORE_API_KEYS_FILE", raising=False)
    path = tmp_path / "keys.json"
    print_new_key("shop", ["read", "ask", "ask"], None, path)
    said = capsys.readouterr()
    entry = KeyRing(path).find(said.out.strip())
    assert entry is not None
    assert entry.roles == ("read", "ask")
    assert f"TASKLORE_API_KEYS_FILE={path}" in said.err
    with pytest.raises(
        InvalidInput, match="ask, read, messages, approve, operate, admin"
    ):
        print_new_key("other", ["root"], None, path)
