"""Code that repeats requests, without a key in it: a cell for famnb, curl or a vendor's SDK."""

from __future__ import annotations

import json
import os
import pprint
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
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
from famnb.widget.form.fields import EXTRA
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
        self.query = {**self.profile.query, **self._query}
        """What its addresses end with."""
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

    @classmethod
    def of_client(cls, client: BaseClient, endpoint_name: str | None = None) -> Self:
        """Return where a client sends the requests of an endpoint, the default one unless given; without secrets."""
        settings = client.engine.settings()
        address = client.base_url(endpoint_name)
        return cls(address, client.profile, headers=settings["headers"], query=settings["query"])

    def client_expression(self, ledger: Path | None = None) -> str:
        """Return a client of the service as an expression; `ledger` is the file it records to, if not your own."""
        extra = {name: dict(value) for name, value in (("headers", self.own_headers), ("query", self._query)) if value}
        recorded = {"ledger": str(ledger)} if ledger else {}
        is_default = self.profile.name == DEFAULT
        if is_default and self.url_variable and not extra:
            return write_call("famnb.connect", **recorded)
        is_known = not is_default and (self.base_url == self.profile.base_url or self.url_variable)
        profile = {} if is_default else {"profile": self.profile.name}
        base_url = {} if is_known else {"base_url": self.base_url}
        return write_call("famnb.Client", **profile, **base_url, **extra, **recorded)


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
    options |= rest
    try:
        # What `ask` would send, with its own default for `stream`.
        arguments = {"stream": True, **options}
        same = compose(arguments.pop("endpoint"), prompt, endpoints=endpoints, **arguments)
    except (InvalidRequest, TypeError):
        return None
    return (prompt, options) if same.body() == request.body() else None


class Code(str):
    """Python that stands among literals as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def write_call(function: str, /, *values: Any, **arguments: Any) -> str:
    """A call: on one line if it fits, else one argument a line."""
    items = [*(("", value) for value in values), *((f"{name}=", value) for name, value in arguments.items())]
    line = f"{function}({', '.join(f'{name}{value!r}' for name, value in items)})"
    if len(line) <= MAX_LINE_LENGTH:
        return line
    lines = [f"{function}("]
    for name, value in items:
        start = f"    {name}"
        text = pprint.pformat(value, width=MAX_LINE_LENGTH - len(start), sort_dicts=False)
        lines.append(start + text.replace("\n", "\n" + " " * len(start)) + ",")
    return "\n".join([*lines, ")"])


def available_kinds(request: Request, endpoints: Endpoints = ENDPOINTS) -> tuple[str, ...]:
    """The kinds of cell there are for a request; the last is the SDK that speaks its endpoint's dialect."""
    return ("famnb", "curl", endpoint(request.endpoint, endpoints).conventions.sdk.package)


def write_cell(request: Request, *, kind: str, target: Target) -> str:
    """A notebook cell that sends this request to a service and shows the answer.

    `kind` is one of `available_kinds(request, target.profile.endpoints)`. The key is read from the environment where
    the cell runs.
    """
    write = {"famnb": _write_famnb, "curl": _write_curl}.get(kind, _write_sdk)
    return write(request, target)


def _write_famnb(request: Request, target: Target) -> str:
    arguments = ask_arguments(request, target.profile.endpoints)
    if arguments is not None:
        prompt, options = arguments
        # In a notebook `ask` shows the reply as it streams, and the last line shows no reply a second time.
        calls = [write_call("reply = client.ask", prompt, **options)]
    else:
        # Only the document's models have names in famnb.
        is_public = type(request) is endpoint(request.endpoint).request
        model = f"famnb.{type(request).__name__}" if is_public else f"client.endpoints[{request.endpoint!r}].request"
        calls = [write_call(f"request = {model}", **request.given_fields()), "reply = client.send(request)"]
    return "\n".join(["import famnb", "", f"client = {target.client_expression()}", *calls, "reply"])


def _write_curl(request: Request, target: Target) -> str:
    profile, query = target.profile, f"?{urlencode(target.query)}" if target.query else ""
    url = target.base_url + endpoint(request.endpoint, profile.endpoints).path + query
    options = "--no-buffer " if request.streams else ""
    # A proxy of the environment cannot reach what is on this machine.
    options += "--noproxy '*' " if urlsplit(target.base_url).hostname in _LOCAL_HOSTS else ""
    headers = {**profile.headers, **target.own_headers, "content-type": "application/json"}
    quoted = [shlex.quote(f"{name}: {value}") for name, value in headers.items()]
    if target.key_variable:
        # Only the key is for the shell to fill in.
        prefix = "Bearer " if profile.key_header == "authorization" else ""
        quoted.insert(0, f'"{profile.key_header}: {prefix}${target.key_variable}"')
    lines = [
        "%%bash",
        f"curl --silent --show-error {options}'{url}' \\",
        f"  {' '.join(f'-H {header}' for header in quoted)} \\",
        # The body cannot end its own here-document: no line of indented JSON is the bare word JSON.
        "  --data-binary @- <<'JSON'",
        json.dumps(request.body(), indent=2, ensure_ascii=False),
        "JSON",
    ]
    return "\n".join(lines)


def is_extra(endpoint: Endpoint, field: str) -> bool:
    """Return whether the SDK of an endpoint's dialect has no parameter for a field of its request."""
    sdk = endpoint.conventions.sdk
    # An SDK has parameters for the fields of its own vendor, which need not have that endpoint.
    other = find_profile(sdk.package).endpoints.get(endpoint.name)
    return field in sdk.extra_fields or (other is not None and field not in other.request.model_fields)


def _write_sdk(request: Request, target: Target) -> str:
    """A cell for the SDK that speaks the endpoint's dialect."""
    request_endpoint = endpoint(request.endpoint, target.profile.endpoints)
    sdk = request_endpoint.conventions.sdk
    # Where the SDK insists on a cap, the endpoint's own default is written out.
    fields = {**request.given_fields(), **({request.cap: getattr(request, request.cap)} if sdk.wants_cap else {})}
    own_extra = fields.pop(EXTRA, {})
    extra = {**{name: fields.pop(name) for name in [*fields] if is_extra(request_endpoint, name)}, **own_extra}
    options = {"default_headers": dict(target.own_headers), "default_query": target.query}
    # An SDK insists on a key also where the service needs none. `getenv`, as where a variable is unset a verbose
    # traceback would show the whole environment, keys included. And not without a default: given None, a vendor's
    # SDK would send the key it finds for that vendor instead.
    key = Code(f"os.getenv({target.key_variable!r}, '')" if target.key_variable else "'none'")
    client = write_call(
        f"client = {sdk.client}",
        base_url=target.base_url + request_endpoint.path.removesuffix(sdk.path),
        api_key=key,
        **{name: value for name, value in options.items() if value},
    )
    name = "stream" if request.streams else "reply"
    call = write_call(f"{name} = client.{sdk.method}.create", **fields, **({EXTRA: extra} if extra else {}))
    show = (f"for event in {name}:", sdk.print_event) if request.streams else (sdk.answer,)
    imports = ["import os", ""] if target.key_variable else []
    return "\n".join([*imports, f"import {sdk.package}", "", client, call, *show])


def experiment_name(prompt: str) -> str:
    """Return a name for an experiment: the first words of its first prompt."""
    return "-".join(re.findall(r"\w+", prompt.lower())[:4])[:40] or "board"


def variant_fields(request: Request, endpoints: Endpoints = ENDPOINTS) -> dict[str, Any]:
    """Return the fields of a variant that sends what this request sends beside its prompt.

    `endpoints` are those of the service that it is sent to.
    """
    default = _neutral_fields(compose(request.endpoint, "-", stream=True, endpoints=endpoints), endpoints)
    # What each stream of the endpoint is sent with, such as a cap that a vendor insists on, tells variants nothing.
    return {
        name: value
        for name, value in _neutral_fields(request, endpoints).items()
        if name in ("endpoint", "model") or name not in default or value != default[name]
    }


def _neutral_fields(request: Request, endpoints: Endpoints) -> dict[str, Any]:
    arguments = ask_arguments(request, endpoints)
    if arguments is not None:
        return arguments[1]
    # What `ask` has no argument for, such as tools, is a field of the endpoint's own.
    own_fields = (request.prompt_field, "stream")
    rest = {name: value for name, value in request.given_fields().items() if name not in own_fields}
    system = endpoint(request.endpoint, endpoints).traits.system_field
    if system is not None and isinstance(rest.get(system), str):
        rest["system"] = rest.pop(system)
    return {"endpoint": request.endpoint, **rest}
