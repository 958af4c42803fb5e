"""The ports of a system on one machine: kept from start to start, and replaced where somebody else has taken one."""

import json
import socket
from pathlib import Path

import pytest

from tasklore.commands.up.ports import NAMES, choose_ports
from tasklore.runtime.servers.claims import HOST


def test_a_folder_keeps_its_ports(tmp_path: Path) -> None:
    first = choose_ports(tmp_path / "data")
    assert len(set(first.values())) == len(NAMES)
    assert choose_ports(tmp_path / "data") == first


def test_without_a_folder_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(choose_ports(None)) == set(NAMES)
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_replaced_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = choose_ports(tmp_path)
    with socket.socket() as other:
        other.bind((HOST, first["api"]))
        other.listen()
        second = choose_ports(tmp_path)
    assert second == {**first, "api": second["api"]}
    assert second["api"] != first["api"]
    assert f"port {first['api']} of api is taken" in capsys.readouterr().err
    assert choose_ports(tmp_path) == second


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"nats": "x", "api": 0}',
        '{"http": 70000}',
        '{"nats": true}',
        "[" * 100_000,
    ],
)
def test_a_file_that_is_none_of_ours_is_replaced(text: str, tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text(text)
    chosen = choose_ports(tmp_path)
    assert set(chosen) == set(NAMES)
    assert all(type(port) is int and port > 1 for port in chosen.values())


def test_no_two_are_given_one_port(tmp_path: Path) -> None:
    """The first of those that a person gave the same one keeps it."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    (tmp_path / "ports.json").write_text(json.dumps(dict.fromkeys(NAMES, port)))
    chosen = choose_ports(tmp_path)
    assert chosen[NAMES[0]] == port
    assert len(set(chosen.values())) == len(NAMES)
