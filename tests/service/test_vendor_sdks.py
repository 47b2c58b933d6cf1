"""The vendors' own SDKs at a service without `compat`; `tests/conformance` has what they do with it."""

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from famnb.service import Server
from tests.support.service_requests import PATHS, ServiceClient

PROMPT = "Say hello in one sentence."


@pytest.fixture
def responses(server: Server) -> Iterator[openai.OpenAI]:
    """The OpenAI SDK at the responses endpoint."""
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as client:
        yield client


@pytest.fixture
def messages(server: Server) -> Iterator[anthropic.Anthropic]:
    """The Anthropic SDK, which refuses what is not exactly as its types say."""
    with anthropic.Anthropic(
        base_url=server.url, api_key=server.key, max_retries=0, _strict_response_validation=True
    ) as client:
        yield client


def test_responses(responses: openai.OpenAI):
    first = responses.responses.create(model="fam-2-5-pro", input="My name is Ada.", instructions="Be kind.")
    assert first.status == "completed"
    assert "Be kind." in first.output_text
    second = responses.responses.create(model="fam-2-5-pro", input="My name?", previous_response_id=first.id)
    assert "My name is Ada." in second.output_text
    assert responses.responses.retrieve(first.id).output_text == first.output_text
    responses.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        responses.responses.retrieve(first.id)


ASK: Any = {"model": "fam-2-5-pro", "max_tokens": 2000, "messages": [{"role": "user", "content": PROMPT}]}
CHAT: Any = {"model": "fam-mini", "messages": ASK["messages"]}
THINK = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


@pytest.mark.parametrize("options", [{}, THINK], ids=["plain", "thinking"])
def test_messages_under_strict_validation(messages: anthropic.Anthropic, options: Any):
    whole = messages.messages.create(**ASK, **options)
    with messages.messages.stream(**ASK, **options) as stream:
        events = list(stream)
        final = stream.get_final_message()
    assert whole._request_id is not None
    assert whole._request_id.startswith("req_")
    assert [block.model_dump(exclude={"thinking_latency_ms"}) for block in final.content] == [
        block.model_dump(exclude={"thinking_latency_ms"}) for block in whole.content
    ]
    assert (final.usage, final.stop_reason) == (whole.usage, "end_turn")
    assert [block.type for block in whole.content] == [*(["thinking"] if options else []), "text"]
    assert events[0].type == "message_start"
    assert events[0].message.usage.input_tokens == whole.usage.input_tokens
    if options:
        assert whole.content[0].type == "thinking"
        assert len(whole.content[0].signature) > 20
        assert [event.signature for event in events if event.type == "signature"] == [whole.content[0].signature]


def test_an_error_has_the_vendor_s_fields_beside_the_document_s(api: ServiceClient):
    answer = api.post(PATHS["messages"], json={}, headers={"anthropic-version": "2023-06-01"})
    body = answer.json()
    assert (body["type"], body["error"]["type"], body["error"]["error"]["type"]) == (
        "error",
        "error",
        "invalid_request_error",
    )
    assert body["error"]["message"] == body["error"]["error"]["message"]
    assert answer.headers["request-id"] == answer.headers["x-request-id"]


def test_the_sdks_recognise_a_wrong_key_and_a_bad_request(responses: openai.OpenAI, messages: anthropic.Anthropic):
    wrong = responses.with_options(api_key="wrong")
    with pytest.raises(openai.AuthenticationError) as unauthorized:
        wrong.responses.create(model="fam-2-5-pro", input="x")
    assert unauthorized.value.code == "invalid_api_key"
    with pytest.raises(openai.AuthenticationError):
        wrong.chat.completions.create(**CHAT, stream=True)
    with pytest.raises(anthropic.AuthenticationError):
        messages.with_options(api_key="wrong").messages.create(**ASK)
    with pytest.raises(openai.BadRequestError) as refused:
        responses.responses.create(model="fam-2-5-pro", input="x", temperature=3)
    assert refused.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as refused:
        responses.chat.completions.create(**{**CHAT, "model": "fam-9"})
    assert refused.value.code == "model_not_found"
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        messages.messages.create(**{**ASK, "max_tokens": 0})


def test_the_sdks_recognise_a_failure_inside_a_stream(responses: openai.OpenAI, messages: anthropic.Anthropic):
    headers = {"x-famnb-fault": "error=2"}
    stream = responses.responses.create(model="fam-2-5-pro", input=PROMPT, stream=True, extra_headers=headers)
    assert list(stream)[-1].type == "response.failed"
    with pytest.raises(openai.APIError):
        list(responses.chat.completions.create(**CHAT, stream=True, extra_headers=headers))
    with pytest.raises(anthropic.APIStatusError), messages.messages.stream(**ASK, extra_headers=headers) as broken:
        broken.until_done()
