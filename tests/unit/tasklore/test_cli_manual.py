"""The manual of commands is generated from their help."""

from pathlib import Path

from tasklore.manual import page

MANUAL = Path(__file__).resolve().parents[3] / "docs" / "reference" / "cli.md"


def test_the_manual_is_generated_from_the_help() -> None:
    """Run `python -m tasklore.manual > docs/reference/cli.md` when this fails."""
    assert MANUAL.read_text("utf-8") == page()


def test_every_help_has_an_example() -> None:
    sections = page().split("\n## `")[1:]
    assert len(sections) >= 18
    for section in sections:
        name = section.partition("`")[0]
        example = section.partition("  Example:\n")[2]
        assert example.startswith("    tasklore "), name
        assert f"{name} " in f"{example.rstrip('`').rstrip()} ".replace("\n", " "), name
