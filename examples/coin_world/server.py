"""The page of a running world and what it reads: on loopback only, with nothing from anywhere else."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE = Path(__file__).with_name("page")
#: Where the page is served: for people of this machine.
ADDRESS = "127.0.0.1"

#: Seconds without a change after which the page is told that the world is still there; it worries after three of them.
BEAT_S = 5.0
#: Seconds that a page gets to take its last bytes when the world ends.
_LEAVE_S = 1

#: Names under which a page of this machine is asked for: another one, which leads here, is somebody else's page.
_HOSTS = ("127.0.0.1", "localhost", "[::1]")

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


class Playing(Protocol):
    """A world that is run: what the page needs of it; `examples.coin_world.running.Runner` is one."""

    @property
    def version(self) -> int:
        """Count of changes of the picture: steps, and whether it is running."""

    def picture(self) -> Mapping[str, Any]:
        """Return the world as it stands, as JSON."""

    def told(self, name: str) -> Mapping[str, Any] | None:
        """Return `name`, `step`, `prompt`, `decision` and `problem` of an agent when last asked; None for nobody."""

    async def changed(self, since: int) -> None:
        """Return once `version` is not *since*."""

    def play(self) -> None:
        """Make steps from now on."""

    def pause(self) -> None:
        """Make no further step."""

    def single_step(self) -> None:
        """Make one step, then none."""

    def pace(self, interval_ms: int) -> None:
        """Begin a step at most every *interval_ms* milliseconds."""


class Order(BaseModel):
    """What whoever looks at the page wants of the world; None leaves its pace."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    action: Literal["play", "pause", "step"]
    interval_ms: Annotated[int, Field(ge=0, le=60_000)] | None = None


def make_app(world: Playing, leaving: asyncio.Event | None = None) -> FastAPI:
    """Return the page of *world*, to be served on loopback; when *leaving* is set, nobody is told any more."""
    app = FastAPI(title="Coin world", openapi_url=None, docs_url=None, redoc_url=None)
    gone = leaving or asyncio.Event()
    world_id = secrets.token_hex(8)

    @app.get("/")
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    @app.get("/state")
    async def state() -> Mapping[str, Any]:
        return world.picture()

    @app.get("/events", response_class=EventSourceResponse)
    async def events() -> AsyncIterator[ServerSentEvent]:
        yield ServerSentEvent(event="world", data=world_id)
        async for event in _events(world, gone):
            yield event

    @app.get("/agents/{name:path}")
    async def told(name: str) -> Mapping[str, Any]:
        if (found := world.told(name)) is None:
            raise HTTPException(
                404, f"nobody is called {name!r}; names are those in /state"
            )
        return found

    @app.post("/control")
    async def control(order: Order, request: Request) -> Mapping[str, Any]:
        _demand_own_page(request)
        if order.interval_ms is not None:
            world.pace(order.interval_ms)
        {"play": world.play, "pause": world.pause, "step": world.single_step}[
            order.action
        ]()
        return {"running": world.picture()["running"]}

    app.mount("/page", StaticFiles(directory=PAGE))
    app.add_middleware(
        TrustedHostMiddleware, allowed_hosts=list(_HOSTS), www_redirect=False
    )
    app.add_middleware(_Headers)
    return app


async def _events(
    world: Playing, gone: asyncio.Event
) -> AsyncIterator[ServerSentEvent]:
    """Yield the picture now and after each change, until *gone*; and a beat when nothing changes for long.

    A page that is slow misses pictures, and never the last one.
    """
    left = asyncio.ensure_future(gone.wait())
    try:
        while not left.done():
            seen = world.version
            yield ServerSentEvent(event="picture", data=world.picture())
            while world.version == seen and not left.done():
                if await _is_quiet(world, seen, left):
                    yield ServerSentEvent(event="beat", data=seen)
    finally:
        left.cancel()


async def _is_quiet(world: Playing, seen: int, left: asyncio.Future[Any]) -> bool:
    """Wait for a change, or the end; True when there was neither for the time of a beat."""
    change = asyncio.ensure_future(world.changed(seen))
    try:
        done, _ = await asyncio.wait(
            (change, left), timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        change.cancel()
    return not done


def _demand_own_page(request: Request) -> None:
    """Refuse what a page of somebody else sends here: browsers say where a request comes from."""
    origin = request.headers.get("origin")
    if (
        origin is not None
        and origin != f"{request.url.scheme}://{request.headers.get('host')}"
    ):
        raise HTTPException(
            403, f"{origin} is not this page; open the page of this world"
        )


class _Headers:
    """Lets a browser load and run nothing but our own files."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [
                    (name, value)
                    for name, value in message["headers"]
                    if name.decode() not in _HEADERS
                ]
                own = [
                    (name.encode(), value.encode()) for name, value in _HEADERS.items()
                ]
                message = {**message, "headers": [*kept, *own]}
            await send(message)

        await self._app(scope, receive, with_headers)


class _Server(uvicorn.Server):
    """Leaves signals to the program around it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@asynccontextmanager
async def serving(world: Playing, *, port: int = 0) -> AsyncIterator[str]:
    """Serve the page of *world* on 127.0.0.1 and yield its address; port 0 is any that is free.

    Raises:
        OSError: something else has the port.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        # From here on who asks waits and is not refused: the address is told before the server runs.
        listener.listen()
        leaving = asyncio.Event()
        app = make_app(world, leaving)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=_LEAVE_S,
        )
        server = _Server(config)
        served = asyncio.ensure_future(server.serve([listener]))
        try:
            yield f"http://{ADDRESS}:{listener.getsockname()[1]}/"
        finally:
            leaving.set()
            server.should_exit = True
            await served
