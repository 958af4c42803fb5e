"""The OpenAPI document is one from which typed clients are generated."""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from tasklore.contracts.words import OTHER
from tests.golden.document import make_document

NAME = re.compile(r"[a-z]+(_[a-z]+)+")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return make_document()


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for methods in document["paths"].values() for one in methods.values()]


def parts(part: Any) -> Iterator[dict[str, Any]]:
    """Yield each object in *part*, itself included."""
    if isinstance(part, dict):
        yield part
    inner = part.values() if isinstance(part, dict) else part
    if isinstance(part, dict | list):
        for one in inner:
            yield from parts(one)


def test_operations_have_names_of_noun_and_verb(document: dict[str, Any]) -> None:
    """A generated client calls its functions so."""
    names = [one["operationId"] for one in operations(document)]
    assert [name for name in names if not NAME.fullmatch(name)] == []
    assert len(set(names)) == len(names)


def test_errors_are_said_once(document: dict[str, Any]) -> None:
    """Each operation refers to them; a client types an error once."""
    errors = [
        response
        for one in operations(document)
        for status, response in one["responses"].items()
        if int(status) >= 400
    ]
    assert all(set(one) == {"$ref"} for one in errors)
    shared = document["components"]["responses"]
    assert {f"#/components/responses/{name}" for name in shared} == {
        one["$ref"] for one in errors
    }


def test_a_model_has_one_schema_of_its_own_name(document: dict[str, Any]) -> None:
    """None for what is sent beside one for what is returned, no module in front."""
    names = set(document["components"]["schemas"])
    assert all(re.fullmatch(r"[A-Za-z0-9]+", name) for name in names), sorted(names)


def test_closed_words_are_listed_without_the_one_for_unknown_words(
    document: dict[str, Any],
) -> None:
    """A client's switch over a status is complete."""
    report = document["components"]["schemas"]["CompletionReport"]["properties"]
    assert report["status"]["enum"] == [
        "completed",
        "failed",
        "rejected",
        "expired",
        "cancelled",
    ]
    assert report["fence"]["enum"] == ["ledger", "none"]
    assert not [one for one in parts(document) if OTHER in one.get("enum", ())]


def test_bounds_have_the_names_of_the_specification(document: dict[str, Any]) -> None:
    """Linters refuse those that pydantic leaves where a schema is written by hand."""
    assert not [one for one in parts(document) if {"gt", "ge", "lt", "le"} & one.keys()]


def test_models_and_parameters_are_described(document: dict[str, Any]) -> None:
    """A generated client shows the descriptions where it is written."""
    schemas = document["components"]["schemas"]
    undescribed = {name for name, one in schemas.items() if "description" not in one}
    assert undescribed == {"JsonValue"}
    assert not [
        (one["operationId"], parameter["name"])
        for one in operations(document)
        for parameter in one.get("parameters", ())
        if not (parameter.get("description") or parameter["schema"].get("description"))
    ]


STREAMS = {
    "TaskStreamEvent": "text value restarted gap waiting question progress expired done",
    "RequestStreamEvent": "accepted routed progress partial waiting question done",
    "RunStreamEvent": "state accepted phase_started phase_progress phase_done phase_failed "
    "phase_skipped phase_reused phase_stale completed failed cancelled done",
}


@pytest.mark.parametrize("stream", STREAMS)
def test_events_of_streams_are_typed_by_their_word(
    document: dict[str, Any], stream: str
) -> None:
    """A client's switch over `event` knows the data of each."""
    schemas = document["components"]["schemas"]
    mapping = schemas[stream]["discriminator"]["mapping"]
    assert set(mapping) == set(STREAMS[stream].split())
    for place in mapping.values():
        event = schemas[place.rpartition("/")[2]]
        assert event["required"] == ["event", "data"]
        assert set(event["properties"]["data"]) & {"$ref", "anyOf"}


def test_events_are_described_as_they_are_sent(document: dict[str, Any]) -> None:
    """Their data is a text that holds JSON; a tester of the API reads both."""
    streams = [
        one["responses"]["200"]["content"]["text/event-stream"]
        for one in operations(document)
        if "text/event-stream" in one["responses"].get("200", {}).get("content", {})
    ]
    typed = [one for one in streams if "x-event" in one]
    assert {one["x-event"]["$ref"].rpartition("/")[2] for one in typed} == {*STREAMS}
    for event in (event for one in typed for event in one["schema"]["oneOf"]):
        data = event["properties"]["data"]
        assert (data["type"], data["contentMediaType"]) == (
            "string",
            "application/json",
        )
        assert set(data["contentSchema"]) & {"$ref", "anyOf"}


def test_lines_are_described_by_the_model_of_one(document: dict[str, Any]) -> None:
    """The answer as a whole is no JSON: none is promised."""
    contents = [
        content
        for one in operations(document)
        if "application/x-ndjson"
        in (content := one["responses"].get("200", {}).get("content", {}))
    ]
    assert contents
    for content in contents:
        assert set(content) == {"application/x-ndjson"}
        name = content["application/x-ndjson"]["x-line"]["$ref"].rpartition("/")[2]
        assert document["components"]["schemas"][name]["properties"]


def test_no_request_fits_two_paths(document: dict[str, Any]) -> None:
    """But for one that spells out what the other has a parameter for, which counts then."""
    assert not [
        (one, other)
        for one, other in combinations(document["paths"], 2)
        if is_ambiguous(one.split("/"), other.split("/"))
    ]


def is_ambiguous(one: list[str], other: list[str]) -> bool:
    """Return whether a request fits both paths, and neither is the more exact one."""
    if len(one) != len(other):
        return False
    pairs = [
        (mine.startswith("{"), theirs.startswith("{"))
        for mine, theirs in zip(one, other, strict=True)
        if mine != theirs
    ]
    if (False, False) in pairs:
        return False
    return not ({(False, True)} >= set(pairs) or {(True, False)} >= set(pairs))


def test_a_client_knows_where_to_ask(document: dict[str, Any]) -> None:
    """The server is the one that served the document."""
    assert [one["url"] for one in document["servers"]] == ["/"]
