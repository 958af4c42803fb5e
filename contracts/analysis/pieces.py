"""Base of every part of an analysis document: unknown keys are kept, and so is the order they were written in."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    Strict,
    model_serializer,
    model_validator,
)

# Nothing is turned into something else on reading: what is written again must have the same bytes.
Whole = Annotated[int, Strict()]
Flag = Annotated[bool, Strict()]
#: 6 and 6.0 are two spellings of one number, and each comes back as it came.
Number = Annotated[int, Strict()] | Annotated[float, Strict()]


class Piece(BaseModel):
    """A part of the document; Python speaks its long names, the document the short keys.

    Only what was given is written: in the order it came in, then what was added since.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="allow",
        populate_by_name=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        # Built when first used: most processes load these and never see one.
        defer_build=True,
    )

    _order: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _keep_order(cls, raw: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        piece = read(raw)
        if isinstance(raw, Mapping):
            piece._order = tuple(cls.key_of(name) for name in raw)  # noqa: SLF001 - its own
        return piece

    @model_serializer(mode="wrap")
    def _write_in_order(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        given = {self.key_of(name) for name in self.model_fields_set}
        kept = {key: value for key, value in written.items() if key in given}
        return {**{key: kept[key] for key in self._order if key in kept}, **kept}

    @classmethod
    def key_of(cls, name: str) -> str:
        """Return the key of *name* in the document; a name that is no field of this part is its own key."""
        field = cls.model_fields.get(name)
        return (field.alias if field is not None else None) or name


#: What a section says as its note when no model judged what only a model can.
UNJUDGED = "read by rules: names and counts only"


class Section(Piece):
    """What every agent's part has: `duration_ms`, and `by`, which is `rules` or the name of a model.

    `status` is `failed`, `late` or `skipped`, and missing when all went well; `error` says why it failed. `note` says
    what a section without a model lacks; `left_out` counts what a model found and what did not hold.
    """

    duration_ms: Whole | None = Field(default=None, alias="dur", ge=0)
    by: str | None = None
    status: str | None = None
    error: str | None = None
    note: str | None = None
    left_out: Whole | None = Field(default=None, ge=0)


#: The most tokens that a text is believed to have.
MOST_TOKENS = 1_000_000_000_000


class Reduction(Piece):
    """What condensing saved, in tokens; `percent` is whole."""

    before: Whole = Field(ge=0, le=MOST_TOKENS)
    after: Whole = Field(ge=0, le=MOST_TOKENS)
    percent: Whole = Field(alias="pct", ge=-100 * MOST_TOKENS, le=100)
    saved: Whole | None = Field(default=None, ge=-MOST_TOKENS, le=MOST_TOKENS)
