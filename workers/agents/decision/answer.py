"""The answer of a model: one action, after the reasoning that led to it."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class Wish(BaseModel):
    """The action that a model proposes; it counts once the world allows it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    reasoning: str
    action: str
    x: float | None = None
    z: float | None = None
    agent: str | None = None
    utterance: str | None = None

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the schema without titles and defaults, and with every field required."""
        fields = super().model_json_schema(*args, **options)["properties"]
        short = {
            name: {
                word: value
                for word, value in field.items()
                if word not in ("title", "default")
            }
            for name, field in fields.items()
        }
        return {
            "type": "object",
            "properties": short,
            "required": list(short),
            "additionalProperties": False,
        }
