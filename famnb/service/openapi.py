"""The service's own description, in OpenAPI, drawn from the request models; nothing of it is written twice."""

from __future__ import annotations

import functools
from typing import Any

from pydantic.json_schema import models_json_schema

from famnb.endpoints import Endpoint

_STATUSES = {
    "400": "invalid request parameters or malformed JSON",
    "401": "invalid or missing API key",
    "429": "too many requests",
    "500": "server error, try again later",
}


@functools.cache
def description(endpoints: tuple[Endpoint, ...], *, strict: bool = False) -> dict[str, Any]:
    """The OpenAPI document of an address that serves these endpoints; unless `strict`, unknown fields are allowed."""
    models = [(endpoint.request, "validation") for endpoint in endpoints]
    _, schemas = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Text generation API", "version": "1"},
        "components": {
            "schemas": schemas["$defs"] if strict else _open(schemas["$defs"]),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
        "paths": {endpoint.path: {"post": _operation(endpoint)} for endpoint in endpoints},
    }


def _open(schema: Any) -> Any:
    """A schema without its bans on unknown fields."""
    match schema:
        case dict():
            return {
                key: _open(value) for key, value in schema.items() if (key, value) != ("additionalProperties", False)
            }
        case list():
            return [_open(item) for item in schema]
        case _:
            return schema


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    request = {"$ref": f"#/components/schemas/{endpoint.request.__name__}"}
    reply = {"application/json": {"schema": {"type": "object"}}, "text/event-stream": {}}
    failure = {"application/json": {"schema": {"type": "object", "required": ["error"]}}}
    return {
        "operationId": endpoint.name,
        "summary": endpoint.title,
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {
            "200": {"description": "one JSON object, or an event stream when `stream` is true", "content": reply},
            **{status: {"description": said, "content": failure} for status, said in _STATUSES.items()},
        },
    }
