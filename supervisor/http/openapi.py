"""The OpenAPI document, as exact as a program needs it that was made from it."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from supervisor.http.problems import Problem

#: What only a request with a body is answered with, and one with neither body nor parameters never.
_OF_BODIES, _OF_VALUES = ("400", "408", "413", "415"), "422"
#: What the framework would say of a request that does not fit; ours is a problem.
_LIBRARYS = ("HTTPValidationError", "ValidationError")


def described(app: FastAPI) -> dict[str, Any]:
    """Return the document of *app*, made once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in _LIBRARYS:
            schemas.pop(name, None)
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(problem.pop("$defs", {}))
        schemas["Problem"] = problem
        for operations in document["paths"].values():
            for operation in operations.values():
                _leave_out(operation)
        app.openapi_schema = document
    return app.openapi_schema


def _leave_out(operation: dict[str, Any]) -> None:
    """Take out of *operation* what it cannot answer: a client made from the document would wait for it in vain."""
    responses = operation["responses"]
    if _LIBRARYS[0] in str(responses.get(_OF_VALUES)):
        # The framework's own word, where a route has another status for that.
        responses.pop(_OF_VALUES)
    if "requestBody" in operation:
        return
    for status in _OF_BODIES:
        responses.pop(status, None)
    if not operation.get("parameters"):
        responses.pop(_OF_VALUES, None)
