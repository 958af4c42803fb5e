"""A chat completion as OpenAI's own server would have sent it, whatever another server made of one.

Two libraries read completions, each of them strict in its own places: one needs an id, another one counts that are
whole. So what compatible servers send is put into one form before either sees it. What a model wrote, called and
counted is kept as it is; nothing is made up. Nothing here does I/O.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import uuid4

from tasklore.contracts.errors import LlmUnavailable
from tasklore.runtime.models.answer_reader import (
    is_whole,
    json_in,
    object_at,
    text_of,
    whole_in,
)

#: More tokens than any context window: a larger count is noise, not a bill.
MOST_TOKENS = 1_000_000_000
#: A later second of creation is no date that a library can hold.
_LAST_SECOND = 2**33
#: By OpenAI's word for it, how servers call the end of an answer, in lower case.
_ENDS = {
    "stop": (
        "eos",
        "eos_token",
        "end_turn",
        "stop_sequence",
        "end",
        "complete",
        "completed",
        "finished",
        "finish",
        "done",
    ),
    "length": (
        "max_tokens",
        "max_length",
        "max_output_tokens",
        "max_completion_tokens",
        "model_length",
        "model_context_window_exceeded",
        "token_limit",
    ),
    "content_filter": (
        "content_filtered",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "sensitive",
        "refusal",
    ),
    "tool_calls": ("tool_call", "tool_use", "tool-calls"),
    "error": (
        "failed",
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "insufficient_system_resource",
        "network_error",
        "timeout",
        "overloaded",
        "unavailable",
    ),
}
_END_OF = {said: end for end, names in _ENDS.items() for said in (end, *names)}
#: Blank lines and comments before a reply; what they take is given back by none.
_COMMENTS = re.compile(r"(?:[\ufeff \t\r\n]|:[^\n]*(?:\n|\Z))*+")
#: Fields of a message in which servers hand out what a model thought.
THOUGHTS = ("reasoning_content", "reasoning")


def read_body(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in *raw*, whatever its fields.

    Before it there may be blank lines and comments by which a server keeps a connection alive, and a byte order mark.

    Raises:
        LlmUnavailable: it is no JSON, or no object (a proxy's HTML page, a cut body).
    """
    text = _without_comments(raw.decode(json.detect_encoding(raw), "replace"))
    value, fault = object_at(text, 0)
    if value is None and text.startswith("["):
        # Google's server lists its one error.
        value, fault = object_at(text, max(0, text.find("{")))
    if value is None:
        raise LlmUnavailable(
            f"the provider's reply of {len(raw)} bytes is not valid JSON: {fault}"
        )
    return value


def completion_of(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the completion in *body*, which has a message, in OpenAI's form; *model* is the one that was asked."""
    first = body["choices"][0]
    choice: dict[str, Any] = {
        "index": 0,
        "message": _message_of(first["message"]),
        "finish_reason": _end_of(first, first["message"]),
    }
    if isinstance(first.get("logprobs"), Mapping):
        choice["logprobs"] = first["logprobs"]
    return {
        **_head_of(body, model, "chat.completion"),
        "choices": [choice],
        "usage": usage_of(body.get("usage")),
    }


class PartReader:
    """Puts the parts of one streamed completion, in their order, into OpenAI's form; *model* is the one asked."""

    def __init__(self, model: str) -> None:
        self._model = model
        #: By the server's index: the place of the call that its parts belong to now.
        self._places: dict[int, int] = {}
        self._calls: list[dict[str, Any]] = []
        #: Whether a part of an answer came, and whether an end of it was named.
        self.has_begun = False
        self.has_ended = False

    def read(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the parts in *body*: mostly one, none of a choice for a sign of life, all for a whole reply."""
        first = first_choice(body)
        if first is not None and isinstance(first.get("message"), Mapping):
            if not self.has_begun:
                self.has_begun = True
                self.has_ended = True
                return list(split_parts(completion_of(body, self._model)))
            # Some servers end a stream with the whole message once more.
            first = {"finish_reason": first.get("finish_reason")}
        choices: list[dict[str, Any]] = []
        if first is not None:
            delta = first.get("delta")
            delta = delta if isinstance(delta, Mapping) else {}
            end = _end_of(first, delta)
            said = _message_of(delta, is_part=True)
            for part in said.get("tool_calls", ()):
                self._place(part)
            self.has_begun = True
            self.has_ended = self.has_ended or end is not None
            choices = [{"index": 0, "delta": said, "finish_reason": end}]
        head = _head_of(body, self._model, "chat.completion.chunk")
        part = {**head, "choices": choices}
        if (usage := usage_of(body.get("usage"))) is not None:
            part["usage"] = usage
        return [part]

    def _place(self, part: dict[str, Any]) -> None:
        """Give the *part* of a call the index of its call: some servers send several calls at one index."""
        index = part["index"]
        place = self._places.get(index)
        known = None if place is None else self._calls[place]
        name = part["function"].get("name")
        if known is not None and name:
            is_other = part.get("id", known["id"]) != known["id"]
            if "id" not in part:
                is_other = is_whole(known["arguments"])
            known = None if is_other else known
        if known is None:
            place = len(self._calls)
            self._places[index] = place
            known = {"id": part.get("id"), "name": name, "arguments": ""}
            self._calls.append(known)
        elif name and known["name"] is None:
            known["name"] = name
        elif name and name == known["name"]:
            # Said again with each part; a reader would join them.
            del part["function"]["name"]
        known["arguments"] += part["function"]["arguments"]
        part["index"] = place


def first_choice(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first choice of *body*, None where there is none."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


def join_parts(chunks: Iterable[Mapping[str, Any]], model: str) -> dict[str, Any]:
    """Return the completion that *chunks* in OpenAI's form are the parts of."""
    texts: dict[str, list[str]] = {}
    calls: dict[int, dict[str, Any]] = {}
    whole: dict[str, Any] = {"choices": [{"finish_reason": None}]}
    for chunk in chunks:
        for name in ("id", "created", "model", "usage"):
            if chunk.get(name):
                whole[name] = chunk[name]
        for choice in chunk["choices"]:
            delta = choice["delta"]
            for name in ("content", "refusal", *THOUGHTS):
                if isinstance(delta.get(name), str):
                    texts.setdefault(name, []).append(delta[name])
            for part in delta.get("tool_calls", ()):
                _add_call(calls, part)
            if choice["finish_reason"] is not None:
                whole["choices"][0]["finish_reason"] = choice["finish_reason"]
    message: dict[str, Any] = {name: "".join(parts) for name, parts in texts.items()}
    if calls:
        message["tool_calls"] = [calls[place] for place in sorted(calls)]
    whole["choices"][0]["message"] = message
    return completion_of(whole, model)


def split_parts(completion: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the *completion* in OpenAI's form as the parts of a stream."""
    choice = completion["choices"][0]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [
            {"index": place, **call} for place, call in enumerate(delta["tool_calls"])
        ]
    head = {
        **{name: completion[name] for name in ("id", "created", "model")},
        "object": "chat.completion.chunk",
    }
    yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    # A whole reply that names no end is whole; a stream would count as broken off.
    ended: dict[str, Any] = {
        "index": 0,
        "delta": {},
        "finish_reason": choice["finish_reason"] or "stop",
    }
    yield {**head, "choices": [ended]}
    if completion["usage"] is not None:
        yield {**head, "choices": [], "usage": completion["usage"]}


def usage_of(usage: object) -> dict[str, Any] | None:
    """Return the counts of tokens in *usage*; None where it holds none that a bill could stand on."""
    if not isinstance(usage, Mapping):
        return None
    read = _count(usage.get("prompt_tokens"))
    written = _count(usage.get("completion_tokens"))
    # No request has fewer than one: 0 and null are what a server writes that does not count.
    if not read or (written is None and usage.get("completion_tokens") is not None):
        return None
    counted: dict[str, Any] = {
        "prompt_tokens": read,
        "completion_tokens": written or 0,
        "total_tokens": read + (written or 0),
    }
    details = usage.get("prompt_tokens_details")
    cached = (
        _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    )
    if cached is not None:
        counted["prompt_tokens_details"] = {"cached_tokens": min(cached, read)}
    return counted


def _count(value: object) -> int | None:
    """Return the count that *value* is, None for one that is no whole number of tokens."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MOST_TOKENS else None


def _head_of(body: Mapping[str, Any], model: str, kind: str) -> dict[str, Any]:
    created = body.get("created")
    is_second = isinstance(created, int) and 0 <= created < _LAST_SECOND
    return {
        "id": str(body.get("id") or "-"),
        "object": kind,
        "created": created if is_second and not isinstance(created, bool) else 0,
        "model": str(body.get("model") or model),
    }


def _end_of(choice: Mapping[str, Any], message: Mapping[str, Any]) -> str | None:
    """Return OpenAI's word for the end of a choice; another server's own where it has none, None without one."""
    said = choice.get("finish_reason")
    if said is None or said == "":
        return None
    if str(said).lower() == "function_call":
        return "tool_calls" if message.get("function_call") else "stop"
    return _END_OF.get(str(said).lower(), str(said))


def _message_of(said: Mapping[str, Any], *, is_part: bool = False) -> dict[str, Any]:
    """Return a message, or a part of one, in OpenAI's form."""
    message: dict[str, Any] = {"role": "assistant"}
    content = said.get("content")
    if isinstance(content, Mapping):
        # An answer in JSON, which some gateway has read already.
        message["content"] = json.dumps(content)
    elif content is not None or not is_part:
        message["content"] = text_of(content) if content is not None else None
    if isinstance(said.get("refusal"), str) and said["refusal"]:
        message["refusal"] = said["refusal"]
    for name in THOUGHTS:
        if thought := text_of(said.get(name)):
            message[name] = thought
    calls = said.get("tool_calls")
    calls = [*calls] if isinstance(calls, list) else []
    if isinstance(said.get("function_call"), Mapping):
        calls.append({"function": said["function_call"]})
    named = [
        _call_of(call, place, is_part=is_part)
        for place, call in enumerate(calls)
        if isinstance(call, Mapping)
    ]
    if named:
        message["tool_calls"] = named
    return message


def _call_of(call: Mapping[str, Any], place: int, *, is_part: bool) -> dict[str, Any]:
    """Return the call of a tool in OpenAI's form: its arguments are JSON in a text."""
    function = call.get("function")
    function = function if isinstance(function, Mapping) else call
    given = function.get("arguments")
    if isinstance(given, Mapping):
        given = json.dumps(given)
    elif not isinstance(given, str):
        given = "" if is_part else "{}"
    elif not is_part:
        given = whole_in(given) if given.strip() else "{}"
    made: dict[str, Any] = {"type": "function"}
    name = function.get("name")
    made["function"] = {"arguments": given} | ({"name": str(name)} if name else {})
    if call.get("id"):
        made["id"] = str(call["id"])
    elif not is_part:
        made["id"] = f"call_{uuid4().hex[:16]}"
    if is_part:
        index = call.get("index")
        made["index"] = index if isinstance(index, int) else place
    return made


def _add_call(calls: dict[int, dict[str, Any]], part: Mapping[str, Any]) -> None:
    """Add *part* to the call at its place."""
    known = calls.setdefault(part["index"], {"function": {"arguments": ""}})
    known |= {"id": part["id"]} if "id" in part else {}
    function = part["function"]
    known["function"] |= {"name": function["name"]} if "name" in function else {}
    known["function"]["arguments"] += function["arguments"]


def bare(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *completion*, which was asked for as JSON, with that JSON alone as its text.

    A server that reads a thought out of what its model wrote may have put all of it there.
    """
    choice = completion["choices"][0]
    message = choice["message"]
    texts = [
        message.get("content") or "",
        *(message.get(name, "") for name in THOUGHTS),
    ]
    written = next((text for text in texts if text.strip()), "")
    said = {**message, "content": json_in(written) if written else message["content"]}
    return {**completion, "choices": [{**choice, "message": said}]}


def _without_comments(text: str) -> str:
    """Return *text* without the blank lines and comments that keep a connection alive before a reply."""
    comments = _COMMENTS.match(text)
    return text if comments is None else text[comments.end() :]
