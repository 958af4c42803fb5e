"""`tasklore doctor` from the settings to the exit code."""

import shutil
import sys

from runtime import logs
from runtime.settings import Settings
from tasklore.doctor.examination import examine, find_system
from tasklore.render.screen import patience, print_json


async def examine_aloud(monitor: str | None, *, strict: bool, as_json: bool) -> int:
    """Examine the system of this environment, print what was found, and return the exit code.

    Raises:
        ConfigurationError: a setting, *monitor* or endpoints.json is unusable.
        Unreachable: nobody says where the system is.
    """
    # What the libraries complain about is told as findings.
    logs.configure("error")
    settings = Settings.load(nats_monitor_url=monitor)
    endpoints, monitor_source = find_system(settings)
    async with patience("examining the servers"):
        report = await examine(endpoints, settings, monitor_source)
    if as_json:
        print_json(report.document(strict=strict))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print("\n".join(report.lines(width)), flush=True)
    return report.exit_code(strict=strict)
