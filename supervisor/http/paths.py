"""Paths that there are not: which one was meant, as far as the spelling tells, or where the thing is."""

import re
from collections.abc import Iterable, Iterator

from starlette.routing import compile_path

#: Where else something is that people look for here.
_ELSEWHERE = {
    "/healthz": "health and metrics are on a port of their own, TASKLORE_HTTP_PORT",
    "/readyz": "health and metrics are on a port of their own, TASKLORE_HTTP_PORT",
    "/metrics": "health and metrics are on a port of their own, TASKLORE_HTTP_PORT",
    "/v1/responses": "of OpenAI's API there are /v1/chat/completions and /v1/models",
    "/v1/completions": "of OpenAI's API there are /v1/chat/completions and /v1/models",
    "/v1/embeddings": "of OpenAI's API there are /v1/chat/completions and /v1/models",
}
_LISTED = "GET /docs lists them all"
#: Characters of a path from which on nobody mistyped it.
_LONGEST = 300


def cure_of(path: str, known: Iterable[str]) -> str:
    """Return what to do about *path*, which is none of *known*, paths with their parameters in braces."""
    if (elsewhere := _ELSEWHERE.get(path.rstrip("/"))) is not None:
        return elsewhere
    # Spelled out before with a parameter in its place.
    templates = sorted(known, key=lambda one: one.count("{"))
    patterns = [re.compile(compile_path(one)[0].pattern, re.IGNORECASE) for one in templates]
    for likely in _likely(path[:_LONGEST]):
        for template, pattern in zip(templates, patterns, strict=True):
            if match := pattern.match(likely):
                # In capitals an id is another one.
                return f"did you mean {template.format(**match.groupdict())!r}?"
    return _LISTED


def _likely(path: str) -> Iterator[str]:
    """Yield *path* without what is got wrong: slashes, and the version that a base URL lacks or has twice."""
    slim = re.sub(r"/{2,}", "/", path).rstrip("/")
    yield from (slim, f"/v1{slim}", re.sub(r"^/v1", "", slim, flags=re.IGNORECASE))


def methods_of(path: str, paths: dict[str, dict[str, object]]) -> set[str]:
    """Return every method of *path* by *paths*, those of the OpenAPI document; the framework knows one route's only."""
    found = [one for one in paths if compile_path(one)[0].match(path)]
    # A path that is spelled out is not the one that has a parameter in its place.
    nearest = min(found, key=lambda one: one.count("{"), default=None)
    methods = {method.upper() for method in paths[nearest]} if nearest is not None else {"GET"}
    return methods | ({"HEAD"} if "GET" in methods else set())
