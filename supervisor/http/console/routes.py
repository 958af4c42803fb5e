"""The routes of the console: each page, each form, signing in and out, and the files that pages are shown with."""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.faults import complaint_of
from tasklore.supervisor.feed.events import OUTPUT_ID
from tasklore.supervisor.http.admission.console_sessions import (
    CONSOLE,
    COOKIE,
    LIFE_S,
    ConsoleSessions,
)
from tasklore.supervisor.http.admission.keys import CALLER
from tasklore.supervisor.http.console import (
    agents,
    approvals,
    dead_letters,
    items,
    money,
    overview,
    people,
    pipelines,
    run,
    run_messages,
    runs,
    schedules,
    stories,
    worlds,
)
from tasklore.supervisor.http.console.calls import OperationCalls
from tasklore.supervisor.http.console.helpers import FILTERS, MARKS, show_marks
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    RenderedPage,
    Visit,
    address,
    read_said,
)
from tasklore.supervisor.http.dependencies import Admission
from tasklore.supervisor.operations.console import (
    claim_link,
    end_session,
    has_ended,
)
from tasklore.supervisor.operations.refusals import (
    Fault,
    Refused,
    not_found,
    unusable,
)
from tasklore.supervisor.operations.tasks import show_task

#: Every page, in the order of the navigation. A new one is a module, a template, and a line here.
PAGES: tuple[ConsolePage, ...] = (
    overview.PAGE,
    runs.PAGE,
    run.PAGE,
    run_messages.PAGE,
    approvals.PAGE,
    dead_letters.PAGE,
    dead_letters.LETTER,
    agents.PAGE,
    agents.AGENT,
    agents.TASK,
    schedules.PAGE,
    schedules.NEW,
    money.PAGE,
    money.LIMITS,
    money.LIMIT,
    pipelines.PAGE,
    pipelines.RUN,
    people.PAGE,
    people.WHY,
    items.PAGE,
    people.FORGET,
    stories.PAGE,
    stories.STORY,
    worlds.PAGE,
)

#: Opens the feed of a run for a caller, behind the event that they read last, while the function returns True.
Follow = Callable[
    [Caller, str, str | None, Callable[[], Awaitable[bool]]], Awaitable[Response]
]

_HERE = Path(__file__).parent
_STATIC = _HERE / "static"
#: What a browser may do with a page: show it, and send its forms here.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer` a browser would say of our own forms, too, that their origin is `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: The field of each form by which it is one of ours, and the cookie of what is said after an action.
_TOKEN = "form_token"  # noqa: S105 - the name of a field
_SAID = "tasklore_console_said"
#: Seconds for which each cookie is kept, and fields that a form has at most.
_LIVES_S = {COOKIE: LIFE_S, _SAID: 60}
_MOST_FIELDS = 2_000
_SIGN_IN = f"{CONSOLE}sign-in"


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=show_marks,
        auto_reload=False,
    )
    made.filters |= FILTERS
    made.globals |= {
        "address": address,
        "file_address": _file_address,
        "marks": MARKS,
    }
    return made


def routes(
    door: Admission,
    calls: OperationCalls,
    *,
    follow: Follow | None = None,
    pages: tuple[ConsolePage, ...] = PAGES,
) -> APIRouter:
    """Return the routes of *pages* behind *door*, which call operations by *calls*.

    *follow* opens the stream of a run's output; None where this process has none.
    """
    router = APIRouter(include_in_schema=False)
    console = Console(door, calls, pages, follow)
    if follow is not None:
        router.add_route(
            f"{CONSOLE}runs/{{task_id}}/output", console.open_output, methods=["GET"]
        )
    router.add_route("/console", _go_home, methods=["GET"])
    router.add_route(f"{CONSOLE}static/{{name}}", _serve_file, methods=["GET"])
    for page in pages:
        router.add_route(
            CONSOLE + page.path, console.show_by(page), methods=["GET"], name=page.title
        )
        for action in page.actions:
            router.add_route(
                CONSOLE + action.path,
                console.run_by(page, action),
                methods=["POST"],
                name=action.path,
            )
    router.add_route(_SIGN_IN, console.offer_sign_in, methods=["GET"])
    router.add_route(_SIGN_IN, console.sign_in, methods=["POST"])
    router.add_route(f"{CONSOLE}sign-out", console.sign_out, methods=["POST"])
    router.add_route(f"{CONSOLE}{{rest:path}}", _refuse_path, methods=["GET", "POST"])
    return router


def is_page(path: str) -> bool:
    """Return whether persons open *path*, in a browser."""
    return path.startswith(CONSOLE)


def as_page(problem: Mapping[str, Any]) -> Response:
    """Return the page that says *problem* to a person."""
    status = int(problem["status"])
    # A part of a page that is fetched for an hour finds nobody signed in: the page as a whole says so.
    more = {"HX-Redirect": _SIGN_IN} if status == HTTPStatus.UNAUTHORIZED else {}
    response = _respond(
        "problem.html",
        {
            "title": HTTPStatus(status).phrase,
            "detail": str(problem["detail"]),
            "code": status,
            "faults": problem.get("problems", ()),
            "is_signed_out": status == HTTPStatus.UNAUTHORIZED,
        },
        status,
    )
    response.headers.update(more)
    return response


class Console:
    """Shows *pages* and runs their forms for the person who is signed in at *door*."""

    def __init__(
        self,
        door: Admission,
        calls: OperationCalls,
        pages: tuple[ConsolePage, ...],
        follow: Follow | None,
    ) -> None:
        self._follow = follow
        self._door = door
        self._calls = calls
        self._pages = pages
        self._sessions = door.console or ConsoleSessions.of(None, door.keys)

    def show_by(self, page: ConsolePage) -> Callable[[Request], Awaitable[Response]]:
        """Return the route that shows *page*."""

        async def show(request: Request) -> Response:
            cookie = await self._cookie_of(request)
            begun = "" if cookie else self._begin(_caller_of(request))
            visit = self._visit(request)
            page.operation.demand_role(visit.caller)
            with _telling_faults():
                shown = await page.show(visit)
            response = await self._render(
                request, visit, page, shown, cookie=cookie or begun
            )
            if begun:
                self._keep(request, response, COOKIE, begun)
            return response

        return show

    def run_by(
        self, page: ConsolePage, action: FormAction
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return the route that runs *action* of *page*."""

        async def run(request: Request) -> Response:
            cookie = await self._cookie_of(request)
            fields = await self._read_form(request, cookie)
            visit = self._visit(request, fields)
            action.operation.demand_role(visit.caller)
            with _telling_faults():
                found = await action.run(visit)
            if isinstance(found, RenderedPage):
                return await self._render(request, visit, page, found, cookie=cookie)
            response = RedirectResponse(found.to, HTTPStatus.SEE_OTHER, headers=HEADERS)
            self._keep(request, response, _SAID, found.spell())
            return response

        return run

    async def offer_sign_in(self, request: Request) -> Response:
        """Show the button that uses a link: a program that previews links presses none."""
        return _respond(
            "sign_in.html",
            {"title": "Sign in", "link": request.query_params.get("link", "")},
        )

    async def sign_in(self, request: Request) -> Response:
        """Use a link up, and begin a session of its caller.

        Raises:
            Refused: 403, it is altered, over, or was used.
            MemoryUnavailable: the store that knows whether it was used does not answer.
        """
        fields = await _read_fields(request)
        link = fields.get("link", ("",))[0]
        holder = self._sessions.read_link(link) if self._sessions is not None else None
        if holder is None or not await claim_link(self._calls.console, holder.number):
            raise Refused(
                403,
                "link",
                "this link was used, has expired, or was altered; `tasklore console` "
                "prints a new one",
            )
        response = RedirectResponse(CONSOLE, HTTPStatus.SEE_OTHER, headers=HEADERS)
        self._keep(request, response, COOKIE, self._begin(holder.caller))
        return response

    async def open_output(self, request: Request) -> Response:
        """Open the stream of what a run puts out, for the script of its page; it ends with the session.

        Raises:
            Refused: 404, there is no such run for them; 422, no event has that id.
        """
        cookie = await self._cookie_of(request)
        caller = _caller_of(request)
        show_task.demand_role(caller)
        last = request.headers.get("last-event-id")
        if last is not None and re.fullmatch(OUTPUT_ID, last) is None:
            raise unusable([Fault(where="Last-Event-ID", message="is of no event")])
        if self._follow is None:
            raise not_found("no output is followed here")
        task_id = request.path_params["task_id"]
        response = await self._follow(
            caller, task_id, last, partial(self._is_signed_in, cookie, caller)
        )
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    async def sign_out(self, request: Request) -> Response:
        """End the session, in this browser and wherever else its cookie is.

        Raises:
            Refused: 403, the form is none of this session.
            MemoryUnavailable: the store that all processes ask does not answer: it goes on.
        """
        cookie = await self._cookie_of(request)
        await self._read_form(request, cookie)
        held = self._sessions.read_session(cookie) if self._sessions else None
        if held is not None:
            await end_session(self._calls.console, held.number)
        response = _respond("sign_in.html", {"title": "Signed out", "link": ""})
        response.delete_cookie(COOKIE, path=CONSOLE)
        return response

    def _begin(self, caller: Caller) -> str:
        """Return the cookie of a new session of *caller*.

        Raises:
            Refused: 401, their key was removed just now.
        """
        if self._sessions is None:
            return ""
        try:
            return self._sessions.make_session(caller)
        except LookupError as error:
            raise Refused(401, "no-session", "this key was removed just now") from error

    async def _cookie_of(self, request: Request) -> str:
        """Return the session of *request*, "" without one that counts: where no key is required there may be none.

        Raises:
            Refused: 401, it was signed out of.
            MemoryUnavailable: the store that knows does not answer.
        """
        header = request.headers.get("cookie", "")
        found = self._sessions.find_session(header) if self._sessions else None
        if found is None:
            return ""
        cookie, held = found
        if not await has_ended(self._calls.console, held.number):
            return cookie
        if self._door.keys is None:
            return ""
        raise Refused(
            401,
            "no-session",
            "this session was signed out; `tasklore console` prints a new sign-in link",
        )

    async def _is_signed_in(self, cookie: str, caller: Caller) -> bool:
        """Return whether *cookie* is still a session of *caller* as they were.

        A store that does not answer ends none: without it no session is signed out either.
        """
        if not cookie or self._sessions is None:
            return True
        held = self._sessions.read_session(cookie)
        if held is None or held.caller != caller:
            return False
        try:
            return not await has_ended(self._calls.console, held.number)
        except MemoryUnavailable:
            return True

    def _token_of(self, cookie: str) -> str:
        return "" if self._sessions is None else self._sessions.form_token(cookie)

    async def _read_form(
        self, request: Request, cookie: str
    ) -> Mapping[str, tuple[str, ...]]:
        """Return the fields of a form of this session.

        Raises:
            Refused: 403, it is none.
        """
        fields = await _read_fields(request)
        given = fields.get(_TOKEN, ("",))[0]
        if not cookie or not hmac.compare_digest(
            given.encode(), self._token_of(cookie).encode()
        ):
            raise Refused(
                403,
                "form",
                "this form belongs to another session; open the page again, and "
                "resubmit it",
            )
        return fields

    def _visit(
        self, request: Request, fields: Mapping[str, tuple[str, ...]] | None = None
    ) -> Visit:
        return Visit(
            caller=_caller_of(request),
            calls=self._calls,
            path={name: str(one) for name, one in request.path_params.items()},
            query=dict(request.query_params),
            fields=fields or {},
        )

    async def _render(
        self,
        request: Request,
        visit: Visit,
        page: ConsolePage,
        shown: RenderedPage,
        *,
        cookie: str,
    ) -> Response:
        """Return *shown* within the layout, in which each page has its place that *visit* may see."""
        cookies = request.cookies
        response = _respond(
            shown.template or page.template,
            {
                **shown.values,
                "title": shown.title or page.title,
                "page": page,
                "visit": visit,
                "navigation": await self._navigation(visit),
                "said": read_said(cookies.get(_SAID, "")),
                "form_token": self._token_of(cookie),
                "may_open": visit.may(show_task),
                "follows": self._follow is not None,
                "is_keyless": self._door.keys is None,
                "url": request.url.path
                + (f"?{request.url.query}" if request.url.query else ""),
            },
            HTTPStatus.UNPROCESSABLE_ENTITY if shown.is_unusable else HTTPStatus.OK,
        )
        if _SAID in cookies and request.method == "GET":
            response.delete_cookie(_SAID, path=CONSOLE)
        return response

    async def _navigation(
        self, visit: Visit
    ) -> Mapping[str, Sequence[tuple[ConsolePage, int]]]:
        """Return the pages that *visit* may see by their groups, each with its count."""
        found: dict[str, list[tuple[ConsolePage, int]]] = {}
        for page in self._pages:
            if page.is_offered(visit):
                count = 0 if page.count is None else await page.count(visit)
                found.setdefault(page.group, []).append((page, count))
        return found

    def _keep(
        self, request: Request, response: Response, name: str, value: str
    ) -> None:
        """Keep a cookie that goes nowhere but here, and that no script reads."""
        public = "" if self._sessions is None else self._sessions.address or ""
        response.set_cookie(
            name,
            value,
            max_age=_LIVES_S[name],
            path=CONSOLE,
            secure=request.url.scheme == "https" or public.startswith("https:"),
            httponly=True,
            samesite="strict",
        )


@contextmanager
def _telling_faults() -> Iterator[None]:
    """Refuse values of a person that no operation takes.

    Raises:
        Refused: 422, names the field.
    """
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(one) for one in first["loc"])
        raise unusable([Fault(where=where, message=complaint_of(first))]) from error


def _caller_of(request: Request) -> Caller:
    """Return who is signed in.

    Raises:
        Refused: 401, no one is.
    """
    caller = request.scope.get(CALLER)
    if not isinstance(caller, Caller):
        raise Refused(401, "no-session", "not signed in")
    return caller


async def _read_fields(request: Request) -> Mapping[str, tuple[str, ...]]:
    """Return the fields of a form, each with all of its values.

    Raises:
        Refused: 422, it is none, or has too many.
    """
    try:
        pairs = parse_qsl(
            (await request.body()).decode(),
            keep_blank_values=True,
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError as error:
        raise Refused(
            422, "unusable", "the form cannot be read, or has too many fields"
        ) from error
    found: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        found[name] = (*found.get(name, ()), value)
    return found


def _respond(
    template: str, values: Mapping[str, object], status: int = 200
) -> Response:
    text = _templates().get_template(template).render(values)
    # Half of a surrogate pair, which JSON can spell and UTF-8 cannot, breaks no page.
    return HTMLResponse(
        text.encode("utf-8", "replace"), status_code=status, headers=HEADERS
    )


async def _go_home(_request: Request) -> Response:
    return RedirectResponse(CONSOLE, HTTPStatus.PERMANENT_REDIRECT)


async def _serve_file(request: Request) -> Response:
    """Serve one of the files that pages are shown with; a browser keeps it by the file's own tag."""
    name = request.path_params["name"]
    body, tag = _files().get(name, (None, ""))
    if body is None:
        raise not_found("there is no such file")
    kind = _KINDS[Path(name).suffix]
    is_its_own = request.query_params.get("v") == tag
    kept = "max-age=31536000, immutable" if is_its_own else "no-cache"
    headers = HEADERS | {"Cache-Control": kept, "ETag": f'"{tag}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body, media_type=kind, headers=headers)


def _file_address(name: str) -> str:
    """Return the address of a file, which is another one when the file is."""
    return f"{CONSOLE}static/{name}?v={_files()[name][1]}"


@cache
def _files() -> Mapping[str, tuple[bytes, str]]:
    """Return each file with its tag, by name."""
    return {
        file.name: (body, hashlib.sha256(body).hexdigest()[:16])
        for file in sorted(_STATIC.iterdir())
        if file.suffix in _KINDS
        for body in [file.read_bytes()]
    }


async def _refuse_path(_request: Request) -> Response:
    raise not_found("there is no such page; the overview leads to all that there are")
