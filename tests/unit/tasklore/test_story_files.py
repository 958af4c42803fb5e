"""Stories in folders: what a good one becomes, and what is reported of a broken one."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tasklore.commands.exits import USAGE
from tasklore.commands.stories import folder as story_folder
from tasklore.commands.stories.check import print_check
from tasklore.commands.stories.example import copy_into
from tasklore.commands.stories.files import (
    InvalidStory,
    look_at_story,
    read_response,
    read_story,
    responses_in,
)
from tasklore.commands.stories.folder import LARGEST_FILE
from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.stories import TIERS, Relations, SeatSettings

#: A whole story; tests change a file of it, or take one away.
GOOD = {
    "story.toml": """\
story_id = "quay"
title = "The Quay"
critical_countdown = 4

[traits]
honesty = ["told the truth"]
secrecy = ["would not say"]

[agents.contradiction]
enabled = true

[agents.foreshadowing]
group = "immediate"
agent = "ForeshadowingAgent"
task = "look_ahead"
after = ["plot_threads"]
deadline_s = 5
""",
    "entities/ana.md": "# Ana Reyes\n\n- Also called: the pilot, Annie\n\nSteers the ferry.\n",
    "entities/ben.md": "# Ben Okafor\n\nMends nets.\n",
    "entities/quay.md": "# The Old Quay\n\n- **Kind:** location\n\n## Notes\n\n- Kind: stone and rope\n",
    "relationships.toml": """\
[tastes.Ana.likes]
honesty = 10

[tastes."Ben Okafor".dislikes]
secrecy = 2.5

[[bonds]]
characters = ["the pilot", "Ben"]
score = 18
""",
    "memories.toml": """\
[[memories]]
id = "MEM-000-storm"
character = "Annie"
summary = "The storm took the small boat."
significance = 9
tags = ["storm"]
""",
    "threads.toml": """\
[[threads]]
id = "THREAD-001"
title = "The licence"
characters = ["Ana", "the pilot", "Ben"]
consequence_at = 12
""",
    "knowledge.toml": """\
[[facts]]
category = "location"
subject = "The Old Quay"
fact = "The bell has no clapper"
confidence = "high"
source = "before"
""",
    "responses/Ch1-R001.md": "Ana tied the ferry up.\n",
}

NOBODY = "no entity is called 'Elias'; correct it, or add a file in entities"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the good story with some files changed, or left out with None, and return its folder."""

    def put(changed: Mapping[str, str | bytes | None] | None = None) -> Path:
        folder = tmp_path / "quay"
        for name, text in {**GOOD, **(changed or {})}.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                file.write_bytes(text.encode() if isinstance(text, str) else text)
        return folder

    return put


def told(folder: Path) -> list[str]:
    """Return every problem of the story in *folder*, without its path."""
    with pytest.raises(InvalidStory) as raised:
        look_at_story(folder, with_responses=True)
    return [one.removeprefix(f"{folder}/") for one in raised.value.problems]


def odd(folder: Path) -> list[str]:
    """Return every warning about the story in *folder*, without its path."""
    return [one.removeprefix(f"{folder}/") for one in look_at_story(folder).warnings]


def test_a_folder_is_read_whole(write: Write) -> None:
    reading = look_at_story(write(), with_responses=True)
    base = reading.base

    assert (reading.warnings, reading.responses) == ((), ("responses/Ch1-R001.md",))
    assert (
        base.settings.story_id,
        base.settings.title,
        base.settings.critical_countdown,
    ) == ("quay", "The Quay", 4)
    assert base.settings.traits == {
        "honesty": ("told the truth",),
        "secrecy": ("would not say",),
    }
    assert base.settings.agents == {
        "contradiction": SeatSettings(enabled=True),
        "foreshadowing": SeatSettings(
            group="immediate",
            agent="ForeshadowingAgent",
            task="look_ahead",
            after=("plot_threads",),
            deadline_s=5,
        ),
    }
    assert [(one.name, one.kind, one.aliases) for one in base.entities] == [
        ("Ana Reyes", "character", ("the pilot", "Annie")),
        ("Ben Okafor", "character", ()),
        ("The Old Quay", "location", ()),
    ]
    assert [one.id for one in base.memories] == ["MEM-000-storm"]
    assert [(one.id, one.consequence_at) for one in base.threads] == [
        ("THREAD-001", 12)
    ]
    assert base.knowledge == (
        KnownFact(
            category="location",
            subject="The Old Quay",
            fact="The bell has no clapper",
            confidence="high",
            source="before",
        ),
    )


def test_only_the_settings_have_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "story.toml").write_text('story_id = "bare"\n')
    base = read_story(tmp_path)
    assert (
        base.entities,
        base.memories,
        base.threads,
        base.knowledge,
        base.relations.bonds,
    ) == ((), (), (), (), ())
    assert [tier.name for tier in base.relations.tiers][4] == "Friend"
    assert responses_in(tmp_path) == []


def test_a_folder_without_settings_is_refused(write: Write, tmp_path: Path) -> None:
    folder = write()
    (folder / "story.toml").unlink()
    [problem] = told(folder)
    assert problem.startswith(
        'story.toml: a story needs this file; write one with story_id = "name", or `tasklore '
    )
    with pytest.raises(
        InvalidStory,
        match="none: the folder of a story is not there; `tasklore stories example DIR`",
    ):
        read_story(tmp_path / "none")
    with pytest.raises(InvalidStory, match="the folder of a story is a file"):
        read_story(folder / "threads.toml")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("story.toml", 'title = "x"\n', "story_id: is needed"),
        (
            "story.toml",
            'story_id = "a"\ntitel = "x"\n',
            "titel: is not known; did you mean 'title'?",
        ),
        (
            "story.toml",
            'story_id = "a"\n[agents.own]\nagent = "A"\n',
            "agents.own is not a built-in section, so it needs 'agent' and 'task', the task that makes it",
        ),
        (
            "story.toml",
            'story_id = "a"\n[agents.knowledge]\nenable = false\n',
            "agents.knowledge.enable: is not known; did you mean 'enabled'?",
        ),
        (
            "story.toml",
            'story_id = "a\n',
            (
                "this is not valid TOML: Illegal character '\\n' (at line 1, column 14); "
                "fix that line"
            ),
        ),
        (
            "relationships.toml",
            '[[bonds]]\ncharacters = ["Ana"]\n',
            "bonds[0].characters[1]: is needed",
        ),
        (
            "relationships.toml",
            '[[bonds]]\ncharacters = ["Ana", "the pilot"]\n',
            "bonds[0].characters: 'Ana Reyes' stands twice; a bond is of two",
        ),
        (
            "relationships.toml",
            '[[tiers]]\nname = "A"\nthreshold = 5\n[[tiers]]\nname = "B"\nthreshold = 5\n',
            "tiers: 'B' must begin above 'A'; order them by threshold",
        ),
        (
            "memories.toml",
            '[[memories]]\nid = "MEM-1"\ncharacter = "Ana"\nsignificance = 11\n',
            "memories[0].significance (MEM-1): must be less than or equal to 10, not 11",
        ),
        (
            "knowledge.toml",
            '[[facts]]\nsubject = "x"\nfact = "y"\nfrom = "b"\n',
            "facts[0].from: is not known; known are 'category', 'subject', 'fact', 'confidence',",
        ),
        (
            "entities/ana.md",
            "Steers the ferry.\n",
            "it does not say of whom it is; begin it with",
        ),
        (
            "entities/ana.md",
            "# Ana\n\n- Kind: locaton\n",
            ":3: kind 'locaton' is not known; did you mean 'location'?",
        ),
        (
            "responses/later.md",
            "x",
            "its name has no number; call it such as Ch1-R001.md",
        ),
        (
            "responses/Ch2-R1.md",
            "x",
            "responses/Ch1-R001.md is response 1 already; numbers continue",
        ),
        (
            "responses/R002.md",
            " \n",
            "it is empty; write the response into it, or remove it",
        ),
        (
            "responses/R002.doc",
            "x",
            "a response is a file that ends in .md or .txt; rename it, or remove it",
        ),
    ],
)
def test_a_mistake_is_reported_with_place_and_cure(
    write: Write, name: str, text: str, problem: str
) -> None:
    [found] = told(write({name: text}))
    assert found.removeprefix(name).removeprefix(": ").startswith(problem)


def test_all_problems_are_reported_at_once(write: Write) -> None:
    folder = write(
        {
            "story.toml": 'story_id = "a b"\nlong = 1\n',
            "memories.toml": '[[memories]]\nid = "m"\n[[memories]]\nwhy = 1\n',
            "entities/cy.md": "no title",
        }
    )
    assert [": ".join(one.split(": ")[:2]) for one in told(folder)] == [
        "entities/cy.md: it does not say of whom it is; begin it with a heading",
        "memories.toml: memories[0].character (m)",
        "memories.toml: memories[1].id",
        "memories.toml: memories[1].character",
        "memories.toml: memories[1].why",
        "story.toml: story_id",
        "story.toml: long",
    ]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"entities/other.md": "# ana  reyes\n"},
            "entities/other.md:1: 'ana reyes' has a file already, entities/ana.md; put both into one, or rename one",
        ),
        (
            {"entities/cy.md": "# Cy\n\n- Also called: Cyrus, The Pilot\n"},
            "entities/cy.md:3: 'The Pilot' also means 'Ana Reyes' (entities/ana.md); let it mean one of them",
        ),
        (
            {
                "memories.toml": '[[memories]]\nid = "m"\ncharacter = "Ana"\ntext = "x"\n'
                * 2
            },
            "memories.toml: memories[1]: 'm' is memories[0] already; rename it, or remove one of them",
        ),
        (
            {
                "relationships.toml": 'bonds = [\n{characters = ["Ana", "Ben"]},\n{characters = ["Ben", "Annie"]}\n]\n'
            },
            "relationships.toml: bonds[1]: 'Ana Reyes and Ben Okafor' is bonds[0] already; rename it, or remove one of",
        ),
        (
            {
                "relationships.toml": '[tastes.Ana.likes]\nhonesty = 1\n[tastes."the pilot".likes]\nhonesty = 2\n'
            },
            "relationships.toml: tastes.the pilot: the tastes of 'Ana Reyes' are given under another name already;",
        ),
    ],
)
def test_duplicates_are_refused(
    write: Write, changed: Mapping[str, str], problem: str
) -> None:
    [found] = told(write(changed))
    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        (
            {"relationships.toml": '[[bonds]]\ncharacters = ["Ana", "Elias"]\n'},
            f"relationships.toml: bonds[0].characters: {NOBODY}",
        ),
        (
            {"relationships.toml": "[tastes.Anna.likes]\nhonesty = 1\n"},
            "relationships.toml: tastes.Anna: no entity is called 'Anna'; did you mean 'Ana'?",
        ),
        (
            {"memories.toml": '[[memories]]\nid = "m"\ncharacter = "Ana"\n'},
            "memories.toml: memories[0] (m): says nothing; give a summary or a text",
        ),
        (
            {"knowledge.toml": '[[facts]]\nsubject = "s"\nfact = "f"\n' * 2},
            "knowledge.toml: facts[1]: says the same as facts[0]; it counts once",
        ),
        (
            {"thread.toml": ""},
            "thread.toml: this is not read; did you mean 'threads.toml'?",
        ),
        (
            {"zz.toml": ""},
            "zz.toml: this is not read; a story has no such file, remove it",
        ),
        (
            {"entities/old/cy.md": "# Cy\n"},
            "entities/old: this folder is not read; move what is in it to entities itself",
        ),
        (
            {"entities/map.png": b"\x89"},
            "entities/map.png: this file is not read; an entity's file ends in .md",
        ),
    ],
)
def test_oddities_are_warnings(
    write: Write, changed: Mapping[str, str | bytes], warning: str
) -> None:
    assert odd(write(changed)) == [warning]


@pytest.mark.parametrize(
    "beside", ["README.md", "state/agent_analysis.json", "entities/.hidden.md"]
)
def test_other_files_are_ignored(write: Write, beside: str) -> None:
    assert odd(write({beside: "x"})) == []


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        ("ana  REYES", "Ana Reyes"),
        ("Ana", "Ana Reyes"),
        ("reyes", "Cy Moss"),
        ("The Pilot", "Ana Reyes"),
    ],
)
def test_a_character_is_found_by_any_of_their_names(
    write: Write, said: str, whole: str
) -> None:
    cy = "# Cy Moss\n\n- Also called: the smith\n- Also called: Reyes\n"
    memories = f'[[memories]]\nid = "m"\ncharacter = "{said}"\ntext = "x"\n'
    assert (
        read_story(write({"entities/cy.md": cy, "memories.toml": memories}))
        .memories[0]
        .character
        == whole
    )
    assert read_story(write()).entities[2].aliases == ("the smith", "Reyes")


def test_a_shared_part_of_a_name_means_nobody(write: Write) -> None:
    folder = write(
        {
            "entities/ana2.md": "# Ana Moss\n",
            "memories.toml": GOOD["memories.toml"].replace("Annie", "Ana"),
        }
    )
    base = read_story(folder)
    assert base.memories[0].character == "Ana"
    assert "Ana Reyes" in base.threads[0].characters
    assert any("no entity is called 'Ana'" in one for one in odd(folder))


def test_byte_order_marks_and_line_ends_make_no_difference(write: Write) -> None:
    plain = read_story(write())
    marked = {
        name: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
        for name, text in GOOD.items()
    }
    assert read_story(write(marked)) == plain


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "# Ren\u00e9\n".encode("latin-1"),
            "entities/ana.md:1: it is not UTF-8 text; save it as UTF-8",
        ),
        (
            b"# Ana\nfine\n\xff\n",
            "entities/ana.md:3: it is not UTF-8 text; save it as UTF-8",
        ),
        (b"# Ana\n\0\n", "entities/ana.md:2: it is not text: it has a zero byte"),
        (
            b"# Ana\n" + b"a" * LARGEST_FILE,
            "entities/ana.md: it has more than 256 KB; split it, or shorten it",
        ),
    ],
)
def test_invalid_or_oversized_text_is_refused(
    write: Write, content: bytes, problem: str
) -> None:
    assert told(write({"entities/ana.md": content})) == [problem]


def test_a_story_that_is_too_large_is_reported_once(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        story_folder, "LARGEST_STORY", sum(len(text) for text in GOOD.values())
    )
    assert look_at_story(write(), with_responses=True).warnings == ()
    folder = write({"responses/R002.md": "a", "responses/R003.md": "b"})
    assert told(folder) == [
        "responses/R002.md: up to here the story has more than 0 MB; shorten it"
    ]


def test_a_link_out_of_the_folder_is_not_followed(write: Write, tmp_path: Path) -> None:
    folder = write({"entities/ben.md": None})
    (tmp_path / "secret.md").write_text("# Secret\n")
    (folder / "entities" / "away.md").symlink_to(tmp_path / "secret.md")
    (folder / "entities" / "gone.md").symlink_to(folder / "nowhere.md")
    (folder / "notes.md").write_text("# Ben Okafor\n")
    (folder / "entities" / "ben.md").symlink_to(folder / "notes.md")
    out = "it is a link out of the story's folder, which is not followed; put the file itself here"

    assert told(folder) == [
        f"entities/away.md: {out}",
        "entities/gone.md: it is a link that leads nowhere; put the file itself here",
    ]
    for name in ("away.md", "gone.md"):
        (folder / "entities" / name).unlink()
    assert "Ben Okafor" in [one.name for one in read_story(folder).entities]

    (tmp_path / "elsewhere").mkdir()
    (folder / "responses" / "Ch1-R001.md").unlink()
    (folder / "responses").rmdir()
    (folder / "responses").symlink_to(tmp_path / "elsewhere")
    assert told(folder) == [f"responses: {out}"]


def test_pipes_and_folders_are_not_opened(write: Write) -> None:
    folder = write()
    os.mkfifo(folder / "entities" / "pipe.md")
    (folder / "knowledge.toml").unlink()
    (folder / "knowledge.toml").mkdir()
    assert told(folder) == [
        "entities/pipe.md: it is not a file; put a text here, or remove it",
        "knowledge.toml: it is not a file; put a text here, or remove it",
    ]


@pytest.mark.parametrize(
    ("name", "chapter", "number"),
    [
        ("Ch5-R120.md", 5, 120),
        ("r7.TXT", 1, 7),
        ("Chapter 2 Response 9.md", 2, 9),
        ("Ch3-R031 The bell.md", 3, 31),
    ],
)
def test_a_response_is_numbered_by_its_name(
    tmp_path: Path, name: str, chapter: int, number: int
) -> None:
    (tmp_path / name).write_bytes(b"\xef\xbb\xbfThe bell rang.\r\n")
    response = read_response(tmp_path / name)
    assert (response.chapter, response.number, response.text) == (
        chapter,
        number,
        "The bell rang.\n",
    )


@pytest.mark.parametrize("name", ["120.md", "R.md", "notes R1.md", "R1a.md"])
def test_a_name_without_a_number_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(
        InvalidStory,
        match=r"does not say which response it is; rename it like Ch1-R007\.md$",
    ):
        read_response(tmp_path / name)


def test_a_missing_response_is_refused(tmp_path: Path) -> None:
    for name in ("R1.md", "notes.md"):
        with pytest.raises(
            InvalidStory,
            match=f"^there is no file {tmp_path}/{name}; name one that is there",
        ):
            read_response(tmp_path / name)


def test_a_response_is_not_read_through_links_out_of_the_folder(
    write: Write, tmp_path: Path
) -> None:
    folder = write()
    (tmp_path / "R4.md").write_text("Elsewhere.\n")
    (folder / "responses" / "Ch1-R004.md").symlink_to(tmp_path / "R4.md")
    os.mkfifo(folder / "responses" / "Ch1-R005.md")
    (folder / "responses" / "Ch1-R006.md").write_bytes(b"a" * (LARGEST_FILE + 1))
    (tmp_path / "way").symlink_to(folder)
    refused = {
        folder / "responses" / "Ch1-R004.md": "it is a link out of the story's folder",
        tmp_path
        / "quay"
        / "entities"
        / ".."
        / "responses"
        / "Ch1-R004.md": "it is a link out of the story's folder",
        tmp_path
        / "way"
        / "responses"
        / "Ch1-R004.md": "it is a link out of the story's folder",
        folder / "responses" / "Ch1-R005.md": "it is not a file",
        folder / "responses" / "Ch1-R006.md": "it has more than 256 KB",
    }
    for file, problem in refused.items():
        with pytest.raises(InvalidStory, match=f": {problem}"):
            read_response(file, folder)
    assert (
        read_response(tmp_path / "way" / "responses" / "Ch1-R001.md", folder).text
        == "Ana tied the ferry up.\n"
    )
    assert read_response(tmp_path / "R4.md", folder).text == "Elsewhere.\n"

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "R7.md").write_text("x")
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidStory, match="link out of the story's folder"):
        read_response(folder / "more" / "R7.md", folder)


def test_responses_are_in_the_order_of_their_numbers(write: Write) -> None:
    folder = write(
        {
            "responses/R10.MD": "x",
            "responses/ch1-r9.txt": "x",
            "responses/.R3.md": "x",
            "responses/old/R2.md": "x",
        }
    )
    assert [file.name for file in responses_in(folder)] == [
        "Ch1-R001.md",
        "ch1-r9.txt",
        "R10.MD",
    ]
    assert responses_in(folder)[0].parent == folder / "responses"


def test_a_check_reports_warnings_beside_problems(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    odd_thread = '[[threads]]\nid = "THREAD-001"\ntitle = "x"\ncharacters = ["Bem"]\n'
    folder = write({"story.toml": 'title = "x"\n', "threads.toml": odd_thread})
    warning = f"{folder}/threads.toml: threads[0].characters (THREAD-001): no entity is called 'Bem'"
    assert print_check(folder, as_json=True) == USAGE
    out, err = capsys.readouterr()
    assert [one[: len(warning)] for one in json.loads(out)["warnings"]] == [warning]
    assert f"tasklore: {warning}" in err
    (folder / "entities" / "ben.md").write_text("Mends nets.\n")
    print_check(folder, as_json=True)
    assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_the_example_has_no_problem(tmp_path: Path) -> None:
    copy_into(tmp_path / "new" / "lighthouse")
    reading = look_at_story(tmp_path / "new" / "lighthouse", with_responses=True)
    assert reading.warnings == ()
    assert reading.base.settings.story_id == "lighthouse"
    assert reading.responses


def test_the_story_in_the_docs_has_no_problem(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "stories.md").read_text(
        "utf-8"
    )
    shown = re.findall(
        r"^### `([^`]+)`$.*?^```(?:toml|markdown)\n(.*?)^```$",
        page,
        re.MULTILINE | re.DOTALL,
    )
    for name, text in [*shown, ("entities/ben.md", "# Ben Okafor\n")]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    reading = look_at_story(tmp_path, with_responses=True)
    base = reading.base
    assert (reading.warnings, reading.responses) == ((), ("responses/Ch1-R001.md",))
    assert base.settings.agents["foreshadowing"].agent == "ForeshadowingAgent"
    assert base.entities[0].aliases == ("the pilot", "Annie")
    assert [
        len(part)
        for part in (base.memories, base.threads, base.knowledge, base.relations.bonds)
    ] == [1, 1, 1, 1]
    [tiers] = re.findall(r"^tiers = .*?^\]$", page, re.MULTILINE | re.DOTALL)
    assert Relations.model_validate(tomllib.loads(tiers)).tiers == TIERS


def test_the_mistakes_in_the_docs_are_reported_so(write: Write) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "stories.md").read_text(
        "utf-8"
    )
    wrong = (
        GOOD["memories.toml"]
        .replace('summary = "The storm took the small boat."\n', "")
        .replace("= 9", "= 11")
    )
    folder = write({"memories.toml": wrong})
    assert [f"tasklore: quay/{one}\n" in page for one in told(folder)] == [True]
    names = '[[threads]]\nid = "THREAD-001"\ntitle = "x"\n\n\ncharacters = ["Bem"]\n'
    folder = write({"threads.toml": names})
    assert [f"tasklore: quay/{one}\n" in page for one in odd(folder)] == [True]
