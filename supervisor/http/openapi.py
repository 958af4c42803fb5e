"""The OpenAPI document, exact enough to generate a client from, and the page that shows it without any script."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from tasklore.contracts.manifest import LINES
from tasklore.contracts.words import OTHER

#: Places of schemas and responses in the document.
SCHEMAS = "#/components/schemas/"
_RESPONSES = "#/components/responses/"
#: The bounds of a field whose schema is written by hand, which pydantic calls so, and their keywords.
_BOUNDS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
}
#: Keywords of a schema that hold values, not schemas.
_VALUES = ("const", "default", "enum", "example", "examples")
_LICENSE = {"name": "MIT", "identifier": "MIT"}
#: Statuses that only a request with a body gets, and that one without body and parameters never gets.
_OF_BODIES = ("400", "408", "413", "415")
_OF_VALUES = "422"
#: The framework's own schemas of a refused request; ours is a problem.
_FOREIGN = ("HTTPValidationError", "ValidationError")
#: Headers of the page: a browser may show it, and do nothing else.
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
}
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733;background:#fff}
details{border:1px solid #d5dce4;border-radius:6px;margin:.5rem 0}summary{padding:.5rem;cursor:pointer}
pre{font:14px/1.45 ui-monospace,monospace;background:#f3f6f9;padding:.75rem;overflow-x:auto}
@media(prefers-color-scheme:dark){body{background:#11161c;color:#d7dee6}pre{background:#1a212a}}
"""


def describe_api(app: FastAPI, models: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """Return the document of *app*, made once; *models* are those that no route returns as one body."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            license_info=_LICENSE,
            servers=[{"url": "/", "description": "The supervisor that served this."}],
            routes=app.routes,
            # A model that is sent and returned has one schema, and one name in each language.
            separate_input_output_schemas=False,
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in _FOREIGN:
            schemas.pop(name, None)
        for model in models:
            schema = model.model_json_schema(ref_template=SCHEMAS + "{model}")
            schemas.update(schema.pop("$defs", {}))
            schemas[model.__name__] = schema
        _tidy(document["paths"])
        _tidy(document["components"])
        for operation in operations_of(document):
            _remove_impossible(operation)
            _spell_events(operation, schemas)
            _spell_lines(operation)
            _share_errors(operation, document["components"])
        app.openapi_schema = document
    return app.openapi_schema


def operations_of(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each operation of *document*."""
    for operations in document["paths"].values():
        yield from operations.values()


def _tidy(part: Any) -> None:
    """Leave out of each schema in *part* a title, which repeats its name, and the word for words that are not known.

    That word is read in place of one from a newer version, and never written.
    """
    if isinstance(part, list):
        for one in part:
            _tidy(one)
    if not isinstance(part, dict):
        return
    _tidy_keywords(part)
    for name, one in part.items():
        if name == "properties":
            _tidy(list(one.values()))
        elif name not in _VALUES:
            _tidy(one)


def _tidy_keywords(part: dict[str, Any]) -> None:
    if isinstance(part.get("title"), str):
        del part["title"]
    for bound in _BOUNDS.keys() & part.keys():
        part[_BOUNDS[bound]] = part.pop(bound)
    words = part.get("enum")
    if isinstance(words, list):
        part["enum"] = [word for word in words if word != OTHER]
    if "propertyName" in part:
        part.get("mapping", {}).pop(OTHER, None)
    if "in" in part and part["schema"].get("description") == part.get("description"):
        # The framework says that of a parameter twice.
        part["schema"].pop("description", None)


def _spell_events(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Say of the events that *operation* streams how they are sent: their data is a text, which holds JSON.

    `x-event` is the model of an event whose data has been read.
    """
    content = operation["responses"].get("200", {}).get("content", {})
    stream = content.get("text/event-stream", {"schema": {}})
    name = stream["schema"].get("$ref", "").removeprefix(SCHEMAS)
    if name:
        events = [one["$ref"].removeprefix(SCHEMAS) for one in schemas[name]["oneOf"]]
        stream["x-event"] = stream["schema"]
        stream["schema"] = {
            "description": f"Once the JSON of its data is read, an event is a `{name}`.",
            "oneOf": [_spell_event(schemas[event]) for event in events],
        }


def _spell_lines(operation: dict[str, Any]) -> None:
    """Say of the JSON lines that *operation* answers what each of them is, as `x-line`: the answer itself is a text."""
    content = operation["responses"].get("200", {}).get("content", {})
    if LINES in content:
        content[LINES]["x-line"] = content.pop("application/json")["schema"]


def _spell_event(event: Mapping[str, Any]) -> dict[str, Any]:
    named = event["properties"]
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": named["data"],
    }
    return {**event, "properties": {**named, "data": data}}


def _share_errors(operation: dict[str, Any], components: dict[str, Any]) -> None:
    """Move the errors of *operation* to *components*, each by the names of its body and its status."""
    shared = components.setdefault("responses", {})
    for status, response in operation["responses"].items():
        if int(status) < HTTPStatus.BAD_REQUEST:
            continue
        body = next(iter(response["content"].values()))["schema"]["$ref"]
        name = f"{body.removeprefix(SCHEMAS)}{status}"
        if shared.setdefault(name, response) == response:
            operation["responses"][status] = {"$ref": f"{_RESPONSES}{name}"}


def _remove_impossible(operation: dict[str, Any]) -> None:
    """Remove the responses that *operation* cannot give: a generated client would handle them in vain."""
    responses = operation["responses"]
    if _FOREIGN[0] in str(responses.get(_OF_VALUES)):
        # Put there by the framework, where the route has another status for it.
        responses.pop(_OF_VALUES)
    if "requestBody" in operation:
        return
    for status in _OF_BODIES:
        responses.pop(status, None)
    if not operation.get("parameters"):
        responses.pop(_OF_VALUES, None)


def render_page(document: Mapping[str, Any]) -> str:
    """Return the page at `/docs`: each operation and schema of *document*, with nothing from anywhere else."""
    title = escape(
        f"{document['info']['title']} {document['info']['version']}: HTTP API"
    )
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            heading = f"{method.upper()} {path}: {operation.get('summary', '')}"
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append(
                _render_block(heading, operation)
            )
    schemas = document.get("components", {}).get("schemas", {})
    by_tag["Schemas"] = [
        _render_block(name, schema) for name, schema in sorted(schemas.items())
    ]
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>{title}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{title}</h1><p>{escape(document['info'].get('description', ''))}</p>"
        "<p>The same for programs: <a href='openapi.json'>openapi.json</a>. "
        "Where keys are demanded, send one as <code>Authorization: Bearer KEY</code>.</p>"
        + "".join(
            f"<h2>{escape(tag)}</h2>{''.join(blocks)}" for tag, blocks in by_tag.items()
        )
        + "</body></html>"
    )


def _render_block(heading: str, body: Mapping[str, Any]) -> str:
    text = escape(json.dumps(body, indent=2))
    return f"<details><summary><code>{escape(heading)}</code></summary><pre>{text}</pre></details>"
