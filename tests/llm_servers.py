"""Servers that call themselves compatible, by what they understand: scripts for `ScriptedLlm`.

```python
server = ModelServer("json_object", models=("llama",), answers=lambda asked: GOOD)
async with ScriptedLlm(server) as model:
    ...
```
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.llm_double import Asked, Canned, fault, raw, saying

Kind = Literal["json_schema", "json_object", "text"]
KINDS: tuple[Kind, ...] = ("json_schema", "json_object", "text")


@dataclass
class ModelServer:
    """A server of *models* alone, that refuses what its *kind* does not know in the words that such servers use.

    *answers* gives the value of an answer by the request; what the model says around it differs by kind.
    """

    kind: Kind
    models: tuple[str, ...]
    answers: Callable[[Asked], Mapping[str, Any]]
    refused: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Canned:
        """Answer *asked*, or refuse it."""
        if asked.model not in self.models:
            self.strangers.append(asked.model)
            return fault(404, f"model '{asked.model}' not found")
        if (refusal := self._refusal(asked.body)) is not None:
            self.refused.append(json.dumps(asked.body.get("response_format", {})))
            return refusal
        text = json.dumps(self.answers(asked))
        if self.kind == "json_schema":
            return saying(text)
        if self.kind == "json_object":
            return saying(f"```json\n{text}\n```")
        return saying(f"<think>\nHm, {{not}} so easy.\n</think>\nHere it is:\n{text}\n")

    def _refusal(self, body: Mapping[str, Any]) -> Canned | None:
        wanted = body.get("response_format", {}).get("type")
        if self.kind == "json_object":
            if "max_completion_tokens" in body:
                detail = [{"loc": ["body", "max_completion_tokens"], "msg": "extra"}]
                return raw(json.dumps({"detail": detail}).encode(), status=422)
            if wanted == "json_schema":
                return fault(400, "This response_format type is unavailable now")
        if self.kind == "text":
            if wanted is not None:
                return fault(400, "Unrecognized request argument supplied")
            if "temperature" in body:
                return fault(400, "Unsupported value: 'temperature' is fixed")
        return None


def fitting(asked: Asked) -> Mapping[str, Any]:
    """Return the least value that fits the schema of *asked*, in its form or in its prompt."""
    wanted = asked.body.get("response_format", {})
    if wanted.get("type") == "json_schema":
        schema = wanted["json_schema"]["schema"]
    else:
        schema = json.loads(asked.system.rpartition("JSON schema:\n")[2])
    value: Mapping[str, Any] = fitting_value(schema)
    return value


def fitting_value(schema: Mapping[str, Any]) -> Any:
    """Return the least value that fits *schema*."""
    return _least(schema, schema.get("$defs", {}))


def _least(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    if "$ref" in part:
        return _least(definitions[part["$ref"].rpartition("/")[2]], definitions)
    if "const" in part or "enum" in part:
        return part["const"] if "const" in part else part["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in part:
            return _least(part[several][0], definitions)
    kind = part.get("type")
    if kind == "object":
        return {
            name: _least(inner, definitions)
            for name, inner in part.get("properties", {}).items()
        }
    if kind == "array":
        return [
            _least(part.get("items", {}), definitions)
            for _ in range(part.get("minItems", 0))
        ]
    plain = {"string": "", "integer": 0, "number": 0, "boolean": False}
    return plain.get(str(kind))
