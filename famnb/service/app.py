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
from famnb.service.access import Limits, caller
from famnb.service.ending import Ending
from famnb.service.engines.engine import Engine
from famnb.service.engines.sim import Sim
from famnb.service.engines.upstream import Upstream
from famnb.service.faults import faults_of
from famnb.service.generation import Generation, House
from famnb.service.openapi import description
from famnb.service.options import Options
from famnb.service.refusal import Refusal, body_at, endpoint_at, new_request_id
from famnb.service.stores.file import FileStore
from famnb.service.stores.memory import MemoryStore
from famnb.service.stores.store import Store
from famnb.service.upload import checked_head
from famnb.wire import codec


def engine_of(options: Options) -> Engine:
    """The engine that these options ask for: the simulated one unless there is an upstream."""
    if options.upstream:
        return Upstream(options.upstream, key_variable=options.upstream_key, models=options.upstream_model)
    return Sim(seed=options.seed, time_scale=options.time_scale)


def store_of(options: Options) -> Store:
    """The store that these options ask for: a file, else memory; raises InvalidRequest for a file that is unfit."""
    return FileStore(options.store) if options.store else MemoryStore()


def create_app(
    options: Options,
    *,
    keys: tuple[str, ...],
    engine: Engine,
    store: Store,
    ending: Ending,
    alt_port: int | None = None,
) -> ASGIApp:
    """The service for these keys, with an engine and a store that the caller closes once it has begun its ending.

    What comes in at `alt_port` finds the endpoints of the alternative address, everything else the others; without it
    all are everywhere. Raises InvalidRequest when `options.fault` asks for a fault that does not exist.
    """
    try:
        faults = faults_of(options.fault)
    except Refusal as error:
        raise InvalidRequest(f"fault: {error.message}") from None
    house = House(
        engine=engine,
        keys=keys,
        options=options,
        limits=Limits(
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


def _address(house: House, endpoints: tuple[Endpoint, ...]) -> ASGIApp:
    """What is served at one address: some endpoints, and what every address has."""
    routes = [Route(endpoint.path, Generation(endpoint, house), methods=["POST"]) for endpoint in endpoints]
    if ENDPOINTS["responses"] in endpoints:
        routes.append(Route("/v1/responses/{id}", functools.partial(_stored, house), methods=["GET", "DELETE"]))
    routes += [
        Route("/openapi.json", functools.partial(_openapi, house, endpoints), methods=["GET"]),
        Route("/health", functools.partial(_health, house), methods=["GET"]),
    ]
    unrouted = functools.partial(_unrouted, endpoints)
    app = Starlette(routes=routes, exception_handlers={Refusal: _refused, HTTPException: unrouted, Exception: _failed})
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


async def _stored(house: House, request: Request) -> Response:
    """Retrieve or delete a stored response."""
    key = caller(request.headers, house.keys)
    checked_head(request)
    id_ = request.path_params["id"]
    if request.method == "DELETE":
        await house.store.delete(key, id_)
        return _json({"id": id_, "object": "response", "deleted": True})
    return Response(await house.store.get(key, id_), media_type="application/json")


async def _health(house: House, _: Request) -> Response:
    return _json({"status": "ok", "engine": house.engine.name, **await house.engine.state()})


async def _openapi(house: House, endpoints: tuple[Endpoint, ...], _: Request) -> Response:
    return _json(description(endpoints, strict=house.options.strict))


def _refused(request: Request, error: Exception) -> Response:
    """The answer to a request that cannot be answered, in the shape of the endpoint it went to."""
    assert isinstance(error, Refusal)
    return Response(body_at(request.url.path, error), error.status, error.headers, "application/json")


def _unrouted(endpoints: tuple[Endpoint, ...], request: Request, error: Exception) -> Response:
    """The answer to a path or method that does not exist at an address, or only at the other."""
    assert isinstance(error, HTTPException)
    path = shortened(request.url.path, 200)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        said = f"{request.method} is not allowed at {path}; use {allowed}"
    else:
        here = f"there is no {path}; the endpoints are {', '.join(endpoint.path for endpoint in endpoints)}"
        elsewhere = endpoint_at(path)
        other = "alternative" if elsewhere.alt else "first"
        misled = elsewhere not in endpoints and path.startswith(elsewhere.path)
        said = f"{here}; {elsewhere.path} is served at the {other} address of this service" if misled else here
    return _refused(request, Refusal(error.status_code, said, headers=error.headers))


def _failed(request: Request, _: Exception) -> Response:
    # The server closes the connection after an exception; a caller not told so would send its next request into it.
    headers = {"connection": "close"}
    return _refused(request, Refusal(500, "the service failed; the request may be repeated", headers=headers))


def _json(body: Any) -> Response:
    return Response(codec.encode(body), media_type="application/json")
