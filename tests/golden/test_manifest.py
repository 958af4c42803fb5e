"""Every noun of the manifest has its place among the commands."""

from tasklore.commands.app import GROUPS
from tasklore.commands.operations.entries import load_manifest


def test_every_noun_has_a_sentence_and_a_place() -> None:
    assert {one["noun"] for one in load_manifest()["operations"]} <= GROUPS.keys()
