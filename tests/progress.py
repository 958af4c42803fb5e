"""A line every few seconds on how far a run of the tests is, in place of a dot a test: `pytest -p tests.progress`."""

import time
from pathlib import PurePath

import pytest

#: Seconds between two lines.
_EVERY_S = 10.0


class Progress:
    """Counts what is done, in the process that the user looks at."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = self._said = time.monotonic()
        self._done = self._failed = 0
        self._running: dict[str, None] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test begins, in whichever process."""
        self._running[nodeid] = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that is done, and print a line when it is time."""
        if report.failed:
            self._failed += 1
            self._config.pluginmanager.get_plugin("terminalreporter").write_line(
                f"FAILED {report.nodeid}"
            )
        if report.when != "teardown":
            return
        self._running.pop(report.nodeid, None)
        self._done += 1
        now = time.monotonic()
        if now - self._said >= _EVERY_S:
            self._said = now
            files = sorted(
                {PurePath(one.partition("::")[0]).name for one in self._running}
            )
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            failed = f", {self._failed} FAILED" if self._failed else ""
            terminal.write_line(
                f"{now - self._began:4.0f} s: {self._done:,} done{failed}; {', '.join(files)[:80]}"
            )

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str] | None:
        """Show no dot for a test that passed."""
        return (
            ("passed", "", "PASSED")
            if report.passed and report.when == "call"
            else None
        )


def pytest_configure(config: pytest.Config) -> None:
    """Report only where the user looks: in the one process, or in the controller of several."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config), "tasklore-progress")
