"""A request to the API that one process hands over to another, and the response to it: one message each.

A message is a line of JSON, and behind it the body as it is: bytes in JSON would grow by a third.
"""

from operator import not_
from typing import Self

from pydantic import Field

from tasklore.contracts.callers import Caller
from tasklore.contracts.message_parts import Message

#: Bytes of a body as it is, and no field of the line before it.
_Body = Field(default=b"", exclude=True, repr=False)


class _Handed(Message):
    """A line of JSON with the body behind it."""

    body: bytes = _Body

    def encode(self) -> bytes:
        """Return it as one message."""
        return self.model_dump_json().encode() + b"\n" + self.body

    @classmethod
    def decode(cls, message: bytes) -> Self:
        """Return what *message* holds.

        Raises:
            ValueError: it is none.
        """
        head, _, body = message.partition(b"\n")
        return cls.model_validate_json(head).model_copy(update={"body": body})


class HandedRequest(_Handed):
    """A request of *caller*, who was admitted by the process that hands it over.

    `path` and `query` are spelled as in its first line. `within_s` is how long the response is waited for. Its `id`
    names it where it is given up; "" of a process that does not say so.
    """

    id: str = Field(default="", max_length=64)
    method: str = Field(max_length=16)
    path: str = Field(max_length=8192)
    query: str = Field(default="", max_length=16_384)
    headers: tuple[tuple[str, str], ...] = Field(default=(), max_length=16)
    caller: Caller
    within_s: float = Field(gt=0, le=3600)


class HandedResponse(_Handed):
    """The response to a handed request, with the headers that are about its body and about what to do next.

    With `is_leaving` the supervisor is about to end and did nothing: another one may be asked.
    """

    is_leaving: bool = Field(default=False, exclude_if=not_)
    status: int = Field(ge=100, le=599)
    headers: tuple[tuple[str, str], ...] = Field(default=(), max_length=64)
