"""From the OpenAPI document to the manifest, of which commands and completions are made.

The document is the one reading of signatures: whatever a command needs to know stands in it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from tasklore.contracts.manifest import (
    LINES,
    FieldEntry,
    FieldKind,
    FieldPlace,
    Manifest,
    OperationEntry,
)

#: Fields of a page: behind which place it begins, and how many it has.
_PAGE = frozenset({"after", "limit"})
_NOTE = "x-tasklore"
#: Headers of programs that keep answers; a command keeps none.
_OF_CACHES = frozenset({"if-none-match"})
_LINES_HELP = "A file with one JSON object a line; - is the standard input."


def make_manifest(document: Mapping[str, Any]) -> Manifest:
    """Return the operations of *document*, by their nouns: those with a noun and a verb in `x-tasklore`."""
    parts = document.get("components", {})
    operations = [
        _OperationReader(parts, path, method, operation).read()
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if _NOTE in operation
    ]
    return Manifest(
        version=document["info"]["version"],
        operations=sorted(operations, key=lambda one: one["noun"]),
    )


class _OperationReader:
    """One operation of the document, read by the *parts* that it refers to."""

    def __init__(
        self,
        parts: Mapping[str, Any],
        path: str,
        method: str,
        operation: Mapping[str, Any],
    ) -> None:
        self._parts = parts
        self._path = path
        self._method = method
        self._operation = operation
        self._note: Mapping[str, Any] = operation[_NOTE]

    def read(self) -> OperationEntry:
        """Return its entry."""
        note = self._note
        arguments = list(note.get("arguments") or ())
        fields = sorted(
            self._fields(),
            key=lambda one: (
                (arguments.index(one["name"]) if one["name"] in arguments else -1)
                if one["positional"]
                else len(arguments)
            ),
        )
        in_query = {field["name"] for field in fields if field["place"] == "query"}
        return OperationEntry(
            noun=note["noun"],
            verb=note["verb"],
            roles=list(note["roles"]),
            mounted=note.get("mounted") or "supervisor",
            method=self._method.upper(),
            path=self._path,
            help=f"{self._operation['summary']}.",
            description=self._operation.get("description", "").strip(),
            examples=(note.get("example") or "").splitlines(),
            rows=note.get("rows") or "",
            columns=list(note.get("columns") or ()),
            confirm=note.get("confirm") or "",
            picture=note.get("picture") or "",
            shortcut=note.get("shortcut") or "",
            paged=bool(note.get("rows")) and in_query >= _PAGE,
            continued={"after", "bound"} <= {field["name"] for field in fields},
            unfinished="Location" in self._response("202").get("headers", {}),
            streamed=any(
                LINES in self._response(status).get("content", {})
                for status in ("200", "201")
            ),
            waits=bool(note.get("waits")),
            fields=fields,
        )

    def _response(self, status: str) -> Mapping[str, Any]:
        found = self._operation.get("responses", {}).get(status, {})
        return self._find(found["$ref"]) if "$ref" in found else found

    def _find(self, reference: str) -> Mapping[str, Any]:
        """Return the part of the document at *reference*, such as `#/components/schemas/Name`."""
        kind, name = reference.rsplit("/", 2)[-2:]
        found: Mapping[str, Any] = self._parts[kind][name]
        return found

    def _fields(self) -> Iterator[FieldEntry]:
        """Yield the fields in the order in which they are typed: those of the path first."""
        parameters = self._operation.get("parameters", ())
        for one in sorted(parameters, key=lambda given: given["in"] != "path"):
            if one["in"] == "header" and one["name"].lower() in _OF_CACHES:
                continue
            schema = one.get("schema", {})
            text = one.get("description") or schema.get("description", "")
            yield self._field(
                one["name"],
                {**schema, "description": text},
                place=one["in"],
                is_required=one.get("required", False),
            )
        yield from self._body_fields()

    def _body_fields(self) -> Iterator[FieldEntry]:
        body = self._operation.get("requestBody")
        if body is None:
            return
        if LINES in body["content"]:
            lines = {
                "description": body.get("description") or _LINES_HELP,
                "x-cli": {"kind": "lines", "metavar": "FILE"},
            }
            yield self._field("file", lines, place="body", is_required=True)
            return
        given = next(iter(body["content"].values()))["schema"]
        schema = self._resolve(given)
        required = schema.get("required", ())
        for name, one in schema.get("properties", {}).items():
            yield self._field(name, one, place="body", is_required=name in required)

    def _field(
        self,
        name: str,
        given: Mapping[str, Any],
        *,
        place: FieldPlace,
        is_required: bool,
    ) -> FieldEntry:
        schema = self._resolve(given)
        extra: Mapping[str, Any] = schema.get("x-cli") or {}
        positional = place == "path" or name in (self._note.get("arguments") or ())
        kind = cast("FieldKind", extra.get("kind") or self._kind(schema))
        # A person says the unit with the value, or none.
        words = name.removesuffix("_seconds").replace("_", "-").lower()
        return FieldEntry(
            name=name,
            place=place,
            kind=kind,
            required=is_required,
            positional=positional or kind == "lines",
            choices=self._choices(schema),
            default=schema.get("default"),
            most=schema.get("maximum"),
            option=extra.get("option") or f"--{words}",
            short=extra.get("short") or "",
            metavar=extra.get("metavar")
            or ("SECONDS" if name.endswith("_seconds") else self._metavar(words, kind)),
            help=" ".join(str(schema.get("description", "")).split()),
        )

    def _metavar(self, words: str, kind: FieldKind) -> str:
        if kind == "map":
            return "NAME=VALUE"
        if kind == "json":
            return "JSON|@FILE"
        if kind == "file":
            return "FILE"
        if kind == "pipeline":
            return "FILE|NAME"
        is_only = self._path.count("{") == 1
        last = words.rpartition("-")[2] if is_only else words
        return "ID" if last == "id" else words.upper()

    def _resolve(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return *schema* without references, and one that may be null as it is otherwise."""
        found = dict(schema)
        while "$ref" in found:
            found = {
                **self._find(found.pop("$ref")),
                **found,
            }
        others = [one for one in found.get("anyOf", ()) if one.get("type") != "null"]
        if len(others) == 1:
            del found["anyOf"]
            return self._resolve({**others[0], **found})
        return found

    def _choices(self, schema: Mapping[str, Any]) -> list[str]:
        inner = schema.get("items") if schema.get("type") == "array" else None
        found = schema if inner is None else self._resolve(inner)
        if "const" in found:
            return [str(found["const"])]
        return [str(one) for one in found.get("enum", ()) if one is not None]

    def _kind(self, schema: Mapping[str, Any]) -> FieldKind:
        types = {self._type(one) for one in schema.get("anyOf", (schema,))}
        if types == {"array"}:
            inner = self._type(self._resolve(schema.get("items", {})))
            return "json" if inner in ("object", "array", "any") else "list"
        if types == {"object"}:
            return "json" if schema.get("properties") else "map"
        if types & {"object", "array", "any"}:
            return "value" if types & {"string", "any"} else "json"
        return "flag" if types == {"boolean"} else "text"

    def _type(self, schema: Mapping[str, Any]) -> str:
        resolved = self._resolve(schema)
        if "enum" in resolved or "const" in resolved:
            return "string"
        if "anyOf" in resolved or "oneOf" in resolved:
            return "any"
        return str(resolved.get("type", "any"))
