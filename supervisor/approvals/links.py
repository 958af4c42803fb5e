"""Signed links: each answers one question in the name of one person, once, until it expires."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from tasklore.contracts.admission.waits import demand_person, parse_wait_id
from tasklore.supervisor.approvals.answers import (
    AnsweringPerson,
    AnswerRefused,
    Answers,
)

log = structlog.get_logger(__name__)

#: Where the page behind a link is.
PATH = "/approve/"
#: What is signed begins with this, so that the secret signs nothing else by accident.
_PURPOSE = b"tasklore approval link 1\n"


class ApprovalLink(BaseModel):
    """A link: to which question, by its *digest*, in whose name, and until when (seconds since 1970).

    *made_by* is who made it, None for one that 0.2 made.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    approval_id: str
    digest: str
    who: str
    expires: int
    made_by: str | None = None


class Links:
    """Makes and reads links, signed with *secret*; *address* is where they lead to, None where it is not known."""

    def __init__(
        self, secret: str, answers: Answers, address: str | None = None
    ) -> None:
        self.address = address
        self._secret = secret.encode()
        self._answers = answers

    def make(self, link: ApprovalLink) -> str:
        """Return *link* as a part of a path."""
        demand_person(link.who)
        body = _encode(link.model_dump_json().encode())
        return f"{body}.{self._sign(body)}"

    async def read(self, token: str, *, is_answer: bool) -> ApprovalLink:
        """Return the link that *token* spells.

        Raises:
            AnswerRefused: it is altered, or has expired; an answer by one that has is kept with its question.
        """
        body, _, signature = token.partition(".")
        try:
            link = ApprovalLink.model_validate_json(
                base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            )
            task_id, slot = parse_wait_id(link.approval_id)
        except (ValueError, ValidationError) as error:
            raise AnswerRefused(
                "this link is not valid; open it exactly as it was sent", "link"
            ) from error
        is_ours = hmac.compare_digest(signature.encode(), self._sign(body).encode())
        if is_ours and link.expires >= datetime.now(UTC).timestamp():
            return link
        if not is_ours:
            # Anybody can write one, in any name: what it says is proven by nothing, and is kept nowhere.
            log.warning("link_altered", task_id=task_id, slot=slot)
            raise AnswerRefused("the link was altered; ask for another one", "link")
        if is_answer:
            # Not of a look, as programs that preview links look at each.
            person = self.person_of(link)
            await self._answers.refuse(task_id, slot, person, "link expired")
        raise AnswerRefused("the link has expired; ask for another one", "link")

    @staticmethod
    def person_of(link: ApprovalLink) -> AnsweringPerson:
        """Return the person in whose name the link answers."""
        return AnsweringPerson(
            link.who,
            "link",
            frozenset([link.who]),
            made_by=link.made_by,
            link=hashlib.sha256(link.model_dump_json().encode()).hexdigest()[:16],
        )

    def _sign(self, body: str) -> str:
        return _encode(
            hmac.digest(self._secret, _PURPOSE + body.encode(), hashlib.sha256)
        )


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
