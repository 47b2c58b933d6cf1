"""What holds for every request: strict, immutable, sent as it was set, identified by what is sent."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import given

from famnb.endpoints import ENDPOINTS, compose, endpoint
from famnb.errors import FamnbError, InvalidRequest
from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest
from famnb.request.base import format_location
from tests.support.strategies import requests, wide_requests

HI = [{"role": "user", "content": "hi"}]


def test_only_what_was_set_is_sent():
    request = MessagesRequest(model="fam-2-5-pro", messages=HI)
    assert request.body() == {"model": "fam-2-5-pro", "messages": HI}
    assert request.temperature == 0.1
    assert MessagesRequest(model="fam-2-5-pro", messages=HI, temperature=0.1).body()["temperature"] == 0.1


def test_the_body_has_the_order_of_the_document():
    request = ResponsesRequest(top_p=1.0, input="hi", stream=True, model="fam-2-5-pro")
    assert list(request.body()) == ["model", "input", "stream", "top_p"]


@given(requests | wide_requests)
def test_a_body_makes_the_same_request(request_: Request):
    """What was sent can be made again from its record, and has the same key."""
    again = type(request_)(**request_.body())
    assert again == request_
    assert again.key() == request_.key()


def test_the_key_is_the_content():
    request = ChatRequest(model="fam-mini", messages=HI, temperature=1)
    assert request.key() == ChatRequest(temperature=1.0, messages=HI, model="fam-mini").key()
    others: list[Request] = [
        request.replace(temperature=0.5),
        request.replace(temperature=None),
        request.replace(stream=False),
        MessagesRequest(model="fam-2-5-pro", messages=HI),
    ]
    assert len({request.key(), *(other.key() for other in others)}) == 5
    pairs = [("a", "1"), ("b", "2")]
    reordered = [ResponsesRequest(model="fam-2-5-pro", input="hi", metadata=dict(p)) for p in (pairs, pairs[::-1])]
    assert reordered[0].key() == reordered[1].key()


def test_replace_changes_and_unsets():
    request = MessagesRequest(model="fam-2-5-pro", messages=HI, stream=True)
    assert request.replace(stream=None, max_tokens=5).body() == {
        "model": "fam-2-5-pro",
        "messages": HI,
        "max_tokens": 5,
    }
    assert request.streams
    with pytest.raises(InvalidRequest, match="max_tokens"):
        request.replace(max_tokens=0)


def test_a_schema_keeps_its_name_through_replace():
    format_ = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}
    request = ResponsesRequest(model="fam-2-5-pro", input="hi", text={"format": format_})
    assert request.replace(stream=True).body()["text"] == {"format": format_}


def test_a_request_cannot_be_changed():
    request = ChatRequest(model="fam-mini", messages=HI)
    with pytest.raises(ValueError, match="frozen"):
        request.stream = True


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"max_token": 5, "seed": 1}, ["max_token: no such field; seed: no such field", "model, messages, stream"]),
        ({"temperature": "x" * 100}, ["temperature: ", "valid number", f"got '{'x' * 58}…"]),
        (
            {"messages": [*HI, {"role": "user", "content": [{"type": "text", "text": 3}]}]},
            ["messages[1].content[0].text: ", "valid string", "got 3"],
        ),
        ({"model": "fam-2-5-pro"}, ["model: expected `fam-mini` or `<provider>/<model>`, got 'fam-2-5-pro'"]),
    ],
)
def test_an_error_names_the_location_the_fault_and_what_was_given(fields: dict[str, Any], parts: list[str]):
    with pytest.raises(InvalidRequest) as caught:
        ChatRequest(**{"model": "fam-mini", "messages": HI, **fields})
    message = str(caught.value)
    assert message.startswith("ChatRequest: ")
    assert "\n" not in message
    assert [part for part in parts if part not in message] == []
    assert isinstance(caught.value, FamnbError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (("messages", 0, "content", "<parts>", 1, "text"), "messages[0].content[1].text"),
        (("metadata", "Key"), "metadata.Key"),
        (("metadata", "two words"), "metadata['two words']"),
        (("metadata", "k" * 100, "[key]"), f"metadata.{'k' * 59}…"),
        ((), ""),
    ],
)
def test_a_location_is_written_as_a_path(location: tuple[int | str, ...], path: str):
    assert format_location(location) == path


@pytest.mark.parametrize("name", ENDPOINTS)
def test_sending_a_request_leaves_it_as_it_was(name: str):
    request, untouched = compose(name, "hi"), compose(name, "hi")
    assert json.loads(request.body_json()) == request.body()
    assert request.key() == untouched.key()
    assert request == untouched == pickle.loads(pickle.dumps(request))
    assert repr(request) == repr(untouched)
    other = request.model_copy(update={"temperature": 0.5})
    assert other.key() == request.replace(temperature=0.5).key() != request.key()


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_request_is_read_in_shared_terms(name: str):
    request = compose(name, "hi", system="be brief", max_tokens=9, temperature=0.5)
    system = [request.system_turn] if request.system_turn else []
    assert [(turn.role, turn.text) for turn in (*system, *request.turns())] == [("system", "be brief"), ("user", "hi")]
    assert (request.settings().cap, request.settings().temperature) == (9, 0.5)


@pytest.mark.parametrize("name", ENDPOINTS)
def test_the_traits_of_an_endpoint_agree_with_its_model(name: str):
    at = endpoint(name)
    fields = set(at.request.model_fields)
    named = {at.traits.system_field, *at.traits.usage_fields, *at.traits.groups} - {None}
    named |= {path[0] for pair in at.traits.implied.items() for path in (pair[0], pair[1][0])}
    assert named <= fields
    assert fields - set(at.traits.groups) == {at.request.cap, at.request.prompt_field}
