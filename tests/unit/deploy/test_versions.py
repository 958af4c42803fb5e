"""One version, wherever it stands: a wheel, an image and a page of one commit agree."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: Where a version of ours is spelled; each expression finds the version alone.
PLACES = {
    "deploy/Dockerfile": r"tasklore:([\w.]+\d)|ARG VERSION=(\S+)",
    "deploy/compose.yaml": r"tasklore:([\w.]+\d)",
    "deploy/golden/dev.yaml": r"tasklore:([\w.]+\d)",
    "deploy/golden/prod.yaml": r"tasklore:([\w.]+\d)",
    "deploy/golden/tls.yaml": r"tasklore:([\w.]+\d)",
    "docs/guide/deploy-to-kubernetes.md": r"/tasklore:([\w.]+\d)",
    "docs/reference/deploy.md": r"tasklore:([\w.]+\d)",
    "k8s/overlays/dev/kustomization.yaml": r"newTag: (\S+)",
    "k8s/overlays/prod/kustomization.yaml": r"newTag: (\S+)",
    "k8s/overlays/world/kustomization.yaml": r"newTag: (\S+)",
}


def declared() -> str:
    """Return the version that `pyproject.toml` declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return str(project["project"]["version"])


@pytest.mark.parametrize("place", PLACES)
def test_every_place_names_the_declared_version(place: str) -> None:
    """An image that is tagged by an older version would hide what it holds."""
    text = (ROOT / place).read_text("utf-8")
    found = {found[found.lastindex or 0] for found in re.finditer(PLACES[place], text)}

    assert found == {declared()}


def test_what_is_installed_is_what_is_declared() -> None:
    """An environment that was made before the version changed would report the old one."""
    assert version("tasklore") == declared()


def test_the_changelog_has_a_section_of_the_declared_version() -> None:
    """A development version is written about under the release that it becomes."""
    newest = re.search(
        r"^## \[(\S+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )

    assert newest is not None
    assert newest[1] == re.sub(r"\.dev\d+$", "", declared())
