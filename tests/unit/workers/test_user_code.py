"""Which line of an author an error is told by."""

import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from tasklore.contracts.errors import TaskloreError
from tasklore.workers.user_code import describe_place


def leave() -> None:
    """End the process, as an author's library might."""
    sys.exit(3)


def test_an_error_of_ours_is_told_by_the_line_that_caused_it() -> None:
    """As where a task would end the whole process; without a cause by where the task is defined."""
    ours = TaskloreError("raised SystemExit(3), which is not an Exception")
    assert describe_place(ours, leave).endswith('in leave: "def leave() -> None:"')
    with pytest.raises(SystemExit) as raised:
        leave()
    ours.__cause__ = raised.value
    assert describe_place(ours, leave).endswith('in leave: "sys.exit(3)"')


def test_a_cause_in_a_library_is_no_line_of_the_author() -> None:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(int).validate_python("no number")
    ours = TaskloreError("the result does not fit")
    ours.__cause__ = raised.value.with_traceback(raised.tb.tb_next)
    assert describe_place(ours, leave).endswith('in leave: "def leave() -> None:"')


def test_a_generated_line_of_any_length_is_cut(tmp_path: Path) -> None:
    """A dead letter has to fit into a message with it."""
    file = tmp_path / "generated.py"
    file.write_text(f"[{'1, ' * 100_000}unknown]")
    with pytest.raises(NameError) as raised:
        exec(compile(file.read_text(), file, "exec"), {})  # noqa: S102 - code of this test
    place = describe_place(raised.value, leave).rpartition(" > ")[2]
    assert f'{file}, line 1, in <module>: "[1, 1' in place
    assert len(place) < 200 + len(str(file)) + 50
