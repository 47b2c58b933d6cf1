"""The code of an experiment that asks what a board has asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

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


def write_experiment(prompts: Sequence[str], variants: Mapping[str, Request], *, base_url: str) -> str:
    """Return a cell that makes an experiment of these prompts and of the settings of these requests, by label.

    The cell shows the forecast; the line that runs the experiment is a comment, since running costs money.
    """
    fields = {label: variant_fields(request) for label, request in variants.items()}
    lines = [f"        {one_line_literal(label)}: {_literal(given)}," for label, given in fields.items()]
    head = write_call("experiment = famnb.Experiment", {"": list(prompts)}).removesuffix("\n)")
    return join_lines(
        "import famnb",
        "",
        f"client = {Target(base_url).client_expression}",
        head,
        "    variants={",
        *lines,
        "    },",
        f"    repeats={REPEATS},",
        f"    name={one_line_literal(_name(prompts))},",
        "    client=client,",
        ")",
        "# experiment.run(budget_usd=1.0); experiment.summary()",
        "experiment.forecast()",
    )


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
    text = one_line_literal(fields)
    if len(text) <= MAX_LINE_LENGTH - 30:
        return text
    inner = ",\n".join(f"            {one_line_literal(name)}: {one_line_literal(fields[name])}" for name in fields)
    return f"{{\n{inner},\n        }}"


def _name(prompts: Sequence[str]) -> str:
    """Return a name for the experiment: the first words of its first prompt."""
    words = re.findall(r"\w+", prompts[0].lower()) if prompts else []
    return "-".join(words[:4])[:40] or "board"
