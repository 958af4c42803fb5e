"""The bytes of a request to a model, of all that it is shown, and their digest, by which a step is known again."""

import hashlib
from typing import Any, cast

from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import to_json

#: Fields of messages that no model is shown; some differ between two runs.
_HIDDEN = {"timestamp", "run_id", "conversation_id", "usage"}
_NOT_SHOWN: Any = {
    "__all__": {**dict.fromkeys(_HIDDEN, True), "parts": {"__all__": {"timestamp"}}}
}


def digest(cache_key: tuple[object, ...]) -> str:
    """Return a digest of a request to a model, by which it is known again: of all that the model is shown."""
    return hashlib.blake2b(shown(cache_key), digest_size=16).hexdigest()


def shown(cache_key: tuple[object, ...]) -> bytes:
    """Return all that the model is shown by a request, as JSON."""
    model_id, messages, settings, parameters, _context = cache_key
    messages_json = ModelMessagesTypeAdapter.dump_json(
        cast("list[Any]", messages), exclude=_NOT_SHOWN
    )
    return messages_json + to_json([model_id, settings, parameters], fallback=class_of)


def class_of(value: object) -> str:
    """Return the name of the class of *value*, which JSON cannot hold."""
    return type(value).__qualname__
