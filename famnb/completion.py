"""Completion in a notebook's cell of what a signature cannot list: endpoints, models, and the fields of requests."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from famnb.endpoints import ENDPOINTS, Endpoint

_CALL = re.compile(r"\b(ask|compose|conversation|say|edit|grid|Composer|Board|Experiment|\w+Request)\(")
"""The calls that take an endpoint, a model or fields."""
# The text before the cursor ends in one of these; a list is what `grid` takes.
_LISTED = r"""\s*[=:]\s*\[?(?:\s*["'][^"']*["']\s*,)*\s*["']([\w./-]*)$"""
_VALUE = re.compile(rf"""["']?\b(endpoint|model)\b["']?{_LISTED}""")
_FIRST = re.compile(r"""\b(?:compose|conversation)\(\s*["'](\w*)$""")
_FIELD = re.compile(r"""[(,]\s*(\w*)$""")
_ENDPOINT = re.compile(r"""(?:\bendpoint["']?\s*[=:]|\b(?:compose|conversation)\()\s*["'](\w+)["']""")
_REQUEST = re.compile(r"\b(\w+Request)\(")


def install_completion(shell: Any) -> None:
    """Have an IPython shell complete them; calling it again changes nothing."""
    matchers = shell.Completer.custom_matchers
    if complete not in matchers:
        matchers.append(complete)


@context_matcher()  # type: ignore[untyped-decorator]
def complete(context: CompletionContext) -> SimpleMatcherResult:
    """Complete the value of `endpoint=` and `model=`, and the names of fields, in a call that takes them."""
    lines = context.full_text.splitlines()[: context.cursor_line + 1]
    before = "\n".join([*lines[:-1], lines[-1][: context.cursor_position]]) if lines else ""
    calls = list(_CALL.finditer(before))
    # In brackets that are closed again the cursor is no longer.
    call = next((before[call.start() :] for call in reversed(calls) if _is_open(before[call.end() :])), "")
    fragment, names = _candidates(call)
    matches = [name for name in dict.fromkeys(names) if name.startswith(fragment)]
    return {
        "completions": [SimpleCompletion(text=match, type="fam") for match in matches],
        "matched_fragment": fragment,
        # Inside quotation marks names of Python would be no help.
        "suppress": bool(matches) and not matches[0].endswith("="),
    }


def _is_open(text: str) -> bool:
    """Whether a bracket that stands before some code is not closed in it."""
    code = re.sub(r'"[^"\n]*"|' r"'[^'\n]*'", "", text)
    depths = itertools.accumulate({"(": 1, ")": -1}.get(character, 0) for character in code)
    return min(depths, default=0) >= 0


def _candidates(call: str) -> tuple[str, Iterator[str]]:
    """Return what is typed so far at the end of a call, and what may stand there."""
    if value := _VALUE.search(call):
        names = ENDPOINTS if value[1] == "endpoint" else (model for chosen in _targets(call) for model in chosen.models)
        return value[2], iter(names)
    if first := _FIRST.search(call):
        return first[1], iter(ENDPOINTS)
    if call and (field := _FIELD.search(call)):
        return field[1], (f"{name}=" for chosen in _targets(call) for name in chosen.request.model_fields)
    return "", iter(())


def _targets(call: str) -> list[Endpoint]:
    """Return the endpoint that a call names, or all."""
    name, request = _ENDPOINT.search(call), _REQUEST.search(call)
    if request:
        return [target for target in ENDPOINTS.values() if target.request.__name__ == request[1]]
    return [ENDPOINTS[name[1]]] if name and name[1] in ENDPOINTS else list(ENDPOINTS.values())
