"""Python code of requests: literals, calls, and the address and key of a service without a key in it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from famnb.client.client import BaseClient
from famnb.client.config import ALT_VARIABLE
from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints, compose, endpoint
from famnb.errors import InvalidRequest
from famnb.profiles import DEFAULT, find_profile
from famnb.profiles.profile import Profile
from famnb.request import Request
from famnb.service.process import KEY_VARIABLE, SERVICE_URL
from famnb.widget.html.facts import message_texts

# A line of this length fits a notebook's cell in a window of usual width, beside JupyterLab's file list.
MAX_LINE_LENGTH = 100
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class Target:
    """The service that a cell sends to: its address, headers and key, the latter by the variable that holds it."""

    def __init__(
        self,
        base_url: str,
        profile: Profile | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> None:
        """`profile` is the API of the service, the document's unless given; `headers` and `query` are a client's."""
        self.base_url = base_url
        self.profile = profile or find_profile(DEFAULT)
        self.own_headers = headers or {}
        """The headers that the client adds to those of the profile."""
        self._query = query or {}
        # The embedded service, and the document's second address, are known to `connect` without a profile alone.
        embedded = (SERVICE_URL, ALT_VARIABLE) if self.profile.name == DEFAULT else ()
        names = (*embedded, *self.profile.url_variables)
        self.url_variable = next((name for name in names if os.getenv(name, "").rstrip("/") == base_url), None)
        """The variable from which `famnb.connect()` takes this address; None if it takes another one."""
        keys = self.profile.key_variables
        is_embedded = self.url_variable == SERVICE_URL
        self.key_variable = KEY_VARIABLE if is_embedded else next(filter(os.getenv, keys), next(iter(keys), ""))
        """The variable with the key; empty where the service needs none."""
        if not self.profile.needs_key and not os.getenv(self.key_variable or ""):
            self.key_variable = ""
        self.is_local = urlsplit(base_url).hostname in _LOCAL_HOSTS
        """Whether it is on this machine, which a proxy of the environment cannot reach."""

    @classmethod
    def of_client(cls, client: BaseClient, endpoint_name: str | None = None) -> Self:
        """Return where a client sends the requests of an endpoint, the default one unless given; without secrets."""
        settings = client.engine.settings()
        address = client.base_url(endpoint_name)
        return cls(address, client.profile, headers=settings["headers"], query=settings["query"])

    def endpoint_of(self, request: Request) -> Endpoint:
        """The endpoint of a request at this service."""
        return endpoint(request.endpoint, self.profile.endpoints)

    def url(self, request: Request) -> str:
        """The whole address that a request is sent to."""
        query = f"?{urlencode(self.query)}" if self.query else ""
        return self.base_url + self.endpoint_of(request).path + query

    @property
    def query(self) -> dict[str, str]:
        """What its addresses end with."""
        return {**self.profile.query, **self._query}

    def url_literal(self, path: str = "") -> str:
        """The address, with a path appended, as a Python literal: what is called is seen where it is called."""
        return json.dumps(self.base_url + path)

    @property
    def client_expression(self) -> str:
        """A client of the service as a Python expression."""
        own = {name: value for name, value in (("headers", self.own_headers), ("query", self._query)) if value}
        is_default = self.profile.name == DEFAULT
        if is_default and self.url_variable and not own:
            return "famnb.connect()"
        is_known = not is_default and (self.base_url == self.profile.base_url or self.url_variable)
        arguments = [] if is_default else [f"profile={json.dumps(self.profile.name)}"]
        arguments += [] if is_known else [f"base_url={self.url_literal()}"]
        arguments += [f"{name}={one_line_literal(value)}" for name, value in own.items()]
        return f"famnb.Client({', '.join(arguments)})"

    @property
    def key_expression(self) -> str:
        """The key as a Python expression."""
        # An SDK insists on a key also where the service needs none.
        return _read_variable(self.key_variable) if self.key_variable else '"none"'

    @property
    def headers_literal(self) -> str:
        """The headers with key and version as a Python expression."""
        name, prefix = self.profile.key_header, self._key_prefix
        key = [f"{json.dumps(name)}: {f'{json.dumps(prefix)} + ' if prefix else ''}{self.key_expression}"]
        others = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in self._open_headers.items()]
        return f"{{{', '.join([*(key if self.key_variable else []), *others])}}}"

    @property
    def curl_headers(self) -> str:
        """The same as options of curl, in which the shell puts the key."""
        key = [f"{self.profile.key_header}: {self._key_prefix}${self.key_variable}"] if self.key_variable else []
        others = {**self._open_headers, "content-type": "application/json"}
        # Only the key is for the shell to fill in.
        quoted = [*(f'"{header}"' for header in key), *(shlex.quote(f"{name}: {others[name]}") for name in others)]
        return " ".join(f"-H {header}" for header in quoted)

    @property
    def _open_headers(self) -> dict[str, str]:
        return {**self.profile.headers, **self.own_headers}

    @property
    def _key_prefix(self) -> str:
        return "Bearer " if self.profile.key_header == "authorization" else ""


def _read_variable(name: str) -> str:
    """The Python expression for an environment variable's value."""
    # `getenv`, as where a variable is unset a verbose traceback would show the whole environment, keys included.
    # And not without a default: given None, a vendor's SDK would send the key it finds for that vendor instead.
    return f'os.getenv("{name}", "")'


def ask_arguments(request: Request, endpoints: Endpoints = ENDPOINTS) -> tuple[str, dict[str, Any]] | None:
    """The prompt and the other arguments with which `Client.ask` sends exactly this request; None if none do.

    `endpoints` are those of the client's service.
    """
    messages = message_texts(request)
    if [message.role for message in messages] not in (["user"], ["system", "user"]) or "tools" in request.body():
        return None
    *system, prompt = (message.text for message in messages)
    traits = endpoint(request.endpoint, endpoints).traits
    own_fields = (request.prompt_field, traits.system_field, request.cap, "model", "stream")
    fields = request.given_fields()
    options: dict[str, Any] = {"endpoint": request.endpoint, "model": fields.get("model")}
    options |= {"system": system[0]} if system else {}
    options |= {"max_tokens": fields[request.cap]} if request.cap in fields else {}
    # `ask` streams unless it is told not to; an unset field and False are not the same request.
    options |= {} if fields.get("stream") is True else {"stream": fields.get("stream")}
    rest = {name: value for name, value in fields.items() if name not in own_fields}
    match rest.get("thinking"):
        case {"type": "enabled", "budget_tokens": int(budget)}:
            rest["thinking"] = budget
        case _:
            pass
    options |= rest
    try:
        # What `ask` would send, with its own default for `stream`.
        same = compose(
            request.endpoint, prompt, endpoints=endpoints, **{"stream": True, **_without(options, "endpoint")}
        )
    except (InvalidRequest, TypeError):
        return None
    return (prompt, options) if same.body() == request.body() else None


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {other: value for other, value in values.items() if other != name}


def write_call(function: str, arguments: Mapping[str, Any]) -> str:
    """A call with one keyword argument a line; the argument without a name is positional."""
    lines = [
        f"    {f'{name}=' if name else ''}{python_literal(value, indent=4, used=len(name) + 2)},"
        for name, value in arguments.items()
    ]
    return join_lines(f"{function}(", *lines, ")")


def python_literal(value: Any, *, indent: int = 0, used: int = 0) -> str:
    """A JSON value as Python, on one line if it fits there, else one item a line.

    `indent` is that of the line on which it begins, `used` how many characters of that line are taken besides.
    """
    one_line = one_line_literal(value)
    if not isinstance(value, dict | list) or not value or indent + used + len(one_line) <= MAX_LINE_LENGTH:
        return one_line
    inner = indent + 4
    if isinstance(value, dict):
        items = [
            # The name stands there with its quotes, ": " and a comma.
            f"{one_line_literal(name)}: {python_literal(item, indent=inner, used=len(name) + 5)}"
            for name, item in value.items()
        ]
    else:
        items = [python_literal(item, indent=inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return join_lines(opening, *(f"{' ' * inner}{item}," for item in items), " " * indent + closing)


def one_line_literal(value: Any) -> str:
    """A JSON value as Python on one line."""
    match value:
        case str():
            # What is printable is the same in JSON and in Python, and JSON's quotes are the ones a formatter wants.
            return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
        case Mapping():
            items = (f"{one_line_literal(name)}: {one_line_literal(item)}" for name, item in value.items())
            return "{" + ", ".join(items) + "}"
        case list():
            return "[" + ", ".join(map(one_line_literal, value)) + "]"
        case _:
            return repr(value)


def join_lines(*lines: str) -> str:
    """Lines as one text."""
    return "\n".join(lines)
