"""Every role of ours on a server of one's own, of each kind: it is asked for the model that is set, and answers."""

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import pydantic_ai
import pytest
from pydantic import BaseModel

from tasklore import workers
from tasklore.runtime.models.embeddings import Endpoint
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
from tasklore.workers.pydantic_agents import RoleModel
from tasklore.workers.pydantic_agents.models import build_model
from tasklore.workers.summary.question import Summary
from tests.integration.test_agent_models import add_tools, kit_of
from tests.llm_double import ScriptedLlm, raw
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


#: Each module that asks a model, and the roles by which it does.
ASKING = {
    "supervisor.replies.languages": {"supervisor"},
    "supervisor.understanding.model": {"supervisor"},
    "tasklore.commands.doctor.model_checks": {"default"},
    "workers.agents.decision.question": {"decision"},
    "workers.agents.memory_worker.finder": {"finder"},
    "workers.agents.memory_worker.recall": {"recall"},
    "workers.agents.story.question": {SHARED, *AGENTS},
    "workers.agents.switchboard.extraction": {"switchboard"},
    "workers.agents.switchboard.second_look": {"second_look"},
    "workers.summary.question": {"summary"},
}


def test_each_module_that_asks_a_model_has_its_roles_above() -> None:
    """Found in the code by the form of the call: a role, an answer, and what the system says."""
    root = Path(workers.__file__).resolve().parents[1]
    asking = set[str]()
    for room in ("memory", "runtime", "supervisor", "tasklore", "workers"):
        for file in (root / room).rglob("*.py"):
            module = file.relative_to(root).with_suffix("").as_posix().replace("/", ".")
            if module.startswith(("workers.testing", "workers.context", "runtime.mod")):
                # What hands a question on asks none of its own.
                continue
            asks = any(
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "ask"
                and any(one.arg == "system" for one in node.keywords)
                for node in ast.walk(ast.parse(file.read_text("utf-8")))
            )
            asking |= {module} if asks else set()
    assert asking == ASKING.keys()
    assert set().union(*ASKING.values()) == OURS.keys()


@pytest.mark.parametrize("kind", KINDS)
async def test_an_agent_with_tools_asks_the_model_that_is_set(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each role that it names, streamed or not."""
    server = ModelServer(kind, ("own",), answers=lambda _asked: {"score": 7})
    async with ScriptedLlm(server) as model:
        monkeypatch.setenv("TASKLORE_LLM_BASE_URL", model.base_url)
        monkeypatch.setenv("TASKLORE_LLM_MODEL", "own")
        async with Llm(Settings.load().llm()) as llm:
            for role in ("default", "writer", "supervisor", "finder"):
                for streams in (False, True):
                    agent = pydantic_ai.Agent(RoleModel(role), name="clerk")
                    add_tools(agent)
                    kit = kit_of(agent, llm, streams=streams)
                    report = await kit.run("ask", {"prompt": "hi"})
                    assert '"score": 7' in str(report.result)
    assert server.strangers == []
    assert {asked.model for asked in model.requests} == {"own"}


async def test_texts_are_embedded_by_the_model_that_is_set() -> None:
    """Azure's query and key go along, and what the server does not count is not counted."""
    vectors = [{"index": place, "embedding": [3.0, 4.0]} for place in (1, 0)]
    reply = raw(json.dumps({"data": vectors, "usage": None}).encode())
    async with ScriptedLlm(lambda _asked: reply) as model:
        endpoint = Endpoint(
            "own-embed", base_url=f"{model.base_url}?api-version=1", api_key=None
        )
        found = await asyncio.to_thread(endpoint.embed, ["a", "b"])
    assert found == [[0.6, 0.8]] * 2
    assert [asked.model for asked in model.requests] == ["own-embed"]
    assert model.requests[0].path == "/v1/embeddings?api-version=1"


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
