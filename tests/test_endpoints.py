"""The four endpoints as values, and one neutral prompt for any of them."""

from __future__ import annotations

from typing import Any

import pytest

from famnb.endpoints import ENDPOINTS, compose, endpoint, endpoint_for
from famnb.errors import InvalidRequest

PARTS = [{"type": "text", "text": "hi"}]


@pytest.mark.parametrize(
    ("name", "path", "alt", "default"),
    [
        ("chat", "/v1/chat/completions", False, "fam-mini"),
        ("responses", "/v1/responses", True, "fam-2-5-pro"),
        ("web", "/v1/web/chat/completions", True, "fam-2-5-pro"),
        ("messages", "/v1/messages", True, "fam-2-5-pro"),
    ],
)
def test_each_endpoint_is_the_document_s(name: str, path: str, alt: bool, default: str):
    """Its path, its address and the models listed for it."""
    found = endpoint(name)
    assert (found.path, found.alt, found.models[0], found.request.endpoint) == (path, alt, default, name)
    assert found.request.cap in found.request.model_fields
    assert found.request.prompt_field in found.request.model_fields


def test_an_unknown_endpoint_is_answered_with_those_there_are():
    """The refusal says what to choose from."""
    with pytest.raises(
        InvalidRequest, match=r"no endpoint 'completions'; expected one of chat, responses, web, messages"
    ):
        endpoint("completions")


@pytest.mark.parametrize(
    ("model", "name"),
    [("fam-2-5-pro", "messages"), ("fam-2-5-mini", "messages"), ("fam-mini", "chat"), ("p/m", "chat")],
)
def test_a_model_has_an_endpoint(model: str, name: str):
    """The one to use when only a model is named."""
    assert endpoint_for(model).name == name


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "chat",
            {
                "model": "fam-mini",
                "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
                "max_tokens": 9,
                "reasoning": {"effort": "medium"},
                "temperature": 0.5,
            },
        ),
        (
            "responses",
            {
                "model": "fam-2-5-pro",
                "input": "hi",
                "instructions": "be brief",
                "max_output_tokens": 9,
                "reasoning": {"effort": "medium"},
                "temperature": 0.5,
            },
        ),
        (
            "web",
            {
                "model": "fam-2-5-pro",
                "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
                "max_new_tokens": 9,
                "reasoning": {"effort": "medium"},
                "temperature": 0.5,
            },
        ),
        (
            "messages",
            {
                "model": "fam-2-5-pro",
                "messages": [{"role": "user", "content": PARTS}],
                "system": [{"type": "text", "text": "be brief"}],
                "max_tokens": 9,
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "temperature": 0.5,
            },
        ),
    ],
)
def test_one_prompt_for_any_endpoint(name: str, body: dict[str, Any]):
    """System text, cap and thinking go where the endpoint has them; what it has not is said."""
    request = compose(name, "hi", system="be brief", max_tokens=9, thinking=1024, temperature=0.5)
    assert request.body() == body
    loss = f"`thinking=1024` is carried as the nearest reasoning effort: {name} has no token budget"
    assert request.losses == (() if name == "messages" else (loss,))


def test_a_field_of_another_endpoint_is_a_loss():
    """Left out and said so; the request is the same as without it."""
    request = compose("chat", "hi", metadata={"a": "b"}, tools=[])
    assert request.losses == (
        "`metadata` is left out: chat cannot carry it (only responses)",
        "`tools` is left out: chat cannot carry it (only web)",
    )
    assert request.key() == compose("chat", "hi").key()


def test_a_field_given_as_none_is_unset():
    """As it is in `replace`."""
    assert compose("web", "hi", temperature=None, system=None).body() == compose("web", "hi").body()


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        (
            "chat",
            {"temprature": 1},
            "temprature: no endpoint has such a field; did you mean 'temperature'? Fields of chat",
        ),
        ("chat", {"qqq": 1}, "qqq: no endpoint has such a field. Fields of chat: model, messages"),
        ("chat", {"max_tokens": 20_000}, "ChatRequest: max_tokens: input should be less than or equal to 16384"),
        ("web", {"model": "fam-mini"}, "WebChatRequest: model: input should be 'fam-2-5-pro' or"),
        ("messages", {"messages": []}, "messages: given beside a prompt; build a MessagesRequest instead"),
        ("responses", {"input": "ho"}, "input: given beside a prompt; build a ResponsesRequest instead"),
        ("messages", {"thinking": 0}, "thinking: expected a number of tokens of at least 1, or None, got 0"),
        ("chat", {"thinking": True}, "thinking: expected a number of tokens of at least 1, or None, got True"),
    ],
)
def test_what_no_endpoint_can_do_is_refused(name: str, fields: dict[str, Any], said: str):
    """With what was wrong and what to do."""
    with pytest.raises(InvalidRequest) as caught:
        compose(name, "hi", **fields)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("name", ENDPOINTS)
def test_an_empty_prompt_is_refused(name: str):
    """Before anything is sent, as an InvalidRequest."""
    with pytest.raises(InvalidRequest):
        compose(name, "")


def test_a_budget_becomes_the_nearest_effort():
    """Under 1,024 tokens low, under 4,096 medium, else high."""
    efforts = [compose("web", "hi", thinking=tokens).body()["reasoning"]["effort"] for tokens in (1, 1023, 1024, 4096)]
    assert efforts == ["low", "low", "medium", "high"]
