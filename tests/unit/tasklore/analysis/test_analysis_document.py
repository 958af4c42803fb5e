"""The analysis document: read, kept byte for byte, upcast and described."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.analysis.background import Background, Knowledge, KnownFact
from tasklore.contracts.analysis.document import (
    AnalysisDocument,
    Meta,
    problems_in,
    read_document,
    schema,
    upcast,
)
from tasklore.contracts.errors import InvalidInput

HERE = Path(__file__).parent
EXAMPLE = (HERE / "example.json").read_text("utf-8")


def _minified(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _changed(*path: str | int, value: Any) -> dict[str, Any]:
    """Return the example with *value* at *path*."""
    body: dict[str, Any] = json.loads(EXAMPLE)
    place: Any = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return body


def test_a_document_is_written_as_it_was_read() -> None:
    assert problems_in(EXAMPLE) == ()
    assert read_document(EXAMPLE).minified() == _minified(json.loads(EXAMPLE))


def test_order_unknown_keys_and_number_spellings_are_kept() -> None:
    body = dict(reversed(json.loads(EXAMPLE).items()))
    body["mood"] = {"z": 1, "a": [None, 2.0]}
    body["background"] = {"weather": {"dur": 12, "sky": "grey"}, **body["background"]}
    body["background"]["resp_analyzer"] = {
        "x": 1,
        **dict(reversed(body["background"]["resp_analyzer"].items())),
    }
    body["background"]["resp_analyzer"]["scene"]["tension"] = 6.0
    body["background"]["memory_create"]["memories"][0]["smell"] = "coffee"
    assert read_document(_minified(body)).minified() == _minified(body)


def test_models_have_long_names() -> None:
    document = read_document(_changed("immediate", "weather", value={"sky": "grey"}))
    assert document.meta.response_number == 120
    assert document.background.relationships is not None
    assert document.background.relationships.interactions[0].previous == 18
    assert dict(document.sections())["weather"] == {"sky": "grey"}


def test_a_new_document_has_short_keys_and_its_version() -> None:
    meta = Meta(
        response_number=3, updated="2026-01-02T03:04:05+00:00", status="fresh",
        agents_run=1, agents_ok=1, agents_failed=0, agents_skipped=0,
    )  # fmt: skip
    fact = KnownFact(subject="Cafe", fact="It is closed")
    document = AnalysisDocument(
        meta=meta, background=Background(knowledge=Knowledge(facts=(fact,)))
    )
    assert document.body()["version"] == "1.1"
    assert document.body()["background"] == {
        "knowledge": {"facts": [{"subj": "Cafe", "fact": "It is closed"}]}
    }
    assert read_document(document.minified()).minified() == document.minified()


def test_an_older_document_is_upcast() -> None:
    older = json.loads(EXAMPLE)
    newer = upcast(read_document(EXAMPLE)).body()
    counts = {"agents_run": 10, "agents_ok": 9, "agents_fail": 0, "agents_skip": 1}
    assert newer == older | {"version": "1.1", "meta": older["meta"] | counts}
    assert problems_in(newer) == ()
    assert upcast(read_document(newer)).minified() == _minified(newer)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (_changed("meta", "agents_ok", value=9), "meta"),
        (_changed("meta", "updated", value="yesterday"), "meta.updated"),
        (_changed("meta", "resp_num", value="120"), "meta.resp_num"),
        (_changed("version", value="2.0"), "$"),
        (
            _changed("background", "resp_analyzer", "scene", "tension", value=11),
            "background.resp_analyzer.scene.tension",
        ),
        (_changed("stats", "roi", value="much"), "stats.roi"),
        (
            _changed("immediate", "fact_extract", "facts", "David Park", 1, value=7),
            'immediate.fact_extract.facts["David Park"][1]',
        ),
        (
            _changed("background", "knowledge", "facts", 0, value={"fact": "It is closed"}),
            "background.knowledge.facts[0].subj",
        ),
        ([], "$"),
    ],
)  # fmt: skip
def test_problems_have_their_place(body: Any, place: str) -> None:
    assert [one.place for one in problems_in(json.dumps(body))] == [place]
    with pytest.raises(InvalidInput, match="not an analysis document"):
        read_document(json.dumps(body))


@pytest.mark.parametrize(
    "raw", ["{", b"\xff", '{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000]
)
def test_invalid_json_is_refused(raw: str | bytes) -> None:
    with pytest.raises(InvalidInput, match=r"examples\.migrate_analyses"):
        read_document(raw)


def test_the_schema_is_the_golden_one() -> None:
    written = json.dumps(schema(), indent=1, sort_keys=True) + "\n"
    assert written == (HERE / "AnalysisDocument.v1.json").read_text("utf-8")
    assert "resp_num" in written
    assert "response_number" not in written
