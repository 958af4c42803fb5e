"""Errors of the client."""

from collections.abc import Sequence


class ClientError(Exception):
    """Anything that this client raises."""


class ServerUnreachable(ClientError):
    """The server did not answer, also not when it was asked again; the message names the address."""


class NotDone(ClientError):
    """The request or task *identity* goes on; ask for it later: nothing is started twice."""

    def __init__(self, identity: str, within_s: float) -> None:
        super().__init__(
            f"{identity} is not done after {within_s:g} s; look it up later, it "
            "continues"
        )
        self.identity = identity


class ApiError(ClientError):
    """The server refused: its `status`, the `kind` of problem, its words with the cure, and the fields concerned."""

    def __init__(
        self, status: int, kind: str, detail: str, problems: Sequence[str] = ()
    ) -> None:
        # The words of a refusal for one field are those of the field.
        further = [one for one in problems if one not in detail]
        super().__init__("; ".join([detail, *further]) or f"status {status}")
        self.status = status
        self.kind = kind
        self.problems = tuple(problems)


class TaskFailed(ClientError):
    """A task ended otherwise than completed: its `task_id`, `status`, the `kind` of error and its words."""

    def __init__(self, task_id: str, *, status: str, kind: str, detail: str) -> None:
        super().__init__(
            f"{task_id} is {status}: {detail}" if detail else f"{task_id} is {status}"
        )
        self.task_id = task_id
        self.status = status
        self.kind = kind


class UnknownAnswer(ClientError):
    """The server answered what this client cannot read; use a client of the server's version."""
