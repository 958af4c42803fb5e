"""The card under which declared pipelines are asked for as tasks."""

from pathlib import Path

import pytest

from tasklore.commands.pipelines.sources import known_names, read_source
from tasklore.contracts.errors import ConfigurationError, InvalidInput, InvalidPipeline
from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.supervisor.cards import CardIndex
from tasklore.supervisor.pipelines.as_tasks import agent_card, read_pipelines
from tasklore.supervisor.pipelines.declaration.checks import all_problems

PHASE = Phase(name="one", agent="A", task="echo")
ESSAY = Pipeline(
    name="essay",
    version=3,
    description="Writes an essay.",
    examples=("write an essay about tea",),
    inputs={
        "topic": Input(type="text", description="what it is about"),
        "words": Input(type="number", default=500),
    },
    phases=(PHASE,),
)
PAPERS = Pipeline(name="papers", inputs={"papers": Input(type="list")}, phases=(PHASE,))
CARD = agent_card({"essay": ESSAY, "papers": PAPERS})


def test_the_card_has_the_inputs_of_each_pipeline() -> None:
    essay, papers = CARD.tasks
    assert (essay.name, essay.version, essay.examples, essay.in_words) == (
        "essay",
        3,
        ESSAY.examples,
        True,
    )
    assert essay.parameters == {
        "type": "object",
        "properties": {
            "topic": {"type": "string", "description": "what it is about"},
            "words": {"type": "number", "default": 500},
        },
        "required": ["topic"],
        "additionalProperties": False,
    }
    assert not papers.in_words
    assert agent_card({"essay": ESSAY}).digest != CARD.digest


def test_no_message_replaces_the_card() -> None:
    index = CardIndex(own=CARD)
    index.learn(AgentCard(agent_id="Pipeline", version=9, tasks=(), digest="evil"))
    index.forget("Pipeline")
    index.learn(
        AgentCard(
            agent_id="A",
            tasks=(TaskCard(name="echo", parameters={"type": "object"}),),
            digest="0",
        )
    )
    assert index.catalogue.cards["Pipeline"] == CARD
    assert set(index.catalogue.cards) == {"A", "Pipeline"}


def test_a_phase_that_names_a_pipeline_as_a_task_is_refused() -> None:
    outer = Pipeline(
        name="outer", phases=(Phase(name="one", agent="Pipeline", task="essay"),)
    )
    [problem] = all_problems(outer, {"Pipeline": CARD})
    assert (
        "name the file of 'essay' in `pipeline`, in place of `agent` and `task`"
        in problem.text
    )


def test_commands_find_pipelines_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "echoing.toml").write_text(
        'name = "echo"\n[[phase]]\nname = "one"\nagent = "A"\ntask = "echo"\n'
    )
    monkeypatch.setenv("TASKLORE_PIPELINES_DIR", str(tmp_path))
    assert known_names() == ["code-report", "echoing"]
    assert read_source("echoing").pipeline.name == "echo"
    with pytest.raises(InvalidInput, match="did you mean 'echoing'"):
        read_source("echoin")


def test_a_folder_of_pipelines_is_read_or_refused_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no pipeline")
    one = '[[phase]]\nname = "one"\nagent = "A"\ntask = "echo"\n'
    (tmp_path / "a.toml").write_text(f'name = "a"\n{one}')
    assert list(read_pipelines(tmp_path)) == ["a"]
    (tmp_path / "b.toml").write_text(f'name = "a"\n{one}')
    with pytest.raises(
        ConfigurationError, match=r"b\.toml: a pipeline 'a' is declared already"
    ):
        read_pipelines(tmp_path)
    (tmp_path / "b.toml").write_text(
        'name = "b"\n[[phase]]\nname = "one"\nagnt = "A"\n'
    )
    with pytest.raises(InvalidPipeline, match=r"b\.toml:4"):
        read_pipelines(tmp_path)
    with pytest.raises(
        ConfigurationError,
        match=r"TASKLORE_PIPELINES_DIR .* is not a folder; create it, or omit it",
    ):
        read_pipelines(tmp_path / "none")
