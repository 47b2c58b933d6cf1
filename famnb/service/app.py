"""The service as an ASGI application: its routes, its error responses and the headers of every response.

front ── alt_port ── address ── route ── EndpointApp (endpoint.py) │ stored response │ /v1/models
                                         /metrics │ /openapi.json │ /health
"""

from __future__ import annotations

import functools
import os
import time
import uuid
from collections.abc import Awaitable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from famnb.client.auth import Credential
from famnb.endpoints import ENDPOINTS, Endpoint
from famnb.errors import InvalidRequest
from famnb.formatting import shorten
from famnb.service.auth import RateLimiter
from famnb.service.endpoint import EndpointApp, ServiceContext, authenticate_request
from famnb.service.engines.base import Engine
from famnb.service.engines.local import LocalEngine
from famnb.service.engines.simulated import SimulatedEngine
from famnb.service.engines.upstream import UpstreamEngine
from famnb.service.errors import ServiceError, endpoint_for_path
from famnb.service.fault_injection import parse_faults
from famnb.service.metrics import CONTENT_TYPE, DISCONNECTED, RECORD, RequestRecord, name_path
from famnb.service.openapi import openapi_document
from famnb.service.settings import Options
from famnb.service.shutdown import Shutdown
from famnb.service.store import ResponseStore
from famnb.wire import lenient_json

_ID_HEADERS = {
    conventions.names_events.encode(): conventions.request_id_header.encode()
    for conventions in (endpoint.conventions for endpoint in ENDPOINTS.values())
    if conventions.names_events is not None and conventions.request_id_header is not None
}
"""For the header by which a vendor's SDK is known, the header in which it looks for the id of its request."""


def create_engine(options: Options) -> Engine:
    """Return the engine that the options ask for: models on this machine, an upstream, else the simulated one."""
    if options.models:
        return LocalEngine(options.models, context=options.ctx, threads=options.threads, parallel=options.parallel)
    if options.upstream:
        variable = options.upstream_key
        credential = Credential(os.getenv(variable), variable=variable) if variable else None
        return UpstreamEngine(options.upstream, credential=credential, models=options.upstream_model)
    return SimulatedEngine(seed=options.seed, time_scale=options.time_scale)


def create_app(
    options: Options,
    *,
    keys: tuple[str, ...],
    engine: Engine,
    store: ResponseStore,
    shutdown: Shutdown,
    alt_port: int | None = None,
) -> ASGIApp:
    """Return the service as an ASGI application. The caller closes `engine` and `store` after `shutdown.begin()`.

    Requests that arrive at `alt_port` reach the endpoints of the alternative address, all others the rest; with
    `alt_port=None` every port has all endpoints. Raises InvalidRequest if `options.fault` names an unknown fault.
    """
    try:
        faults = parse_faults(options.fault)
    except ServiceError as error:
        raise InvalidRequest(f"fault: {error.message}") from None
    context = ServiceContext(
        engine=engine,
        keys=keys,
        options=options,
        limiter=RateLimiter(
            requests_per_minute=options.requests_per_minute, burst=options.burst, concurrency=options.concurrency
        ),
        store=store,
        shutdown=shutdown,
        faults=faults,
    )
    endpoints = tuple(ENDPOINTS.values())
    if alt_port is None:
        return _add_front(_create_address(context, endpoints), context)
    main_address, alt_address = (
        _create_address(context, tuple(endpoint for endpoint in endpoints if endpoint.alt == alt))
        for alt in (False, True)
    )

    async def dispatch_by_port(scope: Scope, receive: Receive, send: Send) -> None:
        port = (scope.get("server") or ("", None))[1]
        await (alt_address if port == alt_port else main_address)(scope, receive, send)

    return _add_front(dispatch_by_port, context)


def _create_address(context: ServiceContext, endpoints: tuple[Endpoint, ...]) -> ASGIApp:
    """Return the application of one address: these endpoints, and what every address serves."""
    routes = [Route(endpoint.path, EndpointApp(endpoint, context), methods=["POST"]) for endpoint in endpoints]
    routes += [
        Route(f"{endpoint.path}/{{id}}", functools.partial(_handle_stored_response, context), methods=["GET", "DELETE"])
        for endpoint in endpoints
        if endpoint.traits.stores_replies
    ]
    if context.options.is_compatible:
        get_models = functools.partial(_get_models, context, endpoints)
        routes += [Route(path, get_models, methods=["GET"]) for path in ("/v1/models", "/v1/models/{id:path}")]
    routes += [
        Route("/openapi.json", functools.partial(_get_openapi, context, endpoints), methods=["GET"]),
        Route("/metrics", functools.partial(_get_metrics, context), methods=["GET"]),
        Route("/health", functools.partial(_get_health, context), methods=["GET"]),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            ServiceError: _handle_service_error,
            HTTPException: functools.partial(_handle_routing_error, endpoints),
            Exception: _handle_crash,
        },
    )
    # A path with a slash too many is a 404 in the endpoint's error format, not a redirect.
    app.router.redirect_slashes = False
    return app


def _add_front(app: ASGIApp, context: ServiceContext) -> ASGIApp:
    """Return an application that counts each request, and adds `x-famnb-engine` and `x-request-id` to its answer."""
    engine_header = (b"x-famnb-engine", context.engine.name.encode())

    # Around Starlette, not one of its middlewares: those do not see the answer of its handler for crashes.
    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        id_ = f"req_{uuid.uuid4().hex}".encode()
        record = RequestRecord(name_path(scope["path"]), time.monotonic())
        scope.setdefault("state", {})[RECORD] = record

        # No coroutine of its own: it is called for every event of a stream.
        def send_with_headers(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                if record.error != DISCONNECTED:  # else nobody gets it
                    record.status = message["status"]
                names = [b"x-request-id", *(_ID_HEADERS[name] for name, _ in scope["headers"] if name in _ID_HEADERS)]
                added = [(name, id_) for name in names]
                message["headers"] = [*message.get("headers", ()), *added, engine_header]
            return send(message)

        context.metrics.begin(record)
        try:
            await app(scope, receive, send_with_headers)
        finally:
            record.ended = time.monotonic()
            context.metrics.end(record)

    return front


async def _handle_stored_response(context: ServiceContext, request: Request) -> Response:
    """Return or delete a stored response: `GET` and `DELETE /v1/responses/{id}`."""
    key = authenticate_request(context, request)
    id_ = request.path_params["id"]
    if request.method == "DELETE":
        await context.store.delete(key, id_)
        return _json_response({"id": id_, "object": "response", "deleted": True})
    return Response(await context.store.get(key, id_), media_type="application/json")


async def _get_models(context: ServiceContext, endpoints: tuple[Endpoint, ...], request: Request) -> Response:
    """Return the models, or the one of the path, in the shape of the vendor whose SDK asks."""
    names = request.headers.keys()
    asking = [endpoint for endpoint in endpoints if endpoint.conventions.names_events in names]
    key_header = asking[0].conventions.key_header if asking else None
    authenticate_request(context, request, key_header=key_header)
    documented = (model for endpoint in endpoints for model in endpoint.models)
    ids = dict.fromkeys((*documented, *await context.engine.models()))
    models = [_describe_model(id_, named=bool(asking)) for id_ in ids]
    id_ = request.path_params.get("id")
    if id_ is not None:
        if id_ not in ids:
            raise ServiceError(404, f"there is no model {id_[:80]!r}; see /v1/models", code="model_not_found")
        return _json_response(_describe_model(id_, named=bool(asking)))
    if not asking:
        return _json_response({"object": "list", "data": models})
    ends = {"first_id": models[0]["id"], "last_id": models[-1]["id"]} if models else {}
    return _json_response({"data": models, "has_more": False, **ends})


def _describe_model(id_: str, *, named: bool) -> dict[str, Any]:
    # The date of a model is not known, but both vendors' SDKs require one.
    if named:
        named_fields = {"display_name": id_, "created_at": "1970-01-01T00:00:00Z", "lifecycle": "active"}
        return {"type": "model", "id": id_, **named_fields}
    return {"id": id_, "object": "model", "created": 0, "owned_by": "famnb"}


async def _get_health(context: ServiceContext, _: Request) -> Response:
    return _json_response({"status": "ok", "engine": context.engine.name, **await context.engine.state()})


async def _get_metrics(context: ServiceContext, request: Request) -> Response:
    """Return what the service has counted, as Prometheus reads it."""
    authenticate_request(context, request)
    upstream_state = (await context.engine.state()).get("upstream")
    return Response(context.metrics.render(upstream_state), media_type=CONTENT_TYPE)


async def _get_openapi(context: ServiceContext, endpoints: tuple[Endpoint, ...], _: Request) -> Response:
    options = context.options
    return _json_response(openapi_document(endpoints, strict=options.strict, compat=options.is_compatible))


def _handle_service_error(request: Request, error: Exception) -> Response:
    """Return the response for a ServiceError, in the error format of the endpoint that was called."""
    assert isinstance(error, ServiceError)
    endpoint = endpoint_for_path(request.url.path)
    fault = error.to_fault(endpoint)
    getattr(request.state, RECORD).error = fault.code
    header = endpoint.conventions.names_events
    named = header is not None and header in request.headers
    body = lenient_json.encode(endpoint.dialect.fault(fault, named=named))
    return Response(body, error.status, error.headers, "application/json")


def _handle_routing_error(endpoints: tuple[Endpoint, ...], request: Request, error: Exception) -> Response:
    """Return the response for a path or a method that this address does not have (404, 405)."""
    assert isinstance(error, HTTPException)
    # The path is the caller's own, of any length.
    path = shorten(request.url.path, 200)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        message = f"{request.method} is not allowed at {path}; use {allowed}"
    else:
        message = f"there is no {path}; the endpoints are {', '.join(endpoint.path for endpoint in endpoints)}"
        endpoint = endpoint_for_path(path)
        # A client whose two addresses are swapped gets here with a path that the other address has.
        if endpoint not in endpoints and path.startswith(endpoint.path):
            address = "alternative" if endpoint.alt else "first"
            message += f"; {endpoint.path} is served at the {address} address of this service"
    return _handle_service_error(request, ServiceError(error.status_code, message, headers=error.headers))


def _handle_crash(request: Request, _: Exception) -> Response:
    # uvicorn closes the connection after an exception; a caller without this header sends its next request into it.
    error = ServiceError(500, "the service failed; the request may be repeated", headers={"connection": "close"})
    return _handle_service_error(request, error)


def _json_response(body: Any) -> Response:
    return Response(lenient_json.encode(body), media_type="application/json")
