"""The manifest: what the OpenAPI document says of an operation, and nothing that it does not."""

from tests.operations_document import MANIFEST, entry_of


def test_an_operation_is_read_with_its_sentence_and_its_page() -> None:
    entry = entry_of("schedules", "list")
    assert (entry["method"], entry["path"]) == ("GET", "/v1/schedules")
    assert entry["help"] == "List schedules."
    assert entry["description"] == "With their next\ntimes."
    assert (entry["paged"], entry["unfinished"]) == (True, False)
    assert [one["most"] for one in entry["fields"]] == [None, 3]
    assert not entry_of("schedules", "show")["paged"]
    assert entry_of("requests", "send")["unfinished"]


def test_a_route_that_is_no_operation_is_left_out() -> None:
    assert MANIFEST["version"] == "0.3.0"
    assert "/v1/other" not in {one["path"] for one in MANIFEST["operations"]}


def test_each_schema_has_its_kind() -> None:
    fields = {one["name"]: one for one in entry_of("schedules", "add")["fields"]}
    assert {name: one["kind"] for name, one in fields.items()} == {
        "Idempotency-Key": "text",
        "target": "text",
        "parameters": "map",
        "missed": "text",
        "every": "text",
        "days": "list",
        "budget": "json",
        "pipeline": "file",
        "value": "value",
        "dry_run": "flag",
        "eager": "flag",
    }
    assert fields["missed"]["choices"] == ["skip", "once", "all"]
    assert fields["missed"]["help"] == "Ticks missed while nothing ran."
    assert (fields["parameters"]["option"], fields["parameters"]["short"]) == (
        "--parameter",
        "-p",
    )
    assert fields["target"]["positional"]
    assert fields["Idempotency-Key"]["option"] == "--idempotency-key"


def test_a_path_with_one_id_says_id() -> None:
    [field] = entry_of("schedules", "show")["fields"]
    assert (field["metavar"], field["positional"], field["required"]) == (
        "ID",
        True,
        True,
    )


def test_a_body_of_lines_is_one_file() -> None:
    [field] = entry_of("results", "import")["fields"]
    assert (field["kind"], field["metavar"], field["positional"]) == (
        "lines",
        "FILE",
        True,
    )
