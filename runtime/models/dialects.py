"""What a server understands of a request: the form of an answer, and the parameters it takes, by server and model.

Servers that call themselves compatible refuse `json_schema`, `max_completion_tokens` or a temperature. A refused
part is said in another way or left out, and this process remembers it once the server has taken it so. Nothing here
does I/O.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import structlog

from tasklore.runtime.models.wire import words_in

if TYPE_CHECKING:
    from httpx2 import URL

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
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "service_tier",
    "verbosity",
    "prompt_cache_key",
    "safety_identifier",
    "metadata",
    "store",
    "user",
)
#: Of these the names that are words, too: a server quotes them where it means the parameter.
_WORDS = frozenset(("seed", "verbosity", "metadata", "store", "user"))
#: Statuses by which servers refuse a request that they do not understand.
_REFUSALS = frozenset((400, 404, 405, 415, 422, 500, 501))
#: Of these a part that the server did not name may be refused.
_VAGUE = frozenset((415, 422, 501))
#: Words of a server that refuses the form of an answer, a parameter that it does not name, and a value.
_OF_FORM = ("response_format", "json_schema", "json_object", "schema", "grammar")
_OF_PARAMETER = ("parameter", "argument", "field", "extra input", "not permitted")
_OF_VALUE = ("too large", "too long", "at most", "exceed", "context length")
#: All that some servers say of a request that they do not understand.
_SAYS_NOTHING = (
    "",
    "bad request",
    "invalid request",
    "invalid_request_error",
    "unprocessable entity",
    "not implemented",
    "not supported",
    "unsupported",
    "validation error",
)
#: How servers say that they answer by streams alone, or never by one.
_STREAM_ONLY = re.compile(
    r"\bstream\w*\b.{0,40}\b(only|must|required?|enable|true)\b|\bonly\b.{0,40}\bstream\w*\b",
    re.DOTALL,
)
_NO_STREAM = re.compile(
    r"(?:\bnot\W|n't\W|\bun)(?:support(?:s|ed)?|allowed|available|implemented|permitted)\b",
    re.DOTALL,
)
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
    #: Whether answers come as streams alone (True) or never (False); None for as it is asked.
    streams: bool | None = None

    def spell(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the *body* of a request as this dialect says it."""
        said = {name: value for name, value in body.items() if name not in self.dropped}
        if self.is_old and "max_completion_tokens" in said:
            said["max_tokens"] = said.pop("max_completion_tokens")
            if "max_tokens" in self.dropped:
                del said["max_tokens"]
        if self.streams is False:
            said = {name: said[name] for name in said if not name.startswith("stream")}
        elif self.streams:
            said["stream"] = True
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
        named = words_in(words)[:_LOOKED_THROUGH].lower()
        words = words[:_LOOKED_THROUGH].lower()
        said = self.spell(body)
        for bound in ("max_completion_tokens", "max_tokens"):
            if bound in said and bound in words:
                return self._without_bound(bound, words)
        for name in _OPTIONAL:
            if name in said and _is_named(name, words):
                return replace(self, dropped=self.dropped | {name})
        if "stream" in words and self.streams is None:
            if not said.get("stream") and _STREAM_ONLY.search(words):
                return replace(self, streams=True)
            if said.get("stream") and _NO_STREAM.search(words):
                return replace(self, streams=False)
        is_mute = named.strip(" .!\n") in _SAYS_NOTHING and status != 500
        is_vague = (
            is_mute
            or status in _VAGUE
            or (status == 400 and any(word in words for word in _OF_PARAMETER))
        )
        return self._plainer(words, said, is_vague=is_vague)

    def after(self, body: Mapping[str, Any], usage: object) -> "Dialect":
        """Return the dialect after a reply to *body* with *usage*: a server may pass over unknown fields.

        Ollama and LM Studio do so with `max_completion_tokens`; an answer with more tokens than it may have shows it.
        """
        bound = self.spell(body).get("max_completion_tokens")
        counts = usage if isinstance(usage, Mapping) else {}
        written = counts.get("completion_tokens")
        if isinstance(bound, int) and isinstance(written, int) and written > bound:
            return replace(self, is_old=True)
        return self

    def _without_bound(self, bound: str, words: str) -> "Dialect | None":
        """Return a dialect that calls the *bound* of an answer otherwise, or has none; None where its value is bad."""
        if any(word in words for word in _OF_VALUE):
            return None
        if bound == "max_completion_tokens":
            return replace(self, is_old=True)
        return replace(self, dropped=self.dropped | {bound})

    def _plainer(
        self, words: str, said: Mapping[str, Any], *, is_vague: bool
    ) -> "Dialect | None":
        """Return a dialect with less in it than *said*, after a refusal of its form, or one that names no part."""
        if "response_format" in said:
            weaker = _WEAKER.get(self.form)
            if weaker and (is_vague or any(word in words for word in _OF_FORM)):
                return replace(self, form=weaker)
        if not is_vague:
            return None
        if "max_completion_tokens" in said:
            # The form was not what was refused, or not alone.
            return replace(self, is_old=True, form="json_schema")
        for name in _OPTIONAL:
            if name in said:
                return replace(self, dropped=self.dropped | {name})
        return None

    def __str__(self) -> str:
        """Return what differs from OpenAI's own, for people: "json_object, max_tokens, without temperature"."""
        parts: list[str] = [] if self.form == "json_schema" else [self.form]
        parts += ["max_tokens"] if self.is_old else []
        parts += [f"without {name}" for name in sorted(self.dropped)]
        if self.streams is not None:
            parts.append("by streams alone" if self.streams else "without streams")
        return ", ".join(parts)


#: By address and model what a server of this process has been found to understand, and the words by which it refused.
_FOUND: dict[tuple[str, str], tuple[Dialect, str]] = {}


def address_of(url: "str | URL") -> str:
    """Return the address by which the server of *url* is known here: `https://host:port`, as httpx spells them."""
    # Most processes ask no model, and do without the 26 modules of this library.
    from httpx2 import URL

    read = URL(url)
    return f"{read.scheme}://{read.netloc.decode()}"


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


def _is_named(name: str, words: str) -> bool:
    """Return whether *words* of a refusal name the parameter *name*."""
    if name not in _WORDS:
        return re.search(rf"(?<!\w){name}(?!\w)", words) is not None
    return re.search(rf"['\"`]{name}['\"`]", words) is not None


def _ask_in_words(messages: Sequence[Any], schema: object) -> list[Any]:
    """Return *messages* with the *schema* of the answer behind what the system says."""
    asked = f"{_ASK}\n{json.dumps(schema, ensure_ascii=False)}"
    first: Any = messages[0] if messages else None
    is_system = isinstance(first, Mapping) and first.get("role") == "system"
    if is_system and isinstance(first["content"], str):
        whole = {**first, "content": f"{first['content']}\n\n{asked}"}
        return [whole, *messages[1:]]
    return [{"role": "system", "content": asked}, *messages]
