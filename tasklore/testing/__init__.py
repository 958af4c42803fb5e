"""The kit that tests an agent without a system; `run_task`, `listen` and `AgentKit` are where to begin."""

from tasklore.workers.testing import NOW as NOW
from tasklore.workers.testing import AgentKit as AgentKit
from tasklore.workers.testing import Asked as Asked
from tasklore.workers.testing import Called as Called
from tasklore.workers.testing import Emitted as Emitted
from tasklore.workers.testing import Heard as Heard
from tasklore.workers.testing import KitHistory as KitHistory
from tasklore.workers.testing import KitServices as KitServices
from tasklore.workers.testing import KitStory as KitStory
from tasklore.workers.testing import ScriptedLlm as ScriptedLlm
from tasklore.workers.testing import listen as listen
from tasklore.workers.testing import run_task as run_task
