"""Profile, a vendor's API as a value: its endpoints, address, key and headers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from famnb.endpoints import ENDPOINTS, Endpoints
from famnb.request import Request


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The API of one vendor, or of one kind of server."""

    name: str
    """The name that `famnb.Client(profile=…)` takes."""
    title: str = ""
    """Its name for people; `name` unless given."""
    endpoints: Endpoints = dataclasses.field(hash=False)
    """What it has, by name; the first is the default."""
    base_url: str | None = None
    """Where it is, without the `/v1` of the paths; None where everyone has an address of their own."""
    url_variables: tuple[str, ...] = ()
    """Environment variables that may hold the address, in order."""
    default_port: int | None = None
    """The port where an address without a scheme names none, as the vendor's own programs read it."""
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold the key, in order."""
    needs_key: bool = True
    key_header: str = "authorization"
    """The header that carries the key; `Bearer` stands before it in `authorization` alone."""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    """Headers that every request has."""
    feature_header: str = ""
    """The header that names the features of a request that have to be asked for by name, such as those in beta."""
    features: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    """The features by a piece of the JSON of a request that uses them, such as `"mcp_servers":`."""
    names_deployments: bool = False
    """Whether the model of a request is a deployment of one's own; calls are priced by the model of the reply."""
    query: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    """What every address ends with, after the question mark."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)
        if not self.key_variables:
            object.__setattr__(self, "needs_key", False)

    def feature_headers(self, body: bytes) -> dict[str, str]:
        """Return the header that names the features which a request uses, by its JSON; none if it uses none."""
        names = dict.fromkeys(name for piece, name in self.features.items() if piece.encode() in body)
        return {self.feature_header: ",".join(names)} if names else {}


def vendor_endpoints(models: tuple[str, ...], *requests: type[Request], prefix: str = "/v1") -> Endpoints:
    """Return the endpoints of a vendor, one for each of its requests, at the document's paths below `prefix`.

    `models` are suggestions, at least one, the first the default. `prefix` stands in place of `/v1`: `/openai/v1` at
    Groq.
    """
    documented = [(ENDPOINTS[request.endpoint], request) for request in requests]
    return {
        endpoint.name: dataclasses.replace(
            endpoint, request=request, path=prefix + endpoint.path.removeprefix("/v1"), models=models, alt=False
        )
        for endpoint, request in documented
    }
