"""The application: every module of routes behind one admission, and the document that describes them."""

from functools import partial
from importlib.metadata import version

from fastapi import FastAPI
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tasklore.supervisor.http import (
    output,
    pipeline_runs,
    problems,
    task_paths,
    typed_document,
)
from tasklore.supervisor.http.admission.middleware import AdmissionMiddleware
from tasklore.supervisor.http.approvals import page as approval_page
from tasklore.supervisor.http.chat import routes as chat
from tasklore.supervisor.http.chat.errors import as_openai, is_openai
from tasklore.supervisor.http.console import routes as console_pages
from tasklore.supervisor.http.console.calls import OperationCalls
from tasklore.supervisor.http.dependencies import Admission, ApiDependencies
from tasklore.supervisor.http.mount import mount_bound
from tasklore.supervisor.http.observation import HeadMiddleware, ObservationMiddleware
from tasklore.supervisor.http.openapi import PAGE_HEADERS, describe_api, render_page
from tasklore.supervisor.http.output import TaskStreamEvent
from tasklore.supervisor.http.pipeline_runs import RunStreamEvent
from tasklore.supervisor.http.problem_forms import ProblemForm, ProblemFormMiddleware
from tasklore.supervisor.http.requests import routes as requests
from tasklore.supervisor.http.requests.events import RequestStreamEvent
from tasklore.supervisor.http.task_paths import TaskProblem
from tasklore.supervisor.http.typed_document import TypedDocument
from tasklore.supervisor.operations import console
from tasklore.supervisor.operations.nouns import NOUNS
from tasklore.supervisor.operations.refusals import Problem

#: Models of the document that no route returns as one body: errors, and the events of streams.
_NOT_RETURNED = (
    Problem,
    TaskProblem,
    TaskStreamEvent,
    RequestStreamEvent,
    RunStreamEvent,
)
#: Problems of those who do not read them as programs of ours do: OpenAI's clients, and persons in a browser.
_FORMS = (
    ProblemForm(is_openai, as_openai),
    ProblemForm(approval_page.is_page, approval_page.as_page),
    ProblemForm(console_pages.is_page, console_pages.as_page),
)


def make_app(parts: ApiDependencies) -> FastAPI:
    """Return the application of a supervisor, which serves *parts*."""
    app = begin_app()
    asked = (
        requests,
        approval_page,
        output,
        pipeline_runs,
        task_paths,
    )
    for module in (*asked, chat):
        app.include_router(module.routes(parts))
    own = [one for noun in NOUNS for one in noun.supervisor(parts)]
    app.include_router(mount_bound(own))
    app.include_router(
        console_pages.routes(
            parts,
            OperationCalls(own, console=console.for_supervisor(parts)),
            follow=partial(output.open_output, parts),
        )
    )
    typed = TypedDocument(lambda: app.openapi(), parts.catalogue)
    app.include_router(typed_document.routes(typed))
    app.add_middleware(requests.ShortPathMiddleware, parts=parts)
    return guard_app(app, parts)


def begin_app() -> FastAPI:
    """Return an application without any path."""
    app = FastAPI(
        title="Tasklore",
        version=version("tasklore"),
        description="Ask agents in plain language, send them tasks, and see what they "
        "store.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # FastAPI's own would export paths, in which users are named; ours is `tasklore.supervisor.http.observation`.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "auto_configure": False,
        },
    )
    problems.install(app)
    return app


def guard_app(app: FastAPI, door: Admission) -> FastAPI:
    """Return *app* with its description, and with *door* before all of its paths."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(render_page(app.openapi()), headers=PAGE_HEADERS)

    @app.get("/", include_in_schema=False)
    async def home() -> Response:
        return RedirectResponse("/docs")

    app.openapi = lambda: describe_api(app, _NOT_RETURNED)  # type: ignore[method-assign]  # FastAPI's own way to change it
    app.add_middleware(AdmissionMiddleware, parts=door)
    app.add_middleware(ProblemFormMiddleware, forms=_FORMS)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(ObservationMiddleware, meter=door.meter)
    return app
