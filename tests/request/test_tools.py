"""Python functions as tools: what the model is told of them, and how its arguments are read."""

from __future__ import annotations

import asyncio
import enum
from typing import Any, Literal

import jsonschema
import pydantic
import pytest

import famnb
from famnb.request.tools import FunctionTool


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(pydantic.BaseModel):
    city: str
    country: str = "NO"


@famnb.tool
def forecast(
    place: Place, days: int = 3, unit: Unit = Unit.CELSIUS, at: list[str] | None = None, how: Literal["a", "b"] = "a"
) -> str:
    """The weather to come.

    For a few days, from a station nearby.

    Args:
        place: Where.
        days: How many days.
        unit: Of temperatures.
        at: Hours of the day.
        how: In which form.

    """
    return f"{place.city} {days} {unit.name} {at} {how}"


def test_a_function_describes_itself():
    function = famnb.compose("web", "Hi", tools=[forecast]).body()["tools"][0]["function"]
    schema = function["parameters"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert function["name"] == "forecast"
    assert function["description"] == "The weather to come.\n\nFor a few days, from a station nearby."
    assert schema["required"] == ["place"]
    assert schema["properties"]["days"] == {"type": "integer", "default": 3, "description": "How many days."}
    assert schema["$defs"]["Unit"]["enum"] == ["c", "f"]
    assert schema["properties"]["how"]["enum"] == ["a", "b"]
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    "docstring",
    [
        "Add.\n\nArgs:\n    a: The first.",
        "Add.\n\nParameters\n----------\na : int\n    The first.",
        "Add.\n\n:param a: The first.",
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_each_style_of_docstring_is_read(docstring: str):
    def add(a: int, b: int = 0) -> int:
        return a + b

    add.__doc__ = docstring
    tool = famnb.tool(add)
    assert tool.description == "Add."
    assert tool.parameters["properties"]["a"]["description"] == "The first."


def test_a_tool_is_still_the_function():
    assert forecast(Place(city="Oslo")) == "Oslo 3 CELSIUS None a"
    assert forecast.__name__ == "forecast"
    assert "station" in (forecast.__doc__ or "")


def test_arguments_become_python_values():
    bound = forecast.bind('{"place": {"city": "Oslo"}, "days": "5", "unit": "f", "at": ["noon"]}')
    assert bound == {"place": Place(city="Oslo"), "days": 5, "unit": Unit.FAHRENHEIT, "at": ["noon"], "how": "a"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{}", "place: required, but missing"),
        ('{"place": {"city": "Oslo"}, "unit": "k"}', "unit: input should be 'c' or 'f', got 'k'"),
        ('{"place": {}}', "place.city: required, but missing"),
        ('{"place": {"city": "Oslo"}, "town": 1}', "town: no such parameter; the parameters are place, days"),
        ('{"place": ', "the arguments: invalid JSON"),
        ("[]", "place: required, but missing"),
    ],
)
def test_wrong_arguments_are_explained_to_the_model(arguments: str, words: str):
    with pytest.raises(ValueError, match=words.replace("[", r"\[")):
        forecast.bind(arguments)


def untyped(city):
    """Find."""


def undocumented(city: str): ...


def starred(*cities: str):
    """Find."""


def unknown_type(city: Town):  # noqa: F821 - the name is meant to be missing
    """Find."""


class Handle:
    """No JSON form."""


def unsupported(city: Handle):
    """Find."""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (untyped, "parameter 'city' has no type; write `city: str`"),
        (undocumented, "no docstring.*description="),
        (starred, r"\*cities.*cannot be called by name"),
        (unknown_type, "Town.*define it first"),
        (unsupported, "without a JSON form.*use str, int"),
        (lambda: None, "name=..."),
    ],
)
def test_what_cannot_be_a_tool_says_what_to_do(function: Any, words: str):
    with pytest.raises(famnb.InvalidRequest, match=words):
        famnb.tool(function)


def test_a_tool_may_be_given_another_name_and_description():
    tool = famnb.tool(name="find-town", description="Finds towns.")(lambda: "Oslo")
    assert isinstance(tool, FunctionTool)
    assert (tool.name, tool.description, tool()) == ("find-town", "Finds towns.", "Oslo")


def test_a_coroutine_function_is_a_tool_too():
    @famnb.tool
    async def wait(seconds: float) -> str:
        """Wait."""
        return f"{seconds} s"

    assert asyncio.run(wait(1.0)) == "1.0 s"


def test_functions_go_into_requests_as_they_are():
    request = famnb.compose("web", "Hi", tools=[forecast])
    function = {"name": "forecast", "description": forecast.description, "parameters": forecast.parameters}
    assert request.body()["tools"] == [{"type": "function", "function": function}]
    for endpoint in ("chat", "responses", "messages"):
        with pytest.raises(famnb.InvalidRequest, match="use endpoint='web'"):
            famnb.compose(endpoint, "Hi", tools=[forecast])
