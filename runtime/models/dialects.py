"""What a server understands of a request: the form of an answer, and the parameters it takes, by server and model.

Servers that call themselves compatible refuse `json_schema`, `max_completion_tokens` or a temperature. What was
refused is said in another way or left out, and this process remembers it once the server has taken it so. Nothing here
does I/O.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

log = structlog.get_logger(__name__)

#: The form in which an answer is asked for; `text` is none, with the schema in the prompt alone.
Form = Literal["json_schema", "json_object", "text"]
_WEAKER: Mapping[Form, Form] = {"json_schema": "json_object", "json_object": "text"}
#: Parameters that a server need not know; a request means the same without them.
_OPTIONAL = (
    "temperature",
    "reasoning_effort",
    "stream_options",
    "parallel_tool_calls",
    "top_p",
)
#: Statuses by which servers refuse a request that they do not understand.
_REFUSALS = frozenset((400, 404, 405, 415, 422, 500, 501))
#: Of these a part that the server did not name may be refused.
_VAGUE = frozenset((415, 422, 501))
#: Words of a server that refuses the form of an answer, a parameter that it does not name, and a value.
_OF_FORM = ("response_format", "json_schema", "json_object", "schema", "grammar")
_OF_PARAMETER = ("parameter", "argument", "field", "extra input", "not permitted")
_OF_VALUE = ("too large", "too long", "at most", "exceed", "context length")
#: Characters of a refusal that are looked through.
_LOOKED_THROUGH = 4_000

_ASK = "Answer with one JSON object alone, without any other word, that fits this JSON schema:"


@dataclass(frozen=True)
class Dialect:
    """How a server is spoken to; as it stands, as OpenAI's own."""

    form: Form = "json_schema"
    #: Whether the bound of an answer is called `max_tokens`.
    is_old: bool = False
    dropped: frozenset[str] = frozenset()

    def spell(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the *body* of a request as this dialect says it."""
        said = {name: value for name, value in body.items() if name not in self.dropped}
        if self.is_old and "max_completion_tokens" in said:
            said["max_tokens"] = said.pop("max_completion_tokens")
        wanted: Any = said.get("response_format")
        kind = wanted.get("type") if isinstance(wanted, Mapping) else None
        if kind is None or kind == "text" or self.form == "json_schema":
            return said
        if kind == "json_schema":
            schema = wanted.get("json_schema", {}).get("schema", {})
            said["messages"] = _ask_in_words(said.get("messages", ()), schema)
        if self.form == "json_object":
            said["response_format"] = {"type": "json_object"}
        else:
            del said["response_format"]
        return said

    def without(
        self, status: int, words: str, body: Mapping[str, Any]
    ) -> "Dialect | None":
        """Return another dialect for *body* after a refusal with *status* and *words*; None where none could help."""
        if status not in _REFUSALS:
            return None
        words = words[:_LOOKED_THROUGH].lower()
        said = self.spell(body)
        if "max_completion_tokens" in said and "max_completion_tokens" in words:
            is_value = any(word in words for word in _OF_VALUE)
            return None if is_value else replace(self, is_old=True)
        for name in _OPTIONAL:
            if name in said and name in words:
                return replace(self, dropped=self.dropped | {name})
        if "response_format" not in said:
            return None
        is_about_form = any(word in words for word in _OF_FORM)
        is_vague = status in _VAGUE or (
            status == 400 and any(word in words for word in _OF_PARAMETER)
        )
        weaker = _WEAKER.get(self.form)
        if weaker is None or not (is_about_form or is_vague):
            return None
        return replace(self, form=weaker)

    def __str__(self) -> str:
        """Return what differs from OpenAI's own, for people: "json_object, max_tokens, without temperature"."""
        parts: list[str] = [] if self.form == "json_schema" else [self.form]
        parts += ["max_tokens"] if self.is_old else []
        parts += [f"without {name}" for name in sorted(self.dropped)]
        return ", ".join(parts)


#: By address and model what a server of this process has been found to understand, and the words by which it refused.
_FOUND: dict[tuple[str, str], tuple[Dialect, str]] = {}


def dialect_of(address: str, model: str) -> Dialect:
    """Return how *model* at *address* is spoken to."""
    found = _FOUND.get((address, model))
    return Dialect() if found is None else found[0]


def remember(address: str, model: str, dialect: Dialect, words: str) -> None:
    """Note that *model* at *address* understands *dialect*, and refused another one with *words*."""
    if dialect_of(address, model) == dialect:
        return
    _FOUND[address, model] = dialect, words
    log.warning(
        "llm_dialect_found", model=model, spoken_to_with=str(dialect), refusal=words
    )


def known_dialects() -> list[str]:
    """Return a sentence for each server and model that is spoken to otherwise than OpenAI's own."""
    return [
        f"{model} at {address} is asked with {dialect}: it refused more ({words})"
        for (address, model), (dialect, words) in _FOUND.copy().items()
    ]


def _ask_in_words(messages: Sequence[Any], schema: object) -> list[Any]:
    """Return *messages* with the *schema* of the answer behind what the system says."""
    asked = f"{_ASK}\n{json.dumps(schema, ensure_ascii=False)}"
    first: Any = messages[0] if messages else None
    is_system = isinstance(first, Mapping) and first.get("role") == "system"
    if is_system and isinstance(first["content"], str):
        whole = {**first, "content": f"{first['content']}\n\n{asked}"}
        return [whole, *messages[1:]]
    return [{"role": "system", "content": asked}, *messages]
