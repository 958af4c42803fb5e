"""Refusals of operations, as every door says them (RFC 9457)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasklore.contracts.errors import (
    InvalidInput,
    MessageTooLarge,
    NotAccepted,
    NotPermitted,
    OwnerFull,
    TaskloreError,
    UnknownSession,
    UnknownStory,
    VersionConflict,
)
from tasklore.contracts.faults import complaint_of

#: Seconds after which a server that was away may be asked again.
_RETRY_AFTER_S = 1
_APOLOGY = "something went wrong here, not with what you asked; ask again, and see the supervisor's log if it stays"


class Fault(BaseModel):
    """One fault of a request: its place, as a path with dots, and the complaint."""

    model_config = ConfigDict(frozen=True)

    where: str
    message: str


class Problem(BaseModel):
    """An error, for programs by `type` and `status`, for people by `detail`, which says how to fix it."""

    model_config = ConfigDict(frozen=True)

    type: str = Field(examples=["urn:tasklore:problem:not-found"])
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    problems: tuple[Fault, ...] = ()


class Refused(Exception):
    """Raised by an operation to answer with a problem: *kind* is a word for programs, *detail* names field and cure."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        faults: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(
            type=f"urn:tasklore:problem:{kind}",
            title=HTTPStatus(status).phrase,
            status=status,
            detail=detail,
            problems=tuple(faults),
        )
        self.headers = dict(headers or {})


def not_found(detail: str) -> Refused:
    """Return the refusal of something that is not there."""
    return Refused(404, "not-found", detail)


def unavailable(detail: str, retry_after_s: float = _RETRY_AFTER_S) -> Refused:
    """Return the refusal while a server behind it does not answer; nothing is wrong with the request."""
    return Refused(
        503,
        "unavailable",
        detail,
        headers={"Retry-After": str(max(1, round(retry_after_s)))},
    )


def over_share(detail: str, retry_after_s: float = _RETRY_AFTER_S) -> Refused:
    """Return the refusal of a key that already has its share."""
    return Refused(
        429, "share", detail, headers={"Retry-After": str(max(1, round(retry_after_s)))}
    )


def unusable(faults: Sequence[Fault]) -> Refused:
    """Return the refusal of a body with *faults*."""
    return Refused(
        422,
        "unusable",
        "; ".join(f"{one.where}: {one.message}" for one in faults),
        faults=faults,
    )


def faults_of_line(number: int, error: ValidationError) -> list[Fault]:
    """Return the faults of line *number* of a file, whose fields pydantic refused."""
    faults = []
    for details in error.errors():
        place = ".".join(map(str, details["loc"]))
        where = f"line {number}.{place}".removesuffix(".")
        faults.append(Fault(where=where, message=complaint_of(dict(details))))
    return faults


def refusal_of(error: Exception) -> Refused:
    """Return *error* as a refusal; an unforeseen one reveals nothing."""
    match error:
        case Refused():
            return error
        case NotPermitted():
            return Refused(403, error.kind, str(error))
        case OwnerFull():
            return over_share(str(error), error.retry_after_s)
        case NotAccepted():
            return unavailable(str(error), error.retry_after_s)
        case MessageTooLarge():
            return Refused(413, "too-large", str(error))
        case UnknownSession() | UnknownStory():
            return not_found(str(error))
        case VersionConflict():
            return Refused(409, "version", str(error))
        case InvalidInput():
            return Refused(422, "unusable", str(error))
        case TaskloreError():
            return unavailable(str(error))
    # The server closes the connection over it, so that a request that is sent behind it is lost unless this says so.
    return Refused(500, "internal", _APOLOGY, headers={"Connection": "close"})
