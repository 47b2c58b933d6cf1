"""`llm`, through its Python interface, with a model that its own file of further models declares."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from report import CAP, KEY, MODEL, PROMPT, URL, WEATHER_PROMPT, Weather, WeatherTool, report

folder = Path(tempfile.mkdtemp())
os.environ["LLM_USER_PATH"] = str(folder)
declared = {
    "model_id": "famnb",
    "model_name": MODEL,
    "api_base": f"{URL}/v1",
    "api_key_name": "famnb",
    "supports_tools": True,
    "supports_schema": True,
}
(folder / "extra-openai-models.yaml").write_text(json.dumps([declared]))
(folder / "keys.json").write_text(json.dumps({"famnb": KEY}))

import llm  # noqa: E402 - reads the folder's name when imported

model = llm.get_model("famnb")


def text(*, stream: bool) -> dict[str, Any]:
    response = model.prompt(PROMPT, stream=stream, max_tokens=CAP)
    return {"text": response.text(), "output_tokens": response.usage().output}


def tools(*, stream: bool) -> dict[str, Any]:
    weather = WeatherTool()
    chain = model.chain(WEATHER_PROMPT, tools=[weather.get_weather], stream=stream, options={"max_tokens": CAP})
    *_, last = chain.responses()
    return {"calls": weather.calls, "text": last.text()}


def answer(*, stream: bool) -> dict[str, Any]:
    response = model.prompt(WEATHER_PROMPT, stream=stream, schema=Weather, max_tokens=CAP)
    return {"answer": json.loads(response.text())}


report(text, tools, answer)
