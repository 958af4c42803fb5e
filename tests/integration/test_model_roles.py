"""Every role of ours on a server of one's own, of each kind: it is asked for the model that is set, and answers."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tasklore import workers
from tasklore.runtime.models.llm import Llm
from tasklore.runtime.settings import Settings
from tasklore.supervisor.understanding.answers import Reading
from tasklore.workers.agent_files import CONFIG, llm_settings_of, load_agent_files
from tasklore.workers.agents.decision.answer import Wish
from tasklore.workers.agents.memory_worker.finder import Found
from tasklore.workers.agents.memory_worker.recall import Worded
from tasklore.workers.agents.story.question import PARTS, SHARED
from tasklore.workers.agents.switchboard.answer import Heard
from tasklore.workers.agents.switchboard.second_look import SecondLook
from tasklore.workers.pydantic_agents.models import build_model
from tasklore.workers.summary.question import Summary
from tests.llm_double import ScriptedLlm
from tests.llm_questions import Colour
from tests.llm_servers import KINDS, Kind, ModelServer, fitting, fitting_value
from tests.unit.workers.agents.story.test_sections import AGENTS

FOLDERS = sorted(file.parent for file in Path(workers.__file__).parent.rglob(CONFIG))
OURS: dict[str, type[BaseModel]] = {
    "decision": Wish,
    "finder": Found,
    "recall": Worded,
    "summary": Summary,
    "second_look": SecondLook,
    "switchboard": Heard,
    "supervisor": Reading,
    "default": Colour,
    SHARED: PARTS["knowledge"].answer,
    **{section: PARTS[section].answer for section in AGENTS},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_every_role_is_answered_by_the_model_that_is_set(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request asks for a model that nobody named, and no role goes without its answer."""
    server = ModelServer(kind, ("own",), answers=fitting)
    async with ScriptedLlm(server) as model:
        monkeypatch.setenv("TASKLORE_LLM_BASE_URL", model.base_url)
        monkeypatch.setenv("TASKLORE_LLM_MODEL", "own")
        settings = llm_settings_of(
            Settings.load(), [load_agent_files(folder) for folder in FOLDERS]
        )
        async with Llm(settings) as llm:
            for role, answer in OURS.items():
                reply = await llm.ask(role, answer, system="Judge.", user="What?")
                assert (reply.model, type(reply.value)) == ("own", answer)

    assert OURS.keys() >= settings.roles.keys() | {"default"}
    assert server.strangers == []
    assert len(model.requests) == len(OURS) + len(server.refused)
    assert build_model(settings, "writer").model_name == "own"


def test_the_filler_of_schemas_fits_them() -> None:
    """Whatever a role asks for: else the test above would only see faults."""

    def fill(answer: type[BaseModel]) -> Any:
        return fitting_value(answer.model_json_schema())

    for answer in OURS.values():
        answer.model_validate(fill(answer))
