"""Callers as persons who answer questions of tasks, and refusals of their answers."""

from tasklore.contracts.callers import ALL, Caller
from tasklore.supervisor.approvals.answers import AnsweringPerson, AnswerRefused
from tasklore.supervisor.operations.refusals import Refused


def as_person(caller: Caller) -> AnsweringPerson:
    """Return who answers with the key of *caller*: its user, in its roles."""
    name = f"user:{caller.user}" if caller.user is not None else f"key:{caller.name}"
    if ALL in caller.approves:
        return AnsweringPerson(name, "http")
    users = () if caller.user is None else (name,)
    return AnsweringPerson(
        name, "http", frozenset([*users, *(f"role:{role}" for role in caller.approves)])
    )


def refuse_answer(refused: AnswerRefused) -> Refused:
    """Return the problem that says why an answer does not count."""
    status = {"unknown": 404, "person": 403}.get(refused.why, 409)
    return Refused(status, f"approval-{refused.why}", str(refused))
