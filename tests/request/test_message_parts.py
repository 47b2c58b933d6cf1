"""Conversations: tool talk, texts and images of a content, and what each endpoint refuses."""

from typing import Any

import pytest

from famnb.errors import InvalidRequest
from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest, WebChatRequest
from famnb.request.message_parts import images, plain_text

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
each_request = pytest.mark.parametrize("request_type", [ChatRequest, WebChatRequest, ResponsesRequest, MessagesRequest])


def talking(request_type: type[Request], *items: Any) -> Request:
    """A request whose conversation these items are."""
    model = "fam-mini" if request_type is ChatRequest else "fam-2-5-pro"
    return request_type(model=model, **{request_type.prompt_field: list(items)})


def refusal_of(request_type: type[Request], *items: Any) -> str:
    """What the refusal of such a conversation says."""
    with pytest.raises(InvalidRequest) as caught:
        talking(request_type, *items)
    return str(caught.value).removeprefix(f"{request_type.__name__}: {request_type.prompt_field}")


@each_request
@pytest.mark.parametrize(
    ("content", "start"),
    [
        ([], "[0].content: list should have at least 1 item"),
        ("", "[0].content: string should have at least 1 character"),
        ([{}], "[0].content[0].type: required, but missing"),
        ([123], "[0].content[0]: input should be an object, got 123"),
        (7, "[0].content: input should be a text, a part or a list of parts, got 7"),
        ({"type": "audio"}, "[0].content.type: input should be 'text',"),
        ({"type": "text"}, "[0].content: a text part needs a non-empty `text`"),
        ({"type": "text", "text": ""}, "[0].content: a text part needs a non-empty `text`"),
        ({"type": "input_image"}, "[0].content: an image part needs an `image_url`"),
        ({"type": "text", "txet": "hi", "text": "hi"}, "[0].content.txet: no such field"),
    ],
)
def test_contents_that_say_nothing(request_type: type[Request], content: Any, start: str):
    assert refusal_of(request_type, {"role": "user", "content": content}).startswith(start)


@pytest.mark.parametrize("request_type", [ChatRequest, WebChatRequest])
def test_tool_talk(request_type: type[Request]):
    call = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    answer = {"role": "tool", "content": "", "tool_call_id": "a"}
    question = {"role": "user", "content": "hi"}
    assert talking(request_type, question, call, answer).body()["messages"] == [question, call, answer]
    assert talking(request_type, {"role": "assistant", "tool_calls": [CALL]})
    assert refusal_of(request_type, {"role": "tool", "content": "x"}) == (
        "[0]: a tool message needs the `tool_call_id` it answers"
    )
    for empty in ({"role": "assistant", "content": ""}, {"role": "assistant"}, {"role": "user"}):
        assert refusal_of(request_type, empty) == "[0]: a message needs `content`"


def test_the_text_and_the_images_of_a_content():
    parts = [
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": "u1"}},
        {"type": "input_image", "image_url": "u2"},
        {"type": "text", "text": "two"},
    ]
    content = talking(MessagesRequest, {"role": "user", "content": parts}).messages[0].content
    assert plain_text(content) == "one\ntwo"
    assert images(content) == ("u1", "u2")
    assert (plain_text("hi"), images("hi"), plain_text(None)) == ("hi", (), "")
