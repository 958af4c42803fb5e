"""The inbox of questions that tasks ask persons: answers to one, and to several at once."""

import asyncio
import json

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.approvals.questions import ApprovalQuestion
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    ask_first,
)
from tasklore.supervisor.operations.approvals import (
    ApprovalReply,
    Decision,
    answer_approval,
    approve,
    list_approvals,
    reject,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.tasks import show_assignment

#: Questions of the page, those of which the parameters of the task are shown, and those that the navigation counts.
_MOST = 200
_MOST_WITH_PARAMETERS = 20
_MOST_COUNTED = 100


async def show(visit: Visit) -> RenderedPage:
    """Return the open questions of this person, the one that ends first on top."""
    found = await visit.call(list_approvals, limit=_MOST)
    first = found.approvals[:_MOST_WITH_PARAMETERS]
    parameters = await asyncio.gather(*(_read_parameters(visit, one) for one in first))
    return RenderedPage(
        values={
            "questions": found.approvals,
            "parameters": dict(zip((one.id for one in first), parameters, strict=True)),
            "is_cut": len(found.approvals) == _MOST,
            "may_answer": visit.may(approve),
        }
    )


async def count(visit: Visit) -> int:
    """Return how many questions wait for this person, as far as they are counted."""
    found = await visit.call(list_approvals, limit=_MOST_COUNTED)
    return len(found.approvals)


async def _read_parameters(visit: Visit, asked: ApprovalQuestion) -> object:
    """Return the parameters of the task that asks; None where they are not for this person."""
    if not visit.may(show_assignment):
        return None
    try:
        return (await visit.call(show_assignment, asked.task_id)).parameters
    except Refused:
        return None


async def decide(visit: Visit) -> Notice:
    """Answer yes or no to one question as it was shown."""
    back = visit.back("approvals")
    operation = {"approve": approve, "reject": reject}.get(visit.one("decision"))
    if operation is None:
        return Notice(to=back, text="Press one of the two buttons.", tone="bad")
    decision = Decision(note=visit.one("note"), digest=visit.one("digest") or None)
    try:
        answered = await visit.call(operation, visit.one("id"), decision)
    except (Refused, InvalidInput) as refused:
        return Notice(
            to=back, text=f"Your answer was not accepted: {refused}.", tone="bad"
        )
    word = "Approved" if operation is approve else "Rejected"
    return Notice(to=back, text=f"{word}: {answered.question}")


async def answer(visit: Visit) -> Notice:
    """Answer a question that has a schema, by JSON."""
    back = visit.back("approvals")
    try:
        value = json.loads(visit.one("answer"))
    except (ValueError, RecursionError) as error:
        return Notice(
            to=back, text=f"The answer is not valid JSON: {error}.", tone="bad"
        )
    reply = ApprovalReply(answer=value, digest=visit.one("digest") or None)
    try:
        answered = await visit.call(answer_approval, visit.one("id"), reply)
    except (Refused, InvalidInput) as refused:
        return Notice(
            to=back, text=f"Your answer was not accepted: {refused}.", tone="bad"
        )
    return Notice(to=back, text=f"Answered: {answered.question}")


async def approve_several(visit: Visit) -> Notice | RenderedPage:
    """Approve the chosen questions, each as it was shown, once it was said how many they are."""
    back = visit.back("approvals")
    chosen = visit.many("question")[:_MOST]
    if not chosen:
        return Notice(to=back, text="No question was chosen.", tone="bad")
    if visit.one("sure") != "yes":
        known = await visit.call(list_approvals, limit=_MOST)
        texts = {f"{one.id} {one.digest}": one.question for one in known.approvals}
        still = [one for one in chosen if one in texts]
        return ask_first(
            question=f"Approve {len(still)} question{'s' if len(still) != 1 else ''}?",
            explained="Each applies to the question as it was shown. Their tasks "
            "continue at once.",
            concerns=len(still),
            lines=[texts[one] for one in still],
            to="approvals/approve",
            verb="Approve them",
            kept=[("question", one) for one in still],
            back=back,
        )
    done = 0
    refusals: list[str] = []
    for one in chosen:
        approval_id, _, digest = one.partition(" ")
        try:
            await visit.call(approve, approval_id, Decision(digest=digest))
            done += 1
        except (Refused, InvalidInput) as refused:
            refusals.append(str(refused))
    text = f"{done} approved."
    if refusals:
        text += f" {len(refusals)} were not accepted: {refusals[0]}."
    return Notice(to=back, text=text, tone="bad" if refusals else "good")


PAGE = ConsolePage(
    path="approvals",
    title="Approvals",
    operation=list_approvals,
    show=show,
    template="approvals.html",
    group="Work",
    count=count,
    actions=(
        FormAction(path="approvals/decide", operation=approve, run=decide),
        FormAction(path="approvals/answer", operation=answer_approval, run=answer),
        FormAction(path="approvals/approve", operation=approve, run=approve_several),
    ),
)
