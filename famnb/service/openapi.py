"""The OpenAPI document of the service, generated from the request models."""

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
def openapi_document(endpoints: tuple[Endpoint, ...], *, strict: bool = False) -> dict[str, Any]:
    """Return the OpenAPI document of an address with these endpoints; unless `strict`, unknown fields are allowed."""
    # Cached, since pydantic takes tens of milliseconds to generate the schemas.
    models = [(endpoint.request, "validation") for endpoint in endpoints]
    _, schemas = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Text generation API", "version": "1"},
        "components": {
            "schemas": schemas["$defs"] if strict else _allow_unknown_fields(schemas["$defs"]),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
        "paths": {endpoint.path: {"post": _operation(endpoint)} for endpoint in endpoints},
    }


def _allow_unknown_fields(schema: Any) -> Any:
    """Return a schema without `additionalProperties: false`."""
    match schema:
        case dict():
            return {
                key: _allow_unknown_fields(value)
                for key, value in schema.items()
                if (key, value) != ("additionalProperties", False)
            }
        case list():
            return [_allow_unknown_fields(item) for item in schema]
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
            **{status: {"description": text, "content": failure} for status, text in _STATUSES.items()},
        },
    }
