"""Answers to questions over NATS: the subject names who answers, and the server's permissions hold programs to it."""

import structlog
from pydantic import ValidationError

from tasklore.contracts.admission.waits import (
    AnswerOutcome,
    QuestionAnswer,
    demand_person,
    parse_wait_id,
)
from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import user_of
from tasklore.supervisor.approvals.answers import (
    AnsweringPerson,
    AnswerRefused,
    Answers,
)

log = structlog.get_logger(__name__)


async def answer_bytes(answers: Answers, subject: str, body: bytes) -> AnswerOutcome:
    """Take the answer in *body*, that came on *subject*, and return whether it counts."""
    try:
        who = demand_person(user_of(subject.rpartition(".")[2]))
        given = QuestionAnswer.model_validate_json(body)
        task_id, slot = parse_wait_id(given.approval_id)
        person = AnsweringPerson(who, "nats", frozenset([who]))
        await answers.answer(task_id, slot, given.answer, person, digest=given.digest)
    except AnswerRefused as refused:
        return AnswerOutcome(counts=False, why=refused.why, text=str(refused))
    except ValidationError as error:
        problem = fault_of(
            error.errors(include_url=False, include_input=False)[0], "the answer"
        )
        return AnswerOutcome(counts=False, why="unreadable", text=problem)
    except InvalidInput as error:
        return AnswerOutcome(counts=False, why="unreadable", text=str(error))
    except MemoryUnavailable as error:
        log.warning("answer_not_taken", error=str(error))
        return AnswerOutcome(
            counts=False, why="unavailable", text=f"{error}; answer again"
        )
    return AnswerOutcome(counts=True)
