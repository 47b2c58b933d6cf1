"""Python types as the form of an answer: the schema each endpoint is sent, and partial JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import famnb
from famnb.errors import InvalidRequest
from famnb.request.structured_output import json_format, parse, parse_partial


class Stop(pydantic.BaseModel):
    title: str = "somewhere"
    nights: int


class Trip(pydantic.BaseModel):
    name: str
    stops: list[Stop]
    default: float | None = None


class Node(pydantic.BaseModel):
    children: list[Node] = []


@dataclasses.dataclass
class Point:
    x: float


def test_a_model_is_a_strict_schema():
    form = json_format(Trip)
    assert (form["name"], form["strict"]) == ("Trip", True)
    assert form["schema"]["required"] == ["name", "stops", "default"]
    assert form["schema"]["$defs"]["Stop"]["required"] == ["title", "nights"]
    assert form["schema"]["$defs"]["Stop"]["additionalProperties"] is False
    jsonschema.Draft202012Validator.check_schema(form["schema"])


def test_open_objects_are_not_claimed_to_be_strict():
    class Counts(pydantic.BaseModel):
        words: dict[str, int]

    assert json_format(Counts)["strict"] is False


@pytest.mark.parametrize("kind", [Node, Point])
def test_the_top_of_a_schema_is_an_object(kind: Any):
    assert json_format(kind)["schema"]["type"] == "object"


@pytest.mark.parametrize("kind", [list[int], int, object()])
def test_a_type_that_is_not_an_object_is_refused(kind: Any):
    with pytest.raises(famnb.InvalidRequest, match="model"):
        json_format(kind)


def test_each_endpoint_carries_the_schema_in_its_own_field():
    responses = famnb.compose("responses", "Hi", schema=Trip, text={"verbosity": "low"}).body()["text"]
    assert responses["verbosity"] == "low"
    assert responses["format"]["type"] == "json_schema"
    for endpoint in ("chat", "web"):
        form = famnb.compose(endpoint, "Hi", schema=Trip).body()["response_format"]
        assert form["json_schema"]["schema"] == responses["format"]["schema"]


def test_messages_cannot_be_held_to_a_schema():
    with pytest.raises(famnb.InvalidRequest, match="use endpoint='chat' or 'responses' or 'web'"):
        famnb.compose("messages", "Hi", schema=Trip)


def test_a_form_of_ones_own_is_left_alone():
    body = famnb.compose("web", "Hi", schema=Trip, response_format={"type": "json"}).body()
    assert body["response_format"] == {"type": "json"}


@given(st.dictionaries(st.text(), st.lists(st.integers() | st.text() | st.none())), st.data())
def test_any_beginning_of_a_json_object_can_be_read(value: dict, data: st.DataObject):
    text = json.dumps(value)
    partial = parse_partial(text[: data.draw(st.integers(0, len(text)))])
    assert partial is None or set(partial) <= set(value)
    assert parse_partial(text) == value


def test_a_json_schema_may_be_given_as_it_is():
    """It is strict if all of it is closed, and what it asks for is checked."""
    closed = {
        "title": "A trip",
        "type": "object",
        "properties": {"days": {"type": "integer"}},
        "required": ["days"],
        "additionalProperties": False,
    }
    assert json_format(closed) == {"name": "A_trip", "schema": closed, "strict": False}
    untitled = {name: value for name, value in closed.items() if name != "title"}
    assert json_format(untitled) == {"name": "answer", "schema": untitled, "strict": True}
    assert parse('{"days": 3}', closed) == {"days": 3}
    with pytest.raises(pydantic.ValidationError, match=r"days\n.*is not of type"):
        parse('{"days": "three"}', closed)
    for kind in ({"type": "array"}, {"type": "strange"}):
        with pytest.raises(InvalidRequest, match="schema: "):
            json_format(kind)
