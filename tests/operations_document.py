"""A small OpenAPI document with an operation of each kind, and the manifest that is made from it."""

from typing import Any

from tasklore.contracts.manifest import Manifest, OperationEntry
from tasklore.supervisor.http.manifest import make_manifest

_LOCATION = {"Location": {"schema": {"type": "string"}}}


def _note(noun: str, verb: str, **more: Any) -> dict[str, Any]:
    return {
        "noun": noun,
        "verb": verb,
        "roles": ["ask"],
        "mounted": "supervisor",
        "rows": "",
        "columns": [],
        "confirm": "",
        "arguments": [],
        "shortcut": "",
        "picture": "",
    } | more


def _body(name: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"content": {"application/json": {"schema": schema}}}


_ID = {
    "name": "schedule_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "Which schedule.",
}

DOCUMENT: dict[str, Any] = {
    "info": {"version": "0.3.0"},
    "components": {
        "responses": {"Accepted": {"headers": _LOCATION}},
        "schemas": {
            "Missed": {"enum": ["skip", "once", "all"], "type": "string"},
            "NewSchedule": {
                "required": ["target"],
                "properties": {
                    "target": {"type": "string", "x-cli": {"metavar": "AGENT.TASK"}},
                    "parameters": {
                        "type": "object",
                        "additionalProperties": {},
                        "description": "A parameter.",
                        "x-cli": {"option": "--parameter", "short": "-p"},
                    },
                    "missed": {
                        "$ref": "#/components/schemas/Missed",
                        "description": "Ticks missed while nothing ran.",
                        "default": "once",
                    },
                    "every": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "days": {"type": "array", "items": {"type": "string"}},
                    "budget": {
                        "type": "object",
                        "properties": {"usd": {"type": "number"}},
                    },
                    "pipeline": {
                        "anyOf": [{"type": "object"}, {"type": "null"}],
                        "x-cli": {"kind": "file", "metavar": "FILE|NAME"},
                    },
                    "value": {},
                    "dry_run": {"type": "boolean", "default": False},
                    "eager": {"type": "boolean", "default": True},
                },
            },
            "Choice": {
                "properties": {
                    "agent": {"type": "string"},
                    "bound": {"type": "string", "default": ""},
                    "version": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "after": {"type": "string", "default": ""},
                    "dry_run": {"type": "boolean", "default": False},
                }
            },
            "Question": {
                "required": ["text"],
                "properties": {
                    "wait_seconds": {"type": "number", "default": 30.0},
                    "text": {
                        "type": "string",
                        "x-cli": {"kind": "words", "metavar": "TEXT"},
                    },
                },
            },
        },
    },
    "paths": {
        "/v1/schedules": {
            "get": {
                "summary": "List schedules",
                "description": "With their next\ntimes.",
                "x-tasklore": _note(
                    "schedules", "list", rows="schedules", columns=["id", "timing.cron"]
                ),
                "parameters": [
                    {
                        "name": "after",
                        "in": "query",
                        "schema": {"type": "string", "default": ""},
                    },
                    {
                        "name": "limit",
                        "in": "query",
                        "schema": {"type": "integer", "maximum": 3, "default": 2},
                    },
                ],
            },
            "post": {
                "summary": "Keep a schedule",
                "x-tasklore": _note(
                    "schedules", "add", arguments=["target"], confirm="Keep {target}?"
                ),
                "parameters": [
                    {
                        "name": "Idempotency-Key",
                        "in": "header",
                        "schema": {"type": "string"},
                    }
                ],
                "requestBody": _body("NewSchedule"),
            },
        },
        "/v1/schedules/{schedule_id}": {
            "get": {
                "summary": "Show a schedule",
                "x-tasklore": _note("schedules", "show"),
                "parameters": [_ID],
            },
            "delete": {
                "summary": "Remove a schedule",
                "x-tasklore": _note("schedules", "remove", roles=["admin", "operate"]),
                "parameters": [_ID],
            },
        },
        "/v1/requests": {
            "post": {
                "summary": "Ask in plain words",
                "x-tasklore": _note(
                    "requests", "send", shortcut="ask", arguments=["text"]
                ),
                "requestBody": _body("Question"),
                "responses": {"202": {"$ref": "#/components/responses/Accepted"}},
            }
        },
        "/v1/results": {
            "post": {
                "summary": "Import results",
                "x-tasklore": _note(
                    "results", "import", roles=["operate"], mounted="operations"
                ),
                "requestBody": {"content": {"application/x-ndjson": {}}},
            },
            "get": {
                "summary": "Export results",
                "x-tasklore": _note(
                    "results", "export", example="results export > results.ndjson"
                ),
                "responses": {"200": {"content": {"application/x-ndjson": {}}}},
            },
        },
        "/v1/results/forget": {
            "post": {
                "summary": "Forget results",
                "x-tasklore": _note(
                    "results",
                    "forget",
                    arguments=["agent"],
                    confirm="Forget {concerns} of {agent}?",
                ),
                "requestBody": _body("Choice"),
            }
        },
        "/v1/other": {"get": {"description": "No operation of the table."}},
    },
}

MANIFEST: Manifest = make_manifest(DOCUMENT)


def entry_of(noun: str, verb: str) -> OperationEntry:
    """Return the entry of an operation of `DOCUMENT`."""
    return next(
        one
        for one in MANIFEST["operations"]
        if (one["noun"], one["verb"]) == (noun, verb)
    )
