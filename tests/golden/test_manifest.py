"""The manifest in the package is that of the OpenAPI document."""

from tasklore.commands.app import GROUPS
from tasklore.commands.operations.entries import FILE, load_manifest
from tests.golden.manifest import make_text


def test_the_manifest_is_current() -> None:
    cure = "run `python -m tests.golden.manifest > tasklore/commands/manifest.json`"
    assert FILE.read_text("utf-8") == make_text(), cure


def test_every_noun_has_a_sentence_and_a_place() -> None:
    assert {one["noun"] for one in load_manifest()["operations"]} <= GROUPS.keys()
