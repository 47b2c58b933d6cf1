"""Code that repeats a request: a notebook cell for famnb, httpx, curl or the vendor's SDK, without a key in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from famnb.client.auth import VARIABLE
from famnb.client.config import ALT_VARIABLE, Deadlines
from famnb.endpoints import compose, endpoint
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.service.process import KEY_VARIABLE, SERVICE_URL
from famnb.widget.html.request_text import message_texts

# A line of this length fits a notebook's cell in a window of usual width, beside JupyterLab's file list.
_MAX_LINE_LENGTH = 100
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


def available_kinds(request: Request) -> tuple[str, ...]:
    """The kinds of cell there are for a request; the last is the SDK that speaks its endpoint's dialect."""
    return ("famnb", "httpx", "curl", endpoint(request.endpoint).conventions.sdk.package)


def write_cell(request: Request, *, kind: str, base_url: str) -> str:
    """A notebook cell that sends this request to the service at `base_url` and shows the answer.

    `kind` is one of `available_kinds(request)`. The key is read from the environment where the cell runs, and so is
    the address if a variable of the environment has it. Raises InvalidRequest for another kind.
    """
    writers: dict[str, Callable[[Request, _Target], str]] = {
        "famnb": _write_famnb,
        "httpx": _write_httpx,
        "curl": _write_curl,
    }
    kinds = available_kinds(request)
    if kind not in kinds:
        raise InvalidRequest(f"kind: {kind!r} writes no {request.endpoint}; expected one of {', '.join(kinds)}")
    return writers.get(kind, _write_sdk)(request, _Target(base_url))


class _Target:
    """The service that a cell sends to: its address and key, by the environment variables that hold them."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        names = (SERVICE_URL, ALT_VARIABLE, "FAM_BASE_URL")
        self.url_variable = next((name for name in names if os.getenv(name, "").rstrip("/") == base_url), None)
        """The variable that has the address; None if none has it, and the cell must spell it out."""
        self.key_variable = KEY_VARIABLE if self.url_variable == SERVICE_URL else VARIABLE
        self.is_local = urlsplit(base_url).hostname in _LOCAL_HOSTS
        """Whether it is on this machine, which a proxy of the environment cannot reach."""

    def url_expression(self, path: str = "") -> str:
        """The address, with a path appended, as a Python expression."""
        if self.url_variable is None:
            return json.dumps(self.base_url + path)
        return _read_variable(self.url_variable) + (f' + "{path}"' if path else "")

    @property
    def key_expression(self) -> str:
        """The key as a Python expression."""
        return _read_variable(self.key_variable)


def _read_variable(name: str) -> str:
    """The Python expression for an environment variable's value."""
    # `getenv`, as where a variable is unset a verbose traceback would show the whole environment, keys included.
    # And not without a default: given None, a vendor's SDK would send the key it finds for that vendor instead.
    return f'os.getenv("{name}", "")'


def _write_famnb(request: Request, target: _Target) -> str:
    client = "famnb.connect()" if target.url_variable else f"famnb.Client(base_url={target.url_expression()})"
    arguments = _ask_arguments(request)
    if arguments is not None:
        prompt, options = arguments
        one_line = ", ".join(
            [_one_line_literal(prompt), *(f"{name}={_one_line_literal(value)}" for name, value in options.items())]
        )
        call = f"reply = client.ask({one_line})"
        if len(call) > _MAX_LINE_LENGTH:
            call = _write_call("reply = client.ask", {"": prompt, **options})
        # In a notebook `ask` shows the reply as it streams, and the last line shows no reply a second time.
        return _join_lines("import famnb", "", f"client = {client}", call, "reply")
    construction = _write_call(f"request = famnb.{type(request).__name__}", request.body())
    if not request.streams:
        return _join_lines(
            "import famnb", "", f"client = {client}", construction, "reply = client.send(request)", "reply"
        )
    return _join_lines(
        "import famnb",
        "from famnb.events import Delta",
        "",
        f"client = {client}",
        construction,
        "with client.stream(request) as stream:",
        "    for event in stream:",
        '        if isinstance(event, Delta) and event.kind == "text":',
        '            print(event.text, end="")',
        "reply = stream.reply",
    )


def _ask_arguments(request: Request) -> tuple[str, dict[str, Any]] | None:
    """The prompt and the other arguments with which `Client.ask` sends exactly this request; None if none do."""
    messages = message_texts(request)
    if [message.role for message in messages] not in (["user"], ["system", "user"]) or "tools" in request.body():
        return None
    *system, prompt = (message.text for message in messages)
    request_endpoint = endpoint(request.endpoint)
    traits = request_endpoint.traits
    own_fields = (request.prompt_field, traits.system_field, request.cap, "model", "stream")
    fields = request.body()
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
        same = compose(request.endpoint, prompt, **{"stream": True, **_without(options, "endpoint")})
    except (InvalidRequest, TypeError):
        return None
    return (prompt, options) if same.body() == request.body() else None


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {other: value for other, value in values.items() if other != name}


def _write_httpx(request: Request, target: _Target) -> str:
    arguments = f"{target.url_expression(endpoint(request.endpoint).path)}, headers=headers, json=body"
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
    return _join_lines(
        "import os",
        "",
        "import httpx",
        "",
        f'headers = {{"authorization": "Bearer " + {target.key_expression}}}',
        "body = " + _python_literal(request.body()),
        *send,
    )


def _write_curl(request: Request, target: _Target) -> str:
    path = endpoint(request.endpoint).path
    # The shell fills in a variable between double quotes, and leaves single quotes alone.
    url = f'"${target.url_variable}{path}"' if target.url_variable else f"'{target.base_url}{path}'"
    options = "--no-buffer " if request.streams else ""
    options += "--noproxy '*' " if target.is_local else ""
    return _join_lines(
        "%%bash",
        f"curl --silent --show-error {options}{url} \\",
        f'  -H "authorization: Bearer ${target.key_variable}" -H "content-type: application/json" \\',
        # The body cannot end its own here-document: no line of indented JSON is the bare word JSON.
        "  --data-binary @- <<'JSON'",
        json.dumps(request.body(), indent=2, ensure_ascii=False),
        "JSON",
    )


def _write_sdk(request: Request, target: _Target) -> str:
    """A cell for the SDK that speaks the endpoint's dialect."""
    request_endpoint = endpoint(request.endpoint)
    sdk = request_endpoint.conventions.sdk
    # Where the SDK insists on a cap, the endpoint's own default is written out.
    fields = {**request.body(), **({request.cap: getattr(request, request.cap)} if sdk.wants_cap else {})}
    extra = {name: fields.pop(name) for name in sdk.extra_fields if name in fields}
    base_url = target.url_expression(request_endpoint.path.removesuffix(sdk.path))
    name = "stream" if request.streams else "reply"
    show = (f"for event in {name}:", sdk.print_event) if request.streams else (sdk.answer,)
    return _join_lines(
        "import os",
        "",
        f"import {sdk.package}",
        "",
        f"client = {sdk.client}(base_url={base_url}, api_key={target.key_expression})",
        _write_call(f"{name} = client.{sdk.method}.create", {**fields, **({"extra_body": extra} if extra else {})}),
        *show,
    )


def _write_call(function: str, arguments: Mapping[str, Any]) -> str:
    """A call with one keyword argument a line; the argument without a name is positional."""
    lines = [
        f"    {f'{name}=' if name else ''}{_python_literal(value, indent=4, used=len(name) + 2)},"
        for name, value in arguments.items()
    ]
    return _join_lines(f"{function}(", *lines, ")")


def _python_literal(value: Any, *, indent: int = 0, used: int = 0) -> str:
    """A JSON value as Python, on one line if it fits there, else one item a line.

    `indent` is that of the line on which it begins, `used` how many characters of that line are taken besides.
    """
    one_line = _one_line_literal(value)
    if not isinstance(value, dict | list) or not value or indent + used + len(one_line) <= _MAX_LINE_LENGTH:
        return one_line
    inner = indent + 4
    if isinstance(value, dict):
        items = [
            # The name stands there with its quotes, ": " and a comma.
            f"{_one_line_literal(name)}: {_python_literal(item, indent=inner, used=len(name) + 5)}"
            for name, item in value.items()
        ]
    else:
        items = [_python_literal(item, indent=inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return _join_lines(opening, *(f"{' ' * inner}{item}," for item in items), " " * indent + closing)


def _one_line_literal(value: Any) -> str:
    match value:
        case str():
            # What is printable is the same in JSON and in Python, and JSON's quotes are the ones a formatter wants.
            return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
        case Mapping():
            items = (f"{_one_line_literal(name)}: {_one_line_literal(item)}" for name, item in value.items())
            return "{" + ", ".join(items) + "}"
        case list():
            return "[" + ", ".join(map(_one_line_literal, value)) + "]"
        case _:
            return repr(value)


def _join_lines(*lines: str) -> str:
    return "\n".join(lines)
