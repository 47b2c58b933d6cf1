"""What the scripts of all clients share: the service, what is asked of it, and how the answers are reported.

A script runs in the environment of its client, where nothing of famnb is. It prints one JSON object a line for each
case that its client offers.
"""

import functools
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any, Literal

import pydantic

SERVICE = json.loads(sys.argv[1])
URL, KEY, API, MODEL, PROMPT, CAP = (SERVICE[name] for name in ("url", "key", "api", "model", "prompt", "cap"))
WEATHER_PROMPT = "How is the weather in Oslo?"
RESULT = "11 degrees"


class Weather(pydantic.BaseModel):
    """The form of a structured answer."""

    sunny: bool
    wind: Literal["none", "some", "much"]


PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
FUNCTION = {"name": "get_weather", "description": "Return the weather in a city.", "parameters": PARAMETERS}


def user(content: Any) -> Any:
    """Return a message of the user's."""
    return {"role": "user", "content": content}


def report(
    text: Callable[..., dict[str, Any]],
    tools: Callable[..., dict[str, Any]],
    answer: Callable[..., dict[str, Any]],
    /,
    **others: Callable[[], dict[str, Any]],
) -> None:
    """Run each case, whole and with `stream=True`, and the others; print what came of it, or the error it raised."""
    pairs = (("whole", "stream", text), ("tools", "streamed_tools", tools), ("object", "streamed_object", answer))
    cases = {
        name: functools.partial(case, stream=stream)
        for *names, case in pairs
        for name, stream in zip(names, (False, True), strict=True)
    }
    for name, case in {**cases, **others}.items():
        try:
            outcome = case()
        except Exception as error:
            outcome = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        print(json.dumps({"case": name, **outcome}, default=str), flush=True)
