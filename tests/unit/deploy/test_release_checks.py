"""Releases have a hash for every pin and a digest for every image."""

from pathlib import Path

import pytest

from deploy.checks import release
from deploy.checks.pins import without_hash
from deploy.checks.tools import ROOT

FILES = [
    *(ROOT / "requirements").glob("*.txt"),
    *(ROOT / "deploy").glob("requirements*.txt"),
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_pin_has_a_hash(file: Path) -> None:
    assert without_hash(file.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "text", ["a==1\n", "a==1 \\\n    --hash=sha256:0\nb==2\n", "-e .\n"]
)
def test_a_pin_without_a_hash_is_reported(text: str) -> None:
    assert len(without_hash(text)) == 1


def test_an_image_without_a_digest_is_reported(tmp_path: Path) -> None:
    for name in ("deploy/Dockerfile", "deploy/compose.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(
            "ARG BASE_IMAGE=python:3.11@sha256:0\n  image: a/b@sha256:0\n"
        )
    for name in (
        "k8s/values/nats.yaml",
        "k8s/values/valkey.yaml",
        "k8s/overlays/prod/kustomization.yaml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(
            "images:\n  - digest: sha256:0\nimage:\n  tag: 1@sha256:0\n"
        )
    assert list(release.problems(tmp_path)) == []
    (tmp_path / "deploy/compose.yaml").write_text("image: nats:2\n")
    (tmp_path / "k8s/values/nats.yaml").write_text("  tag: '2'\n")
    assert [one.place for one in release.problems(tmp_path)] == [
        "deploy/compose.yaml",
        "k8s/values/nats.yaml",
    ]
