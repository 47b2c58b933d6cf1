"""What servers say beside the text: usage in its many places, attachments, ends that are none, odd failures."""

import json
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from famnb.record.price_book import PriceBook
from famnb.reply import Reply, fold
from famnb.wire import chat, lenient_json, messages, responses, sse
from tests.support.strategies import read


def fold_stream(dialect: ModuleType, *events: Any) -> Reply:
    return fold(read(dialect, [sse.encode(lenient_json.encode(event)) for event in events]))


def chat_body(usage: Any = None, *, text: str = "Yes.", finish: str = "stop", **choice: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **choice.pop("message", {})}
    body = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish, **choice}]}
    return body if usage is None else {**body, "usage": usage}


def chat_chunks(usage: Any = None, *, finish: str = "stop", **choice: Any) -> list[dict[str, Any]]:
    head = {"id": "c", "model": "m"}
    delta = {"content": "Yes.", **choice.pop("delta", {})}
    return [
        {**head, "choices": [{"index": 0, "delta": delta, **choice}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
    ]


def message(usage: Any = None, *, stop: str = "end_turn", content: Any = None) -> dict[str, Any]:
    blocks = content or [{"type": "text", "text": "Yes."}]
    return {"id": "m", "model": "m", "content": blocks, "stop_reason": stop, "usage": usage}


def response(usage: Any = None, *, status: str = "completed", **part: Any) -> dict[str, Any]:
    item = {"type": "message", "id": "i", "content": [{"type": "output_text", "text": "Yes.", **part}]}
    return {"id": "r", "model": "m", "status": status, "output": [item], "usage": usage}


def text_delta(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text, **fields}


def block_delta(**delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": delta}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'error: {"code": 500, "message": "out of memory", "type": "server_error"}\n\n', "out of memory"),
        (b"error: no room for the context\n\n", "no room for the context"),
        (b'error: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
        (b'{"error": {"message": "out of memory"}}\n', "out of memory"),
        (b'{"error": "out of memory"}', "out of memory"),
    ],
)
@pytest.mark.parametrize("dialect", [chat, responses, messages], ids=["chat", "responses", "messages"])
def test_an_error_beside_the_data_is_a_failure_in_the_servers_words(dialect: ModuleType, line: bytes, message: str):
    reply = fold(read(dialect, [b": hello\n\n", line]))
    assert (reply.status, reply.fault and reply.fault.message) == ("failed", message)


@pytest.mark.parametrize("line", [b'{"error": null}\n', b"{no JSON}\n", b"errors: 3\n"])
def test_other_lines_stay_without_a_meaning(line: bytes):
    assert sse.Decoder().feed(line) == []


ZERO = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@pytest.mark.parametrize(
    "reply",
    [
        fold(chat.read(chat_body(ZERO))),
        fold_stream(chat, *chat_chunks(ZERO)),
        fold(messages.read(message({"input_tokens": 0, "output_tokens": 0}))),
        fold(responses.read(response({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}))),
    ],
    ids=["chat", "chat stream", "messages", "responses"],
)
def test_a_reported_zero_is_a_zero_and_leaves_the_cost_open(reply: Reply):
    """No prompt is empty: whoever reports none has not counted, or does not bill."""
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("Yes.", 0, 0)
    book = PriceBook()
    book.set("m", input=1, output=10)
    cost = book.cost("m", reply.usage)
    assert cost is not None
    assert (cost.low, cost.high, cost.exact) == (0, Decimal("Infinity"), False)


def test_a_total_that_contradicts_its_parts_is_a_warning_and_widens_the_cost():
    """3 + 5 are not 20: the output may be 17, the input 15."""
    reply = fold(chat.read(chat_body({"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 20})))
    assert "3 tokens of input and 5 of output are not the 20 in all" in reply.warnings[0]
    book = PriceBook()
    book.set("m", input=1, output=10)
    cost = book.cost("m", reply.usage, has_cache_writes=False)
    assert cost is not None
    assert (cost.usd, cost.low, cost.high) == tuple(Decimal(usd) / 1_000_000 for usd in (53, 53, 185))


CACHE = {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 2}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            fold(chat.read(chat_body({"prompt_tokens": 9, "prompt_tokens_details": {"cache_write_tokens": 4}}))),
            {"cache_write_tokens": 4},
        ),
        (
            fold(chat.read(chat_body({"prompt_tokens": 9, "completion_tokens": 5, "thinking_tokens": 3}))),
            {"reasoning_tokens": 3},
        ),
        (
            fold_stream(chat, *chat_chunks(), {"choices": [], "x_groq": {"usage": {"prompt_tokens": 9}}}),
            {"input_tokens": 9},
        ),
        (
            fold(messages.read(message({"input_tokens": 3, "output_tokens": 5, "cache_creation": CACHE}))),
            {"input_tokens": 9, "cache_write_tokens": 6, "cache_write_5m_tokens": 4, "cache_write_1h_tokens": 2},
        ),
        (
            fold_stream(
                messages,
                {"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_creation": CACHE}}},
                block_delta(type="text_delta", text="Yes."),
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": 5, "output_tokens_details": {"thinking_tokens": 2}},
                },
            ),
            {"input_tokens": 9, "cache_write_1h_tokens": 2, "reasoning_tokens": 2, "output_tokens": 5},
        ),
        (
            fold(responses.read(response({"input_tokens": 9, "input_tokens_details": {"cache_write_tokens": 4}}))),
            {"cache_write_tokens": 4},
        ),
    ],
    ids=["chat cache", "chat thinking", "groq", "messages", "messages stream", "responses"],
)
def test_counts_are_found_where_servers_put_them(reply: Reply, expected: dict[str, int]):
    assert {name: getattr(reply.usage, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        ({"cost": 0.00125}, 0.00125),
        ({"cost": {"total_cost": "0.5"}}, 0.5),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.04}}, 0.05),
        ({"cost": -1}, None),
        ({"cost": True}, None),
    ],
)
def test_the_cost_that_a_service_reports_is_the_cost(usage: dict[str, Any], usd: float | None):
    reply = fold(chat.read(chat_body({"prompt_tokens": 3, "completion_tokens": 5, **usage})))
    assert reply.usage.cost_usd == usd
    cost = PriceBook().cost("nobody knows its price", reply.usage)
    assert (cost and (cost.usd, cost.exact)) == (usd and (Decimal(str(usd)), True))


def test_a_second_choice_is_a_warning():
    body = chat_body()
    body["choices"].append({**body["choices"][0], "index": 1})
    second = {"id": "c", "model": "m", "choices": [{"index": 1, "delta": {"content": "No."}}]}
    first, last = chat_chunks()
    body["choices"].reverse()
    for reply in (fold(chat.read(body)), fold_stream(chat, second, first, second, last)):
        assert reply.text == "Yes."
        assert reply.warnings == (
            "the service sent more than one choice; only that of index 0 is read, `reply.raw` has all",
        )


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (fold(chat.read(chat_body(finish="insufficient_system_resource"))), "insufficient_system_resource"),
        (fold(messages.read(message(stop="model_context_window_exceeded"))), "length"),
        (fold(messages.read(message(stop="pause_turn"))), "pause_turn"),
    ],
)
def test_a_reply_cut_short_by_the_service_is_incomplete(reply: Reply, reason: str):
    assert (reply.status, reply.finish_reason) == ("incomplete", reason)


def test_a_queued_response_is_called_queued():
    body = {"id": "r1", "status": "queued", "output": []}
    queued = {"type": "response.queued", "response": body}
    for reply in (fold(responses.read(body)), fold_stream(responses, queued)):
        assert reply.status == "running"
        assert "the response r1 is 'queued': the service has accepted it" in reply.warnings[0]
    begun = {"type": "response.in_progress", "response": {"id": "r1", "status": "in_progress"}}
    assert fold_stream(responses, queued, begun).warnings == ()


CITATION = {"type": "page_location", "cited_text": "blue", "start_page_number": 1}
ANNOTATION = {"type": "url_citation", "url": "https://example.org", "title": "Sky"}
ANNOTATION_EVENT = {
    **{"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0},
    **{"annotation_index": 0, "annotation": ANNOTATION},
}
TOKENS = [{"token": "Ye", "logprob": -0.5}, {"token": "s.", "logprob": -0.1}]


@pytest.mark.parametrize(
    ("reply", "kind", "entries"),
    [
        (
            fold(messages.read(message(content=[{"type": "text", "text": "Yes.", "citations": [CITATION]}]))),
            "citations",
            [CITATION],
        ),
        (
            fold_stream(
                messages,
                block_delta(type="text_delta", text="Yes."),
                block_delta(type="citations_delta", citation=CITATION),
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            ),
            "citations",
            [CITATION],
        ),
        (fold(chat.read(chat_body(message={"annotations": [ANNOTATION]}))), "annotations", [ANNOTATION]),
        (fold_stream(chat, *chat_chunks(delta={"annotations": [ANNOTATION]})), "annotations", [ANNOTATION]),
        (fold(chat.read(chat_body(logprobs={"content": TOKENS}))), "logprobs", TOKENS),
        (fold_stream(chat, *chat_chunks(logprobs={"content": TOKENS})), "logprobs", TOKENS),
        (fold(responses.read(response(annotations=[ANNOTATION]))), "annotations", [ANNOTATION]),
        (fold(responses.read(response(logprobs=TOKENS))), "logprobs", TOKENS),
        (
            fold_stream(
                responses,
                text_delta("Ye", logprobs=TOKENS[:1]),
                text_delta("s.", logprobs=TOKENS[1:]),
                {"type": "response.completed", "response": response(logprobs=TOKENS)},
            ),
            "logprobs",
            TOKENS,
        ),
        (
            fold_stream(
                responses,
                text_delta("Yes."),
                ANNOTATION_EVENT,
                {"type": "response.completed", "response": response(annotations=[ANNOTATION])},
            ),
            "annotations",
            [ANNOTATION],
        ),
    ],
)
def test_what_is_attached_to_a_text_is_a_block(reply: Reply, kind: str, entries: list[Any]):
    text, attached = reply.blocks
    assert (text.kind, text.text, attached.kind, attached.entries) == ("text", "Yes.", kind, entries)
    assert (reply.text, reply.output_chars, text.entries) == ("Yes.", 4, [])
    assert json.loads(attached.text) == entries


@pytest.mark.parametrize(
    ("dialect", "kinds"),
    [(chat, ["text", "logprobs"]), (responses, ["text", "logprobs"]), (messages, ["text"])],
    ids=["chat", "responses", "messages"],
)
def test_what_a_dialect_cannot_carry_is_left_out(dialect: ModuleType, kinds: list[str]):
    events = chat.read(chat_body(logprobs={"content": TOKENS}, message={"annotations": [ANNOTATION]}))
    writer = dialect.writer()
    reply = fold(read(dialect, [frame for event in events for frame in writer.write(event)]))
    whole = fold(dialect.read(dialect.write(fold(events))))
    for blocks in (reply.blocks, whole.blocks):
        assert [block.kind for block in blocks] == kinds
        assert [block.entries for block in blocks if block.kind == "logprobs"] == [TOKENS] * (len(kinds) - 1)
