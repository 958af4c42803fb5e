"""What commands show, and how they refuse wrong inputs, is as it is frozen.

After a change: `python -m tests.golden.write commands`; docs/reference/changes-0.3.md
explains each difference.
"""

from typing import Any

import pytest

from tests.golden.frozen import FOLDER, demand_frozen, read
from tests.golden.scenario import SCENARIO
from tests.golden.showing import SERVING, show_commands
from tests.golden.wrong_inputs import commands

NOUNS = sorted(
    {*SCENARIO, *(line.split()[0] for one in commands() for line in one.lines())}
)

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Give every command once."""
    return show_commands(tmp_path_factory.mktemp("commands"))


@pytest.mark.parametrize("noun", NOUNS)
def test_commands_show_and_refuse_what_is_frozen(
    noun: str, shown: dict[str, dict[str, Any]]
) -> None:
    """Ids, times, addresses and measured numbers aside."""
    demand_frozen(shown[noun], read(f"commands/{noun}.json"))


def test_every_command_is_frozen() -> None:
    """But those that run until they are stopped."""
    given = {step.line for steps in SCENARIO.values() for step in steps}
    left = {
        command.words
        for command in commands()
        if command.words not in SERVING
        and not any(f"{line} ".startswith(f"{command.words} ") for line in given)
    }

    assert left == set()


def test_nothing_is_frozen_that_is_no_command() -> None:
    assert sorted(path.stem for path in (FOLDER / "commands").iterdir()) == NOUNS
