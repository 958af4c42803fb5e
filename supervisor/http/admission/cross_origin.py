"""Pages in browsers that ask from elsewhere: which may, and the headers by which their browsers let them (CORS).

A page sends its key as any other program does; cookies and the like are never asked for.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from tasklore.runtime.origins import ANY

#: Headers of answers that a page may read beside those that any may.
_EXPOSED = ("ETag", "Location", "Retry-After", "X-Tasklore-Unread")
#: Seconds for which a browser need not ask again whether it may.
_MAX_AGE_S = 600
#: Paths that are for people alone: no page reads what a signed link or a session shows.
_PAGES = ("/approve/", "/console/")
#: The ports that an address leaves out, by scheme.
USUAL_PORTS = {"http": 80, "https": 443}


class CrossOrigin:
    """Lets pages of *origins* ask, by *methods* and with *headers*; `*` is any."""

    def __init__(
        self, origins: Sequence[str], methods: Sequence[str], headers: Sequence[str]
    ) -> None:
        self._origins = tuple(origins)
        self._methods = tuple(methods)
        self._headers = tuple(headers)

    def names(self, origin: str) -> bool:
        """Return whether *origin* is one that is named. False for `*`, which names none."""
        return origin != ANY and origin in self._origins

    def around(self, app: ASGIApp) -> ASGIApp:
        """Return *app* with the headers on every answer, also on refusals, and the question of a browser answered."""
        asked = CORSMiddleware(
            app,
            allow_origins=self._origins,
            allow_methods=self._methods,
            allow_headers=self._headers,
            expose_headers=_EXPOSED,
            max_age=_MAX_AGE_S,
        )

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            is_page = scope.get("path", "").startswith(_PAGES)
            await (app if is_page else asked)(scope, receive, send)

        return serve


def is_own_page(headers: Headers, public: str | None) -> bool:
    """Return whether a request with *headers* is of one of our own pages, or of no page at all.

    Browsers that say so by `Sec-Fetch-Site` are believed. Others, and all of them where a page came by plain HTTP from
    another machine, name its origin, or its address: it has to be the one that was asked, or that of *public*.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    page = headers.get("origin", headers.get("referer"))
    if page is None:
        return True
    own = {_without_usual_port(headers.get("host", ""))}
    if public is not None:
        own.add(_authority_of(public))
    return _authority_of(page) in own - {""}


def _authority_of(url: str) -> str:
    """Return the host and the port of *url*, "" where it has none."""
    try:
        return _without_usual_port(urlsplit(url).netloc)
    except ValueError:
        return ""


def _without_usual_port(authority: str) -> str:
    for port in USUAL_PORTS.values():
        authority = authority.removesuffix(f":{port}")
    return authority.lower()
