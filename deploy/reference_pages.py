"""The pages of every operation, over HTTP and by the Python client: written by `make generated`."""

import ast
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasklore.commands.operations.entries import spell_command
from tasklore.contracts.manifest import FieldEntry, OperationEntry
from tasklore.supervisor.http.manifest import make_manifest

Json = Mapping[str, Any]

_WIDTH = 100
_OPERATIONS_HEAD = """# Every operation over HTTP

Made from the OpenAPI document by `make generated`. What holds of all of them, such as keys, limits, errors and streams,
is on the page of the [HTTP API](http.md); models of bodies and answers are in the document (`/openapi.json`, `/docs`).
The commands are in [cli](cli.md), the methods of the Python client in [python-client](python-client.md).

*Operator's address*: served by `tasklore supervisor --operations` alone. Of roles one is enough, and `admin` holds
every other. Each operation may be refused with {common}: [errors](http.md#errors). A field in bold is required; those
without a place are of the body.
"""
_CLIENT_HEAD = """# The Python client

`from tasklore.client import Client, AsyncClient`. Made from the client by `make generated`; of `AsyncClient` each
method is awaited. `each` goes through all pages of a list. What a field means is on the
[page of the operation](operations.md). A refusal raises `ApiError` with what the server said; how to begin:
[ask from another service](../guide/ask-from-another-service.md).
"""


def operations_page(document: Json) -> str:
    """Return the page of every operation of *document*, by its tag."""
    told = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    common = set.intersection(*(_refusals(one) for _, _, one in told))
    entries = {
        (one["path"], one["method"].lower()): one
        for one in make_manifest(document)["operations"]
    }
    sections: dict[str, list[str]] = defaultdict(list)
    for path, method, operation in told:
        lines = _operation_lines(path, method, operation, entries.get((path, method)))
        own = sorted(_refusals(operation) - common)
        if own:
            lines.append(f"Refused with {', '.join(own)} as well.")
        sections[operation["tags"][0]] += lines
    head = _OPERATIONS_HEAD.format(common=", ".join(sorted(common)))
    parts = [head, *(_section(tag, sections[tag]) for tag in sorted(sections))]
    return "\n".join(parts) + "\n"


def _section(title: str, paragraphs: Sequence[str]) -> str:
    return "\n\n".join([f"## {title}", *paragraphs]) + "\n"


def _refusals(operation: Json) -> set[str]:
    return {status for status in operation["responses"] if status >= "400"}


def _operation_lines(
    path: str, method: str, operation: Json, entry: OperationEntry | None
) -> list[str]:
    """Return the paragraphs of an operation; *entry* None: it is none of the table."""
    done = ", ".join(one for one in operation["responses"] if one < "400")
    facts = [f"answers {done}"]
    if entry is not None:
        roles = " or ".join(f"`{one}`" for one in entry["roles"])
        facts = [f"role {roles}", *facts, f"`tasklore {spell_command(entry)}`"]
        if entry["mounted"] == "operations":
            facts.insert(0, "operator's address")
    said = f"{operation.get('summary', '').rstrip('.')}. {operation.get('description', '')}"
    lines = [
        f"### `{method.upper()} {path}`",
        " ".join(said.split()),
        f"{facts[0][0].upper()}{'; '.join(facts)[1:]}.",
    ]
    fields = _entry_fields(entry) if entry is not None else _plain_fields(operation)
    if shown := "\n".join(fields):
        lines.append(shown)
    return lines


def _entry_fields(entry: OperationEntry) -> Iterator[str]:
    for one in entry["fields"]:
        if one["place"] != "path" or one["help"]:
            yield f"- {_name(one)}{_meaning(one)}"


def _name(one: FieldEntry) -> str:
    name = f"`{one['name']}`"
    place = "" if one["place"] == "body" else f" ({one['place']})"
    return f"{f'**{name}**' if one['required'] else name}{place}"


def _meaning(one: FieldEntry) -> str:
    said = [one["help"].rstrip(".")] if one["help"] else []
    if one["choices"]:
        said.append(f"one of {', '.join(f'`{each}`' for each in one['choices'])}")
    if one["default"] not in (None, False, "", [], {}):
        said.append(f"by default `{one['default']}`")
    return f": {'; '.join(said)}" if said else ""


def _plain_fields(operation: Json) -> Iterator[str]:
    for one in operation.get("parameters", ()):
        name = f"`{one['name']}`"
        said = " ".join(one.get("description", "").split()).rstrip(".")
        bold = f"**{name}**" if one.get("required") else name
        yield f"- {bold} ({one['in']})" + (f": {said}" if said else "")


def client_page(source: str) -> str:
    """Return the page of the client whose nouns *source* makes."""
    sections = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef) or not node.name.endswith("Flows"):
            continue
        noun = _attribute_of(node.name.removesuffix("Flows"))
        methods = [
            _method(noun, one) for one in node.body if isinstance(one, ast.FunctionDef)
        ]
        sections.append(_section(f"`client.{noun}`", methods))
    return "\n".join([_CLIENT_HEAD, *sections]) + "\n"


def _attribute_of(name: str) -> str:
    """Return the name of a class as an attribute: `DeadLetters` is `dead_letters`."""
    return "".join(
        f"_{one.lower()}" if one.isupper() and at else one.lower()
        for at, one in enumerate(name)
    )


def _method(noun: str, node: ast.FunctionDef) -> str:
    arguments = ast.unparse(node.args).removeprefix("self").removeprefix(", ")
    said = (ast.get_docstring(node) or "").partition("\n\n")[0]
    signature = f"client.{noun}.{node.name}({arguments}) -> {_returned(node)}"
    lines = textwrap.wrap(
        signature, _WIDTH, subsequent_indent="    ", break_long_words=False
    )
    shown = "\n".join(lines)
    return f"```text\n{shown}\n```\n\n{' '.join(said.split())}"


def _returned(node: ast.FunctionDef) -> str:
    """Return what a method returns: what its flow ends with, or what its pages or events hold, one by one."""
    returned = node.returns
    if not isinstance(returned, ast.Subscript):
        return "None" if returned is None else ast.unparse(returned)
    inner = ast.unparse(returned.slice)
    return inner if ast.unparse(returned.value) == "Flow" else f"Iterator[{inner}]"
