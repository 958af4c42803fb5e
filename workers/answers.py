"""What a model is asked to fill, with a schema that costs as few tokens as it can."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

#: Parts of a schema that tell a model nothing which the prompt does not say shorter.
_WORDY = ("title", "description", "default")


class AnswerSchema(BaseModel):
    """What a model fills: unknown fields are ignored, and its schema is as short as it can be.

    Bounds of numbers and lengths are better checked by the asker: one slip would cost the whole answer.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the schema without titles, descriptions and references."""
        schema = super().model_json_schema(*args, **options)
        short: dict[str, Any] = _shortened(schema, schema.pop("$defs", {}))
        return short


def _shortened(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a part of a schema with its references in place, without words, and with every field demanded."""
    if isinstance(part, list):
        return [_shortened(inner, definitions) for inner in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _shortened(definitions[part["$ref"].rpartition("/")[2]], definitions)
    short = {
        # Fields may be called like such a word themselves.
        name: {field: _shortened(inner, definitions) for field, inner in value.items()}
        if name == "properties"
        else _shortened(value, definitions)
        for name, value in part.items()
        if name not in _WORDY
    }
    if "properties" in short:
        short |= {"required": list(short["properties"]), "additionalProperties": False}
    return short
