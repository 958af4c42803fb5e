"""The memory of a person: documents, why each entry is there, history, facts, search, and forgetting.

Who has the right to read memories names a person; a key for one user shows theirs. Each look is one of an operation,
which the audit has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    Paging,
    RenderedPage,
    Visit,
    address,
)
from tasklore.supervisor.operations.memory.documents import show_memory
from tasklore.supervisor.operations.memory.hand_edits import (
    Redoing,
    forget_everything,
    redo_plan,
)
from tasklore.supervisor.operations.memory.history import (
    Undo,
    explain_entry,
    list_plans,
    undo_plan,
)
from tasklore.supervisor.operations.memory.items import (
    add_item,
    change_item,
    clear_memory,
    list_items,
)
from tasklore.supervisor.operations.memory.review import list_conflicts
from tasklore.supervisor.operations.memory.search import search_turns
from tasklore.supervisor.operations.memory.turns import list_facts, list_waiting
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.table import Unfinished

#: Parts of a memory, by the word of the address, with the heading of each.
VIEWS: Mapping[str, str] = {
    "memory": "Memory",
    "items": "Items",
    "history": "History",
    "facts": "Facts",
    "search": "Search",
}
#: Characters of a name, of a place, and of a question.
_LONGEST_NAME = 200
_LONGEST_PLACE = 1_000
_LONGEST_QUESTION = 2_000
#: Seconds that an edit is waited for: a person waits for the page.
EDIT_S = 15.0
_PAGE = 20
#: The values of the template that one part or another of a memory fills.
_PARTS = (
    "category",
    "found",
    "conflicts",
    "items",
    "plans",
    "facts",
    "waiting",
    "matches",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The counts of removed and remaining records of a person, by kind; `beside` and `elsewhere` are remains."""

    user: str
    removed: Mapping[str, int]
    left: Mapping[str, int]
    beside: Mapping[str, int]
    elsewhere: str

    @property
    def is_all_gone(self) -> bool:
        """Whether nothing was found any more."""
        return not any(self.left.values())


async def show(visit: Visit) -> RenderedPage:
    """Return one part of the memory of the person in the address, or the form that asks for a name."""
    user = _user_of(visit, visit.query.get("user", ""))
    view = visit.choose("view", tuple(VIEWS))
    values: dict[str, object] = {
        "user": user,
        "is_own": visit.caller.user is not None,
        "view": view,
        "views": VIEWS,
        "fault": _fault_in(user),
        "here": address("people", user=user, view=view),
        "may_undo": visit.may(undo_plan),
        "may_redo": visit.may(redo_plan),
        "may_add": visit.may(add_item),
        "may_change": visit.may(change_item),
        "may_forget": visit.may(forget_everything) or visit.may(clear_memory),
        "q": visit.query.get("q", "").strip()[:_LONGEST_QUESTION],
        "at": visit.query.get("at", "").strip(),
    }
    for name in _PARTS:
        values[name] = None
    if user and not values["fault"]:
        values |= await _read(visit, user, view)
    title = f"{user} · memory" if user else ""
    return RenderedPage(title=title, values=values, is_unusable=bool(values["fault"]))


async def _read(visit: Visit, user: str, view: str) -> Mapping[str, object]:
    """Return what the part *view* shows of *user*."""
    if view == "items":
        below = visit.query.get("category", "").strip()[:_LONGEST_NAME]
        listed = await visit.call(list_items, user, category=below)
        return {"items": listed.items, "category": below}
    if view == "history":
        plans = await visit.call(list_plans, user, after=visit.after, limit=_PAGE)
        return {"plans": plans, "paging": _page_through(visit, user, view, plans.after)}
    if view == "facts":
        waiting = await visit.call(list_waiting, user)
        if not visit.may(list_facts):
            return {"waiting": waiting}
        after = visit.after
        facts = await visit.call(list_facts, user, after=after, limit=50)
        return {
            "facts": facts,
            "waiting": waiting,
            "paging": _page_through(visit, user, view, facts.after),
        }
    if view == "search":
        question = visit.query.get("q", "").strip()[:_LONGEST_QUESTION]
        if not question:
            return {}
        return {"matches": await visit.call(search_turns, user, question=question)}
    at = visit.query.get("at", "").strip()
    if at and not _is_day(at):
        return {"fault": f"“{at[:40]}” is not a valid day; write it as 2026-05-01."}
    found = await visit.call(show_memory, user, at=at or None)
    if at:
        return {"found": found}
    conflicts = await visit.call(list_conflicts, user)
    return {"found": found, "conflicts": conflicts}


def _page_through(visit: Visit, user: str, view: str, after: str | None) -> Paging:
    return visit.paging("people", after, user=user, view=view)


async def show_why(visit: Visit) -> RenderedPage:
    """Return how one entry came about.

    Raises:
        Refused: 404, there is no such entry.
        InvalidInput: the place cannot be read.
    """
    user = demand_user(visit)
    path = visit.query.get("path", "")[:_LONGEST_PLACE]
    resource = visit.query.get("resource") or None
    explained = await visit.call(explain_entry, user, path=path, resource=resource)
    return RenderedPage(
        title=f"Why {explained.path}",
        values={
            "user": user,
            "explained": explained,
            "may_undo": visit.may(undo_plan),
            "may_redo": visit.may(redo_plan),
            "back": address("people", user=user),
        },
    )


async def show_forget(visit: Visit) -> RenderedPage:
    """Return the form that asks for the name once more before all about a person is forgotten."""
    user = demand_user(visit)
    return RenderedPage(
        title=f"Forget {user}",
        values={
            "user": user,
            "may_forget_everything": visit.may(forget_everything),
            "may_clear": visit.may(clear_memory),
            "back": address("people", user=user),
        },
    )


async def undo(visit: Visit) -> Notice:
    """Take one edit back."""
    user = demand_form_user(visit)
    back = visit.back("people")
    wanted = Undo(plan_id=visit.one("plan_id") or None, wait_seconds=EDIT_S)
    try:
        done = await visit.call(undo_plan, user, wanted)
    except (Refused, InvalidInput) as refused:
        return Notice(to=back, text=f"It was not undone: {refused}.", tone="bad")
    if isinstance(done, Unfinished):
        return Notice(to=back, text="It is being undone: check again in a moment.")
    return Notice(to=back, text="It was undone.")


async def redo(visit: Visit) -> Notice:
    """Apply one edit again that was taken back."""
    user = demand_form_user(visit)
    back = visit.back("people")
    wanted = Redoing(plan_id=visit.one("plan_id") or None)
    try:
        await visit.call(redo_plan, user, wanted)
    except (Refused, InvalidInput) as refused:
        return Notice(to=back, text=f"It was not redone: {refused}.", tone="bad")
    return Notice(to=back, text="It was redone.")


async def forget(visit: Visit) -> Notice | RenderedPage:
    """Forget everything about a person whose name was typed, and show the proof."""
    user = demand_form_user(visit)
    if visit.one("typed") != user.strip():
        return _ask_again(user)
    done = await visit.call(forget_everything, user)
    return _show_proof(
        Proof(
            user=user,
            removed=done.removed,
            left=done.left,
            beside=done.beside,
            elsewhere="",
        )
    )


async def clear(visit: Visit) -> Notice | RenderedPage:
    """Forget all that was learned of a person whose name was typed, as far as a memory worker reaches."""
    user = demand_form_user(visit)
    if visit.one("typed") != user.strip():
        return _ask_again(user)
    done = await visit.call(clear_memory, user, confirm="forget")
    if isinstance(done, Unfinished):
        text = f"The data of {user} are being deleted: check again in a moment."
        return Notice(to=address("people", user=user), text=text)
    return _show_proof(
        Proof(
            user=user,
            removed=done.removed,
            left=done.left,
            beside={},
            elsewhere=done.elsewhere,
        )
    )


def _show_proof(proof: Proof) -> RenderedPage:
    return RenderedPage(
        title=f"{proof.user} is forgotten",
        template="forgotten.html",
        values={"proof": proof, "back": address("people", user=proof.user)},
    )


def _ask_again(user: str) -> Notice:
    text = "Nothing was deleted: the typed name does not match."
    return Notice(to=address("people/forget", user=user), text=text, tone="bad")


def _user_of(visit: Visit, named: str) -> str:
    """Return the person that is meant: of a key for one user that user, where none is named."""
    return named.strip() or visit.caller.user or ""


def _fault_in(user: str) -> str:
    """Return the fault of a name, "" without one."""
    if "/" in user or len(user) > _LONGEST_NAME:
        return f"A name has no slash, and at most {_LONGEST_NAME} characters."
    return ""


def demand_user(visit: Visit) -> str:
    """Return the person that the address of a page means.

    Raises:
        Refused: 422, none is named.
    """
    return _demand_name(_user_of(visit, visit.query.get("user", "")))


def demand_form_user(visit: Visit) -> str:
    """Return the person that a form means.

    Raises:
        Refused: 422, none is named.
    """
    return _demand_name(_user_of(visit, visit.one("user")))


def _demand_name(user: str) -> str:
    fault = _fault_in(user) or ("" if user else "Say whose memory is meant.")
    if fault:
        raise Refused(422, "unusable", fault)
    return user


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


PAGE = ConsolePage(
    path="people",
    title="People's memory",
    operation=show_memory,
    show=show,
    template="people.html",
    group="Memory",
    actions=(
        FormAction(path="people/undo", operation=undo_plan, run=undo),
        FormAction(path="people/redo", operation=redo_plan, run=redo),
    ),
)
WHY = ConsolePage(
    path="people/why",
    title="Why it is stored",
    operation=explain_entry,
    show=show_why,
    template="why.html",
)
FORGET = ConsolePage(
    path="people/forget",
    title="Forget a person",
    operation=show_memory,
    show=show_forget,
    template="forget.html",
    actions=(
        FormAction(path="people/forget", operation=forget_everything, run=forget),
        FormAction(path="people/clear", operation=clear_memory, run=clear),
    ),
)
