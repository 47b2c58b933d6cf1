"""A request as code that sends it again: a cell for famnb, httpx, curl or the vendor's own SDK, without a key."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from famnb.client.auth import VARIABLE
from famnb.client.config import ALT_VARIABLE, BASE_VARIABLE
from famnb.endpoints import endpoint
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.service.process import KEY_VARIABLE, SERVICE_URL

_WIDTH = 100


def kinds(request: Request) -> tuple[str, ...]:
    """The kinds of cell there are for a request; the last is the SDK that speaks its endpoint's dialect."""
    return ("famnb", "httpx", "curl", endpoint(request.endpoint).conventions.sdk.package)


def code(request: Request, *, kind: str, base_url: str) -> str:
    """A notebook cell that sends this request to the service at `base_url` and shows the answer.

    `kind` is one of `kinds(request)`. The key is read from the environment where the cell runs, and so is the address
    when the environment has it. Raises InvalidRequest for another kind.
    """
    writers: dict[str, Callable[[Request, _Place], str]] = {
        "famnb": _famnb,
        "httpx": _httpx,
        "curl": _curl,
    }
    if kind not in kinds(request):
        raise InvalidRequest(
            f"kind: {kind!r} writes no {request.endpoint}; expected one of {', '.join(kinds(request))}"
        )
    return writers.get(kind, _sdk)(request, _Place(base_url))


class _Place:
    """Where the request goes, by the environment's names for it as far as it has any."""

    def __init__(self, base_url: str) -> None:
        self.url = base_url
        names = (SERVICE_URL, ALT_VARIABLE, BASE_VARIABLE)
        self.variable = next((name for name in names if os.getenv(name, "").rstrip("/") == base_url), None)
        self.key = KEY_VARIABLE if self.variable == SERVICE_URL else VARIABLE
        self.local = urlsplit(base_url).hostname in ("127.0.0.1", "localhost", "::1")
        """Whether it is on this machine, where a proxy of the environment has nothing to do."""

    def python(self, path: str = "") -> str:
        """The address as a Python expression."""
        if self.variable is None:
            return json.dumps(self.url + path)
        return _from_environment(self.variable) + (f' + "{path}"' if path else "")

    @property
    def secret(self) -> str:
        """The key as a Python expression."""
        return _from_environment(self.key)


def _from_environment(variable: str) -> str:
    """A variable's value as a Python expression; not from the whole mapping, which a verbose traceback would show.

    Empty where it is unset: with None, a vendor's SDK would send the key for that vendor instead.
    """
    return f'os.getenv("{variable}", "")'


def _famnb(request: Request, place: _Place) -> str:
    connected = "famnb.connect()" if place.variable else f"famnb.Client(base_url={place.python()})"
    made = _call(f"request = famnb.{type(request).__name__}", request.body())
    if not request.streams:
        return _joined("import famnb", "", f"client = {connected}", made, "reply = client.send(request)", "reply")
    return _joined(
        "import famnb",
        "from famnb.events import Delta",
        "",
        f"client = {connected}",
        made,
        "with client.stream(request) as stream:",
        "    for event in stream:",
        '        if isinstance(event, Delta) and event.kind == "text":',
        '            print(event.text, end="")',
        "reply = stream.reply",
    )


def _httpx(request: Request, place: _Place) -> str:
    where = place.python(endpoint(request.endpoint).path)
    asked = f"{where}, headers=headers, json=body"
    client = "httpx.Client(timeout=600" + (", trust_env=False)" if place.local else ")")
    if request.streams:
        send = (
            f'with {client} as client, client.stream("POST", {asked}) as response:',
            "    for text in response.iter_text():",
            '        print(text, end="")',
        )
    else:
        send = (f"with {client} as client:", f"    response = client.post({asked})", "response.json()")
    return _joined(
        "import os",
        "",
        "import httpx",
        "",
        f'headers = {{"authorization": "Bearer " + {place.secret}}}',
        "body = " + _literal(request.body()),
        *send,
    )


def _curl(request: Request, place: _Place) -> str:
    path = endpoint(request.endpoint).path
    where = f'"${place.variable}{path}"' if place.variable else f"'{place.url}{path}'"
    options = "--no-buffer " if request.streams else ""
    options += "--noproxy '*' " if place.local else ""
    # No line of indented JSON is the bare word that ends the text.
    return _joined(
        "%%bash",
        f"curl --silent --show-error {options}{where} \\",
        f'  -H "authorization: Bearer ${place.key}" -H "content-type: application/json" \\',
        "  --data-binary @- <<'JSON'",
        json.dumps(request.body(), indent=2, ensure_ascii=False),
        "JSON",
    )


def _sdk(request: Request, place: _Place) -> str:
    """A cell for the SDK that speaks the endpoint's dialect."""
    at = endpoint(request.endpoint)
    sdk = at.conventions.sdk
    # Where the SDK insists on a cap, the endpoint's own default is written out.
    fields = {**request.body(), **({request.cap: getattr(request, request.cap)} if sdk.wants_cap else {})}
    extra = _without(fields, *sdk.extra_fields)
    client = f"{sdk.client}(base_url={place.python(at.path.removesuffix(sdk.path))}, api_key={place.secret})"
    name = "stream" if request.streams else "reply"
    ends = (f"for event in {name}:", sdk.print_event) if request.streams else (sdk.answer,)
    return _joined(
        "import os",
        "",
        f"import {sdk.package}",
        "",
        f"client = {client}",
        _call(f"{name} = client.{sdk.method}.create", {**fields, **({"extra_body": extra} if extra else {})}),
        *ends,
    )


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    """Takes these fields out, and gives what was taken."""
    return {name: fields.pop(name) for name in names if name in fields}


def _call(name: str, fields: Mapping[str, Any]) -> str:
    """A call with a keyword argument a line."""
    lines = [f"    {field}={_literal(value, indent=4, used=len(field) + 2)}," for field, value in fields.items()]
    return "\n".join([f"{name}(", *lines, ")"])


def _literal(value: Any, *, indent: int = 0, used: int = 0) -> str:
    """A JSON value as Python, on one line if it fits, else an item a line."""
    flat = _flat(value)
    if not isinstance(value, dict | list) or not value or indent + used + len(flat) <= _WIDTH:
        return flat
    inner = indent + 4
    if isinstance(value, dict):
        items = [f"{_flat(key)}: {_literal(item, indent=inner, used=len(key) + 5)}" for key, item in value.items()]
    else:
        items = [_literal(item, indent=inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([opening, *(f"{' ' * inner}{item}," for item in items), " " * indent + closing])


def _flat(value: Any) -> str:
    match value:
        case str():
            # What is printable is the same in JSON and in Python, and JSON's quotes are the ones a formatter wants.
            return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
        case Mapping():
            return "{" + ", ".join(f"{_flat(key)}: {_flat(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_flat, value)) + "]"
        case _:
            return repr(value)


def _joined(*lines: str) -> str:
    return "\n".join(lines)
