"""The manual of the commands."""

from tasklore.commands.manual import page


def test_every_help_has_an_example() -> None:
    sections = page().split("\n## `")[1:]
    assert len(sections) >= 18
    for section in sections:
        name = section.partition("`")[0]
        example = section.partition("  Example:\n")[2]
        assert example.startswith("    tasklore "), name
        assert f"{name} " in f"{example.rstrip('`').rstrip()} ".replace("\n", " "), name
