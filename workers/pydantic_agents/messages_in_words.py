"""Requests to a model and its answers in words, as the messages of a run have them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_core import to_json

from tasklore.workers.pydantic_agents.shown import class_of

#: Headings of parts of a request, by pydantic-ai's kind; others stand by their kind.
_HEADINGS = {
    "system-prompt": "system",
    "user-prompt": "user",
    "tool-return": "tool",
    "retry-prompt": "try again",
}
#: Characters of an address, which may be that of data.
_LONGEST_URL = 300
#: What stands for a request that shows a model nothing new.
_SAME_AGAIN = "(the same messages again)"


class SeenMessages:
    """The messages that the model of one agent's run has been shown so far: each is spelled once."""

    def __init__(self) -> None:
        self._seen: list[int] = []
        self._instructions: str | None = None

    def describe_new(self, messages: Sequence[ModelMessage], parameters: object) -> str:
        """Return those of *messages* that were not shown before; of the first request its tools too.

        Where a history was changed, as one that is made shorter is, all of it is new.
        """
        names = [hash(_spell(one)) for one in messages]
        known = len(self._seen)
        is_first = not known
        if names[:known] != self._seen:
            known = 0
        self._seen = names
        new = [
            one
            for one in messages[known:]
            # The model's own answers are messages of their own, but for such of an older history.
            if not known or isinstance(one, ModelRequest)
        ]
        texts = [text for one in new for text in self._describe(one)]
        if is_first and (tools := _tools_in(parameters)):
            texts.append(f"[tools]\n{', '.join(tools)}")
        return "\n\n".join(texts) or _SAME_AGAIN

    def _describe(self, message: ModelMessage) -> list[str]:
        """Return the parts of *message* behind their headings; instructions where they are others than before."""
        if not isinstance(message, ModelRequest):
            return [f"[answer]\n{_describe_object(part)}" for part in message.parts]
        texts = []
        if message.instructions and message.instructions != self._instructions:
            texts.append(f"[instructions]\n{message.instructions}")
            self._instructions = message.instructions
        for part in message.parts:
            heading = _HEADINGS.get(part.part_kind, part.part_kind)
            name = getattr(part, "tool_name", None)
            named = f"{heading} {name}" if name else heading
            texts.append(f"[{named}]\n{_text_of(getattr(part, 'content', ''))}")
        return texts


def describe_parts(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the *parts* of an answer, as pydantic-ai dumps them: texts, thoughts, and calls of tools."""
    return "\n\n".join(_describe_part(part) for part in parts)


def _describe_object(part: Any) -> str:
    fields = {"part_kind": part.part_kind}
    for name in ("content", "tool_name", "args"):
        fields[name] = getattr(part, name, None)
    return _describe_part(fields)


def _describe_part(part: Mapping[str, Any]) -> str:
    kind = part["part_kind"]
    if kind == "text":
        return str(part.get("content") or "")
    if kind == "thinking":
        return f"[thought]\n{part.get('content') or ''}"
    if part.get("tool_name"):
        return f"[calls {part['tool_name']}]\n{_text_of(part.get('args'))}"
    return f"[{kind}]"


def _text_of(content: object) -> str:
    """Return *content* in words; of images and files their class, and the address where they have one."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list | tuple):
        return "\n".join(_text_of(one) for one in content)
    if isinstance(url := getattr(content, "url", None), str):
        return f"<{class_of(content)} {url[:_LONGEST_URL]}>"
    if hasattr(content, "data"):
        return f"<{class_of(content)}>"
    return _spell(content).decode(errors="replace")


def _tools_in(parameters: object) -> list[str]:
    tools = getattr(parameters, "function_tools", None) or ()
    return [str(getattr(one, "name", "")) for one in tools]


def _spell(value: object) -> bytes:
    return to_json(value, fallback=class_of)
