"""Cases of an OpenAPI document: each operation, by every caller, about each thing, with each wrong input."""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

Json = Any

#: Callers with one role alone, and what they are called in a case.
ROLES = ("asker", "reader", "approver")
#: Who may do everything, but for one user or one tenant alone, which is another one.
STRANGERS = {"other user": "alice", "other tenant": "rival"}

#: Characters of a text that is tried for being too long.
_LONGEST = 5_000
_NAP = {
    "name": "nap",
    "agent": "NapAgent",
    "task": "take_nap",
    "parameters": {"ms": 1},
}
#: What is right for a field, by its name; others are made by their schema.
_GOOD: dict[str, Json] = {
    "agent_id": "NapAgent",
    "answer": {"approved": True},
    "category": "food",
    "days": 30,
    "limits": {"limits": []},
    "messages": [{"role": "user", "content": "hello"}],
    "model": "BudgetTrackerAgent",
    "parameters": {"ms": 1},
    "path": "/v1/tasks/nosuch/output",
    "phase": "nap",
    "pipeline": {"name": "naps", "phases": [_NAP]},
    "plan_id": "nosuch",
    "sensory_data": {"position": {"x": 1, "z": 1}},
    "task": "take_nap",
    "text": "sing me a song",
    "turns": [{"turn_id": "t1", "conversation_id": "c1", "text": "I like lox"}],
    "value": "lox",
    "version": 0,
    "who": "role:finance",
}
#: Fields that a good body has although they are not required.
_WANTED: dict[str, tuple[str, ...]] = {
    "POST /v1/schedules": ("agent_id", "task", "parameters"),
    "POST /v1/tasks": ("agent_id", "parameters"),
    "PUT /v1/memory/{user}/settings": ("days",),
}
_MORE: dict[str, dict[str, Json]] = {
    "POST /v1/schedules": {"every": 86_400, "dry_run": True}
}
_FORGETTING = "DELETE /v1/memory/{user}"
#: Names of what is not there, by the parameter of a path.
_ABSENT = {
    "agent_id": "NoAgent",
    "earlier": "999",
    "approval_id": "nosuch.1",
    "user": "nobody",
}
#: Parameters of a path that any text may stand for.
_FREE = frozenset({"user"})


@dataclass(frozen=True)
class Case:
    """One request: *operation* is `METHOD /declared/path`, *caller* None sends no key."""

    operation: str
    name: str
    method: str
    path: str
    caller: str | None = "admin"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def cases(document: Json, things: Mapping[str, str]) -> Iterator[Case]:
    """Yield every case of *document*; *things* are those of somebody, by the parameter of a path that names one."""
    for operation in _operations_of(document):
        yield from operation.cases(things)


def good_cases(document: Json, things: Mapping[str, str]) -> Iterator[Case]:
    """Yield for each operation of *document* a request that is right, by a caller with every role, about *things*."""
    for operation in _operations_of(document):
        yield operation.good_case(things)


def _operations_of(document: Json) -> "list[_Operation]":
    operations = [
        _Operation(document, path, method.upper(), told)
        for path, methods in document["paths"].items()
        for method, told in methods.items()
    ]
    return sorted(operations, key=_Operation.place)


def good_body(document: Json, method: str, path: str) -> Json:
    """Return a body that the operation of *document* at *path* takes, made by its schema."""
    told = document["paths"][path][method.lower()]
    return _Operation(document, path, method, told).good


class _Operation:
    """One operation of a document, and requests to it."""

    def __init__(self, document: Json, path: str, method: str, told: Json) -> None:
        self._document = document
        self._path = path
        self._method = method
        self._name = f"{method} {path}"
        parameters = told.get("parameters", ())
        self._parameters = {
            place: {one["name"]: one for one in parameters if one["in"] == place}
            for place in ("path", "query", "header")
        }
        content = told.get("requestBody", {}).get("content", {})
        self._schema = next((one["schema"] for one in content.values()), None)
        self._absent = {
            name: _ABSENT.get(name, "nosuch") for name in self._parameters["path"]
        }
        self._good = self._good_body()

    @property
    def good(self) -> Json:
        """A body that it takes, made by its schema; None where it takes none."""
        return copy.deepcopy(self._good)

    def place(self) -> tuple[int, str]:
        """Return where it comes: looking first, then what ends a thing, and what forgets somebody last."""
        rank = ("GET", "PUT", "PATCH", "POST", "DELETE").index(self._method)
        if self._path.endswith("/cancel"):
            rank = 4
        return (5 if self._name == _FORGETTING else rank), self._path

    def cases(self, things: Mapping[str, str]) -> Iterator[Case]:
        """Yield its cases."""
        yield from self._of_callers(things)
        yield from self._of_another_user()
        if self._absent:
            yield self._case("not found")
        yield from self._of_parameters()
        if self._schema is not None:
            yield from self._of_bodies(self._schema)

    def good_case(self, things: Mapping[str, str]) -> Case:
        """Return a request that is right, about one of *things*."""
        return self._case("good", path=dict(things))

    def _of_callers(self, things: Mapping[str, str]) -> Iterator[Case]:
        yield self._case("no key", caller=None)
        for role in ROLES:
            yield self._case(role, caller=role)
        for name, caller in STRANGERS.items():
            theirs = {one: things.get(one, "any") for one in self._absent}
            if theirs:
                yield self._case(name, caller=caller, path=theirs)

    def _of_parameters(self) -> Iterator[Case]:
        for name in self._absent:
            if name not in _FREE:
                yield self._case(f"{name}=no such!", path={name: "no such!"})
        for name, one in self._parameters["query"].items():
            if one.get("required"):
                yield self._case(f"without ?{name}", query={name: None})
            for wrong in self._wrong_texts(one["schema"]):
                yield self._case(f"?{name}={_short(wrong)}", query={name: wrong})
        for name, one in self._parameters["header"].items():
            for wrong in self._wrong_texts(one["schema"]):
                yield self._case(f"{name}: {_short(wrong)}", headers={name: wrong})

    def _of_another_user(self) -> Iterator[Case]:
        """Yield what a caller for one user says in the name of another."""
        if "user" in self._parameters["query"]:
            yield self._case("?user=bob", caller="alice", query={"user": "bob"})
        fields = self._properties(self._schema or {})
        for name, value in (("user", "bob"), ("tenant", "acme")):
            if name in fields:
                caller = {"user": "alice", "tenant": "rival"}[name]
                body = {**self._good, name: value}
                yield self._case(f"{name}={value}", caller=caller, body=body)

    def _of_bodies(self, schema: Json) -> Iterator[Case]:
        yield self._case("body {nope", raw=b"{nope")
        yield self._case("body []", raw=b"[]")
        yield self._case("no body", raw=b"")
        yield self._case("no JSON", headers={"Content-Type": "text/plain"})
        for place, wrong, body in self._faulty(schema, self._good):
            yield self._case(f"{place} {_short(wrong)}".rstrip(), body=body)

    def _case(
        self,
        name: str,
        *,
        caller: str | None = "admin",
        path: Mapping[str, str] | None = None,
        query: Mapping[str, str | None] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Json = None,
        raw: bytes | None = None,
    ) -> Case:
        filled = {
            one: quote(text, safe="")
            for one, text in (self._absent | dict(path or {})).items()
        }
        required: dict[str, str | None] = {
            one: str(self._sample(one, told["schema"]))
            for one, told in self._parameters["query"].items()
            if told.get("required")
        }
        asked = {
            one: text
            for one, text in (required | dict(query or {})).items()
            if text is not None
        }
        if raw is None and self._schema is not None:
            raw = json.dumps(self._good if body is None else body).encode()
        kind = {"Content-Type": "application/json"} if raw else {}
        return Case(
            operation=self._name,
            name=name,
            method=self._method,
            path=self._path.format(**filled)
            + (f"?{urlencode(asked)}" if asked else ""),
            caller=caller,
            body=raw or b"",
            headers=kind | dict(headers or {}),
        )

    def _good_body(self) -> Json:
        if self._schema is None:
            return None
        properties = self._properties(self._schema)
        wanted = {
            *self._required(self._schema),
            *_WANTED.get(self._name, ()),
            *({"wait_seconds"} & set(properties)),
        }
        made = {name: self._sample(name, properties[name]) for name in sorted(wanted)}
        return made | _MORE.get(self._name, {})

    def _sample(self, name: str, schema: Json) -> Json:
        if name in _GOOD:
            return copy.deepcopy(_GOOD[name])
        one = self._kinds(schema)[0]
        if "const" in one or "enum" in one:
            return one.get("const") or one["enum"][0]
        if name == "wait_seconds":
            return one.get("minimum", 0)
        properties = self._properties(one)
        made = {
            inner: self._sample(inner, properties[inner])
            for inner in self._required(one)
        }
        by_kind = {"string": "hello", "integer": 1, "number": 1, "boolean": True}
        by_kind |= {"array": []}
        return by_kind.get(one.get("type"), made)

    def _kinds(self, schema: Json) -> list[Json]:
        """Return the schemas of which a value has to fit one, null aside."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._kinds(self._document["components"]["schemas"][name])
        several = schema.get("anyOf") or schema.get("oneOf")
        if several:
            return [
                kind
                for one in several
                if one.get("type") != "null"
                for kind in self._kinds(one)
            ]
        return [schema]

    def _properties(self, schema: Json) -> dict[str, Json]:
        return dict(self._kinds(schema)[0].get("properties", {})) if schema else {}

    def _required(self, schema: Json) -> list[str]:
        return list(self._kinds(schema)[0].get("required", ()))

    def _wrong_texts(self, schema: Json) -> Iterator[str]:
        """Yield what a parameter of *schema* cannot be; where it is free text, what may be no such thing."""
        kinds = self._kinds(schema)
        types = {one.get("type") for one in kinds}
        if "integer" in types or "number" in types:
            yield "many"
        elif "boolean" in types:
            yield "perhaps"
        else:
            yield "no such!"
        for bound in self._beyond(kinds):
            yield str(bound)

    def _beyond(self, kinds: list[Json]) -> Iterator[Json]:
        """Yield what lies outside the bounds of every one of *kinds*."""
        least = [one["minimum"] for one in kinds if "minimum" in one]
        most = [one["maximum"] for one in kinds if "maximum" in one]
        longest = [one["maxLength"] for one in kinds if "maxLength" in one]
        if least:
            yield min(least) - 1
        if most:
            yield max(most) + 1
        if any(one.get("minLength") for one in kinds):
            yield ""
        if longest and max(longest) <= _LONGEST:
            yield "x" * (max(longest) + 1)

    def _faulty(
        self, schema: Json, good: Json, place: str = ""
    ) -> Iterator[tuple[str, Json, Json]]:
        """Yield the place of a fault, what is wrong there, and *good* with it."""
        if isinstance(good, list):
            items = self._kinds(schema)[0].get("items")
            if good and items:
                for where, wrong, one in self._faulty(items, good[0], f"{place}0."):
                    yield where, wrong, [one, *good[1:]]
        elif isinstance(good, dict) and self._properties(schema):
            for name in self._required(schema):
                rest = {one: value for one, value in good.items() if one != name}
                yield f"without {place}{name}", "", rest
            if self._kinds(schema)[0].get("additionalProperties") is False:
                yield f"{place}nosuch=", 1, {**good, "nosuch": 1}
            yield from self._of_fields(schema, good, place)

    def _of_fields(
        self, schema: Json, good: dict[str, Json], place: str
    ) -> Iterator[tuple[str, Json, Json]]:
        for name, told in sorted(self._properties(schema).items()):
            for wrong in self._wrong_values(told):
                yield f"{place}{name}=", wrong, {**good, name: wrong}
            inside = self._faulty(told, good.get(name), f"{place}{name}.")
            for where, wrong, inner in inside:
                yield where, wrong, {**good, name: inner}

    def _wrong_values(self, schema: Json) -> Iterator[Json]:
        kinds = self._kinds(schema)
        types = {one.get("type") for one in kinds}
        if "object" not in types and None not in types:
            yield {"no": "such"}
        elif "array" not in types and None not in types:
            yield ["no", "such"]
        if not types & {"object", "array"}:
            yield "no such!"
        yield from self._beyond(kinds)


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:10]}... ({len(text)})"
