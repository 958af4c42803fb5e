"""A conversation of twelve steps as a scripted server holds it: six requests to a model, six calls of tools."""

import hashlib
import json
from typing import Any

from tests.llm_double import Asked, Canned, raw, saying

#: The calls that each request but the last one is answered with: a tool's name and its number.
CALLS = (
    [("look", 0), ("send", 1)],
    [("look", 2)],
    [("send", 3)],
    [("look", 4)],
    [("send", 5)],
)
REQUESTS = len(CALLS) + 1


def calling(*calls: tuple[str, dict[str, Any]], text: str | None = None) -> Canned:
    """Answer with calls of tools: the name and the arguments of each."""
    canned = json.loads(saying(text, finish_reason="tool_calls").body)
    canned["choices"][0]["message"]["tool_calls"] = [
        {
            "id": "call_"
            + hashlib.blake2b(f"{place}{call}".encode(), digest_size=6).hexdigest(),
            "type": "function",
            "function": {"name": call[0], "arguments": json.dumps(call[1])},
        }
        for place, call in enumerate(calls)
    ]
    return raw(json.dumps(canned).encode())


def streaming(
    *words: str, output_tokens: int = 20, finish_reason: str | None = "stop"
) -> Canned:
    """Answer with *words* as server-sent events, one each; *finish_reason* None: none is named."""
    head = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
    }
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": output_tokens,
        "total_tokens": 100 + output_tokens,
    }
    deltas = [{"role": "assistant", "content": word} for word in words]
    choices = [
        [{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas
    ]
    chunks = [
        *({**head, "choices": one} for one in choices),
        {
            **head,
            "choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}],
        },
        {**head, "choices": [], "usage": usage},
    ]
    stream = (
        "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        + "data: [DONE]\n\n"
    )
    return raw(stream.encode(), content_type="text/event-stream")


def number_of(asked: Asked) -> int:
    """Return which request of its conversation *asked* is, 0 for the first."""
    return sum(message["role"] == "assistant" for message in asked.body["messages"])


def results_of(asked: Asked) -> list[str]:
    """Return the results of tools that the model is shown, in order."""
    return [
        str(message["content"])
        for message in asked.body["messages"]
        if message["role"] == "tool"
    ]


def next_answer(asked: Asked) -> Canned:
    """Return the next calls, and at the end an answer that has all results in it."""
    number = number_of(asked)
    if number < len(CALLS):
        return calling(*((name, {"number": one}) for name, one in CALLS[number]))
    return saying(" ".join(results_of(asked)))
