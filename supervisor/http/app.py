"""The application: every module of routes behind one door, and the document that describes them."""

from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.responses import HTMLResponse, RedirectResponse, Response

from supervisor.http import docs_page, problems
from supervisor.http.admission.middleware import Door
from supervisor.http.agents import routes as agents
from supervisor.http.chat.errors import OpenAiErrors
from supervisor.http.chat.routes import routes as chat
from supervisor.http.conversations import routes as conversations
from supervisor.http.memory.routes import routes as memory
from supervisor.http.observation import Headed, Observed
from supervisor.http.openapi import described
from supervisor.http.parts import Parts
from supervisor.http.pipelines import routes as pipelines
from supervisor.http.requests.routes import ShortWay
from supervisor.http.requests.routes import routes as requests
from supervisor.http.tasks import routes as tasks


def make_app(parts: Parts) -> FastAPI:
    """Return the application that serves *parts*."""
    app = FastAPI(
        title="Tasklore",
        version=version("tasklore"),
        description="Ask agents in plain words, send them tasks, and see what they remember.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Theirs would tell paths, in which users are named; ours is `supervisor.http.observation`.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    problems.install(app)
    for router in _routers(parts):
        app.include_router(router)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(docs_page.page(app.openapi()), headers=docs_page.HEADERS)

    @app.get("/", include_in_schema=False)
    async def home() -> Response:
        return RedirectResponse("/docs")

    app.openapi = lambda: described(app)  # type: ignore[method-assign]  # the library's own way to change it
    app.add_middleware(ShortWay, parts=parts)
    app.add_middleware(Door, parts=parts)
    app.add_middleware(OpenAiErrors)
    app.add_middleware(Headed)
    app.add_middleware(Observed, meter=parts.meter)
    return app


def _routers(parts: Parts) -> list[APIRouter]:
    return [routes(parts) for routes in (requests, tasks, agents, memory, conversations, pipelines, chat)]
