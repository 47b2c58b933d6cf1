"""The OpenAPI document of the service, generated from the request models."""

from __future__ import annotations

import functools
from typing import Any

from pydantic.json_schema import models_json_schema

from famnb.endpoints import Endpoint
from famnb.request.gateway_fields import GATEWAY_MODELS
from famnb.request.structured_output import rewrite_schema

_FAILURES = {
    400: "invalid request parameters or malformed JSON",
    401: "invalid or missing API key",
    404: "nothing has this id",
    405: "another method is allowed here",
    408: "the body took too long to arrive",
    413: "the body is too large",
    429: "too many requests",
    500: "server error, try again later",
}
_WITH_KEY = (401, 405, 500)
"""The failures of every operation that wants a key."""
_WITH_BODY = (400, 408, 413, 429)
"""Those of one with a body, beside them."""


@functools.cache
def openapi_document(endpoints: tuple[Endpoint, ...], *, strict: bool = False, compat: bool = False) -> dict[str, Any]:
    """Return the OpenAPI document of an address with these endpoints.

    Unless `strict`, unknown fields are allowed; with `compat` the vendors' own fields and paths are part of it.
    """
    # Cached, since pydantic takes tens of milliseconds to generate the schemas.
    models = {endpoint: GATEWAY_MODELS[endpoint.request] if compat else endpoint.request for endpoint in endpoints}
    schemas = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template="#/components/schemas/{model}"
    )[1]["$defs"]
    paths: dict[str, Any] = {}
    for endpoint, model in models.items():
        body = {"required": True, "content": _json_content({"$ref": f"#/components/schemas/{model.__name__}"})}
        operation = _operation(endpoint.name, endpoint.title, failures=(*_WITH_BODY, *_WITH_KEY))
        answer = operation["responses"]["200"]
        answer["description"] = "one JSON object, or an event stream when `stream` is true"
        answer["content"] |= {"text/event-stream": {}}
        paths[endpoint.path] = {"post": {**operation, "requestBody": body}}
        if endpoint.traits.stores_replies:
            paths[f"{endpoint.path}/{{id}}"] = {
                "parameters": [_ID],
                "get": _operation(f"get_{endpoint.name}", "A stored reply", failures=(404, *_WITH_KEY)),
                "delete": _operation(f"delete_{endpoint.name}", "Deletes a stored reply", failures=(404, *_WITH_KEY)),
            }
    if compat:
        paths["/v1/models"] = {"get": _operation("models", "The models", failures=_WITH_KEY)}
        paths["/v1/models/{id}"] = {
            "parameters": [_ID],
            "get": _operation("model", "A model", failures=(404, *_WITH_KEY)),
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Text generation API", "version": "1"},
        "components": {
            "schemas": schemas if strict else rewrite_schema(schemas, _allow_unknown_fields),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
        "paths": paths,
    }


def _allow_unknown_fields(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if (key, value) != ("additionalProperties", False)}


_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def _operation(id_: str, summary: str, *, failures: tuple[int, ...]) -> dict[str, Any]:
    responses = {"200": {"description": "one JSON object", "content": _json_content({"type": "object"})}}
    for status in sorted(failures):
        content = _json_content({"type": "object", "required": ["error"]})
        responses[str(status)] = {"description": _FAILURES[status], "content": content}
    return {"operationId": id_, "summary": summary, "responses": responses}


def _json_content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
