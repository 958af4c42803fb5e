"""Signed links: each answers one question in the name of one person, once, until it expires."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasklore.contracts.admission.waits import demand_person, parse_wait_id
from tasklore.contracts.callers import Caller
from tasklore.contracts.message_parts import is_none
from tasklore.supervisor.approvals.answers import (
    AnsweringPerson,
    AnswerRefused,
    Answers,
)
from tasklore.supervisor.makers import Makers

log = structlog.get_logger(__name__)

#: Where the page behind a link is.
PATH = "/approve/"
#: The role of those who make links.
LINK_ROLE: Final = "admin"
#: What is signed begins with this, so that the secret signs nothing else by accident.
_PURPOSE = b"tasklore approval link 1\n"


class ApprovalLink(BaseModel):
    """A link: to which question, by its *digest*, in whose name, and until when (seconds since 1970).

    *made_by* is who made it, None for one that 0.2 made, and *maker* the holder of the key that it ends with, None for
    none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    approval_id: str
    digest: str
    who: str
    expires: int
    made_by: str | None = None
    maker: Caller | None = Field(default=None, exclude_if=is_none)


class Links:
    """Makes and reads links, signed with *secret*; *address* is where they lead to, None where it is not known.

    *makers* says whether the keys are there that links were made with; None: none is required.
    """

    def __init__(
        self,
        secret: str,
        answers: Answers,
        address: str | None = None,
        *,
        makers: Makers | None = None,
    ) -> None:
        self.address = address
        self.makers = makers or Makers()
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
            AnswerRefused: it is altered, has expired, or its maker may make none any more; an answer by one of the
                latter two is kept with its question.
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
        if not is_ours:
            # Anybody can write one, in any name: what it says is proven by nothing, and is kept nowhere.
            log.warning("link_altered", task_id=task_id, slot=slot)
            raise AnswerRefused("the link was altered; ask for another one", "link")
        if link.expires < datetime.now(UTC).timestamp():
            why = "link expired"
            words = "the link has expired"
        elif (loss := self.makers.find_loss(link.maker, LINK_ROLE)) is not None:
            why = f"link ended: {loss}"
            words = f"the link has ended: {loss}"
        else:
            return link
        if is_answer:
            # Not of a look, as programs that preview links look at each.
            await self._answers.refuse(task_id, slot, self.person_of(link), why)
        raise AnswerRefused(f"{words}; ask for another one", "link")

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
