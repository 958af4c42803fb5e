"""The forge of this storm forks workers, and supervisors as well: the environment of each order says which."""

import os
import sys

from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tests.acceptance.chaos import forge
from tests.acceptance.pipeline_storm import misdeeds

__all__ = ["PipelineRuns", "SessionCache"]


def serve(references: list[str], answers: int) -> int:
    """Serve as `tasklore worker` or `tasklore supervisor` does."""
    misdeeds.commit(os.environ.get(misdeeds.VARIABLE, ""))
    return forge.serve_agents(references, answers)


if __name__ == "__main__":
    forge.main(int(sys.argv[1]), sys.argv[2:], serve)
