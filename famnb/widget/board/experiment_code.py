"""The code of an experiment that asks what a board has asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from famnb.client.client import BaseClient
from famnb.endpoints import ENDPOINTS, Endpoints, endpoint
from famnb.request import Request
from famnb.widget.form.python_code import (
    MAX_LINE_LENGTH,
    Target,
    ask_arguments,
    join_lines,
    one_line_literal,
    write_call,
)

REPEATS = 5
"""How often each prompt is asked, at first: fewer show no spread."""


class ExperimentVariant(NamedTuple):
    """What a variant of an experiment sends, and by which client."""

    request: Request
    client: BaseClient | None = None
    """Its own client; None for the experiment's."""
    client_name: str = ""
    """What its own client is called."""


def write_experiment(prompts: Sequence[str], variants: Mapping[str, ExperimentVariant], *, client: BaseClient) -> str:
    """Return a cell that makes an experiment of these prompts and of the settings of these variants, by label.

    `client` is that of variants without one of their own. The cell shows the forecast; the line that runs the
    experiment is a comment, since running costs money.
    """
    own = _name_clients(variants.values())
    names = {id(each): name for name, each in own.items()}
    lines = []
    for label, variant in variants.items():
        fields = variant_fields(variant.request, (variant.client or client).endpoints)
        if variant.client is not None:
            fields = {"client": _own_client(names[id(variant.client)]), **fields}
        lines.append(f"        {one_line_literal(label)}: {_literal(fields)},")
    head = write_call("experiment = famnb.Experiment", {"": list(prompts)}).removesuffix("\n)")
    # Which of the document's two addresses it is depends on what is sent there.
    shared = next((variant.request for variant in variants.values() if variant.client is None), None)
    default = _own_client(next(iter(own))) if shared is None else "client"
    return join_lines(
        "import famnb",
        "",
        *([] if shared is None else [f"client = {_client_expression(client, shared)}"]),
        *(_write_clients(own) if own else []),
        head,
        "    variants={",
        *lines,
        "    },",
        f"    repeats={REPEATS},",
        f"    name={one_line_literal(_name(prompts))},",
        f"    client={default},",
        ")",
        "# experiment.run(budget_usd=1.0); experiment.summary()",
        "experiment.forecast()",
    )


def _name_clients(variants: Iterable[ExperimentVariant]) -> dict[str, BaseClient]:
    """Return the variants' own clients by name, each once; panes that were added later may have names like others."""
    names: dict[str, BaseClient] = {}
    for variant in variants:
        if variant.client is not None and variant.client not in names.values():
            is_new = variant.client_name not in names
            names[variant.client_name if is_new else f"{variant.client_name} #{len(names) + 1}"] = variant.client
    return names


def _write_clients(clients: Mapping[str, BaseClient]) -> list[str]:
    """Return the lines that make clients by name."""
    lines = [f"    {one_line_literal(name)}: {_client_expression(client)}," for name, client in clients.items()]
    return [
        "# Each reads its key from the variable of its profile; fill in what else it needs.",
        "clients = {",
        *lines,
        "}",
    ]


def _client_expression(client: BaseClient, request: Request | None = None) -> str:
    """Return a client as a Python expression; `request` is the first that it sends."""
    return Target.of_client(client, request.endpoint if request else None).client_expression


class _Expression(str):
    """Python code that stands for a value."""

    __slots__ = ()


def _own_client(name: str) -> _Expression:
    return _Expression(f"clients[{one_line_literal(name)}]")


def variant_fields(request: Request, endpoints: Endpoints = ENDPOINTS) -> dict[str, Any]:
    """Return the fields of a variant that sends what this request sends beside its prompt.

    `endpoints` are those of the service that it is sent to.
    """
    arguments = ask_arguments(request, endpoints)
    if arguments is not None:
        return arguments[1]
    # What `ask` has no argument for, such as tools, is a field of the endpoint's own.
    body = request.given_fields()
    own = (request.prompt_field, "stream")
    rest = {name: value for name, value in body.items() if name not in own}
    system = endpoint(request.endpoint, endpoints).traits.system_field
    if system is not None and isinstance(rest.get(system), str):
        rest["system"] = rest.pop(system)
    return {"endpoint": request.endpoint, **rest}


def _literal(fields: Mapping[str, Any]) -> str:
    items = [f"{one_line_literal(name)}: {_value_literal(value)}" for name, value in fields.items()]
    text = f"{{{', '.join(items)}}}"
    if len(text) <= MAX_LINE_LENGTH - 30:
        return text
    inner = ",\n".join(f"            {item}" for item in items)
    return f"{{\n{inner},\n        }}"


def _value_literal(value: Any) -> str:
    return str(value) if isinstance(value, _Expression) else one_line_literal(value)


def _name(prompts: Sequence[str]) -> str:
    """Return a name for the experiment: the first words of its first prompt."""
    words = re.findall(r"\w+", prompts[0].lower()) if prompts else []
    return "-".join(words[:4])[:40] or "board"
