"""The parts of a page: its path, the operation behind it, its template, and the forms that it takes."""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

from tasklore.contracts.callers import Caller
from tasklore.supervisor.http.console.calls import OperationCalls
from tasklore.supervisor.operations.refusals import Fault, unusable
from tasklore.supervisor.operations.table import Operation

P = ParamSpec("P")
R = TypeVar("R")

#: Characters, and bytes of UTF-8, of what is said after an action: a browser keeps cookies of 4,096 bytes.
_MOST_SAID = 600
_MOST_SAID_BYTES = 2_400
#: Digits of a number in an address.
_MOST_DIGITS = 9
#: Parts of an address that a browser takes as the way up.
_UPWARDS = frozenset({".", ".."})

Tone = Literal["good", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paging:
    """The addresses of the first page of a list, "" where this is it, and of the next one, "" where there is none."""

    first: str
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request of a person: who it is, the `path` values, the `query`, and the `fields` of a form, each several."""

    caller: Caller
    calls: OperationCalls
    path: Mapping[str, str]
    query: Mapping[str, str]
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_bound(self) -> bool:
        """Whether this person's key is for one user or tenant: sums over all of them are not shown to it."""
        return self.caller.user is not None or self.caller.own_tenant is not None

    def may(self, operation: Operation[Any, ..., Any]) -> bool:
        """Return whether this person may run *operation*, and it can be run from here."""
        return self.calls.may(self.caller, operation)

    async def call(
        self, operation: Operation[Any, P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Return what *operation* returns to this person.

        Raises:
            NotPermitted: they may not run it.
            Refused: it refuses.
        """
        return await self.calls.call(operation, self.caller, *args, **kwargs)

    @property
    def after(self) -> str:
        """The place in the address behind which a page of a list begins, "" for the first page."""
        return self.query.get("after", "")

    def paging(self, path: str, after: str | None, /, **wanted: object) -> "Paging":
        """Return the ways from this page of the list at *path* that *wanted* filters; *after* leads to the next."""
        return Paging(
            first=address(path, **wanted) if self.after else "",
            next=address(path, after=after, **wanted) if after else "",
        )

    def choose(self, name: str, known: Sequence[str]) -> str:
        """Return the value *name* of the query, one of *known*; the first of these where it is left out.

        Raises:
            Refused: 422, it is none of them.
        """
        said = self.query.get(name, "")
        if said and said not in known:
            words = ", ".join(one for one in known if one)
            raise unusable([Fault(where=name, message=f"must be one of {words}")])
        return said or known[0]

    def number(self, name: str) -> int | None:
        """Return the value *name* of the query as a whole number, None where it is left out.

        Raises:
            Refused: 422, it is none.
        """
        said = self.query.get(name, "")
        if not said:
            return None
        if not (said.isascii() and said.isdecimal() and len(said) <= _MOST_DIGITS):
            fault = Fault(where=name, message="must be a whole number from 0 on")
            raise unusable([fault])
        return int(said)

    def one(self, name: str) -> str:
        """Return the field *name* of the form, "" where it was left out."""
        return self.fields.get(name, ("",))[0].strip()

    def back(self, path: str) -> str:
        """Return the page of the console from which a form came, never another address; *path* where it says none."""
        said = self.one("back")
        return said if _is_here(said) else address(path)

    def many(self, name: str) -> tuple[str, ...]:
        """Return each field *name* of the form, once."""
        return tuple(dict.fromkeys(self.fields.get(name, ())))


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPage:
    """A page to be shown: `values` of its template, and its `title` where that is not the page's.

    `is_unusable` says that a value of the address cannot be used, and the page what is wrong with it: it is 422.
    """

    values: Mapping[str, object]
    title: str = ""
    template: str = ""
    is_unusable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence to a person after an action, on the page at `to` that follows."""

    to: str
    text: str
    tone: Tone = "good"

    def spell(self) -> str:
        """Return it as a cookie has it."""
        text = self.text[:_MOST_SAID].encode("utf-8", "replace")[:_MOST_SAID_BYTES]
        said = json.dumps(
            [self.tone, text.decode("utf-8", "ignore")], ensure_ascii=False
        )
        return base64.urlsafe_b64encode(said.encode()).decode()


def read_said(cookie: str) -> tuple[Tone, str] | None:
    """Return the tone and the text in *cookie*, None where it has none."""
    try:
        tone, text = json.loads(base64.urlsafe_b64decode(cookie))
    except (ValueError, TypeError, RecursionError):
        return None
    if tone not in ("good", "bad") or not isinstance(text, str):
        return None
    return tone, text[:_MOST_SAID]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormAction:
    """The work of a form that is posted to *path* below the console; it needs *operation*, and answers with a page."""

    path: str
    operation: Operation[Any, ..., Any]
    run: Callable[[Visit], Awaitable[Notice | RenderedPage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """One page at *path* below the console, a view of *operation*: who may not run that never sees its name.

    `show` returns the values of *template*. One with a `group` stands in the navigation below that heading, with the
    number that `count` returns; one that `is_of_all` does not for a key of one user or tenant, which its
    operation refuses.
    """

    path: str
    title: str
    operation: Operation[Any, ..., Any]
    show: Callable[[Visit], Awaitable[RenderedPage]]
    template: str
    group: str = ""
    count: Callable[[Visit], Awaitable[int]] | None = None
    is_of_all: bool = False
    actions: tuple[FormAction, ...] = ()

    def is_offered(self, visit: Visit) -> bool:
        """Return whether it stands in the navigation of *visit*."""
        return (
            bool(self.group)
            and not (self.is_of_all and visit.is_bound)
            and visit.may(self.operation)
        )


def ask_first(
    *,
    question: str,
    explained: str,
    concerns: int,
    lines: Sequence[str],
    to: str,
    verb: str,
    kept: Sequence[tuple[str, str]],
    back: str,
    is_grave: bool = False,
) -> RenderedPage:
    """Return the page that asks before an action: how many it concerns, and the form that goes on with *kept* fields.

    The button says *verb*; one that `is_grave` ends or deletes something.
    """
    return RenderedPage(
        title=question,
        template="confirm.html",
        values={
            "question": question,
            "explained": explained,
            "concerns": concerns,
            "lines": tuple(lines),
            "to": address(to),
            "verb": verb,
            "kept": (*kept, ("back", back)),
            "back": back,
            "is_grave": is_grave,
        },
    )


def address(path: str, /, **query: object) -> str:
    """Return the address of a page of the console, with the values of *query* that are not empty.

    A *path* that leads out of the console, as that of an invented id may, becomes that of the first page.
    """
    if _leads_up(path):
        path = ""
    said = {name: value for name, value in query.items() if value not in (None, "")}
    return f"/console/{quote(path, errors='replace')}" + (
        f"?{urlencode(said, errors='replace')}" if said else ""
    )


def _is_here(said: str) -> bool:
    """Return whether *said* is an address of a page of the console, with its query if any."""
    try:
        split = urlsplit(said)
    except ValueError:
        return False
    return (
        said.isprintable()
        and said.startswith("/console/")
        and not _leads_up(split.path)
    )


def _leads_up(path: str) -> bool:
    """Return whether a browser would leave the folder of *path* on its way; it takes a backslash as a slash."""
    parts = unquote(path).replace("\\", "/").split("/")
    return not _UPWARDS.isdisjoint(parts)
