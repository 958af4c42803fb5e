"""Commands `tasklore analyses` over files: paths, problems and the context."""

import io
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tasklore.commands.analyses.documents import is_file, read_file
from tasklore.commands.analyses.views import (
    print_check,
    print_context,
    print_document,
    print_value,
)
from tasklore.commands.operations.problems import ApiRefused
from tasklore.contracts.analysis.document import read_document
from tasklore.contracts.analysis.stories import Entity
from tasklore.contracts.errors import InvalidInput, UnknownPath, Unreachable
from tasklore.memory.rendering.prompt_context import condense
from tasklore.supervisor.pipelines.analysis.places import value_at
from tests.raw_server import answer, problem, serving

HERE = Path(__file__).parent
EXAMPLE = HERE / "example.json"
BODY = json.loads(EXAMPLE.read_text("utf-8"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("background.relationship.interactions[0].score", 28),
        ("background.relationships.interactions[0].previous", 18),
        ("$['background']['relationship']['interactions'][-1]['prev']", 18),
        ('facts["David Park"][0]', "Marcus's best friend since college"),
        ("fact_extract.facts['David Park'][-1]", "Recently engaged to Amy Rodriguez"),
        ("interactions[0].characters[1]", "Lily"),
        ("stats.total_reduction.percent", 94),
    ],
)
def test_a_path_finds_its_value(path: str, value: object) -> None:
    assert value_at(BODY, path) == value


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        (
            "background.relationship.interaction[0].score",
            "background.relationship.interactions[0].score",
        ),
        ("meta.resp_no", "meta.resp_num"),
        ('facts["Nobody"][0]', "immediate.fact_extract.facts"),
        ('facts["David Perk"][0]', 'immediate.fact_extract.facts["David Park"][0]'),
        (
            "relationships.interactions[9].previous",
            "background.relationship.interactions[0].prev",
        ),
    ],
)
def test_an_unknown_path_names_the_nearest(path: str, nearest: str) -> None:
    with pytest.raises(
        UnknownPath, match=f"the nearest is {re.escape(repr(nearest))}$"
    ):
        value_at(BODY, path)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (
            'facts["Nobody"][0]',
            "'immediate.fact_extract.facts' has the names 'David Park', 'Sarah Mitchell'; the nearest",
        ),
        (
            "meta.status.x",
            "'meta.status' has a single value; the nearest is 'meta.status'",
        ),
        (
            "nonsense",
            "'$' has the names 'version', 'meta', 'background', 'immediate', 'stats'; the nearest is '$'",
        ),
        (
            "reduction.x",
            "it begins in more than one place: 'immediate.fact_extract.reduction', ",
        ),
    ],
)
def test_an_unknown_path_lists_what_is_there(path: str, told: str) -> None:
    with pytest.raises(UnknownPath, match=f"^there is no .*: {re.escape(told)}"):
        value_at(BODY, path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ('facts["david"][0]', "Marcus's best friend since college"),
        (
            'immediate.fact_extract.facts["the blunt one"][0]',
            "Marcus's best friend since college",
        ),
        ("memory_extract.memories['Marcus Thompson'][0].id", "MEM-120"),
    ],
)
def test_a_path_takes_any_declared_name(path: str, value: str) -> None:
    entities = (
        Entity(name="David Park", aliases=("the blunt one",)),
        Entity(name="Marcus Thompson"),
    )
    assert value_at(BODY, path, entities) == value


def test_unknown_and_ambiguous_names_are_refused() -> None:
    two = BODY | {
        "immediate": {"fact_extract": {"facts": {"Ann Lee": ["a"], "Bo Lee": ["b"]}}}
    }
    for path in ('facts["Lee"]', 'facts["Gandalf"]'):
        with pytest.raises(UnknownPath):
            value_at(two, path)
    assert value_at(two, 'facts["bo"][0]') == "b"


def test_names_are_read_from_the_storys_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "entities").mkdir()
    (tmp_path / "story.toml").write_text('story_id = "cafe"\n', "utf-8")
    (tmp_path / "entities" / "david.md").write_text(
        "# David Park\n\n- Also called: the blunt one\n\nA friend.\n", "utf-8"
    )
    document = tmp_path / "state" / "agent_analysis.json"
    document.write_bytes(EXAMPLE.read_bytes())
    for source in (str(document), str(tmp_path)):
        print_value(source, 'facts["the blunt one"][0]')
        assert capsys.readouterr().out == "Marcus's best friend since college\n"
    with pytest.raises(UnknownPath):
        print_value(str(EXAMPLE), 'facts["the blunt one"][0]')


def test_an_ambiguous_path_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"immediate\.fact_extract\.reduction\.pct.*thread_extract"
    ):
        value_at(BODY, "reduction.pct")


def test_the_context_is_printed_and_a_pipe_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_context(str(EXAMPLE), 500, as_json=False)
    assert capsys.readouterr().out == condense(read_document(BODY)) + "\n"
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(EXAMPLE.read_bytes()))
    )
    print_context("-", 100, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["tokens"] <= 100
    assert f"({printed['left_out']} more left out)" in printed["text"]
    print_context(str(EXAMPLE), 3, as_json=False)
    assert capsys.readouterr() == (
        "",
        "tasklore: 3 tokens are too few for any of it; allow 60 or more\n",
    )


def test_a_document_and_its_values_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_document(str(EXAMPLE), as_json=False)
    shown = capsys.readouterr().out
    assert "Response 120, fresh" in shown
    assert "3 facts" in shown
    assert "skipped" in shown
    print_document(str(EXAMPLE), as_json=True)
    assert json.loads(capsys.readouterr().out) == BODY
    print_value(str(EXAMPLE), "background.relationship.interactions[0].tier")
    print_value(str(EXAMPLE), "background.relationship.interactions[0].chars")
    assert capsys.readouterr().out.split("\n", 1) == [
        "Acquaintance",
        '[\n  "Marcus",\n  "Lily"\n]\n',
    ]


def test_a_word_is_a_file_or_the_id_of_a_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here").touch()
    Path("quay", "state").mkdir(parents=True)
    Path("quay", "state", "agent_analysis.json").write_bytes(EXAMPLE.read_bytes())
    words = ("-", "a.json", "./quay", "here", "quay", "nobody")
    assert [word for word in words if is_file(word)] == [
        "-",
        "a.json",
        "./quay",
        "here",
    ]
    assert read_file("./quay") == read_document(BODY)
    with pytest.raises(
        InvalidInput,
        match=r"--response goes with the id of a story; './quay' is a file",
    ):
        read_file("./quay", 3)
    with pytest.raises(
        InvalidInput, match=r"none/a\.json cannot be read \(No such file"
    ):
        read_file("none/a.json")
    with pytest.raises(InvalidInput, match="here: this is not valid JSON"):
        read_file("here")


def test_a_story_is_asked_for_at_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [one for one in os.environ if one.startswith("TASKLORE_")]:
        monkeypatch.delenv(name)
    with pytest.raises(
        Unreachable,
        match="'quay' is not a file here, so it is taken as a story id: no API is "
        "known here",
    ):
        print_document("quay", as_json=False)
    view = {
        "story_id": "quay",
        "response": 120,
        "state": "running",
        "sections": [{"section": "knowledge", "group": "background", "state": "asked"}],
        "without_worker": [],
        "document": BODY,
    }
    context = {"text": "<!-- it -->", "tokens": 4, "left_out": 7}
    with serving(
        answer(view),
        answer(view),
        answer(context),
        answer("Acquaintance"),
        answer([1]),
        problem(404, "no analysis of response 5 of 'quay' is kept; there are 1 to 3"),
    ) as server:
        monkeypatch.setenv("TASKLORE_API_URL", server.url)
        print_document("quay", as_json=False)
        shown = capsys.readouterr().out
        assert "Response 120, fresh: 10 of 11 agents ok, 1 at work" in shown
        assert re.search(r"\nknowledge +at work\n", shown)
        print_document("quay", 120, as_json=True)
        assert json.loads(capsys.readouterr().out) == view
        print_context("quay", 200, 3, as_json=False)
        print_value("quay", "a.b")
        print_value("quay", "c", 2)
        assert capsys.readouterr().out == "<!-- it -->\nAcquaintance\n[\n  1\n]\n"
        with pytest.raises(
            ApiRefused, match=r"there are 1 to 3 \(a file would be .*: \./quay\)$"
        ):
            print_context("quay", 200, 5, as_json=False)
    assert [one.path for one in server.received] == [
        "/v1/analyses/quay",
        "/v1/analyses/quay?response=120",
        "/v1/analyses/quay/context?response=3&tokens=200",
        "/v1/analyses/quay/value?path=a.b",
        "/v1/analyses/quay/value?path=c&response=2",
        "/v1/analyses/quay/context?response=5&tokens=200",
    ]


def test_a_check_reports_places_and_sums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_check(str(EXAMPLE), as_json=False) == 0
    printed = capsys.readouterr()
    assert "version 1.0; nothing is wrong" in printed.out
    assert (
        "stats.total_reduction.after is 1515, and its parts sum to 1485" in printed.err
    )
    wrong = BODY | {"meta": BODY["meta"] | {"agents_ok": 3}}
    (tmp_path / "wrong.json").write_text(json.dumps(wrong), "utf-8")
    assert print_check(str(tmp_path / "wrong.json"), as_json=False) == 2
    assert (
        "meta: agents_ok, agents_fail and agents_skip sum to 3"
        in capsys.readouterr().err
    )
    assert print_check(str(tmp_path / "wrong.json"), as_json=True) == 2
    assert json.loads(capsys.readouterr().out)["problems"][0]["place"] == "meta"
