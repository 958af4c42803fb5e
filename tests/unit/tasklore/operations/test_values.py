"""What is typed becomes a request as it was typed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasklore.commands.operations.values import make_request
from tasklore.contracts.errors import InvalidInput
from tests.operations_document import entry_of


def body_of(given: dict[str, Any]) -> Any:
    request = make_request(entry_of("schedules", "add"), {"target": "A.b", **given})
    assert request.body is not None
    return json.loads(request.body)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"every": "1h"}, {"every": "1h"}),
        ({"every": "5"}, {"every": "5"}),
        (
            {"parameters": ["limit=50k", "n=5", "on=true", "o={}", "e="]},
            {"parameters": {"limit": "50k", "n": 5, "on": True, "o": {}, "e": ""}},
        ),
        ({"days": ["mon", "fri"]}, {"days": ["mon", "fri"]}),
        ({"budget": '{"usd": 5}'}, {"budget": {"usd": 5}}),
        ({"value": "five"}, {"value": "five"}),
        ({"value": "[1]"}, {"value": [1]}),
        ({"value": "NaN"}, {"value": "NaN"}),
        ({"dry_run": True, "eager": False}, {"dry_run": True, "eager": False}),
        ({"pipeline": "nightly"}, {"pipeline": "nightly"}),
        ({"every": None, "days": []}, {}),
    ],
)
def test_values_are_sent_as_they_were_typed(
    given: dict[str, Any], sent: dict[str, Any]
) -> None:
    assert body_of(given) == {"target": "A.b", **sent}


def test_files_are_read_here(tmp_path: Path) -> None:
    document = tmp_path / "p.toml"
    document.write_text('name = "x"\n')
    text = tmp_path / "p.json"
    text.write_text('{"usd": 1}')
    given = {"pipeline": str(document), "budget": f"@{text}"}
    assert body_of(given) == {
        "target": "A.b",
        "pipeline": {"name": "x"},
        "budget": {"usd": 1},
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"parameters": ["limit"]}, "--parameter 'limit' is not NAME=VALUE"),
        ({"parameters": ["a=1", "a=2"]}, "--parameter names 'a' twice"),
        ({"budget": "{"}, "--budget is not valid JSON"),
        ({"budget": '{"usd": NaN}'}, "--budget is not valid JSON"),
        ({"budget": "@missing.json"}, "--budget: cannot read 'missing.json'"),
        ({"pipeline": "missing.toml"}, "--pipeline: cannot read 'missing.toml'"),
        ({"Idempotency-Key": "a\nb"}, "--idempotency-key"),
        ({"every": "\udcff"}, "UTF-8"),
    ],
)
def test_a_bad_value_names_its_option(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        body_of(given)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("nightly", "/v1/schedules/nightly"),
        ("a/../b?c#d e", "/v1/schedules/a%2F..%2Fb%3Fc%23d%20e"),
        ("..", "/v1/schedules/%2E%2E"),
        ("{schedule_id}", "/v1/schedules/%7Bschedule_id%7D"),
        ("é", "/v1/schedules/%C3%A9"),
    ],
)
def test_an_id_stays_one_segment(typed: str, path: str) -> None:
    entry = entry_of("schedules", "show")
    assert make_request(entry, {"schedule_id": typed}).path == path


def test_an_empty_id_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ID is empty"):
        make_request(entry_of("schedules", "show"), {"schedule_id": ""})


def test_words_are_joined() -> None:
    request = make_request(entry_of("requests", "send"), {"text": ("how", "much?")})
    assert json.loads(request.body or b"") == {"text": "how much?"}
