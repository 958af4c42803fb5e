"""The forge of this storm forks workers, and supervisors as well: the environment of each order says which."""

import os
import sys
from collections.abc import Callable

import uvloop

from memory.pipeline_runs import PipelineRuns
from memory.session import SessionCache
from runtime import logs
from runtime.settings import Settings
from supervisor.wiring import run_supervisor
from tests.acceptance.chaos import forge
from tests.acceptance.pipeline_storm import misdeeds

__all__ = ["PipelineRuns", "SessionCache"]

#: `worker` or `supervisor`.
ROLE_VARIABLE = "PIPELINE_STORM_ROLE"


def serve(references: list[str], answers: int) -> int:
    """Serve as `tasklore worker` or `tasklore supervisor` does."""
    misdeeds.commit(os.environ.get(misdeeds.VARIABLE, ""))
    if os.environ[ROLE_VARIABLE] == "worker":
        return forge.serve_agents(references, answers)
    settings = Settings.load()
    logs.configure(settings.log_level, settings.log_format)
    on_ready: Callable[[str], None] = lambda _address: forge.say({"ready": os.getpid()}, answers)  # noqa: E731
    uvloop.run(run_supervisor(settings, on_ready=on_ready))
    return 0


if __name__ == "__main__":
    forge.main(int(sys.argv[1]), sys.argv[2:], serve)
