"""Which service a cell is planned for and which one answered a recorded call, so that their answers are never mixed.

planned by a client                      the service's name
── of a simulation that is known as one  "simulated", since its port is another one each time
── of any other service                  its base address for the endpoint, such as "https://api.example.com";
                                         that of the upstream for a gateway which this process started
── one of several of the same name       the same and the name that the variants give the client

The key of a recorded call's cell names the service. The embedded service is known as a simulation, as is every one
that this process runs. A simulation that somebody else started goes by its address; its answers count there until a
real service answers at that address.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from famnb.client.config import strip_path
from famnb.endpoints import Endpoint
from famnb.service.process import is_simulation, upstream_of

if TYPE_CHECKING:
    # Figures import the names of services, and are to load without the network.
    from famnb.client.client import BaseClient

SIMULATED = "simulated"
"""The name of every simulation."""
_KEY_SEPARATOR = "@"
_NAME_SEPARATOR = "#"
_DEFAULT_PORTS = {"http": 80, "https": 443}

_services: weakref.WeakKeyDictionary[BaseClient, dict[str, str]] = weakref.WeakKeyDictionary()
"""The services of each client, by the endpoint: a service that has ended stays what it was."""


def service_of(client: BaseClient | None, endpoint: str, *, name: str = "") -> str:
    """The service that a client's calls to an endpoint go to; `name` tells it from others that are named alike.

    Without a client, the simulation.
    """
    service = SIMULATED
    if client is not None:
        services = _services.setdefault(client, {})
        if endpoint not in services:
            address = client.base_url(endpoint)
            services[endpoint] = SIMULATED if is_simulation(address) else _answering_address(address)
        service = services[endpoint]
    return f"{service}{_NAME_SEPARATOR}{name}" if name else service


def name_services(clients: Mapping[str, BaseClient | None]) -> Callable[[str, str], str]:
    """Return the function that gives the service of a named client and an endpoint; the unnamed one is the default.

    A name is part of the service where the calls of several clients go to one address, or to several simulations.
    """

    def name_service(name: str, endpoint: str) -> str:
        client = clients[name]
        service = service_of(client, endpoint)
        # The service of another profile may not have this endpoint at all.
        others = [other for other in clients.values() if other is None or endpoint in other.endpoints]
        rivals = [other for other in others if service_of(other, endpoint) == service]
        # One client may have several names, those of the variants that use it; the first stands for all.
        first_name = next(client_name for client_name, other in clients.items() if other is client)
        is_shared = any(rival is not client for rival in rivals)
        return service_of(client, endpoint, name=first_name) if is_shared else service

    return name_service


def is_simulated(service: str) -> bool:
    """Whether a service is a simulation that is known as one."""
    return service.partition(_NAME_SEPARATOR)[0] == SIMULATED


def address_of(service: str) -> str:
    """A service as it is shown: its address, or "the simulation"."""
    return "the simulation" if is_simulated(service) else service.partition(_NAME_SEPARATOR)[0]


def normalize_address(address: str) -> str:
    """Return an address in one spelling: host in lower case, no default port, no slash at the end."""
    parts = urlsplit(address)
    scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, _DEFAULT_PORTS.get(scheme)) else f":{port}"
    return f"{scheme}://{host}{shown_port}{parts.path.rstrip('/')}"


def key_at(content_key: str, service: str) -> str:
    """The key of a cell: that of its content, and the service; for the simulation the former alone."""
    return content_key if service == SIMULATED else f"{content_key}{_KEY_SEPARATOR}{service}"


def split_key(key: str) -> tuple[str, str]:
    """The parts of a cell's key: the key of its content, and the service."""
    content_key, _, service = key.partition(_KEY_SEPARATOR)
    return content_key, service or SIMULATED


def call_address(url: str, endpoint: Endpoint) -> str:
    """The base address, in one spelling, of the service that a recorded call was sent to."""
    return _answering_address(strip_path(url, endpoint))


def _answering_address(address: str) -> str:
    # A gateway has another port each time, and what it is a gateway to stays.
    return normalize_address(upstream_of(address) or address)
