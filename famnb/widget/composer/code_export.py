"""Code that repeats a request: a notebook cell for famnb, httpx, curl or the vendor's SDK, without a key in it."""

from __future__ import annotations

import json
from collections.abc import Callable

from famnb.client.config import Deadlines
from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints, endpoint
from famnb.errors import InvalidRequest
from famnb.profiles import find_profile
from famnb.request import Request
from famnb.widget.form.fields import EXTRA
from famnb.widget.form.python_code import (
    MAX_LINE_LENGTH,
    Target,
    ask_arguments,
    join_lines,
    one_line_literal,
    python_literal,
    write_call,
)


def available_kinds(request: Request, endpoints: Endpoints = ENDPOINTS) -> tuple[str, ...]:
    """The kinds of cell there are for a request; the last is the SDK that speaks its endpoint's dialect."""
    return ("famnb", "httpx", "curl", endpoint(request.endpoint, endpoints).conventions.sdk.package)


def write_cell(request: Request, *, kind: str, target: Target) -> str:
    """A notebook cell that sends this request to a service and shows the answer.

    `kind` is one of `available_kinds(request, target.profile.endpoints)`. The key is read from the environment where
    the cell runs. Raises InvalidRequest for another kind.
    """
    writers: dict[str, Callable[[Request, Target], str]] = {
        "famnb": _write_famnb,
        "httpx": _write_httpx,
        "curl": _write_curl,
    }
    kinds = available_kinds(request, target.profile.endpoints)
    if kind not in kinds:
        raise InvalidRequest(f"kind: {kind!r} writes no {request.endpoint}; expected one of {', '.join(kinds)}")
    return writers.get(kind, _write_sdk)(request, target)


def _write_famnb(request: Request, target: Target) -> str:
    arguments = ask_arguments(request, target.profile.endpoints)
    if arguments is not None:
        prompt, options = arguments
        one_line = ", ".join(
            [one_line_literal(prompt), *(f"{name}={one_line_literal(value)}" for name, value in options.items())]
        )
        call = f"reply = client.ask({one_line})"
        if len(call) > MAX_LINE_LENGTH:
            call = write_call("reply = client.ask", {"": prompt, **options})
        # In a notebook `ask` shows the reply as it streams, and the last line shows no reply a second time.
        return join_lines("import famnb", "", f"client = {target.client_expression}", call, "reply")
    # Only the document's models have names in famnb.
    is_public = type(request) is endpoint(request.endpoint).request
    model = f"famnb.{type(request).__name__}" if is_public else f'client.endpoints["{request.endpoint}"].request'
    construction = write_call(f"request = {model}", request.given_fields())
    if not request.streams:
        return join_lines(
            "import famnb",
            "",
            f"client = {target.client_expression}",
            construction,
            "reply = client.send(request)",
            "reply",
        )
    return join_lines(
        "import famnb",
        "from famnb.events import Delta",
        "",
        f"client = {target.client_expression}",
        construction,
        "with client.stream(request) as stream:",
        "    for event in stream:",
        '        if isinstance(event, Delta) and event.kind == "text":',
        '            print(event.text, end="")',
        "reply = stream.reply",
    )


def _write_httpx(request: Request, target: Target) -> str:
    arguments = f"{json.dumps(target.url(request))}, headers=headers, json=body"
    # By default httpx waits 5 s for data, which a long answer takes many times over: famnb's own limit instead.
    client = f"httpx.Client(timeout={Deadlines().total:.0f}" + (", trust_env=False)" if target.is_local else ")")
    if request.streams:
        send = (
            f'with {client} as client, client.stream("POST", {arguments}) as response:',
            "    for text in response.iter_text():",
            '        print(text, end="")',
        )
    else:
        send = (f"with {client} as client:", f"    response = client.post({arguments})", "response.json()")
    return join_lines(
        *(("import os", "") if target.key_variable else ()),
        "import httpx",
        "",
        f"headers = {target.headers_literal}",
        "body = " + python_literal(request.body()),
        *send,
    )


def _write_curl(request: Request, target: Target) -> str:
    url = f"'{target.url(request)}'"
    options = "--no-buffer " if request.streams else ""
    options += "--noproxy '*' " if target.is_local else ""
    return join_lines(
        "%%bash",
        f"curl --silent --show-error {options}{url} \\",
        f"  {target.curl_headers} \\",
        # The body cannot end its own here-document: no line of indented JSON is the bare word JSON.
        "  --data-binary @- <<'JSON'",
        json.dumps(request.body(), indent=2, ensure_ascii=False),
        "JSON",
    )


def is_extra(endpoint: Endpoint, field: str) -> bool:
    """Return whether the SDK of an endpoint's dialect has no parameter for a field of its request."""
    sdk = endpoint.conventions.sdk
    # An SDK has parameters for the fields of its own vendor, which need not have that endpoint.
    own = find_profile(sdk.package).endpoints.get(endpoint.name)
    return field in sdk.extra_fields or (own is not None and field not in own.request.model_fields)


def _write_sdk(request: Request, target: Target) -> str:
    """A cell for the SDK that speaks the endpoint's dialect."""
    request_endpoint = target.endpoint_of(request)
    sdk = request_endpoint.conventions.sdk
    # Where the SDK insists on a cap, the endpoint's own default is written out.
    fields = {**request.given_fields(), **({request.cap: getattr(request, request.cap)} if sdk.wants_cap else {})}
    own_extra = fields.pop(EXTRA, {})
    extra = {**{name: fields.pop(name) for name in [*fields] if is_extra(request_endpoint, name)}, **own_extra}
    base_url = target.url_literal(request_endpoint.path.removesuffix(sdk.path))
    arguments = [f"base_url={base_url}", f"api_key={target.key_expression}"]
    arguments += [f"default_headers={one_line_literal(target.own_headers)}"] if target.own_headers else []
    arguments += [f"default_query={one_line_literal(target.query)}"] if target.query else []
    name = "stream" if request.streams else "reply"
    show = (f"for event in {name}:", sdk.print_event) if request.streams else (sdk.answer,)
    return join_lines(
        *(("import os", "") if target.key_variable else ()),
        f"import {sdk.package}",
        "",
        f"client = {sdk.client}({', '.join(arguments)})",
        write_call(f"{name} = client.{sdk.method}.create", {**fields, **({EXTRA: extra} if extra else {})}),
        *show,
    )
