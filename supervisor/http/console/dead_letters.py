"""Dead letters: the tasks that were given up, by their errors, one whole, and another try for one or all that fit."""

import asyncio

from pydantic import ValidationError

from tasklore.contracts.faults import fault_of
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
    ask_first,
)
from tasklore.supervisor.operations.dead_letters import (
    LetterQuery,
    LetterRest,
    LettersToRedrive,
    group_dead_letters,
    list_dead_letters,
    redrive_dead_letters,
    show_dead_letter,
)

#: The fields by which letters are chosen.
_FIELDS = ("agent", "task", "error", "reason", "tenant", "user", "since", "until")
#: Letters of a page.
_PAGE = 50


async def show(visit: Visit) -> RenderedPage:
    """Return the groups of letters, and those that fit the filter."""
    wanted = {
        name: visit.query[name].strip()
        for name in _FIELDS
        if visit.query.get(name, "").strip()
    }
    after = visit.after
    fault = ""
    groups = letters = None
    try:
        query = LetterQuery.model_validate({**wanted, "after": after, "limit": _PAGE})
    except ValidationError as error:
        fault = fault_of(error.errors(include_url=False, include_input=False)[0])
    else:
        groups, letters = await asyncio.gather(
            visit.call(group_dead_letters, LetterRest()),
            visit.call(list_dead_letters, query),
        )
    return RenderedPage(
        is_unusable=bool(fault),
        values={
            "groups": groups,
            "letters": letters,
            "wanted": wanted,
            "fault": fault,
            "here": address("dead-letters", **wanted),
            "paging": visit.paging(
                "dead-letters", letters.after if letters else None, **wanted
            ),
            "may_redrive": visit.may(redrive_dead_letters),
        },
    )


async def show_one(visit: Visit) -> RenderedPage:
    """Return one letter whole.

    Raises:
        Refused: 404, there is none.
    """
    letter = await visit.call(show_dead_letter, visit.path["letter"])
    return RenderedPage(
        title=f"Dead letter {letter.sequence}",
        values={"letter": letter, "may_redrive": visit.may(redrive_dead_letters)},
    )


async def redrive(visit: Visit) -> Notice | RenderedPage:
    """Send letters again: the named ones, or all that fit, once it was shown how many they are."""
    back = visit.back("dead-letters")
    sequences = [one for one in visit.many("sequence") if one.isdecimal()]
    chosen = {name: visit.one(name) for name in _FIELDS if visit.one(name)}
    what: dict[str, object] = {"sequences": sequences} if sequences else dict(chosen)
    if visit.one("everything") == "yes" and not what:
        what = {"everything": True}
    if visit.one("no_deadline") == "yes":
        what["no_deadline"] = True
    if bound := visit.one("bound"):
        what["bound"] = bound
    try:
        wanted = LettersToRedrive.model_validate(what)
    except ValidationError as error:
        fault = fault_of(error.errors(include_url=False, include_input=False)[0])
        return Notice(to=back, text=fault, tone="bad")
    if visit.one("sure") != "yes":
        return await preview_redrive(visit, wanted, back)
    done = await visit.call(redrive_dead_letters, wanted)
    text = f"{done.concerns:,} sent again."
    if done.kept_in_all:
        text += f" {done.kept_in_all:,} stay: {done.kept[0].why}."
    if done.after is not None:
        text += " There are more: send again for the rest."
    if done.stopped:
        text += f" It stopped: {done.stopped}."
    return Notice(to=back, text=text, tone="good" if done.concerns else "bad")


async def preview_redrive(
    visit: Visit, wanted: LettersToRedrive, back: str
) -> RenderedPage:
    """Return the page that says how many letters *wanted* concerns; nothing that comes later is meant."""
    tried = await visit.call(
        redrive_dead_letters, wanted.model_copy(update={"dry_run": True})
    )
    lines = [
        f"{one.count:,} of {one.agent_id or 'no agent'}: {one.error_type}"
        for one in tried.groups
    ]
    if tried.kept_in_all:
        lines.append(
            f"{tried.kept_in_all:,} would stay, the first because {tried.kept[0].why}"
        )
    kept = [("sequence", str(one)) for one in wanted.sequences]
    kept += [(name, visit.one(name)) for name in _FIELDS if visit.one(name)]
    kept += [
        (name, "yes")
        for name in ("everything", "no_deadline")
        if visit.one(name) == "yes"
    ]
    if tried.bound and not wanted.sequences:
        kept.append(("bound", tried.bound))
    more = " or more" if tried.after is not None else ""
    return ask_first(
        question=f"Send {tried.concerns:,}{more} again?",
        explained="Each runs as a new generation of the same task. Tasks that fail "
        "from now on are not included.",
        concerns=tried.concerns,
        lines=lines,
        to="dead-letters/redrive",
        verb="Send again",
        kept=kept,
        back=back,
    )


PAGE = ConsolePage(
    path="dead-letters",
    title="Dead letters",
    operation=list_dead_letters,
    show=show,
    template="dead_letters.html",
    group="Work",
    actions=(
        FormAction(
            path="dead-letters/redrive", operation=redrive_dead_letters, run=redrive
        ),
    ),
)
LETTER = ConsolePage(
    path="dead-letters/{letter}",
    title="Dead letter",
    operation=show_dead_letter,
    show=show_one,
    template="dead_letter.html",
)
