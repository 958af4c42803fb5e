"""Secrets printed from a folder of credentials: each that is mounted, and no other."""

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.credentials import add_roles, main, make_api_certificate, make_credentials
from deploy.manifests import generated
from deploy.privileges.roles import Cast
from deploy.secret_manifests import secret_manifests
from tasklore.commands.k8s.printing import agent_text
from tasklore.commands.k8s.workers import Wanted
from tasklore.contracts.errors import ConfigurationError
from tests.unit.deploy.documents import documents

K8S = Path(__file__).resolve().parents[3] / "k8s"
#: Keys below which a manifest, or the values of a chart, names one that it reads.
_REFERENCES = {
    "secret",
    "secretRef",
    "secretKeyRef",
    "configMap",
    "configMapRef",
    "configMapKeyRef",
}
_IN_VALUES = {"secretName", "existingSecret"}

PRICE = '''
from tasklore import Agent, Parameters

agent = Agent("PriceAgent")

@agent.task
async def price(parameters: Parameters) -> str:
    """Tell a price."""
    return "1"
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what a deployment begins with."""
    folder = tmp_path_factory.mktemp("credentials") / "made"
    make_credentials(folder, Cast().roles())
    (folder / "api.keys").write_text("shop ask digest\n")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """Return a copy of it for one test."""
    return Path(shutil.copytree(made, tmp_path / "own"))


def read(folder: Path) -> dict[str, dict[str, str]]:
    """Return what is printed of *folder*: the text below each key, by the name of its secret or ConfigMap."""
    found = {}
    for one in secret_manifests(folder):
        metadata = one["metadata"]
        data = one["data"]
        assert isinstance(metadata, dict)
        assert isinstance(data, dict)
        is_plain = one["kind"] == "ConfigMap"
        texts = {
            key: text if is_plain else base64.b64decode(text).decode()
            for key, text in data.items()
        }
        found[metadata["name"]] = texts
    return found


def wanted(node: Any) -> Iterator[tuple[str, set[str]]]:
    """Yield the name of each secret or ConfigMap that *node* needs, with the keys that it takes by name."""
    if isinstance(node, list):
        for one in node:
            yield from wanted(one)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in _IN_VALUES and isinstance(value, str):
            yield value, set()
        elif key == "extraValkeySecrets":
            yield from ((one["name"], set()) for one in value)
        elif key == "patch" and isinstance(value, str):
            yield from wanted(documents(value))
        elif (
            key in _REFERENCES and isinstance(value, dict) and not value.get("optional")
        ):
            yield (
                value.get("name") or value["secretName"],
                {one["key"] for one in value.get("items", [])},
            )
        else:
            yield from wanted(value)


def missing(manifests: list[Any], printed: dict[str, dict[str, str]]) -> set[str]:
    """Return what *manifests* need, and neither have themselves nor find in *printed*."""
    own = {
        one["metadata"]["name"]
        for one in manifests
        if one.get("kind") in ("ConfigMap", "Secret")
    }
    needed = [(name, keys) for name, keys in wanted(manifests) if name not in own]
    assert needed
    return {
        f"{name} {sorted(keys)}"
        for name, keys in needed
        if not keys <= printed.get(name, {}).keys() or not printed.get(name)
    }


def test_every_mounted_secret_is_printed(folder: Path) -> None:
    add_roles(folder, Cast({"decision-agent": ("DecisionAgent",)}, {}))
    make_api_certificate(folder)
    files = sorted(K8S.rglob("*.yaml"))
    manifests = [one for file in files for one in documents(file.read_text("utf-8"))]
    printed = read(folder)
    assert missing(manifests, printed) == set()
    told = {
        name
        for file in (K8S / "values").iterdir()
        for name in re.findall(r"\btasklore-[a-z-]+", file.read_text())
    }
    assert told <= printed.keys()


def test_files_have_the_names_that_charts_expect(made: Path) -> None:
    printed = read(made)
    tls = made / "tls"
    for server in ("nats", "valkey"):
        files = {
            "tls.crt": f"{server}.crt",
            "tls.key": f"{server}.key",
            "ca.crt": "ca.crt",
        }
        assert printed[f"tasklore-{server}-tls"] == {
            key: (tls / file).read_text() for key, file in files.items()
        }
    assert printed["tasklore-valkey-acl"] == {
        "users.acl": (made / "users.acl").read_text()
    }
    assert printed["tasklore-nats-accounts"] == {
        "accounts.conf": (made / "accounts.conf").read_text()
    }
    keys = (made / "nats.env").read_text().splitlines()
    assert [
        f"{name}={key}" for name, key in printed["tasklore-nats-keys"].items()
    ] == keys


def test_private_keys_that_no_pod_has_are_not_printed(made: Path) -> None:
    held = "".join(text for texts in read(made).values() for text in texts.values())
    private = [
        made / "tls" / "ca.key",
        *(made / role / "nats.nkey" for role in ("program", "sys")),
    ]
    assert [file.name for file in private if file.read_text().strip() in held] == []
    assert (made / "memory" / "nats.nkey").read_text() in held


def test_an_added_agent_finds_its_secrets(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "price.py").write_text(PRICE)
    monkeypatch.chdir(tmp_path)
    text = agent_text(
        Wanted(
            references=("./price.py",),
            image="registry.example/price:1.0",
            name="prices",
        )
    )
    manifests = documents(text)
    assert len(missing(manifests, read(folder))) == 2
    (added,) = re.findall(r"--worker prices=(\S+)", text)
    add_roles(folder, Cast({"prices": (added,)}, {}))
    assert missing(manifests, read(folder)) == set()


def test_the_key_of_a_model_is_printed_if_present(folder: Path) -> None:
    for text, names in (("", set()), ("sk-1\n", {"tasklore-llm"})):
        (folder / "llm.key").write_text(text)
        assert {name for name in read(folder) if name == "tasklore-llm"} == names
    assert read(folder)["tasklore-llm"] == {"tasklore_llm_api_key": "sk-1"}


def test_what_signs_links_is_given_to_all_who_sign(folder: Path) -> None:
    """Supervisors and the pod of operations take each other's sessions of the console, so they have one secret."""
    assert "tasklore-links" not in read(folder)
    (folder / "approval.secret").write_text(f"{'0123456789abcdef' * 4}\n")
    assert read(folder)["tasklore-links"] == {
        "tasklore_approval_secret": "0123456789abcdef" * 4
    }
    named = "name: tasklore-links"
    having = {name for name, text in generated().items() if named in text}
    assert having == {"supervisor.yaml", "operations.yaml"}


def test_secrets_are_printed_as_yaml(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(made), "--print-secrets"]) == 0
    printed = documents(capsys.readouterr().out)
    assert {one["kind"] for one in printed} == {"Secret", "ConfigMap"}
    assert {one["metadata"]["namespace"] for one in printed} == {"tasklore"}


def test_a_missing_file_is_reported(folder: Path) -> None:
    (folder / "api.keys").unlink()
    with pytest.raises(ConfigurationError, match=r"api\.keys.*tasklore api-key"):
        secret_manifests(folder)
