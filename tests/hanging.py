"""Where a test hung: what pytest-timeout cannot see, since the stack of a loop that waits ends in its selector."""

import asyncio
import io
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a test that hung where each task of its loop stands: its own stack ends in the selector."""
    report = yield
    if call.excinfo is not None and str(call.excinfo.value).startswith("Timeout (>"):
        loops = {
            held
            for entry in call.excinfo.traceback
            if isinstance(held := entry.locals.get("self"), asyncio.AbstractEventLoop)
        }
        stacks = io.StringIO()
        for task in [task for loop in loops for task in asyncio.all_tasks(loop)]:
            task.print_stack(file=stacks)
        report.sections.append(("Tasks of the loop", stacks.getvalue()))
    return report
