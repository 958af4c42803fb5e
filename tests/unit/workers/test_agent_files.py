"""The files of an agent's roles: their content, the layers over them, and refusals of wrong ones."""

from pathlib import Path

import pytest

from tasklore import workers
from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.models.settings import MEDIUM_MODEL, SMALL_MODEL
from tasklore.runtime.settings import Settings
from tasklore.workers.agent_files import (
    CONFIG,
    find_roles,
    llm_settings_of,
    load_agent_files,
    roles_of,
)


def role(
    folder: Path,
    *,
    config: str = "model: small\ntemperature: 0.1\n",
    prompt: str = "Find it.",
) -> Path:
    """Write a role into *folder* and return it."""
    (folder / "prompts").mkdir(parents=True)
    (folder / "config.yaml").write_text(config, "utf-8")
    (folder / "prompts" / "system.j2").write_text(prompt, "utf-8")
    return folder


def over(folder: Path, name: str, text: str) -> Path:
    """Write *text* into the file *name* below *folder*, and return *folder*."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return folder


@pytest.fixture
def finder(tmp_path: Path) -> Path:
    """A role `finder` of the agent in the folder `reader`."""
    return role(
        tmp_path / "agents" / "reader" / "finder",
        prompt="Find {{ what }} in <it> & tell.\n",
    )


def test_a_role_is_what_its_files_say(finder: Path) -> None:
    """Model and temperature from one, the prompt from the other, with values put in and nothing escaped."""
    files = load_agent_files(finder)

    assert (files.role, files.model, files.temperature, files.max_output_tokens) == (
        "finder",
        "small",
        0.1,
        None,
    )
    assert files.render(what="eggs") == "Find eggs in <it> & tell."


def test_a_users_folder_lies_over_ours_field_by_field(
    finder: Path, tmp_path: Path
) -> None:
    """What their file does not say, ours says; a file they do not have is ours."""
    mine = over(
        tmp_path / "mine",
        "reader/finder/config.yaml",
        "model: large\nmax_output_tokens: 99\n",
    )
    other = over(
        tmp_path / "other",
        "reader/finder/prompts/system.j2",
        "Seek {{ what | upper }}.",
    )

    files = load_agent_files(finder, mine)
    prompted = load_agent_files(finder, other)

    assert (files.model, files.temperature, files.max_output_tokens) == (
        "large",
        0.1,
        99,
    )
    assert files.render(what="eggs").startswith("Find eggs")
    assert (prompted.model, prompted.render(what="eggs")) == ("small", "Seek EGGS.")


def test_an_agent_that_is_one_role_lies_under_its_own_name(tmp_path: Path) -> None:
    """Its package is the role: there is no folder between."""
    package = role(tmp_path / "agents" / "listener")
    (package / "__init__.py").write_text("", "utf-8")
    mine = over(tmp_path / "mine", "listener/config.yaml", "temperature: null\n")

    assert find_roles(package) == (package,)
    assert load_agent_files(package, mine).temperature is None


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("temperature: 3\nmodel: m", "temperature"),
        ("temperature: true\nmodel: m", "temperature"),
        ("model: 4", "model"),
        ("model: m\nmax_output_tokens: 0", "max_output_tokens"),
        ("modell: m", "modell"),
        ("model: [", "not valid YAML"),
        ("", "holds no fields"),
        ("model: !!python/object/apply:os.system ['true']", "not valid YAML"),
    ],
)
def test_a_wrong_configuration_names_file_and_field(
    tmp_path: Path, config: str, named: str
) -> None:
    folder = role(tmp_path / "agent" / "finder", config=config)

    with pytest.raises(ConfigurationError) as told:
        load_agent_files(folder)

    assert str(folder / "config.yaml") in str(told.value)
    assert named in str(told.value)


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("Hello {{ name", "line 1"),
        ("{{ x | nofilter }}", "nofilter"),
        ("{% include 'other.j2' %}", "another template"),
        (" \n", "empty"),
    ],
)
def test_a_wrong_prompt_names_file_and_cure(
    tmp_path: Path, prompt: str, named: str
) -> None:
    """Whatever is wrong with it shows when it is loaded."""
    folder = role(tmp_path / "agent" / "finder", prompt=prompt)

    with pytest.raises(ConfigurationError) as told:
        load_agent_files(folder)

    assert str(folder / "prompts" / "system.j2") in str(told.value)
    assert named in str(told.value)


def test_a_users_prompt_may_use_only_what_ours_is_given(
    finder: Path, tmp_path: Path
) -> None:
    """A slip in a name shows at the start and not at the first question."""
    mine = over(
        tmp_path / "mine", "reader/finder/prompts/system.j2", "Find {{ waht }}."
    )

    with pytest.raises(
        ConfigurationError, match=r"'waht'; the names it is given are what"
    ):
        load_agent_files(finder, mine)


@pytest.mark.parametrize(
    "prompt",
    [
        "{{ what.__class__.__mro__ }}",
        "{{ what.append('x') }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ what.missing.deeper }}",
    ],
)
def test_a_prompt_reaches_nothing_but_its_values(tmp_path: Path, prompt: str) -> None:
    """Jinja's sandbox refuses what lies behind a value, and changes to it."""
    folder = role(tmp_path / "agent" / "finder", prompt=prompt)
    what = ["eggs"]

    with pytest.raises(ConfigurationError, match="cannot be rendered"):
        load_agent_files(folder).render(what=what)

    assert what == ["eggs"]


def settings(monkeypatch: pytest.MonkeyPatch, **environ: str) -> Settings:
    """Return settings as of a process with *environ* alone."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return Settings.load()


def test_what_the_operator_sets_for_a_role_wins_over_its_files(
    finder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = settings(
        monkeypatch, TASKLORE_LLM_FINDER_MODEL="theirs", TASKLORE_LLM_MODEL="any"
    )

    roles = llm_settings_of(told, [load_agent_files(finder)]).roles

    assert (roles["finder"].model, roles["finder"].temperature) == ("theirs", 0.1)
    assert roles["default"].model == "any"
    assert roles["finder"].max_output_tokens == told.llm_max_output_tokens


def test_a_model_of_ones_own_serves_every_role_that_nothing_else_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models that the package ships are a default; a role is named by a setting, a folder over it, or an own model."""
    shipped = role(tmp_path / "shipped" / "judge", config=f"model: {MEDIUM_MODEL}")
    own = role(tmp_path / "own" / "scribe", config="model: qwen3")
    laid = role(tmp_path / "over" / "shipped" / "judge", config="model: gpt-6-luna")
    listed = role(tmp_path / "listed" / "poet", config=f"model: {SMALL_MODEL}")
    files = [load_agent_files(folder) for folder in (shipped, own, listed)]

    told = settings(
        monkeypatch,
        TASKLORE_LLM_MODEL="llama",
        TASKLORE_LLM_ROLES="poet=anthropic:verse",
    )
    roles = llm_settings_of(told, files).roles

    assert {name: one.model for name, one in roles.items()} == {
        "default": "llama",
        "supervisor": "llama",
        "finder": "llama",
        "judge": "llama",
        "scribe": "qwen3",
        "poet": "verse",
    }
    assert roles["poet"].provider == "anthropic"
    laid_over = load_agent_files(shipped, laid.parents[1])
    assert roles_of(told, [laid_over])["judge"].model == "gpt-6-luna"


def test_no_role_of_ours_asks_for_another_model_than_the_one_that_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every `config.yaml` that is shipped."""
    told = settings(monkeypatch, TASKLORE_LLM_MODEL="llama")
    folders = sorted(
        file.parent for file in Path(workers.__file__).parent.rglob(CONFIG)
    )

    roles = llm_settings_of(told, map(load_agent_files, folders)).roles

    assert len(roles) >= len(folders) > 10
    assert {one.model for one in roles.values()} == {"llama"}


def test_two_agents_do_not_share_a_role_by_accident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same files twice are one role; different ones under one name are refused, and so are the house's own."""
    one = load_agent_files(role(tmp_path / "a" / "judge"))
    other = load_agent_files(role(tmp_path / "b" / "judge", config="model: large"))
    ours = load_agent_files(role(tmp_path / "a" / "supervisor"))

    assert len(roles_of(settings(monkeypatch), [one, one])) == 1
    with pytest.raises(ConfigurationError, match="another agent"):
        roles_of(settings(monkeypatch), [one, other])
    with pytest.raises(ConfigurationError, match="house's own"):
        roles_of(settings(monkeypatch), [ours])
