"""The page behind a signed link: a question, and a form that answers it; it works without a script."""

import json
from collections.abc import Mapping
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from pydantic import JsonValue
from starlette.responses import HTMLResponse, Response

from tasklore.contracts.admission.waits import parse_wait_id
from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.supervisor.approvals.answers import AnswerRefused
from tasklore.supervisor.approvals.links import PATH, ApprovalLink
from tasklore.supervisor.approvals.questions import ApprovalQuestion, view_of
from tasklore.supervisor.http.admission.body_text import find_unkeepable
from tasklore.supervisor.http.dependencies import ApiDependencies

#: The form of the page may be sent to itself alone, and no other page learns of the link.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PAGE = Template(Path(__file__).with_name("page.html").read_text("utf-8"))
_YES_OR_NO = """<form method="post">
<label for="note">Note (the agent and the audit show it)</label>
<textarea id="note" name="note" maxlength="2000"></textarea>
<div class="row"><button class="yes" name="decision" value="approve">Approve</button>
<button class="no" name="decision" value="reject">Reject</button></div>
</form>"""
_JSON_FORM = """<form method="post">
<label for="answer">Answer, as JSON of this shape: <code>{schema}</code></label>
<textarea id="answer" name="answer" required></textarea>
<div class="row"><button class="yes">Send</button></div>
</form>"""


def routes(parts: ApiDependencies) -> APIRouter:
    """Return the page; looking at it decides nothing, sending its form does."""
    router = APIRouter(include_in_schema=False)
    links = parts.links
    if links is None:
        return router

    @router.get(PATH + "{token}")
    async def look(token: str) -> Response:
        try:
            link = await links.read(token, is_answer=False)
            question = await _read(parts, link)
        except InvalidInput as refused:
            return _say("This link cannot be used", str(refused), 403)
        except MemoryUnavailable as error:
            return _say_away(error)
        return _show(question, link)

    @router.post(PATH + "{token}")
    async def decide(token: str, request: Request) -> Response:
        try:
            link = await links.read(token, is_answer=True)
            fields = parse_qs((await request.body()).decode(errors="replace"))
            task_id, slot = parse_wait_id(link.approval_id)
            person = links.person_of(link)
            await parts.answers.answer(
                task_id, slot, _answer_in(fields), person, digest=link.digest
            )
        except InvalidInput as refused:
            is_late = isinstance(refused, AnswerRefused) and refused.why != "link"
            return _say(
                "Your answer was not accepted", str(refused), 409 if is_late else 403
            )
        except MemoryUnavailable as error:
            return _say_away(error)
        return _say("Thank you", "Your answer is recorded, and the task continues", 200)

    return router


def is_page(path: str) -> bool:
    """Return whether persons open *path*, in a browser."""
    return path.startswith(PATH)


def as_page(problem: Mapping[str, Any]) -> Response:
    """Return the page that says *problem*, as a program would get it, to a person."""
    status = int(problem["status"])
    heading = "This cannot be answered"
    text = str(problem["detail"])
    if status in (429, 503):
        heading = "Too many requests"
        text = "Your answer was not recorded. Go back and try again in a moment"
    elif status == 404:
        heading = "This link cannot be used"
        text = "This link is invalid. Open it exactly as you received it"
    return _say(heading, text, status)


async def _read(parts: ApiDependencies, link: ApprovalLink) -> ApprovalQuestion:
    task_id, slot = parse_wait_id(link.approval_id)
    return view_of(task_id, await parts.answers.read(task_id, slot))


def _answer_in(fields: dict[str, list[str]]) -> JsonValue:
    """Return the answer in a form.

    Raises:
        InvalidInput: it has none.
    """
    if "answer" in fields:
        try:
            answer: JsonValue = json.loads(fields["answer"][0])
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                f"the answer is not valid JSON, or too deep: {error}; go back and "
                "correct it"
            ) from error
        if fault := find_unkeepable(fields["answer"][0].encode()):
            raise InvalidInput(f"{fault.where} {fault.message}")
        return answer
    decision = fields.get("decision", [""])[0]
    if decision not in ("approve", "reject"):
        raise InvalidInput(
            "the form came without a decision; go back and press one of its buttons"
        )
    return {"approved": decision == "approve", "note": fields.get("note", [""])[0]}


def _show(question: ApprovalQuestion, link: ApprovalLink) -> Response:
    answer = question.answer
    facts = {
        "Asked by": f"{question.agent_id}, task {question.task}",
        "You are": link.who,
        "Asked": _spell(question.asked_at),
        "Until": _spell(question.until),
    }
    if answer is not None:
        facts |= {
            "Answered": f"{_spell(answer.at)} by {answer.by or 'its time'}",
            "Answer": json.dumps(answer.value),
        }
    listed = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
        for name, value in facts.items()
    )
    form = _YES_OR_NO
    if question.answer_schema is not None:
        form = _JSON_FORM.format(schema=escape(json.dumps(question.answer_schema)))
    if question.state != "open" or question.digest != link.digest:
        form = "<p>There is nothing left to decide.</p>"
    return _page("A task asks you", question.question, f"<dl>{listed}</dl>{form}", 200)


def _say(heading: str, text: str, status: int) -> Response:
    return _page("Approval", heading, f"<p>{escape(text)}.</p>", status)


def _say_away(error: MemoryUnavailable) -> Response:
    page = _say(
        "The question cannot be read now",
        f"{error}; open the link again in a moment, an answer is recorded once",
        503,
    )
    page.headers["Retry-After"] = "1"
    return page


def _page(kicker: str, heading: str, body: str, status: int) -> Response:
    title = escape(heading.splitlines()[0][:80])
    page = _PAGE.substitute(
        title=title, kicker=escape(kicker), heading=escape(heading), body=body
    )
    return HTMLResponse(page, status_code=status, headers=_HEADERS)


def _spell(at: datetime) -> str:
    return f"{at:%d %B %Y, %H:%M} UTC"
