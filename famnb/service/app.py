"""The service as an ASGI application: routes, error bodies and headers; each endpoint's work is `generation`'s."""

from __future__ import annotations

import functools
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from famnb.endpoints import ENDPOINTS, Endpoint
from famnb.errors import InvalidRequest
from famnb.request.base import shortened
from famnb.service.auth import RateLimiter, caller
from famnb.service.endpoint import EndpointApp, ServiceContext
from famnb.service.engines.base import Engine
from famnb.service.engines.simulated import SimulatedEngine
from famnb.service.engines.upstream import UpstreamEngine
from famnb.service.errors import ServiceError, encode_error, endpoint_for_path, new_request_id
from famnb.service.fault_injection import parse_faults
from famnb.service.openapi import description
from famnb.service.request_body import check_head
from famnb.service.settings import Options
from famnb.service.shutdown import Shutdown
from famnb.service.stores.base import Store
from famnb.service.stores.memory import MemoryStore
from famnb.service.stores.sqlite import SqliteStore
from famnb.wire import lenient_json


def create_engine(options: Options) -> Engine:
    """The engine that these options ask for: the simulated one unless there is an upstream."""
    if options.upstream:
        return UpstreamEngine(options.upstream, key_variable=options.upstream_key, models=options.upstream_model)
    return SimulatedEngine(seed=options.seed, time_scale=options.time_scale)


def create_store(options: Options) -> Store:
    """The store that these options ask for: a file, else memory; raises InvalidRequest for a file that is unfit."""
    return SqliteStore(options.store) if options.store else MemoryStore()


def create_app(
    options: Options,
    *,
    keys: tuple[str, ...],
    engine: Engine,
    store: Store,
    ending: Shutdown,
    alt_port: int | None = None,
) -> ASGIApp:
    """The service for these keys, with an engine and a store that the caller closes once it has begun its ending.

    What comes in at `alt_port` finds the endpoints of the alternative address, everything else the others; without it
    all are everywhere. Raises InvalidRequest when `options.fault` asks for a fault that does not exist.
    """
    try:
        faults = parse_faults(options.fault)
    except ServiceError as error:
        raise InvalidRequest(f"fault: {error.message}") from None
    house = ServiceContext(
        engine=engine,
        keys=keys,
        options=options,
        limits=RateLimiter(
            requests_per_minute=options.requests_per_minute, burst=options.burst, concurrency=options.concurrency
        ),
        store=store,
        ending=ending,
        faults=faults,
    )
    every = tuple(ENDPOINTS.values())
    if alt_port is None:
        return _Marked(_address(house, every), engine.name)
    first, alternative = (
        _address(house, tuple(endpoint for endpoint in every if endpoint.alt == alt)) for alt in (False, True)
    )

    async def two(scope: Scope, receive: Receive, send: Send) -> None:
        at_alternative = (scope.get("server") or ("", None))[1] == alt_port
        await (alternative if at_alternative else first)(scope, receive, send)

    return _Marked(two, engine.name)


def _address(house: ServiceContext, endpoints: tuple[Endpoint, ...]) -> ASGIApp:
    """What is served at one address: some endpoints, and what every address has."""
    routes = [Route(endpoint.path, EndpointApp(endpoint, house), methods=["POST"]) for endpoint in endpoints]
    routes += [
        Route(f"{endpoint.path}/{{id}}", functools.partial(_stored, house), methods=["GET", "DELETE"])
        for endpoint in endpoints
        if endpoint.traits.stores_replies
    ]
    routes += [
        Route("/openapi.json", functools.partial(_openapi, house, endpoints), methods=["GET"]),
        Route("/health", functools.partial(_health, house), methods=["GET"]),
    ]
    unrouted = functools.partial(_unrouted, endpoints)
    app = Starlette(
        routes=routes, exception_handlers={ServiceError: _refused, HTTPException: unrouted, Exception: _failed}
    )
    app.router.redirect_slashes = False
    return app


class _Marked:
    """Puts the request's id and the engine's name on every answer."""

    def __init__(self, app: ASGIApp, engine: str) -> None:
        self._app = app
        self._engine = (b"x-famnb-engine", engine.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                request_id = (b"x-request-id", new_request_id())
                message["headers"] = [*message.get("headers", ()), request_id, self._engine]
            await send(message)

        await self._app(scope, receive, marked)


async def _stored(house: ServiceContext, request: Request) -> Response:
    """Retrieve or delete a stored response."""
    key = caller(request.headers, house.keys)
    check_head(request)
    id_ = request.path_params["id"]
    if request.method == "DELETE":
        await house.store.delete(key, id_)
        return _json({"id": id_, "object": "response", "deleted": True})
    return Response(await house.store.get(key, id_), media_type="application/json")


async def _health(house: ServiceContext, _: Request) -> Response:
    return _json({"status": "ok", "engine": house.engine.name, **await house.engine.state()})


async def _openapi(house: ServiceContext, endpoints: tuple[Endpoint, ...], _: Request) -> Response:
    return _json(description(endpoints, strict=house.options.strict))


def _refused(request: Request, error: Exception) -> Response:
    """The answer to a request that cannot be answered, in the shape of the endpoint it went to."""
    assert isinstance(error, ServiceError)
    return Response(encode_error(request.url.path, error), error.status, error.headers, "application/json")


def _unrouted(endpoints: tuple[Endpoint, ...], request: Request, error: Exception) -> Response:
    """The answer to a path or method that does not exist at an address, or only at the other."""
    assert isinstance(error, HTTPException)
    path = shortened(request.url.path, 200)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        said = f"{request.method} is not allowed at {path}; use {allowed}"
    else:
        here = f"there is no {path}; the endpoints are {', '.join(endpoint.path for endpoint in endpoints)}"
        elsewhere = endpoint_for_path(path)
        other = "alternative" if elsewhere.alt else "first"
        misled = elsewhere not in endpoints and path.startswith(elsewhere.path)
        said = f"{here}; {elsewhere.path} is served at the {other} address of this service" if misled else here
    return _refused(request, ServiceError(error.status_code, said, headers=error.headers))


def _failed(request: Request, _: Exception) -> Response:
    # The server closes the connection after an exception; a caller not told so would send its next request into it.
    headers = {"connection": "close"}
    return _refused(request, ServiceError(500, "the service failed; the request may be repeated", headers=headers))


def _json(body: Any) -> Response:
    return Response(lenient_json.encode(body), media_type="application/json")
