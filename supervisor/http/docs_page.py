"""The page at `/docs`: the OpenAPI document as one page of HTML, with nothing from anywhere else and no script."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

#: What a browser may do with the page: show it.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
}

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733;background:#fff}
h2{margin-top:2.5rem;border-bottom:1px solid #d5dce4}details{border:1px solid #d5dce4;border-radius:6px;margin:.5rem 0}
summary{padding:.5rem .75rem;cursor:pointer}details>div{padding:0 .75rem .75rem}
code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:#f3f6f9;padding:.75rem;overflow-x:auto;border-radius:6px}
b.m{display:inline-block;width:4.5rem;color:#0b5cad}table{border-collapse:collapse;width:100%}
td,th{border-top:1px solid #d5dce4;padding:.3rem .5rem;text-align:left;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#11161c;color:#d7dee6}pre{background:#1a212a}b.m{color:#6db3f2}}
"""
_METHODS = ("get", "post", "put", "patch", "delete")


def page(document: Mapping[str, Any]) -> str:
    """Return the page that shows *document*."""
    info = document["info"]
    title = f"{info['title']} {info['version']}"
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>{escape(title)}: HTTP API</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>{escape(info.get('description', ''))}</p>"
        "<p>The same for programs: <a href='openapi.json'>openapi.json</a>. "
        "Where keys are demanded, send one as <code>Authorization: Bearer KEY</code>.</p>"
        f"{_operations(document)}<h2>Schemas</h2>{_schemas(document)}</body></html>"
    )


def _operations(document: Mapping[str, Any]) -> str:
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if (operation := methods.get(method)) is not None:
                tag = (operation.get("tags") or ["other"])[0]
                by_tag.setdefault(tag, []).append(_operation(path, method, operation))
    return "".join(f"<h2>{escape(tag)}</h2>{''.join(found)}" for tag, found in by_tag.items())


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    parameters = "".join(
        _row(one["name"], f"{one['in']}{', needed' if one.get('required') else ''}", one.get("description", ""))
        for one in operation.get("parameters", ())
    )
    body = operation.get("requestBody", {}).get("content", {})
    answers = "".join(
        _row(status, ", ".join(_said(answer)), answer.get("description", ""))
        for status, answer in operation.get("responses", {}).items()
    )
    return (
        f"<details><summary><b class='m'>{method.upper()}</b> <code>{escape(path)}</code> "
        f"{escape(operation.get('summary', ''))}</summary><div>"
        f"{f'<table>{parameters}</table>' if parameters else ''}"
        f"{_bodies(body)}"
        f"<table><tr><th>Status</th><th>Body</th><th></th></tr>{answers}</table></div></details>"
    )


def _bodies(content: Mapping[str, Any]) -> str:
    return "".join(f"<p>Body, {escape(kind)}:</p>{_shown(found.get('schema', {}))}" for kind, found in content.items())


def _said(answer: Mapping[str, Any]) -> list[str]:
    return [f"{kind} {_name(found.get('schema', {}))}".strip() for kind, found in answer.get("content", {}).items()]


def _name(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _row(*cells: str) -> str:
    first, *others = cells
    return f"<tr><td><code>{escape(first)}</code></td>{''.join(f'<td>{escape(cell)}</td>' for cell in others)}</tr>"


def _schemas(document: Mapping[str, Any]) -> str:
    schemas = document.get("components", {}).get("schemas", {})
    return "".join(
        f"<details id='{escape(name)}'><summary><code>{escape(name)}</code></summary>"
        f"<div>{_shown(schema)}</div></details>"
        for name, schema in sorted(schemas.items())
    )


def _shown(schema: Mapping[str, Any]) -> str:
    if name := _name(schema):
        return f"<p><a href='#{escape(name)}'><code>{escape(name)}</code></a></p>"
    return f"<pre>{escape(json.dumps(schema, indent=2))}</pre>"
